"""The report: no claim missing, every number from the CSVs, worked by hand where it can be."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from common.errors import run_cli
from reproduce import report, report_choices, report_claims, report_costs, results
from reproduce.metrics import scaled
from reproduce.table2 import TABLE
from reproduce.verdict import INCONCLUSIVE, effect
from tests.reproduce import frames


def as_claimed(row: str, seed: int) -> dict:
    better = row.endswith("+TCM")
    opis = (1e-4 if better else 2e-4) + 1e-6 * seed
    return {
        "recall_at_1": 0.90 + 0.02 * better + 0.0001 * seed * better,
        "opis": opis,
        "opis_far": opis,
        "epsilon_opis": 10 * opis,
        "opis_corrected": opis - 1e-5,
    }


@pytest.fixture(scope="module")
def text(tmp_path_factory) -> str:
    root = tmp_path_factory.mktemp("results")
    frame = frames.frame(TABLE, "demo", as_claimed)
    results.write(frame, results.csv_path("table2", "demo", root))
    assert run_cli(report.main, ["--results", str(root)]) == 0
    return (root / "demo" / "REPORT.md").read_text(encoding="utf-8")


def test_the_verdict_table_comes_first_and_has_every_claim(text):
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert [line.split("|")[1].strip() for line in lines[2:13]] == [str(i) for i in range(1, 12)]
    assert text.index("| # |") < text.index("## ")
    assert text.index("## What held") < text.index("## What was not run")


def test_the_numbers_are_those_of_the_table(text):
    # R@1: 2.00, 2.01, 2.02 points; OPIS halves, the same in every seed.
    assert "Of the 11 claims" in text
    assert "2 were run: 2 reproduced" in text
    assert "Δ R@1 +2.01 points; Δ OPIS -0.100e-3" in text
    half = stats.t.ppf(0.975, 2) * 0.01 / math.sqrt(3)
    assert f"+2.01 [{2.01 - half:+.2f}, {2.01 + half:+.2f}] points" in text
    assert "(+50% of ArcFace)" in text


def test_what_was_not_run_says_how_to_run_it(text):
    assert "Not run: hier has no results; run python -m reproduce.hier." in text


def test_costs_count_shared_runs_once():
    frame = frames.frame(TABLE, "demo", as_claimed).assign(seconds=200.0, peak_memory_mb=500.0)
    lines = report_costs.cost_table({"table2": frame, "bases": frame.iloc[:6]})
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert cells[2][:3] == ["table2", str(len(TABLE.rows["demo"])), str(len(frame))]
    assert cells[3][2] == "6"
    assert cells[4][0] == "all, shared runs once"
    assert cells[4][2] == str(len(frame))
    assert cells[4][4] == f"{len(frame) * 200 / 3600:.2f}"


@pytest.mark.parametrize("differences", [[0.2, 0.9, 0.4], [1.3, -0.4, 0.6, 0.1]])
def test_pairs_needed_is_the_least_number_that_decides(differences):
    found = effect(np.array(differences), "up", 0.1)
    assert found.verdict == INCONCLUSIVE
    needed = report_claims.pairs_needed(found, 0.95)
    sd, mean = np.std(differences, ddof=1), np.mean(differences)

    def decides(n: int) -> bool:
        half = stats.t.ppf(0.975, n - 1) * sd / math.sqrt(n)
        return mean - half > 0.1

    assert decides(needed)
    assert not decides(needed - 1)


def test_no_number_of_pairs_decides_on_the_limit():
    found = effect(np.array([0.0, 0.1, 0.2]), "up", 0.1)
    assert report_claims.pairs_needed(found, 0.95) is None
    assert report_claims.pairs_needed(effect(np.array([1.0]), "up", 0.1), 0.95) is None


def test_forms_of_opis_that_turn_the_sign_are_named():
    frame = frames.frame(TABLE, "demo", as_claimed)
    turned = frame["row"] == "ArcFace+TCM"
    frame.loc[turned, "opis_far"] = 3e-4
    bases = {"table2": {row.name: row.base for row in TABLE.rows["demo"]}}
    changes = report_choices.changes({"table2": frame}, bases)
    assert len(changes) == len(TABLE.rows["demo"]) / 2
    lines = report_choices.form_lines(changes)
    assert f"depends on the form of OPIS in 1 of {len(changes)}" in lines[0]
    assert len(lines) == 5
    assert lines[-1].startswith("| ArcFace+TCM against ArcFace (table2)")


def test_other_choices_that_turn_the_answer_are_counted():
    def lines(row, run, *values):
        kinds = [("as declared", np.nan), ("FAR range", "0.1 to 0.3"), ("noise floor", "less")]
        return [
            {"row": row, "dataset": "d", "run_hash": run, "choice": c, "value": v, "opis": o}
            for (c, v), o in zip(kinds, values, strict=True)
        ]

    table = pd.DataFrame(
        [
            *lines("A", "1", 2e-4, 1e-4, -1e-5),
            *lines("A+TCM", "2", 1e-4, 2e-4, 1e-5),
            *lines("B", "3", 2e-4, 2e-4, 1e-5),
            *lines("B+TCM", "4", 1e-4, 1e-4, 1e-6),
        ]
    )
    text = report_choices.choice_lines(table)
    assert "In 1 of 2 the answer turns" in text[0]
    assert "| A+TCM, d | 0.50 | 2.00 |  |" in text
    assert "| B+TCM, d | 0.50 | 0.50 | 0.10 |" in text
    assert "run python -m reproduce.utility" in report_choices.choice_lines(pd.DataFrame())[0]


def test_the_floor_beside_opis():
    frame = frames.frame(TABLE, "demo", lambda row, seed: {"opis": 2e-4, "opis_floor": 1e-4})
    lines = report_choices.floor_lines([], {"table2": frame})
    assert lines == [
        "- glyphs/kanji: OPIS is 0.200e-3 on average, its noise floor 0.100e-3: classes that do "
        "not differ at all would give 50 % of it."
    ]


def test_a_name_in_a_sentence_has_no_unit():
    assert scaled("recall_at_1").name == "R@1"
    assert scaled("opis_far").name == "OPIS (log FAR)"
    assert scaled("train_seconds").name == "training time"


def test_a_broken_table_stops_the_report(tmp_path, capsys):
    frame = frames.frame(TABLE, "demo", as_claimed).drop(index=3)
    results.write(frame, results.csv_path("table2", "demo", tmp_path))
    assert run_cli(report.main, ["--results", str(tmp_path)]) == 2
    assert "is missing" in capsys.readouterr().err
    assert not (tmp_path / "demo" / "REPORT.md").exists()
