"""The union of four data sets, equalised for testing."""

import hashlib
from collections import Counter

import pandas as pd
import pytest

import datasets
from common.errors import UserError
from datasets.equalise import equalise
from datasets.index import Index
from tests.datasets.trees import make_cars_old, make_cub, make_inaturalist, make_sop


@pytest.fixture
def root(tmp_path):
    make_cub(tmp_path / "cub", [6, 6], [6, 7, 3])
    make_sop(tmp_path / "sop", [3, 3], [2, 3, 4])
    make_cars_old(tmp_path / "cars", [1] * 5 + [2] * 5 + [100] * 5 + [101] * 4)
    make_inaturalist(tmp_path / "inaturalist", [4, 4], [9, 9])
    return tmp_path


def test_keys_labels_and_domains(root):
    source = datasets.load("merged", root)
    index = source.index
    assert index.domains == ("cars", "cub", "inaturalist", "sop")
    assert all(
        key.startswith(f"{domain}/") and label.startswith(f"{domain}/")
        for key, label, domain in zip(
            index.table["key"], index.table["label"], index.table["domain"], strict=True
        )
    )
    train = index.subset(split="train")
    assert Counter(train.table["domain"]) == {"cub": 12, "sop": 6, "cars": 10, "inaturalist": 8}
    for domain in index.domains:
        key = index.subset(domain=domain).table["key"].iloc[0]
        assert source.read(key).mode == "RGB"


def test_every_test_class_keeps_equally_many_images(root):
    index = datasets.load("merged", root).index
    sizes = index.subset(split="test").table.groupby("label").size()
    # Medians: cub 6 (of 3, 6, 7), sop 3 (of 2, 3, 4), cars 4 (the lower of 4, 5), inaturalist 9.
    assert set(sizes) == {3}
    assert len(sizes) == 3 + 2 + 2 + 2
    assert "testing on 3 images of each class, 1 of 10 test classes" in index.notes[-1]


def table_of(sizes):
    rows = [
        (f"{domain}/{label}/{i}", f"{domain}/{label}", domain, "test")
        for domain, counts in sizes.items()
        for label, count in enumerate(counts)
        for i in range(count)
    ]
    return pd.DataFrame(rows, columns=["key", "label", "domain", "split"])


def test_the_images_kept_are_those_of_the_smallest_digests():
    table = table_of({"a": [5, 4], "b": [3, 8]})
    index = equalise(Index("merged", table, "0"), seed=7)
    expected = set()
    for _, rows in table.groupby("label"):
        keys = sorted(rows["key"], key=lambda k: hashlib.sha256(f"7/{k}".encode()).hexdigest())
        expected |= set(keys[:3])
    assert set(index.table["key"]) == expected
    shuffled = Index("merged", table.sample(frac=1, random_state=0), "0")
    assert set(equalise(shuffled, seed=7).table["key"]) == expected
    other = equalise(Index("merged", table, "0"), seed=8)
    assert set(other.table["key"]) != expected
    assert other.fingerprint != index.fingerprint


def test_at_least_half_of_each_domains_classes_stay():
    index = equalise(Index("merged", table_of({"a": [2, 2, 9, 9], "b": [9, 1, 9]}), "0"))
    sizes = index.table.groupby(["domain", "label"]).size()
    assert set(sizes) == {2}
    assert sizes.groupby("domain").size().to_dict() == {"a": 4, "b": 2}


def test_a_domain_of_single_images_is_said():
    with pytest.raises(UserError, match="no test class of b has 2 images"):
        equalise(Index("merged", table_of({"a": [5, 5], "b": [1, 1]}), "0"))


def test_options(root):
    whole = datasets.load("merged", root, equalise=False).index
    assert (whole.table["split"] == "test").sum() == 16 + 9 + 9 + 18
    five = datasets.load("merged", root, domains=["cub", "cars"], test_images_per_class=5).index
    assert five.domains == ("cars", "cub")
    assert set(five.subset(split="test").table.groupby("label").size()) == {5}
    assert datasets.load("merged/cub", root).index.domains == ("cub",)
    stand_in = datasets.load(
        "merged", root, parts={"cars": {"test_classes": [100, 100]}}, equalise=False
    ).index
    assert any(note.startswith("cars: classes 1-98 against 100-100") for note in stand_in.notes)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"domains": ["cub", "dogs"]}, "'dogs' is none of its domains"),
        ({"domains": []}, "is none of its domains"),
        ({"parts": {"dogs": {}}}, "'dogs' is none of its domains"),
        ({"test_images_per_class": 1}, "give 2 or more"),
        ({"equalize": True}, "no option 'equalize'"),
        ({"test_images_per_class": 50}, "lower test_images_per_class"),
    ],
)
def test_impossible_options(root, options, message):
    with pytest.raises(UserError, match=message):
        datasets.load("merged", root, **options)


def test_a_part_that_is_missing(tmp_path):
    make_cub(tmp_path, [2], [2])
    with pytest.raises(UserError, match="prepare inaturalist --root"):
        datasets.load("merged", tmp_path)
