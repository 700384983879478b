"""Pairs and seeds, worked by hand."""

import math

import numpy as np
import pandas as pd
import pytest

from reproduce.aggregate import over_seeds, paired_differences
from reproduce.figures.pareto import frontier

FRAME = pd.DataFrame(
    [
        ("A", "d", "b", "a", 0, 0.5),
        ("A", "d", "b", "a", 1, 0.7),
        ("A+TCM", "d", "b", "a+tcm", 1, 0.8),
        ("A+TCM", "d", "b", "a+tcm", 0, 0.9),
        ("A+TCM", "d", "b", "a+tcm", 2, 0.1),
        ("A", "e", "b", "a", 0, 0.0),
        ("A+TCM", "e", "b", "a+tcm", 0, 0.25),
    ],
    columns=["row", "dataset", "backbone", "loss", "seed", "recall_at_1"],
)


def test_pairs_share_seed_and_data_set():
    all_pairs = paired_differences(FRAME, "A", "A+TCM", "recall_at_1", {})
    assert all_pairs == pytest.approx([0.4, 0.1, 0.25])
    of_e = paired_differences(FRAME, "A", "A+TCM", "recall_at_1", {"dataset": "e"})
    assert of_e == pytest.approx([0.25])


def test_a_row_that_is_not_there_gives_no_pairs():
    assert len(paired_differences(FRAME, "A", "B", "recall_at_1", {})) == 0


def test_mean_and_standard_deviation_over_seeds():
    lines = over_seeds(FRAME, ["recall_at_1"]).set_index(["row", "dataset"])
    assert lines.loc[("A", "d"), "recall_at_1"] == pytest.approx(0.6)
    assert lines.loc[("A", "d"), "recall_at_1_std"] == pytest.approx(math.sqrt(0.02))
    assert lines.loc[("A+TCM", "d"), "seeds"] == 3
    assert math.isnan(lines.loc[("A", "e"), "recall_at_1_std"])


def test_frontier_by_hand():
    recall = np.array([0.9, 0.8, 0.95, 0.7, 0.9])
    opis = np.array([2.0, 1.0, 3.0, 1.5, 2.0])
    # (0.7, 1.5) is beaten by (0.8, 1.0); of two equal points both stay.
    assert sorted(frontier(recall, opis)) == [0, 1, 2, 4]
