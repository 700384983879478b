"""``python -m datasets`` as a new user meets it: the list, on nothing, and CUB from end to end."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import datasets
from tests.datasets.flaky_server import Flaky, serve
from tests.datasets.sources import archive, md5, runner, use_manifest
from tests.datasets.trees import make_cub

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def run(capsys):
    return runner(capsys)


def test_list(run, tmp_path):
    code, out, _ = run("list")
    assert code == 0
    for name in ("cub", "cars", "sop", "inaturalist", "digiface", "merged", "glyphs"):
        assert f"{name}: " in out
    assert "counts: 5,864/5,924 images of 100/100 classes (train/test)" in out
    assert "found:" not in out
    make_cub(tmp_path, [1], [1])
    code, out, _ = run("list", "--root", tmp_path)
    assert f"found:  {tmp_path}/CUB_200_2011" in out
    assert "no; run `python -m datasets prepare sop --root" in out
    assert "not complete, missing: inaturalist, sop, cars" in out


def test_glyphs_come_with_the_code(run):
    for command in ("prepare", "verify"):
        code, out, _ = run(command, "glyphs")
        assert code == 0
        assert out.endswith("verified\n")


@pytest.mark.parametrize("name", ["cub", "cars", "sop", "inaturalist", "digiface", "merged"])
def test_verify_on_nothing_says_what_to_run(run, tmp_path, name):
    code, _, err = run("verify", name, "--root", tmp_path)
    assert code == 2
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert "run `python -m datasets prepare " in err
    code, _, err = run("verify", name)
    assert (code, err) == (
        2,
        f"error: {name} needs --root, the folder in which your data sets lie\n",
    )


def test_as_a_process(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "datasets", "verify", "cub", "--root", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: cub is not under ")


def test_wrong_words(run, tmp_path):
    assert "choose from cub, cars" in run("verify", "birds", "--root", tmp_path)[2]
    assert "write it as KEY=VALUE" in run("verify", "cub", "--root", tmp_path, "--option", "x")[2]
    message = run("verify", "cub", "--root", tmp_path, "--option", "x=[")[2]
    assert "cannot be read as YAML" in message
    make_cub(tmp_path, [1], [1])
    assert "no option 'x'" in run("verify", "cub", "--root", tmp_path, "--option", "x=1")[2]
    message = run("verify", "cub", "--root", tmp_path, "--option", "resized=64")[2]
    assert "write --resize PIXELS instead" in message
    assert (
        "glyphs has no option 'x'; choose from domain"
        in run("verify", "glyphs", "--option", "x=1")[2]
    )
    assert "--resize is 0" in run("prepare", "cub", "--root", tmp_path, "--resize", "0")[2]


def test_cub_from_nothing_to_verified(run, tmp_path, monkeypatch):
    made = make_cub(tmp_path / "made", [3, 2], [2, 4])
    data = archive(tmp_path / "CUB.tgz", made.parent, "CUB_200_2011")
    flaky = Flaky(data, drop_after=[len(data) // 2], statuses=[503])
    root = tmp_path / "root"
    with serve(good=flaky, gone=Flaky(b"", statuses=[404])) as base:
        item = {"file": "CUB_200_2011.tgz", "md5": md5(data), "unpack_to": ".", "manual": "ask"}
        item["urls"] = [f"{base}/gone", f"{base}/good"]
        use_manifest(monkeypatch, tmp_path, cub={"counts": [5, 6, 2, 2], "downloads": [item]})
        code, out, err = run("prepare", "cub", "--root", root)
    assert code == 0, err
    assert out.endswith("verified\n")
    assert flaky.requests == ["", "", f"bytes={len(data) // 2}-"]
    # Again, without a server: it is there.
    code, out, err = run("prepare", "cub", "--root", root)
    assert code == 0, err
    code, out, err = run("prepare", "cub", "--root", root, "--resize", "8", "--sample", "2")
    assert code == 0, err
    assert f"cub at {root}/cub-8" in out
    assert "images reduced to a shorter side of 8 pixels" in out
    source = datasets.load("cub", root, resized=8)
    assert source.read(source.index.table["key"][0]).size == (8, 8)
    assert source.index.fingerprint != datasets.load("cub", root).index.fingerprint
    # Half of it lost.
    shutil.rmtree(root / "cub/CUB_200_2011/images/001.Bird_1")
    code, out, err = run("verify", "cub", "--root", root)
    assert code == 2
    assert "problem: 3 images are missing, e.g. " in out
    assert err.startswith("error: cub is not verified: 3 images are missing")
    assert "prepare cub --root" in err
    code, out, _ = run("verify", "cub", "--root", root, "--skip-broken")
    assert code == 0
    assert "left out in training (--skip-broken): 3 images are missing" in out
    # What the message advises helps: the archive is still there.
    shutil.rmtree(root / "cub/CUB_200_2011")
    code, out, err = run("prepare", "cub", "--root", root)
    assert code == 0, err
    assert out.endswith("verified\n")
