"""Claims of every shape, judged on results that are worked by hand."""

import numpy as np
import pandas as pd
import pytest
from pydantic import ValidationError

from common.errors import UserError
from reproduce import reference
from reproduce.claims import Claim, Claims
from reproduce.judge import NOT_TESTED, judge, judge_all
from reproduce.tables import TABLES
from reproduce.verdict import CONTRADICTED, INCONCLUSIVE, NOT_RUN, REPRODUCED


def runs(table: str, dataset: str = "d", **rows) -> pd.DataFrame:
    """A results table; each keyword is a row with its (R@1, OPIS) by seed."""
    lines = [
        {
            "table": table,
            "row": row,
            "dataset": dataset,
            "backbone": "b",
            "loss": row,
            "seed": seed,
            "recall_at_1": recall,
            "opis": opis,
            "opis_far": opis,
            "opis_floor": 0.0,
            "run_hash": f"{dataset}-{row}-{seed}",
            "config_hash": f"{dataset}-{row}-{seed}",
        }
        for row, numbers in rows.items()
        for seed, (recall, opis) in enumerate(numbers)
    ]
    return pd.DataFrame(lines)


def claim(*parts: dict, number: int = 1) -> Claim:
    return Claim(id=number, text="a claim", source="a page", parts=parts)


def pair(metric="opis", direction="down", **more) -> dict:
    sizes = {} if "smallest" in more else {"smallest_relative": 0.05}
    names = {"table": "t", "base": "A", "other": "B"}
    return {**names, "metric": metric, "direction": direction, **sizes, **more}


BETTER = runs("t", A=[(0.9, 2e-4)] * 3, B=[(0.92, 1e-4), (0.92, 1.01e-4), (0.92, 0.99e-4)])


def test_all_eleven_claims_are_data_and_none_is_ever_missing():
    known = reference.claims()
    assert [one.id for one in known.claims] == list(range(1, 12))
    judged = judge_all(known, {"t": BETTER})
    assert [one.claim.id for one in judged] == list(range(1, 12))
    assert {one.verdict for one in judged} == {NOT_RUN}
    assert all(part.table in one.reason for one in judged for part in one.claim.parts[:1])


def test_the_rows_of_every_claim_are_rows_of_its_table():
    for one in reference.claims().claims:
        for part in one.parts:
            if part.kind == "pair" and part.table in TABLES:
                for scale, rows in TABLES[part.table].rows.items():
                    names = {row.name for row in rows}
                    assert {part.base, part.other} <= names, (one.id, scale)


def test_each_data_set_is_judged_apart_and_all_must_hold():
    worse = runs("t", "e", A=[(0.9, 1e-4), (0.9, 1.01e-4), (0.9, 0.99e-4)], B=[(0.9, 2e-4)] * 3)
    both = pd.concat([BETTER, worse])
    assert judge(claim(pair()), {"t": BETTER}, 0.95).verdict == REPRODUCED
    found = judge(claim(pair()), {"t": both}, 0.95)
    assert [one.verdict for one in found.findings] == [REPRODUCED, CONTRADICTED]
    assert found.verdict == CONTRADICTED
    only = judge(claim(pair(datasets=["d"])), {"t": both}, 0.95)
    assert only.verdict == REPRODUCED


def test_a_row_that_was_not_run_says_which():
    found = judge(claim(pair(other="C")), {"t": BETTER}, 0.95)
    assert found.verdict == NOT_RUN
    assert "C" in found.reason


def test_a_missing_number_of_a_claim_is_an_error_by_name():
    broken = BETTER.copy()
    broken.loc[4, "opis_far"] = np.nan
    with pytest.raises(UserError, match="'B' on d with seed 1 has no opis_far"):
        judge(claim(pair("opis_far")), {"t": broken}, 0.95)
    with pytest.raises(UserError, match="column train_seconds is missing"):
        judge(claim(pair("train_seconds")), {"t": BETTER}, 0.95)


def test_two_forms_of_opis_that_disagree_are_named():
    frame = BETTER.assign(opis_far=[1e-4, 1e-4, 1e-4, 2e-4, 2.01e-4, 1.99e-4])
    found = judge(claim(pair(), pair("opis_far")), {"t": frame}, 0.95)
    assert "OPIS and OPIS (log FAR) disagree" in found.remarks[0]
    assert not judge(claim(pair(), pair("opis_far")), {"t": BETTER}, 0.95).remarks


SPREAD = {"kind": "spread", "table": "t", "within": 0.02, "ratio": 1.5, "rows": 4}


@pytest.mark.parametrize(
    ("opis", "verdicts"),
    [
        # By R@1 0.90, 0.91, 0.915, 0.92: the best is not the lowest, 3 is 1.5 times 2.
        ([2, 2.5, 3, 2.6], [REPRODUCED, REPRODUCED]),
        ([3, 2.5, 2.4, 2], [REPRODUCED, CONTRADICTED]),
        ([2, 2.1, 2.2, 2.3], [CONTRADICTED, REPRODUCED]),
    ],
)
def test_spread_of_the_accurate_rows(opis, verdicts):
    recall = [0.90, 0.91, 0.915, 0.92]
    rows = {name: [(r, o * 1e-4)] for name, r, o in zip("ABCD", recall, opis, strict=True)}
    far_behind = {"E": [(0.5, 9e-4)]}
    found = judge(claim(SPREAD), {"t": runs("t", **rows, **far_behind)}, 0.95)
    assert [one.verdict for one in found.findings] == verdicts
    assert found.corrected == NOT_TESTED


def test_spread_takes_rows_of_other_tables_on_the_same_data_each_run_once():
    rows = {name: [(0.9, o * 1e-4)] for name, o in zip("AB", (2, 3), strict=True)}
    more = runs("u", C=[(0.91, 4e-4)], D=[(0.91, 2.5e-4)])
    again = runs("v", A=[(0.9, 2e-4)])
    elsewhere = runs("w", "other", Z=[(0.99, 1e-5)])
    frames = {"t": runs("t", **rows), "u": more, "v": again, "w": elsewhere}
    found = judge(claim(SPREAD), frames, 0.95)
    assert found.verdict == REPRODUCED
    assert found.findings[0].n == 4
    assert "2.00 (C over A, 4 rows)" in found.findings[0].measured


def test_too_few_accurate_rows_are_inconclusive():
    found = judge(claim(SPREAD), {"t": runs("t", A=[(0.9, 1e-4)], B=[(0.91, 5e-4)])}, 0.95)
    assert found.verdict == INCONCLUSIVE


def times(*ratios: float) -> pd.DataFrame:
    lines = [
        {"row": "A", "backbone": "b", "batch_size": 64, "base_ms": 10.0, "tcm_ms": 10.0 * ratio}
        for i, ratio in enumerate(ratios)
    ]
    return pd.DataFrame(lines)


@pytest.mark.parametrize(
    ("ratios", "verdict"),
    [
        ((1.01, 1.02, 1.01), REPRODUCED),
        ((1.10, 1.11, 1.12), CONTRADICTED),
        ((1.0, 1.1, 1.05), INCONCLUSIVE),
    ],
)
def test_a_ratio_against_its_limit(ratios, verdict):
    limit = claim({"kind": "limit", "table": "t", "limit": 1.05})
    found = judge(limit, {"t": times(*ratios)}, 0.95)
    assert found.verdict == verdict
    assert f"{np.mean(ratios):.4f}" in found.findings[0].measured


def test_holm_over_claims_takes_back_the_least_sure_one():
    # Differences 5, 6, 7 against 0.05 x 100: p = 0.0007 for the first; the second is just sure.
    values = {"sure": [1.0, 1.001, 0.999], "just": [10.0, 13.0, 16.0]}
    lines = runs("t", A=[(0.5, 0.0)] * 3)
    frames = {}
    for name, differences in values.items():
        other = runs("t", B=[(0.5, -d) for d in differences])
        frames[name] = pd.concat([lines, other])
    parts = [pair(smallest=0.1, table=name) for name in values]
    known = Claims(
        paper={"arxiv": "x", "venue": "y"},
        confidence=0.95,
        claims=tuple(claim(part, number=i) for i, part in enumerate([*parts, parts[1]])),
    )
    judged = judge_all(known, frames)
    assert [one.verdict for one in judged] == [REPRODUCED] * 3
    # Alone p is about 0.009; three claims make 0.018 of it, still below 0.025; see the formula.
    t = (13 - 0.1) * np.sqrt(3) / 3
    alone = (1 - t / np.sqrt(t * t + 2)) / 2
    assert judged[1].p == pytest.approx(2 * alone)
    assert judged[1].corrected == (REPRODUCED if 2 * alone < 0.025 else INCONCLUSIVE)
    assert judged[0].corrected == REPRODUCED


@pytest.mark.parametrize(
    "part",
    [
        {"table": "t", "base": "A", "other": "B", "metric": "opis", "direction": "down"},
        {**SPREAD, "ratio": 0.5},
        {**SPREAD, "kind": "unheard of"},
        {"kind": "limit", "table": "t"},
    ],
)
def test_a_wrong_part_is_refused(part):
    with pytest.raises(ValidationError):
        claim(part)
