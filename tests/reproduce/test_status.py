"""Rows that are there, stale or missing, told apart by the hashes of configuration and code."""

from pathlib import Path

import pytest

from reproduce import results, status
from reproduce.execute import execute
from reproduce.keys import Keys
from reproduce.runtime import Runtime
from reproduce.stored import Stored
from tests.reproduce import frames, tiny


@pytest.fixture
def keys(tmp_path) -> Keys:
    return Keys(Runtime(runs=tmp_path / "runs", progress=False))


def states(folder: Path, keys: Keys) -> list[str]:
    found = status.of_table(tiny.TABLE, "demo", folder, keys, Stored(folder / "runs"))
    return [state for _, state in found]


def write(folder: Path, keys: Keys, **columns) -> None:
    """A results table as today's code makes it, with some columns replaced in its first row."""
    frame = frames.frame(tiny.TABLE, "demo", lambda row, seed: {})
    frame["code_hash"] = keys.short_code(tiny.config())
    for name, value in columns.items():
        frame[name] = frame[name].astype(object)
        frame.loc[0, name] = value
    results.write(frame, results.csv_path("tiny", "demo", folder))


def test_without_results_all_is_missing(tmp_path, keys):
    assert states(tmp_path, keys) == [status.MISSING] * 2


def test_rows_of_today_are_there(tmp_path, keys):
    write(tmp_path, keys)
    assert states(tmp_path, keys) == [status.FRESH] * 2


@pytest.mark.parametrize(
    ("column", "value", "state"),
    [
        ("config_hash", "0" * 16, status.OTHER_CONFIG),
        ("schema_version", 0, status.OTHER_CONFIG),
        ("code_hash", "0" * 16, status.OTHER_CODE),
        ("seed", 7, status.MISSING),
    ],
)
def test_a_row_made_otherwise_is_stale_by_name(tmp_path, keys, column, value, state):
    write(tmp_path, keys, **{column: value})
    assert states(tmp_path, keys) == [state, status.FRESH]


def test_a_finished_run_that_is_not_in_the_table_is_said(tmp_path, keys):
    execute(tiny.config(), keys.runtime)
    assert states(tmp_path, keys) == [status.IN_STORE, status.MISSING]
    # What cannot be read counts as not there.
    for path in (tmp_path / "runs").glob("*/record.json"):
        path.write_text("{")
    assert states(tmp_path, keys) == [status.MISSING] * 2


def test_the_command_names_rows_and_how_to_fill_them(tmp_path, capsys):
    options = ["--scale", "demo", "--rows", "--results", str(tmp_path), "--runs", str(tmp_path)]
    assert status.main(options) == 1
    said = capsys.readouterr().out
    assert "table2 (demo), " in said
    assert " missing: python -m reproduce.table2 --scale demo" in said
    assert "  ProxyAnchor on glyphs/kanji, glyph_cnn: missing, seeds 0 1 2" in said
