"""A set too large for the engine's exact pass: negatives are binned, the report stays true."""

from __future__ import annotations

import csv
import math

import numpy as np
import pytest

from eval.readers import EmbeddingSet
from eval.report import write_report
from tests.eval.awkward import brute_force

TARGET = 1e-3  # below the calibration range: takes the second pass


def test_recommendation_and_rates_of_a_binned_set(tmp_path):
    rng = np.random.default_rng(2)
    codes = np.repeat(np.arange(120), 20)
    centres, noise = rng.normal(size=(120, 12)), rng.normal(size=(2400, 12))
    embeddings = centres[codes] + rng.uniform(0.2, 0.9, size=120)[codes, None] * noise
    report = write_report(
        EmbeddingSet("large", embeddings, codes, None), tmp_path, target_far=TARGET
    )
    assert report.result.settings["pairs"] != "all, in float64"
    truth = brute_force(embeddings, codes)
    negatives = truth.negatives
    exact = negatives[math.floor(TARGET * len(negatives)) - 1]
    found = report.recommendation
    assert found.threshold == pytest.approx(exact, rel=1e-3)
    assert found.far == pytest.approx(TARGET, rel=0.01)
    with open(tmp_path / "per_class.csv", newline="") as file:
        rows = {int(row["label"]): row for row in csv.DictReader(file)}
    off = 0
    for label, row in rows.items():
        far, frr = truth.rates(label, found.threshold)
        # Bins are narrow here: a class's 47,600 negatives may be off by a pair or two.
        assert float(row["far"]) == pytest.approx(far, abs=2 / 47_600)
        assert float(row["frr"]) == pytest.approx(frr, abs=1e-6)
        off += far > 2 * TARGET
    assert abs(int(found.far_fails.sum()) - off) <= 1
    assert off > 5
