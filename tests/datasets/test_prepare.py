"""Each data set prepared with what goes wrong: dead servers, halves, breaks, a missing split."""

import shutil
import tarfile

import pytest

import datasets
from datasets import digiface
from tests.datasets.flaky_server import Flaky, serve
from tests.datasets.sources import archive, md5, runner, use_manifest
from tests.datasets.trees import (
    make_cars_half,
    make_cars_old,
    make_cub,
    make_digiface,
    make_inaturalist,
    make_sop,
)


@pytest.fixture
def run(capsys):
    return runner(capsys)


def test_cars_when_every_server_is_gone(run, tmp_path, monkeypatch):
    root = tmp_path / "root"
    classes = [1, 1, 99, 99]
    made = make_cars_half(make_cars_half(tmp_path / "made", "train", classes), "test", classes)
    files = {
        "cars_train.tgz": ("cars_train",),
        "cars_test.tgz": ("cars_test",),
        "car_devkit.tgz": ("devkit",),
    }
    labels = (made / "devkit/cars_test_annos_withlabels.mat").read_bytes()
    (made / "devkit/cars_test_annos_withlabels.mat").unlink()
    sums = {name: md5(archive(tmp_path / name, made, *parts)) for name, parts in files.items()}
    (tmp_path / "cars_test_annos_withlabels.mat").write_bytes(labels)
    brought = [{"file": name, "md5": value, "unpack_to": "."} for name, value in sums.items()]
    brought.append({"file": "cars_test_annos_withlabels.mat", "md5": md5(labels)})
    gone = {"file": "car_ims.tgz", "urls": ["http://127.0.0.1:9/x"], "manual": "ask a friend"}
    use_manifest(
        monkeypatch,
        tmp_path,
        cars={
            "counts": [4, 4, 1, 1],
            "downloads": [gone],
            "alternatives": brought,
            "subsets": {"train": [2, 2, 1, 1]},
        },
    )
    monkeypatch.setattr("datasets.http_reader.time.sleep", lambda _: None)
    code, _, err = run("prepare", "cars", "--root", root)
    assert code == 2
    assert "by hand: ask a friend, put it into" in err
    # One half is brought.
    for name in ("cars_train.tgz", "car_devkit.tgz"):
        shutil.copy(tmp_path / name, root / "cars")
    code, _, err = run("prepare", "cars", "--root", root)
    assert code == 2
    assert "cars_test with cars_test_annos_withlabels.mat is missing" in err
    code, out, err = run("verify", "cars", "--root", root, "--option", "halves=train")
    assert code == 0, err
    # A wrong file for the other half, then the right one, beside the root's folders.
    (root / "cars_test.tgz").write_bytes(b"something else")
    code, _, err = run("prepare", "cars", "--root", root)
    assert code == 2
    assert "cars_test.tgz has a wrong checksum" in err
    shutil.copy(tmp_path / "cars_test.tgz", root)
    shutil.copy(tmp_path / "cars_test_annos_withlabels.mat", root)
    code, out, err = run("prepare", "cars", "--root", root)
    assert code == 0, err
    assert out.endswith("verified\n")


def test_inaturalist_streams_by_and_has_a_declared_stand_in(run, tmp_path, monkeypatch):
    root = tmp_path / "root"
    made = make_inaturalist(tmp_path / "made", [2, 3], [4])
    parts = {
        "train_val2018.tar.gz": ("train_val2018",),
        "train2018.json.tar.gz": (),
        "val2018.json.tar.gz": (),
    }
    served = {}
    downloads = [
        {"file": "Inat_dataset_splits.zip", "urls": ["http://127.0.0.1:9/x"], "unpack_to": "."}
    ]
    downloads[0] |= {"optional": True, "manual": "use a browser, or --option split=stand-in"}
    with tarfile.open(tmp_path / "train2018.json.tar.gz", "w:gz") as file:
        file.add(made / "train2018.json", "train2018.json")
    with tarfile.open(tmp_path / "val2018.json.tar.gz", "w:gz") as file:
        file.add(made / "val2018.json", "val2018.json")
    archive(tmp_path / "train_val2018.tar.gz", made, "train_val2018")
    for number, name in enumerate(sorted(parts)):
        data = (tmp_path / name).read_bytes()
        served[f"f{number}"] = Flaky(data, drop_after=[len(data) // 3])
        downloads.append({"file": name, "md5": md5(data), "unpack_to": ".", "manual": "ask"})
    monkeypatch.setattr("datasets.http_reader.time.sleep", lambda _: None)
    with serve(**served) as base:
        for number, item in enumerate(downloads[1:]):
            item["urls"] = [f"{base}/f{number}"]
        use_manifest(
            monkeypatch, tmp_path, inaturalist={"counts": [5, 4, 2, 1], "downloads": downloads}
        )
        code, out, err = run("prepare", "inaturalist", "--root", root, "--resize", "8")
    assert code == 2
    assert "warning: cannot fetch Inat_dataset_splits.zip" in out
    assert "Inaturalist_train_set1.txt is missing" in err
    assert "--option split=stand-in" in err
    # The archive of the images was never stored.
    assert not list(root.rglob("train_val2018.tar.gz"))
    arguments = ("inaturalist", "--root", root, "--resize", "8")
    code, out, err = run("verify", *arguments, "--option", "split=stand-in")
    assert code == 0, err
    assert "stand-in for the published iNaturalist split" in out
    # The user brings the split.
    archive(root / "inaturalist/Inat_dataset_splits.zip", made, "Inat_dataset_splits")
    code, out, err = run("prepare", *arguments)
    assert code == 0, err
    assert out.endswith("verified\n")
    assert datasets.load("inaturalist", root, resized=8).read(
        datasets.load("inaturalist", root, resized=8).index.table["key"][0]
    ).size == (8, 8)


def test_a_tree_of_inaturalist_that_lacks_its_split_gets_it(run, tmp_path, monkeypatch):
    root = tmp_path / "root"
    made = make_inaturalist(root / "inaturalist", [2, 3], [4])
    data = archive(tmp_path / "splits.zip", made, "Inat_dataset_splits")
    shutil.rmtree(made / "Inat_dataset_splits")
    with serve(splits=Flaky(data)) as base:
        item = {"file": "splits.zip", "urls": [f"{base}/splits"], "unpack_to": "."}
        item |= {"manual": "ask", "provides": ["Inat_dataset_splits"], "optional": True}
        changes = {"counts": [5, 4, 2, 1], "downloads": [item]}
        use_manifest(monkeypatch, tmp_path, inaturalist=changes)
        code, out, err = run("prepare", "inaturalist", "--root", root)
    assert code == 0, err
    assert out.endswith("verified\n")


def test_digiface_goes_on_after_a_break(run, tmp_path, monkeypatch):
    root = tmp_path / "root"
    made = make_digiface(tmp_path / "made", 10, 16)
    names = sorted(path.name for path in made.iterdir() if path.name.startswith("subjects"))
    served = {
        f"{name}.zip": Flaky(archive(tmp_path / f"{name}.zip", made / name, ".")) for name in names
    }
    second = served[f"{names[1]}.zip"]
    second.statuses = [404]
    monkeypatch.setattr(digiface, "PEOPLE", {"72": (10,), "5": (16,)})
    with serve(**served) as base:
        downloads = [{"file": f"{n}.zip", "unpack_to": n, "manual": "ask"} for n in names]
        use_manifest(
            monkeypatch,
            tmp_path,
            digiface={"downloads": downloads, "downloads_from": f"{base}/"},
        )
        code, _, err = run("prepare", "digiface", "--root", root)
        assert code == 2
        assert "it answered 404" in err
        code, out, err = run("prepare", "digiface", "--root", root, "--sample", "20")
    assert code == 0, err
    assert out.endswith("verified\n")
    assert len(second.requests) == 2


def test_merged_on_half_and_on_whole(run, tmp_path, monkeypatch):
    counts = {
        "cub": [4, 4, 2, 2],
        "sop": [4, 4, 2, 2],
        "cars": [4, 4, 1, 1],
        "inaturalist": [4, 4, 2, 2],
    }
    use_manifest(monkeypatch, tmp_path, **{name: {"counts": c} for name, c in counts.items()})
    root = tmp_path / "root"
    make_cub(root / "cub", [2, 2], [2, 2])
    make_sop(root / "sop", [2, 2], [2, 2])
    make_cars_old(root / "cars", [1] * 4 + [99] * 4)
    code, out, err = run("verify", "merged", "--root", root)
    assert code == 2
    assert "merged is not verified, 1 of its 4 parts are not (inaturalist is not under" in err
    make_inaturalist(root / "inaturalist", [2, 2], [2, 2])
    for command in ("verify", "prepare"):
        code, out, err = run(command, "merged", "--root", root)
        assert code == 0, err
        assert "merged: 16/14 images of 7/7 classes" in out
        assert out.endswith("verified\n")
    (root / "cub/CUB_200_2011/images/001.Bird_1/Bird_1_00001.jpg").unlink()
    code, out, err = run("verify", "merged", "--root", root)
    assert code == 2
    assert "1 of its 4 parts are not (cub is not verified: 1 images are missing" in err
    code, out, err = run("verify", "merged", "--root", root, "--skip-broken")
    assert code == 0, err
    assert "cub: 1 missing or broken images skipped" in out
