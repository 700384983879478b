"""Each row of the sensitivity table against an evaluation with that setting."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from eval import evaluate
from eval.readers import EmbeddingSet
from eval.sensitivity import sensitivity, write_sensitivity
from tests.eval.awkward import make_set


def table(data, **settings) -> dict[tuple[str, str], float]:
    return {(row.setting, row.value): row.found for row in sensitivity(data, **settings)}


def test_rows_are_what_evaluate_gives():
    data = make_set()

    def direct(**changes):
        return evaluate(data.embeddings, data.labels, **changes)

    found = table(data)
    assert found["FAR range", "0.01 to 0.1"] == direct().opis
    assert found["FAR range", "0.001 to 0.01"] == direct(far_range=(1e-3, 1e-2)).opis
    assert found["thresholds in the range", "101"] == direct(grid_points=101).opis
    assert found["c, weight of specificity", "2"] == direct(c=2.0).opis
    assert found["ε (of ε-OPIS)", "0.2"] == direct(epsilon=0.2).epsilon_opis
    assert found["spacing of the thresholds", "even in log FAR"] == direct().opis_far
    cosine = direct(distance="cosine").opis
    assert found["spacing of the thresholds", "even in cosine distance"] == pytest.approx(cosine)
    assert cosine != direct().opis


def test_declared_settings_are_rows_too_and_ratios_are_to_them():
    rows = sensitivity(make_set(), c=0.7, far_range=(0.02, 0.2), distance="cosine", grid_points=51)
    declared = [row for row in rows if row.declared]
    assert [row.value for row in declared] == [
        *("0.02 to 0.2", "51", "even in cosine distance", "0.7", "0.1")
    ]
    assert {row.ratio for row in declared} == {1.0}
    for row in rows:
        base = next(other for other in declared if other.setting == row.setting)
        assert row.ratio == row.found / base.found


def test_files(tmp_path):
    text = write_sensitivity(make_set(), tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {f"sensitivity.{suffix}" for suffix in ("csv", "md", "png", "svg")}
    with open(tmp_path / "sensitivity.csv", newline="", encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == text.count("\n") - 1


def test_opis_of_zero_has_no_ratio_but_a_figure(tmp_path):
    # All negatives are equally far: every class is at utility 0 in the range, OPIS is 0.
    labels = np.repeat(np.arange(30), 3)
    data = EmbeddingSet("basis", np.repeat(np.eye(30), 3, axis=0), labels, None)
    write_sensitivity(data, tmp_path)
    assert all(row.ratio == 1 for row in sensitivity(data))
