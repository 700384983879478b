"""Anyone's class folders, and zip files of them."""

import shutil
import zipfile

import pytest
from torchvision.datasets import ImageFolder

import datasets
from common.errors import UserError
from datasets.index_cache import location
from tests.datasets.trees import encode, link_images, picture, write

KEYS = [f"{c}/{i}.png" for c in ("ant", "bee", "cat \u732b", "dog") for i in range(3)]


@pytest.fixture
def tree(tmp_path):
    folder = tmp_path / "my data"
    link_images(folder, KEYS)
    shutil.rmtree(folder / ".templates")
    return folder


def test_folders_are_classes_and_the_split_is_written_down(tree):
    source = datasets.load(f"folder:{tree}")
    table = source.index.table
    assert source.index.classes == ("ant", "bee", "cat \u732b", "dog")
    assert table["split"].value_counts().to_dict() == {"train": 6, "test": 6}
    written = location(tree) / "split-0.5-seed0.csv"
    assert written.read_text(encoding="utf-8").startswith("class,split\nant,")
    assert source.read("cat \u732b/1.png").size == (16, 16)
    # What was written is what counts from now on.
    swap = {"train": "test", "test": "train"}
    lines = [line.rsplit(",", 1) for line in written.read_text(encoding="utf-8").splitlines()[1:]]
    write(written, "class,split\n" + "".join(f"{c},{swap[s]}\n" for c, s in lines))
    again = datasets.load(f"folder:{tree}").index.table
    assert list(again["split"]) == [swap[split] for split in table["split"]]


def test_the_share_and_the_seed(tree):
    index = datasets.load(f"folder:{tree}", test_fraction=0.25, seed=3).index
    assert (index.table["split"] == "test").sum() == 3
    splits = {
        tuple(datasets.load(f"folder:{tree}", seed=seed).index.table["split"]) for seed in range(8)
    }
    assert len(splits) > 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"test_fraction": 0.01}, "leaves one part empty"),
        ({"test_fraction": "half"}, "option test_fraction is 'half'"),
        ({"seed": -1}, "an integer from 0 up"),
        ({"resized": 256}, "resized is for prepared data sets"),
        ({"sead": 1}, "no option 'sead'; choose from broken, decode_side, domains"),
    ],
)
def test_impossible_options(tree, options, message):
    with pytest.raises(UserError, match=message):
        datasets.load(f"folder:{tree}", **options)


def test_a_split_made_for_other_classes(tree):
    datasets.load(f"folder:{tree}")
    link_images(tree, ["emu/1.png"])
    with pytest.raises(UserError, match=r"other classes \(1 differ, e\.g\. 'emu'\); delete it"):
        datasets.load(f"folder:{tree}")
    write(location(tree) / "split-0.5-seed0.csv", "class,split\nant,maybe\n")
    with pytest.raises(UserError, match="split 'maybe' is neither train nor test"):
        datasets.load(f"folder:{tree}")


def test_given_splits(tmp_path):
    link_images(tmp_path, ["train/a/1.png", "train/b/1.png", "test/c/1.png"])
    table = datasets.load(f"folder:{tmp_path}").index.table
    assert list(zip(table["label"], table["split"], strict=True)) == [
        ("c", "test"),
        ("a", "train"),
        ("b", "train"),
    ]
    assert not list(location(tmp_path).glob("split*"))
    link_images(tmp_path, ["test/a/2.png"])
    with pytest.raises(UserError, match="class 'a' is in training and in testing"):
        datasets.load(f"folder:{tmp_path}")


def test_nested_classes_and_domains(tmp_path):
    link_images(tmp_path, ["Greek/a/1.png", "Greek/b/1.png", "Latin/a/1.png", "Latin/b/1.png"])
    index = datasets.load(f"folder:{tmp_path}", domains=True).index
    assert index.classes == ("Greek/a", "Greek/b", "Latin/a", "Latin/b")
    assert index.domains == ("Greek", "Latin")


def test_other_files_are_counted_and_hidden_ones_passed_over(tree):
    write(tree / "ant/readme.txt", "text")
    write(tree / "ant/._1.png", b"")
    write(tree / "__MACOSX/ant/1.png", b"")
    write(tree / "bee/UPPER.JPG", encode(picture(0)))
    index = datasets.load(f"folder:{tree}").index
    assert len(index) == 13
    assert "1 files are no images by their suffix and were left out" in index.notes


def test_added_and_changed_files_are_seen(tree):
    first = datasets.load(f"folder:{tree}").index.fingerprint
    assert datasets.load(f"folder:{tree}").index.fingerprint == first
    link_images(tree, ["ant/9.png"])
    second = datasets.load(f"folder:{tree}").index
    assert len(second) == 13
    assert second.fingerprint != first


def test_nothing_is_left_in_the_folder_that_other_programs_would_take_for_a_class(tree):
    datasets.load(f"folder:{tree}")
    assert ImageFolder(tree).classes == ["ant", "bee", "cat \u732b", "dog"]


def test_a_folder_that_is_linked_to_itself(tree):
    (tree / "ant/loop").symlink_to(tree)
    assert len(datasets.load(f"folder:{tree}").index) == 12


def test_what_is_no_folder_of_classes(tmp_path):
    with pytest.raises(UserError, match="is not a folder"):
        datasets.load(f"folder:{tmp_path}/none")
    with pytest.raises(UserError, match="there are no images below"):
        datasets.load(f"folder:{tmp_path}")
    write(tmp_path / "a.png", encode(picture(0), "PNG"))
    with pytest.raises(UserError, match=r"a\.png is not in a class folder"):
        datasets.load(f"folder:{tmp_path}")
    with pytest.raises(UserError, match="write folder:PATH"):
        datasets.load("folder")


def test_a_zip_file_is_unpacked_once_with_everything_in_its_one_folder(tree):
    path = tree.parent / "set.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for key in KEYS:
            archive.write(tree / key, f"set/{key}")
    source = datasets.load(f"folder:{path}")
    assert source.index.classes == ("ant", "bee", "cat \u732b", "dog")
    assert len(datasets.load(f"folder:{path}").index) == 12
    assert source.read("ant/0.png").size == (16, 16)
