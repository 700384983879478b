"""The index: what it refuses, and what subsets and class splits keep."""

import numpy as np
import pandas as pd
import pytest

from common.errors import UserError
from datasets import Index


def make_table(classes=6, images=3):
    """Classes c0, c1, ... of two domains; the first half is for training."""
    rows = [
        {
            "key": f"{label}/{image}.png",
            "label": f"c{label}",
            "domain": "even" if label % 2 == 0 else "odd",
            "split": "train" if label < classes / 2 else "test",
        }
        for label in range(classes)
        for image in range(images)
    ]
    return pd.DataFrame(rows)


def make_index(**arguments):
    return Index("toys", make_table(**arguments), "ab" * 32)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.drop(columns="domain"), "lacks the column 'domain'"),
        (lambda t: t.iloc[:0], "has no image"),
        (lambda t: t.assign(label=1), "column 'label' of the index must hold strings"),
        (lambda t: t.assign(domain=[None] + ["x"] * (len(t) - 1)), "column 'domain'"),
        (lambda t: t.assign(split="validation"), "row 0 has split 'validation'"),
        (lambda t: pd.concat([t, t.iloc[:1]]), "'0/0.png' is listed"),
        (lambda t: pd.concat([t, t.iloc[1:3]]), "2 images are listed more than once"),
        (lambda t: t.assign(split=["train", "test"] * 9), "class 'c0' is in training and in test"),
        (lambda t: t.assign(domain=["a", "b"] * 9), "class 'c0' occurs in two domains"),
    ],
)
def test_refuses_with_a_sentence(change, message):
    with pytest.raises(UserError, match=message) as error:
        Index("toys", change(make_table()), "00")
    assert str(error.value).startswith("toys: ")


def test_codes_follow_the_sorted_classes_whatever_the_order_of_rows():
    table = make_table(classes=12).sample(frac=1, random_state=3)
    index = Index("toys", table, "00")
    assert index.classes == tuple(sorted(set(table["label"])))
    assert index.classes.index("c10") < index.classes.index("c2")  # as strings
    assert index.label_codes.dtype == np.int64
    assert [index.classes[code] for code in index.label_codes] == list(table["label"])
    assert list(index.table.index) == list(range(len(table)))


def test_subset_meets_all_conditions_and_keeps_the_order_and_further_columns():
    table = make_table().assign(typeface="f")
    index = Index("toys", table, "00", notes=("a note",))
    part = index.subset(split="train", domain="even", classes=["c0", "c2", "c4"])
    expected = table[(table["split"] == "train") & table["label"].isin(["c0", "c2"])]
    pd.testing.assert_frame_equal(part.table, expected.reset_index(drop=True))
    assert part.notes == ("a note",)
    assert part.classes == ("c0", "c2")


def test_fingerprints_tell_contents_apart():
    index = make_index()
    train = index.subset(split="train")
    assert index.subset() is index
    assert train.subset(split="train") is train
    assert train.fingerprint == make_index().subset(classes=["c0", "c1", "c2"]).fingerprint
    others = {index.fingerprint, train.fingerprint, index.subset(split="test").fingerprint}
    assert len(others) == 3
    other_content = Index("toys", make_table(), "cd" * 32).subset(split="train")
    assert other_content.fingerprint != train.fingerprint


@pytest.mark.parametrize(
    "condition", [{"split": "validation"}, {"domain": "birds"}, {"classes": ["c0", "c99"]}]
)
def test_subset_refuses_what_does_not_occur(condition):
    unknown = {"split": "validation", "domain": "birds", "classes": "c99"}[next(iter(condition))]
    with pytest.raises(UserError, match=f"'{unknown}'; choose from"):
        make_index().subset(**condition)


def test_subset_refuses_an_empty_combination():
    with pytest.raises(UserError, match="no image meets"):
        make_index().subset(split="test", classes=["c0"])


def test_split_classes_divides_the_training_classes_only():
    index = make_index(classes=40)
    training, validation = index.split_classes(0.25, seed=0)
    assert len(validation.classes) == 5
    assert len(training.classes) == 15
    assert not set(training.classes) & set(validation.classes)
    assert sorted(training.classes + validation.classes) == list(index.subset("train").classes)
    assert set(training.table["split"]) == set(validation.table["split"]) == {"train"}
    assert len(training) + len(validation) == len(index.subset("train"))


def test_split_classes_depends_on_the_seed_and_not_on_the_order_of_rows():
    index = make_index(classes=40)
    shuffled = Index("toys", index.table.sample(frac=1, random_state=1), "00")
    first = index.split_classes(0.25, seed=7)[1].classes
    assert first == shuffled.split_classes(0.25, seed=7)[1].classes
    assert first != index.split_classes(0.25, seed=8)[1].classes


@pytest.mark.parametrize("fraction", [0.0, 0.01, 0.99, 1.0, -0.5, 2.0])
def test_split_classes_refuses_to_leave_a_part_empty(fraction):
    with pytest.raises(UserError, match="leaves one part empty"):
        make_index(classes=8).split_classes(fraction, seed=0)
