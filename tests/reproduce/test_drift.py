"""Results that were edited or have drifted from the code and data of today are caught by name."""

import functools

import pandas as pd
import pytest

from common.errors import UserError, run_cli
from reproduce import check, read_all, results, time_results
from reproduce.drift import require_current, require_same_data
from reproduce.seal import seal
from reproduce.store import HASH_LENGTH
from reproduce.table import plan
from reproduce.table2 import TABLE
from reproduce.tables import TABLES
from tests.reproduce import frames


def true_table() -> pd.DataFrame:
    """Table 2 with the hashes that today's code, data and configuration really give."""
    return _true_table().copy()


@functools.cache
def _true_table() -> pd.DataFrame:
    frame = frames.frame(TABLE, "demo", lambda row, seed: {})
    keys = [frames.todays_keys().of(run.config) for run in plan(TABLE, "demo")]
    frame["code_hash"] = [key.code_hash[:HASH_LENGTH] for key in keys]
    frame["run_hash"] = [key.run_hash for key in keys]
    frame["data_checksum"] = [key.data_checksum[:HASH_LENGTH] for key in keys]
    return frame


@pytest.fixture(autouse=True)
def _code_and_data_are_read_once(monkeypatch):
    monkeypatch.setattr(read_all, "Keys", lambda runtime: frames.todays_keys())


def run(tmp_path, frame) -> int:
    results.write(frame, results.csv_path("table2", "demo", tmp_path))
    return run_cli(check.main, ["--results", str(tmp_path)])


def with_cell(column, value):
    frame = true_table().astype({column: object})
    frame.loc[1, column] = value
    return frame


def test_an_untouched_table_of_today_is_taken_without_a_word(tmp_path, capsys):
    assert run(tmp_path, true_table()) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("run_hash", "0" * 16, "has run hash 0000000000000000, which is not that of its"),
        ("config_hash", "0" * 16, "is stale, made with another configuration"),
        ("code_hash", "0" * 16, "has code hash 0000000000000000, unlike the other runs"),
        ("schema_version", 99, "has another schema version"),
        ("data_checksum", "0" * 16, "has data checksum 0000000000000000, but row 'ProxyAnchor'"),
        ("row", "ProxyAnker", "'ProxyAnker'.* is not among the table's rows"),
        ("seed", 5, "'ProxyAnchor.TCM'.* with seed 0 is missing"),
    ],
)
def test_an_edited_cell_is_caught_by_name(tmp_path, capsys, column, value, message):
    assert run(tmp_path, with_cell(column, value)) == 2
    error = capsys.readouterr().err
    assert len(error.splitlines()) == 1
    assert "table2.csv" in error or column == "data_checksum"
    assert pd.Series([error]).str.contains(message).all(), error


def test_a_row_copied_to_another_seed_is_caught(tmp_path, capsys):
    frame = true_table()
    frame.loc[frame["seed"] == 1, "run_hash"] = frame.loc[frame["seed"] == 0, "run_hash"].to_numpy()
    assert run(tmp_path, frame) == 2
    assert "run hash" in capsys.readouterr().err


def test_two_rows_of_one_configuration_may_share_a_run(tmp_path):
    table = TABLES["margin_ablation"]
    frame = frames.frame(table, "demo", lambda row, seed: {})
    frame["run_hash"] = frame["config_hash"]
    assert frame["run_hash"].duplicated().any()
    path = results.csv_path(table.name, "demo", tmp_path)
    results.write(frame, path)
    require_current(results.read(path), table, "demo", path, frames.todays_keys())


def test_other_code_is_a_warning_with_the_rows(tmp_path, capsys):
    frame = true_table()
    assert run(tmp_path, frame.assign(code_hash="0" * 16, run_hash=range(len(frame)))) == 0
    assert "all rows were made by other code than today's" in capsys.readouterr().err
    some = frame["row"].isin(["ProxyAnchor", "RS@K+TCM"]) & (frame["seed"] < 2)
    frame.loc[some, "code_hash"] = "0" * 16
    frame["dirty"] = True
    assert run(tmp_path, frame) == 0
    error = capsys.readouterr().err
    assert error.startswith("warning: ")
    assert error.endswith(
        "rows made by other code than today's: ProxyAnchor on glyphs/kanji (glyph_cnn), seed 0, 1; "
        "RS@K+TCM on glyphs/kanji (glyph_cnn), seed 0, 1 "
        "(rerun python -m reproduce.table2 --scale demo to renew)\n"
    )


def test_a_number_edited_after_the_page_was_made_is_caught(tmp_path, capsys):
    assert run(tmp_path, true_table()) == 0
    path = results.csv_path("table2", "demo", tmp_path)
    path.with_suffix(".md").write_text(f"A page. {seal(path)}\n")
    assert run(tmp_path, true_table()) == 0
    capsys.readouterr()
    assert run(tmp_path, with_cell("opis", 1.9e-4)) == 2
    assert "was changed after table2.md was made from it" in capsys.readouterr().err


def test_one_data_set_has_one_checksum_in_all_tables():
    one, other = true_table(), true_table().assign(data_checksum="1" * 16)
    require_same_data({"a": one, "b": one})
    with pytest.raises(UserError, match=r"b: row 'ProxyAnchor'.* of a has"):
        require_same_data({"a": one, "b": other})


def step_times() -> pd.DataFrame:
    lines = [
        {
            **dict.fromkeys(time_results.COLUMNS, "x"),
            **dict.fromkeys(time_results.MEASURED, 10.0),
            "row": row,
            "batch_size": batch,
            "repeat": repeat,
        }
        for row in "AB"
        for batch in (64, 128)
        for repeat in range(3)
    ]
    return pd.DataFrame(lines)


def change(column, value):
    return lambda frame: frame.assign(
        **{column: [value if i == 4 else old for i, old in enumerate(frame[column])]}
    )


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda frame: frame.drop(index=4), "repeat of row 'A' at batch 128 is missing"),
        (lambda frame: pd.concat([frame, frame.iloc[4:5]]), "'A' at batch 128, repeat 1 is there"),
        (change("tcm_ms", float("nan")), "repeat 1 has tcm_ms=nan"),
        (change("base_ms", -1.0), "repeat 1 has base_ms=-1"),
        (change("base_peak_mb", "much"), "repeat 1 has base_peak_mb=much"),
        (lambda frame: frame.drop(columns="device"), "column device is missing"),
        (lambda frame: frame.iloc[:0], "has no rows"),
    ],
)
def test_damaged_step_times_are_caught_by_name(tmp_path, edit, message):
    path = tmp_path / "time_complexity.csv"
    time_results.write(step_times(), path)
    assert len(time_results.read(path)) == 12
    edit(step_times()).to_csv(path, index=False)
    with pytest.raises(UserError, match=message):
        time_results.read(path)
