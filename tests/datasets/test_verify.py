"""What verification says about good and bad copies."""

import pytest

import datasets
from common.errors import UserError
from datasets.catalogue import Counts, entries, entry
from datasets.files import FileSource
from datasets.verify import count_problems, counts_of, verify
from tests.datasets.trees import encode, link_images, make_cub, picture, write


@pytest.fixture
def tree(tmp_path):
    folder = tmp_path / "set"
    for number in range(8):
        kind = ("train/a", "train/b", "test/c", "test/d")[number // 2]
        write(folder / kind / f"{number}.png", encode(picture(number, (64, 64)), "PNG"))
    return folder


def report_of(tree, **options):
    return verify(datasets.load(f"folder:{tree}", broken="keep"), **options)


def test_a_good_copy(tree):
    report = report_of(tree)
    assert report.problems == ()
    assert report.remarks[0] == "4/4 images of 2/2 classes"
    assert "images with a twin (the same bytes): 0 within training" in report.remarks[1]


def test_broken_and_empty_files_are_counted_and_named(tree):
    (tree / "train/a/0.png").write_bytes(b"nonsense")
    (tree / "test/c/4.png").write_bytes(b"")
    report = report_of(tree)
    assert len(report.problems) == 2
    assert report.problems[0].startswith("1 images are empty, e.g. ")
    assert "1 of 7 decoded images are broken, e.g. " in report.problems[1]
    assert "0.png cannot be decoded (not an image)" in report.problems[1]
    skipping = report_of(tree, skip_broken=True)
    assert skipping.problems == ()
    assert sum("left out in training" in remark for remark in skipping.remarks) == 2


def test_twins_within_and_across_splits(tree):
    data = (tree / "train/a/0.png").read_bytes()
    write(tree / "train/b/twin.png", data)
    write(tree / "test/d/twin.png", data)
    write(tree / "test/d/again.jpg", encode(picture(0, (64, 64)), quality=95))
    exact, near = report_of(tree).remarks[-2:]
    assert "(the same bytes): 2 within training, 0 within testing, 1 of testing" in exact
    assert "(nearly the same picture): 2 within training, 2 within testing, 2 of testing" in near


def test_suffixes_that_lie_do_no_harm(tree):
    (tree / "train/a/0.png").rename(tree / "train/a/0.jpg")
    report = report_of(tree)
    assert report.problems == ()
    assert any("1 images are of another format" in remark for remark in report.remarks)


def test_a_sample_counts_all_and_decodes_some(tree):
    for path in tree.rglob("*.png"):
        path.write_bytes(b"nonsense")
    report = report_of(tree, sample=3)
    assert "3 of 3 decoded images are broken" in report.problems[0]
    assert "3 of 8 images were decoded (--sample)" in report.remarks
    assert report_of(tree, sample=50).problems[0].startswith("8 of 8")
    with pytest.raises(UserError, match="--sample is 0"):
        report_of(tree, sample=0)


def test_wrong_counts_name_their_likely_cause(tmp_path):
    make_cub(tmp_path, [2, 2], [3])
    index = datasets.load("cub", tmp_path).index
    found = counts_of(index)
    assert found == Counts(4, 3, 2, 1)
    expected = Counts(5, 2, 2, 1)
    assert count_problems(index, found, {}) == []
    assert count_problems(index, Counts(None, None, 2, 1), {}) == []
    assert count_problems(index, expected, {(4, 3): "this is the classification split"}) == [
        "4/3 images of 2/1 classes instead of 5/2 images of 2/1 classes: "
        "this is the classification split"
    ]
    (many,) = count_problems(index, Counts(4, 2, 2, 1), {})
    assert many.endswith(": 1 images too many are listed")
    (classes,) = count_problems(index, Counts(4, 3, 2, 2), {})
    assert classes.endswith("of 2/2 classes")
    (half_known,) = count_problems(index, Counts(None, None, 9, 9), {})
    assert half_known.endswith("instead of ?/? images of 9/9 classes")


def test_the_classification_split_of_cub_is_recognised(tmp_path):
    make_cub(tmp_path, [1], [1])
    facts = entry("cub")
    source = datasets.load("cub", tmp_path)
    repeated = {"train": 5994, "test": 5794}
    table = source.index.table
    rows = [row for row in range(2) for _ in range(repeated[table["split"][row]])]
    many = table.loc[rows].reset_index(drop=True)
    many["key"] = [str(number) for number in range(len(many))]
    index = datasets.Index("cub", many, "0")
    (problem,) = count_problems(index, facts.counts, facts.mistakes)
    assert "this is the classification split, whose halves share every class" in problem


def test_the_facts_are_whole():
    facts = entries()
    assert list(facts) == ["cub", "cars", "sop", "inaturalist", "digiface", "merged", "glyphs"]
    for one in facts.values():
        assert one.counts or one.counted or one.name == "glyphs"
        for item in (*one.downloads, *one.alternatives):
            assert item.md5 is None or len(item.md5) == 32
            assert all(url.startswith(("https://", "http://")) for url in item.urls)
        assert all(item.urls and item.manual for item in one.downloads)
    cars = facts["cars"]
    for field in ("train_images", "test_images"):
        parts = [getattr(part, field) for part in cars.subsets.values()]
        assert sum(parts) == getattr(cars.counts, field)
    with pytest.raises(UserError, match="no data set 'imagenet' to prepare or verify; choose from"):
        entry("imagenet")


def test_a_damaged_manifest(tmp_path):
    with pytest.raises(UserError, match="cannot read"):
        entries(tmp_path / "none.yaml")
    with pytest.raises(UserError, match="cannot read"):
        entries(write(tmp_path / "a.yaml", "cub: {title: only}"))


def test_a_source_can_be_verified_without_facts(tree):
    source = datasets.load(f"folder:{tree}", broken="keep")
    assert isinstance(source, FileSource)
    assert source.expected is None


def test_case_of_folders_too(tmp_path):
    folder = make_cub(tmp_path, [1], [1])
    (folder / "images/001.Bird_1").rename(folder / "images/001.BIRD_1")
    report = verify(datasets.load("cub", tmp_path, broken="keep"))
    assert "there is '001.BIRD_1': upper and lower case differ" in report.problems[-1]


def test_pictures_in_links(tmp_path):
    link_images(tmp_path / "far", ["a/1.png", "b/1.png"])
    (tmp_path / "near").symlink_to(tmp_path / "far")
    assert report_of(tmp_path / "near").problems == ()
