"""iNaturalist-2018 from generated trees: the published split and the declared stand-in."""

import hashlib
import json

import pytest

import datasets
from common.errors import UserError
from datasets.catalogue import entry
from datasets.inaturalist import STAND_IN_NOTE
from datasets.verify import counts_of, verify
from tests.datasets.trees import make_inaturalist, spread, write


@pytest.mark.parametrize("splits", ["", "Inat_dataset_splits"])
def test_the_published_split(tmp_path, splits):
    make_inaturalist(tmp_path / "inaturalist", [2, 3], [4], splits=splits)
    source = datasets.load("inaturalist", tmp_path)
    table = source.index.table
    assert list(table["split"]) == ["train"] * 5 + ["test"] * 4
    assert source.index.classes == ("Aves/0", "Fungi/2", "Plantae/1")
    assert source.index.notes == ()
    assert source.read(table["key"][0]).mode == "RGB"


def test_without_split_files_nothing_is_made_up(tmp_path):
    make_inaturalist(tmp_path, [2, 3], [4], splits=None)
    with pytest.raises(UserError) as caught:
        datasets.load("inaturalist", tmp_path)
    message = str(caught.value)
    assert "Inaturalist_train_set1.txt is missing" in message
    assert "--option split=stand-in" in message
    assert "drive.google.com" in message


def test_the_stand_in_is_the_declared_rule_and_says_so(tmp_path, monkeypatch):
    make_inaturalist(tmp_path, [1] * 10, [1] * 4, splits=None)
    counts = type(entry("inaturalist").counts)(None, None, 10, 4)
    monkeypatch.setattr(
        "datasets.inaturalist.entry",
        lambda name: type("Facts", (), {"counts": counts, "downloads": ()}),
    )
    source = datasets.load("inaturalist", tmp_path, split="stand-in")
    table = source.index.table

    def digest(number):
        return hashlib.sha256(f"inaturalist-2018/{number}".encode()).hexdigest()

    first = sorted(range(14), key=digest)[:10]
    kinds = ("Aves", "Plantae", "Fungi")
    train = set(table.loc[table["split"] == "train", "label"])
    assert train == {f"{kinds[number % 3]}/{number}" for number in first}
    assert source.index.notes == (STAND_IN_NOTE,)
    assert verify(source).problems == ()


def test_the_stand_in_needs_the_annotations(tmp_path):
    make_inaturalist(tmp_path, [2], [2])
    (tmp_path / "val2018.json").write_text(json.dumps({"info": {}}))
    with pytest.raises(UserError, match=r"val2018\.json is not an annotation file"):
        datasets.load("inaturalist", tmp_path, split="stand-in")
    (tmp_path / "val2018.json").unlink()
    with pytest.raises(UserError, match=r"cannot read .*val2018\.json"):
        datasets.load("inaturalist", tmp_path, split="stand-in")
    with pytest.raises(UserError, match="split is 'mine'; choose from published, stand-in"):
        datasets.load("inaturalist", tmp_path, split="mine")


def test_lines_of_another_form(tmp_path):
    make_inaturalist(tmp_path, [2], [2], splits="")
    write(tmp_path / "Inaturalist_test_set1.txt", "Aves/7/a.jpg\n")
    with pytest.raises(UserError, match="is not of the form train_val2018/super/category/image"):
        datasets.load("inaturalist", tmp_path)


def test_one_split_file_alone(tmp_path):
    make_inaturalist(tmp_path, [2], [2], splits="")
    (tmp_path / "Inaturalist_test_set1.txt").unlink()
    with pytest.raises(UserError, match=r"Inaturalist_test_set1\.txt is missing"):
        datasets.load("inaturalist", tmp_path)


def test_an_archive_that_is_not_unpacked(tmp_path):
    write(tmp_path / "inaturalist/train_val2018.tar.gz", b"")
    with pytest.raises(UserError, match="is not unpacked yet"):
        datasets.load("inaturalist", tmp_path)


@pytest.mark.soak
@pytest.mark.parametrize("split", ["published", "stand-in"])
def test_the_published_counts(tmp_path, split):
    make_inaturalist(tmp_path, spread(325846, 5690), spread(136093, 2452))
    facts = entry("inaturalist")
    source = datasets.load("inaturalist", tmp_path, split=split, broken="keep")
    assert verify(source, facts, sample=200).problems == ()
    if split == "published":
        assert counts_of(source.index) == facts.counts
