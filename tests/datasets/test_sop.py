"""Stanford Online Products from generated trees."""

import pytest

import datasets
from common.errors import UserError
from datasets.catalogue import entry
from datasets.verify import count_problems, counts_of, verify
from tests.datasets.trees import make_sop, spread


def test_the_lists_decide_the_splits(tmp_path):
    make_sop(tmp_path, [2, 3], [4])
    source = datasets.load("sop", tmp_path)
    table = source.index.table
    assert list(table["split"]) == ["train"] * 5 + ["test"] * 4
    assert list(table["label"]) == ["1", "1", "2", "2", "2", "3", "3", "3", "3"]
    assert list(table["kind"]) == ["chair"] * 2 + ["sofa"] * 3 + ["bicycle"] * 4
    assert source.read(table["key"][0]).mode == "RGB"


def test_a_list_that_is_missing(tmp_path):
    folder = make_sop(tmp_path, [2], [2])
    (folder / "Ebay_test.txt").unlink()
    with pytest.raises(UserError, match=r"Ebay_test\.txt is missing; run `python -m datasets"):
        datasets.load("sop", tmp_path)
    (folder / "Ebay_train.txt").unlink()
    with pytest.raises(UserError, match="there are images, but"):
        datasets.load("sop", tmp_path)


def test_a_class_in_both_lists(tmp_path):
    folder = make_sop(tmp_path, [2], [2])
    path = folder / "Ebay_test.txt"
    path.write_text(path.read_text().replace("3 2 3 ", "3 1 3 "))
    with pytest.raises(UserError, match="class '1' is in training and in testing"):
        datasets.load("sop", tmp_path)


def test_an_image_in_both_lists(tmp_path):
    folder = make_sop(tmp_path, [2], [2])
    row = (folder / "Ebay_train.txt").read_text().splitlines()[1]
    with (folder / "Ebay_test.txt").open("a") as file:
        file.write(row + "\n")
    with pytest.raises(UserError, match="listed 1 time"):
        datasets.load("sop", tmp_path)


def test_lines_cut_short(tmp_path):
    folder = make_sop(tmp_path, [2], [2])
    path = folder / "Ebay_train.txt"
    path.write_text(path.read_text() + "7 3")
    with pytest.raises(UserError, match="line 4 has 2 columns instead of 4"):
        datasets.load("sop", tmp_path)


def test_names_that_differ_in_case_are_recognised(tmp_path):
    folder = make_sop(tmp_path, [1, 1], [2])
    path = folder / "chair_final/1_0.JPG"
    path.rename(path.with_suffix(".jpg"))
    report = verify(datasets.load("sop", tmp_path, broken="keep"))
    problem = report.problems[-1]
    assert problem.startswith("1 images are missing")
    assert "there is '1_0.jpg': upper and lower case differ" in problem


def test_the_published_counts(tmp_path):
    make_sop(tmp_path, spread(59551, 11318), spread(60502, 11316), images=False)
    index = datasets.load("sop", tmp_path, broken="keep").index
    facts = entry("sop")
    assert counts_of(index) == facts.counts
    assert count_problems(index, facts.counts, facts.mistakes) == []


@pytest.mark.soak
def test_the_published_counts_with_files(tmp_path):
    make_sop(tmp_path, spread(59551, 11318), spread(60502, 11316))
    source = datasets.load("sop", tmp_path, broken="keep")
    assert verify(source, entry("sop"), sample=200).problems == ()
