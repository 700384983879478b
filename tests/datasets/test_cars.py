"""Cars-196 from generated trees of all three layouts."""

import os
from collections import Counter
from pathlib import Path

import pytest

import datasets
from common.errors import UserError
from datasets.catalogue import entry
from datasets.verify import counts_of, verify
from tests.datasets.trees import (
    make_cars_half,
    make_cars_kaggle,
    make_cars_old,
    numbered,
    spread,
    write,
)

CLASSES = [1, 1, 50, 98, 99, 99, 196, 196]


def halves(tmp_path):
    make_cars_half(tmp_path / "cars", "train", CLASSES)
    return make_cars_half(tmp_path / "cars", "test", CLASSES[1:])


def test_the_old_layout(tmp_path):
    make_cars_old(tmp_path, CLASSES)
    table = datasets.load("cars", tmp_path).index.table
    assert list(table["key"])[:2] == ["car_ims/000001.jpg", "car_ims/000002.jpg"]
    assert list(table["split"]) == ["train"] * 4 + ["test"] * 4
    assert list(table["half"])[:2] == ["train", "test"]
    assert table["label"][3] == "098 Make Model 98 2012"


def test_the_classification_halves_are_dealt_by_class(tmp_path):
    halves(tmp_path)
    source = datasets.load("cars", tmp_path)
    table = source.index.table
    assert Counter(zip(table["half"], table["split"], strict=True)) == {
        ("train", "train"): 4,
        ("train", "test"): 4,
        ("test", "train"): 3,
        ("test", "test"): 4,
    }
    assert table["key"][8] == "cars_test/00001.jpg"
    assert source.index.notes == ()
    assert source.read("cars_test/00001.jpg").mode == "RGB"


def test_test_labels_beside_the_devkit(tmp_path):
    folder = halves(tmp_path)
    name = "cars_test_annos_withlabels.mat"
    (folder / "devkit" / name).rename(folder / name)
    assert len(datasets.load("cars", tmp_path).index) == 15


def test_the_kaggle_layout(tmp_path):
    make_cars_kaggle(tmp_path / "cars", {"train": CLASSES, "test": CLASSES[1:]})
    table = datasets.load("cars", tmp_path).index.table
    assert table["key"][3] == "car_data/car_data/train/Make Model 98 2012/00004.jpg"
    assert counts_of(datasets.load("cars", tmp_path).index).train_images == 7


def test_half_a_data_set_says_which_half_is_missing(tmp_path):
    make_cars_half(tmp_path, "train", CLASSES)
    message = r"cars_test with cars_test_annos_withlabels\.mat is missing .* halves=train"
    with pytest.raises(UserError, match=message):
        datasets.load("cars", tmp_path)
    source = datasets.load("cars", tmp_path, halves="train")
    assert len(source.index) == 8
    assert source.index.notes == ("only the classification task's train half of the images",)
    (tmp_path / "cars_test").mkdir()
    with pytest.raises(UserError, match=r"the labels of cars_test .* halves=train"):
        datasets.load("cars", tmp_path)


def test_the_other_half(tmp_path):
    make_cars_half(tmp_path, "test", CLASSES)
    with pytest.raises(UserError, match=r"cars_train with cars_train_annos\.mat is missing"):
        datasets.load("cars", tmp_path)


def test_a_small_problem_of_the_first_98_classes(tmp_path):
    make_cars_half(tmp_path, "train", CLASSES)
    source = datasets.load(
        "cars", tmp_path, halves="train", train_classes=[1, 49], test_classes=[50, 98]
    )
    assert list(source.index.table["split"]) == ["train", "train", "test", "test"]
    assert "classes 1-49 against 50-98" in source.index.notes[1]
    assert source.expected is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"halves": "left"}, "halves is 'left'"),
        ({"train_classes": [1, 99]}, "overlap"),
        ({"train_classes": [0, 5]}, "no range of classes"),
        ({"train_classes": [5, 1]}, "no range of classes"),
        ({"test_classes": [99, 197]}, "no range of classes"),
        ({"train_classes": "all"}, "option train_classes is 'all'"),
        ({"train_classes": [2, 40], "test_classes": [51, 60]}, "no image is left"),
    ],
)
def test_impossible_options(tmp_path, options, message):
    make_cars_old(tmp_path, CLASSES)
    with pytest.raises(UserError, match=message):
        datasets.load("cars", tmp_path, **options)


def test_the_test_annotations_without_labels(tmp_path):
    make_cars_half(tmp_path, "train", CLASSES)
    make_cars_half(tmp_path, "test", CLASSES, labelled=False)
    with pytest.raises(UserError, match="annotations has no field 'class'"):
        datasets.load("cars", tmp_path)


def test_damaged_annotations(tmp_path):
    make_cars_old(tmp_path, CLASSES)
    path = tmp_path / "cars_annos.mat"
    path.write_bytes(path.read_bytes()[:300])
    with pytest.raises(UserError, match=r"(cannot read .*|has no variable .*)fetch"):
        datasets.load("cars", tmp_path)
    path.write_bytes(b"<html>")
    with pytest.raises(UserError, match=r"cannot read .*cars_annos\.mat"):
        datasets.load("cars", tmp_path)


def test_classes_out_of_range(tmp_path):
    make_cars_kaggle(tmp_path, {"train": [1], "test": [99]})
    write(tmp_path / "anno_test.csv", "00001.jpg,1,2,3,4,197\n")
    with pytest.raises(UserError, match="the class 197, outside of 1 to 196"):
        datasets.load("cars", tmp_path)


def test_images_without_annotations(tmp_path):
    write(tmp_path / "cars/cars_train/00001.jpg", b"")
    with pytest.raises(UserError, match="there are images, but no annotations"):
        datasets.load("cars", tmp_path)


def full_halves():
    """Class of each image of both halves, with the published counts of both splits."""
    subsets = entry("cars").subsets
    return {
        half: numbered(spread(counts.train_images, 98))
        + numbered(spread(counts.test_images, 98), 99)
        for half, counts in subsets.items()
    }


def test_the_published_counts(tmp_path):
    for half, classes in full_halves().items():
        assert len(classes) == {"train": 8144, "test": 8041}[half]
        make_cars_half(tmp_path, half, classes)
    source = datasets.load("cars", tmp_path, broken="keep")
    assert verify(source, entry("cars"), sample=20).problems == ()
    one = datasets.load("cars", tmp_path, halves="train", broken="keep")
    assert verify(one, entry("cars"), sample=20).problems == ()


@pytest.mark.skipif("TCM_REAL_CARS" not in os.environ, reason="TCM_REAL_CARS names no folder")
def test_the_real_training_half(monkeypatch, tmp_path):
    monkeypatch.setenv("TCM_INDEX_CACHE", str(tmp_path))
    source = datasets.load("cars", Path(os.environ["TCM_REAL_CARS"]), halves="train", broken="keep")
    assert verify(source, entry("cars"), sample=100).problems == ()
