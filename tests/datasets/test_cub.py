"""CUB-200-2011 from generated trees, small and of the published size."""

import pytest

import datasets
from common.errors import UserError
from datasets.catalogue import entry
from datasets.verify import counts_of, verify
from tests.datasets.trees import encode, make_cub, picture, spread, write


@pytest.fixture
def tree(tmp_path):
    return make_cub(tmp_path, [3, 2], [2, 4])


def test_classes_up_to_100_train_and_the_others_test(tmp_path, tree):
    source = datasets.load("cub", tmp_path)
    table = source.index.table
    assert source.folder == tree
    assert list(table["split"]) == ["train"] * 5 + ["test"] * 6
    assert source.index.classes == ("001.Bird_1", "002.Bird_2", "101.Bird_101", "102.Bird_102")
    assert table["key"][0] == "images/001.Bird_1/Bird_1_00001.jpg"
    assert set(table["domain"]) == {"cub"}
    assert source.read(table["key"][0]).size == (16, 16)
    assert source.index.notes == ()


@pytest.mark.parametrize("inside", ["", "cub", "cub/CUB_200_2011"])
def test_where_the_folder_may_lie(tmp_path, inside):
    tree = make_cub(tmp_path / "somewhere", [2], [2])
    place = tmp_path / "root" / inside
    place.parent.mkdir(parents=True, exist_ok=True)
    tree.rename(place)
    assert len(datasets.load("cub", tmp_path / "root").index) == 4
    assert len(datasets.load("cub", place).index) == 4


def test_windows_line_ends_and_a_byte_order_mark(tmp_path):
    tree = make_cub(tmp_path, [2], [2], newline="\r\n")
    path = tree / "images.txt"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes() + b"\r\n")
    index = datasets.load("cub", tmp_path).index
    assert counts_of(index) == counts_of(datasets.load("cub", tmp_path).index)
    assert len(index) == 4


def test_the_fingerprint_follows_content_not_place_or_time(tmp_path, tree):
    other = make_cub(tmp_path / "copy", [3, 2], [2, 4])
    (other / "image_class_labels.txt").touch()
    first = datasets.load("cub", tmp_path).index.fingerprint
    assert datasets.load("cub", tmp_path / "copy").index.fingerprint == first
    path = other / "images/001.Bird_1/Bird_1_00001.jpg"
    path.unlink()
    write(path, encode(picture(99)))
    assert datasets.load("cub", tmp_path / "copy").index.fingerprint != first


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_broken_annotations_name_the_line_or_image(tmp_path, tree):
    labels, images = tree / "image_class_labels.txt", tree / "images.txt"
    original = labels.read_text()
    cases = [
        (labels, "4 2\n", "4\n", "line 4 has 1 columns instead of 2"),
        (labels, "4 2\n", "4 x\n", "class_id is 'x' instead of a whole number"),
        (labels, "4 2\n", "4 7\n", "image 4 has class 7, but lies in folder '002.Bird_2'"),
        (labels, "4 2\n", "", "no class for image 4"),
        (labels, "4 2\n", "4 2\n4 2\n", "image 4 is listed twice"),
    ]
    for path, old, new, message in cases:
        edit(path, old, new)
        with pytest.raises(UserError, match=message):
            datasets.load("cub", tmp_path)
        labels.write_text(original)
    edit(images, "2 001.Bird_1/Bird_1_00002.jpg", "2 001.Bird_1/Bird_1_00001.jpg")
    with pytest.raises(UserError, match="listed 1 time"):
        datasets.load("cub", tmp_path)
    images.write_bytes(b"\xff\xfe1 \x00")
    with pytest.raises(UserError, match=r"cannot read .*images\.txt"):
        datasets.load("cub", tmp_path)
    images.write_text("")
    with pytest.raises(UserError, match="the file has no rows"):
        datasets.load("cub", tmp_path)


def test_missing_and_empty_images(tmp_path, tree):
    first = tree / "images/001.Bird_1/Bird_1_00002.jpg"
    first.unlink()
    with pytest.raises(UserError, match=r"1 of 11 images are missing, the first is .*00002\.jpg"):
        datasets.load("cub", tmp_path)
    first.write_bytes(b"")
    with pytest.raises(UserError, match="1 of 11 images are empty"):
        datasets.load("cub", tmp_path)


def test_broken_images_stop_or_are_skipped_and_counted(tmp_path, tree):
    broken = tree / "images/101.Bird_101/Bird_101_00006.jpg"
    broken.unlink()
    broken.write_bytes(encode(picture(0, (64, 64)))[:300])
    (tree / "images/001.Bird_1/Bird_1_00001.jpg").unlink()
    with pytest.raises(UserError, match="missing"):
        datasets.load("cub", tmp_path)
    source = datasets.load("cub", tmp_path, broken="skip")
    assert len(source.index) == 9
    assert source.index.notes == (
        "2 missing or broken images skipped: images/001.Bird_1/Bird_1_00001.jpg, "
        "images/101.Bird_101/Bird_101_00006.jpg",
    )
    kept = datasets.load("cub", tmp_path, broken="keep")
    with pytest.raises(UserError, match=r"Bird_101_00006\.jpg cannot be decoded"):
        kept.read("images/101.Bird_101/Bird_101_00006.jpg")


@pytest.mark.parametrize(
    ("made", "message"),
    [
        ([], r"cub is not under .* run `python -m datasets prepare cub --root"),
        (["CUB_200_2011/images/a.jpg"], "there are images, but images.txt or image_class_labels"),
        (["cub/train/1/a.jpg", "cub/test/1/b.jpg"], "this is the classification split"),
        (["cub/images/a.jpg", "cub/lists/train.txt"], "this is CUB-200 of 2010"),
    ],
)
def test_what_is_there_instead_is_said(tmp_path, made, message):
    for name in made:
        write(tmp_path / name, b"")
    with pytest.raises(UserError, match=message):
        datasets.load("cub", tmp_path)


def test_no_root_and_no_folder(tmp_path):
    with pytest.raises(UserError, match="cub needs --root"):
        datasets.load("cub")
    with pytest.raises(UserError, match="is not a folder"):
        datasets.load("cub", tmp_path / "none")


def test_unknown_options(tmp_path, tree):
    with pytest.raises(UserError, match="no option 'brokken'; choose from broken, decode_side"):
        datasets.load("cub", tmp_path, brokken="skip")
    with pytest.raises(UserError, match="broken is 'no'"):
        datasets.load("cub", tmp_path, broken="no")
    with pytest.raises(UserError, match="decode_side is 0"):
        datasets.load("cub", tmp_path, decode_side=0)


def test_the_published_counts_are_verified_and_others_are_not(tmp_path):
    tree = make_cub(tmp_path, spread(5864, 100), spread(5924, 100))
    source = datasets.load("cub", tmp_path, broken="keep")
    assert verify(source, entry("cub"), sample=50).problems == ()
    # Cutting the list short must be noticed.
    lines = (tree / "images.txt").read_text().splitlines()
    (tree / "images.txt").write_text("\n".join(lines[:-8]))
    report = verify(datasets.load("cub", tmp_path, broken="keep"), entry("cub"), sample=5)
    assert report.problems == (
        "5,864/5,916 images of 100/100 classes instead of 5,864/5,924 images of 100/100 classes: "
        "8 images are not listed, the annotations are cut short",
    )
