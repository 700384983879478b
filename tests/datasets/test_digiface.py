"""DigiFace-1M from generated trees."""

import pytest

import datasets
from common.errors import UserError
from datasets import digiface
from datasets.index_cache import location
from tests.datasets.trees import make_digiface


@pytest.fixture
def people(monkeypatch):
    monkeypatch.setattr(digiface, "PEOPLE", {"72": (10,), "5": (16, 15)})


@pytest.mark.parametrize("archives", [True, False])
def test_people_are_split_and_the_split_is_written_down(tmp_path, people, archives):
    folder = make_digiface(tmp_path / "digiface", 10, 16, archives)
    source = datasets.load("digiface", tmp_path)
    table = source.index.table
    assert len(table) == 10 * 72 + 16 * 5
    test = set(table.loc[table["split"] == "test", "label"])
    assert len(test) == 3
    assert digiface.check(source.index) == []
    (written,) = location(folder).rglob("split-0.1-seed0.csv")
    rows = [line.split(",") for line in written.read_text().splitlines()[1:]]
    assert {label for label, split in rows if split == "test"} == test
    assert "23 training and 3 test classes drawn by seed 0" in source.index.notes[0]
    assert source.read(table["key"][0]).size == (112, 112)
    assert set(datasets.load("digiface", tmp_path).index.table["split"]) == {"train", "test"}
    again = datasets.load("digiface", tmp_path).index
    assert again.fingerprint == source.index.fingerprint
    assert datasets.load("digiface", tmp_path, seed=5).index.fingerprint != again.fingerprint


def test_one_part(tmp_path, people):
    make_digiface(tmp_path, 10, 16)
    source = datasets.load("digiface", tmp_path, part=5)
    assert len(source.index) == 80
    assert "only the part with 5 images a person" in source.index.notes
    assert digiface.check(source.index) == []
    with pytest.raises(UserError, match="part is '3'"):
        datasets.load("digiface", tmp_path, part="3")


def test_half_a_data_set(tmp_path, people):
    make_digiface(tmp_path, 10, 0)
    (problem,) = digiface.check(datasets.load("digiface", tmp_path).index)
    assert problem.startswith("the part with 5 images a person is missing")
    assert "--option part=72" in problem
    with pytest.raises(UserError, match="no image of part 5"):
        datasets.load("digiface", tmp_path, part="5")


def test_missing_people_and_images(tmp_path, people):
    folder = make_digiface(tmp_path, 9, 16)
    (folder / "subjects_100000-100015_5_imgs/100003/2.png").unlink()
    problems = digiface.check(datasets.load("digiface", tmp_path).index)
    assert len(problems) == 2
    assert "9 people with 72 images instead of 10" in problems[0]
    assert "1 people do not have 5 images, e.g. subject 100003 has 4" in problems[1]


def test_one_person_in_two_places(tmp_path, people):
    folder = make_digiface(tmp_path, 2, 2)
    (folder / "subjects_0-1_72_imgs/copy").mkdir()
    (folder / "subjects_0-1_72_imgs/copy/1").mkdir()
    data = (folder / "subjects_0-1_72_imgs/1/0.png").read_bytes()
    (folder / "subjects_0-1_72_imgs/copy/1/0.png").write_bytes(data)
    with pytest.raises(UserError, match=r"subject 1 lies in .* and in .*; delete one copy"):
        datasets.load("digiface", tmp_path)


def test_folders_without_subjects(tmp_path):
    (tmp_path / "subjects_0-1999_72_imgs").mkdir()
    with pytest.raises(UserError, match="no folder of a subject"):
        datasets.load("digiface", tmp_path)
