"""The check: verdicts from known results, and a name for everything that is wrong with a table."""

import shutil

import pandas as pd
import pytest

from common.errors import run_cli
from reproduce import check, read_all, reference, results
from reproduce.table2 import TABLE
from tests.reproduce import frames


def as_claimed(row: str, seed: int) -> dict:
    """TCM lifts R@1 by 2 points and takes away half of OPIS, with a little noise."""
    better = row.endswith("+TCM")
    return {
        "recall_at_1": 0.90 + 0.02 * better + 0.001 * seed,
        "opis": (1e-4 if better else 2e-4) + 1e-6 * seed,
    }


def other_way_round(row: str, seed: int) -> dict:
    return as_claimed(row.removesuffix("+TCM") if row.endswith("+TCM") else row + "+TCM", seed)


@pytest.fixture
def folder(tmp_path):
    results.write(
        frames.frame(TABLE, "demo", as_claimed), results.csv_path("table2", "demo", tmp_path)
    )
    return tmp_path


@pytest.fixture(autouse=True)
def _code_and_data_are_read_once(monkeypatch):
    monkeypatch.setattr(read_all, "Keys", lambda runtime: frames.todays_keys())


def run(folder, *options) -> int:
    return run_cli(check.main, ["--results", str(folder), *options])


def edit(folder, change) -> None:
    path = results.csv_path("table2", "demo", folder)
    results.write(change(pd.read_csv(path)), path)


def claim_line(text: str, number: int) -> str:
    return next(line for line in text.splitlines() if line.lstrip().startswith(f"{number}. "))


def test_what_the_paper_says_is_reproduced(folder, capsys):
    assert run(folder, "--strict") == 0
    text = capsys.readouterr().out
    for number in (1, 2):
        assert "REPRODUCED" in claim_line(text, number)
    assert "n=3" in text


def test_the_opposite_is_contradicted_and_only_strict_fails(tmp_path, capsys):
    path = results.csv_path("table2", "demo", tmp_path)
    results.write(frames.frame(TABLE, "demo", other_way_round), path)
    assert run(tmp_path) == 0
    assert "CONTRADICTED" in claim_line(capsys.readouterr().out, 1)
    assert run(tmp_path, "--strict") == 1


def test_an_effect_smaller_than_the_noise_floor_is_marked(folder, capsys):
    edit(folder, lambda frame: frame.assign(opis_floor=1.0))
    assert run(folder) == 0
    assert "smaller than the noise floor" in capsys.readouterr().out


def repeat_first(frame):
    return pd.concat([frame, frame.iloc[:1]])


def with_cell(column, value):
    def change(frame):
        frame = frame.astype({column: object})
        frame.loc[1, column] = value
        return frame

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda frame: frame.drop(index=2), "'ArcFace'.* seed 0 is missing"),
        (lambda frame: frame.iloc[:0], "has no rows"),
        (repeat_first, "'ProxyAnchor'.* seed 0 is there twice"),
        (with_cell("opis", float("nan")), r"'ProxyAnchor\+TCM'.*opis=nan"),
        (with_cell("recall_at_1", 97.2), r"'ProxyAnchor\+TCM'.*recall_at_1=97.2"),
        (with_cell("recall_at_1", "high"), "recall_at_1=high"),
        (with_cell("config_hash", "0" * 16), r"'ProxyAnchor\+TCM'.* is stale"),
        (with_cell("schema_version", 0), "schema version"),
        (lambda frame: frame.drop(columns="opis"), "column opis is missing"),
        (lambda frame: frame.drop(columns="commit"), "column commit is missing"),
    ],
)
def test_a_damaged_table_is_caught_by_name(folder, capsys, change, message):
    edit(folder, change)
    assert run(folder) == 2
    error = capsys.readouterr().err
    assert len(error.splitlines()) == 1
    assert pd.Series([error]).str.contains(message).all(), error


@pytest.mark.parametrize("text", ["", "\x00\x01", 'a,b\n"unclosed'])
def test_a_file_that_is_no_table_is_an_error(folder, capsys, text):
    results.csv_path("table2", "demo", folder).write_text(text)
    assert run(folder) == 2
    assert "table2.csv" in capsys.readouterr().err


def test_no_results_at_all_is_an_error(tmp_path, capsys):
    assert run(tmp_path) == 2
    assert "no results" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["claims.yaml", "values.csv"])
@pytest.mark.parametrize("text", ["", "claims: []", "table,row"])
def test_an_empty_reference_is_an_error(folder, monkeypatch, tmp_path, capsys, name, text):
    copy = tmp_path / "paper"
    shutil.copytree(reference.FOLDER, copy)
    (copy / name).write_text(text)
    monkeypatch.setattr(reference, "FOLDER", copy)
    results.write(
        frames.frame(TABLE, "paper", as_claimed), results.csv_path("table2", "paper", folder)
    )
    assert run(folder, "--scale", "paper") == 2
    assert name in capsys.readouterr().err


def test_numbers_are_compared_at_paper_scale(tmp_path, capsys):
    def metrics(row, seed):
        return as_claimed(row, seed) | ({"recall_at_1": 0.7179} if row == "RS@K" else {})

    path = results.csv_path("table2", "paper", tmp_path)
    results.write(frames.frame(TABLE, "paper", metrics), path)
    assert run(tmp_path, "--scale", "paper") == 0
    text = capsys.readouterr().out
    assert "RS@K, inaturalist, resnet50, recall_at_1: published 0.718, ours 0.7179" in text
    assert "match" in text
    assert (
        "vit_base_patch16_224, recall_at_1: published 0.83, ours 0.7179, delta -0.112: differs"
        in text
    )
    assert "no reference" in text
    assert "no verdict (setting unknown" in text
