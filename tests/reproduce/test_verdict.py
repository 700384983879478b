"""Verdicts against hand-worked intervals and the textbook's table of Student's t."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reproduce.verdict import (
    CONTRADICTED,
    INCONCLUSIVE,
    NO_EFFECT,
    REPRODUCED,
    effect,
    of_all,
)


def test_interval_by_hand():
    # Differences 1, 2, 3: mean 2, sd 1, standard error 1/sqrt(3); t(0.975; 2) = 4.303 (table).
    found = effect(np.array([1.0, 2.0, 3.0]), "up", smallest=0.1)
    half = 4.302653 / math.sqrt(3)
    assert found.mean == 2
    assert found.low == pytest.approx(2 - half, rel=1e-6)
    assert found.high == pytest.approx(2 + half, rel=1e-6)
    assert found.pairs == 3


@pytest.mark.parametrize(
    ("differences", "direction", "smallest", "verdict"),
    [
        ([-3.0, -3.1, -2.9], "down", 1.0, REPRODUCED),
        ([-3.0, -3.1, -2.9], "up", 1.0, CONTRADICTED),
        ([-3.0, -3.1, -2.9], "down", 3.0, INCONCLUSIVE),
        ([0.1, -0.1, 0.0], "up", 1.0, NO_EFFECT),
        ([5.0, -1.0, 9.0], "up", 0.1, INCONCLUSIVE),
        ([3.0], "up", 0.1, INCONCLUSIVE),
        ([0.0, 0.0, 0.0], "up", 0.1, NO_EFFECT),
        # An effect of just the smallest size is not beyond it.
        ([1.0, 1.0, 1.0], "up", 1.0, INCONCLUSIVE),
    ],
)
def test_verdicts(differences, direction, smallest, verdict):
    assert effect(np.array(differences), direction, smallest).verdict == verdict


def test_a_claim_needs_all_its_parts():
    assert of_all([REPRODUCED, REPRODUCED]) == REPRODUCED
    assert of_all([REPRODUCED, NO_EFFECT]) == INCONCLUSIVE
    assert of_all([REPRODUCED, INCONCLUSIVE]) == INCONCLUSIVE
    assert of_all([REPRODUCED, CONTRADICTED]) == CONTRADICTED
    assert of_all([NO_EFFECT, NO_EFFECT]) == NO_EFFECT


finite = st.floats(-100, 100, allow_nan=False)


@given(st.lists(finite, min_size=2, max_size=8), st.floats(0, 10))
def test_turning_the_claim_round_turns_the_verdict_round(values, smallest):
    opposite = {REPRODUCED: CONTRADICTED, CONTRADICTED: REPRODUCED}
    up = effect(np.array(values), "up", smallest).verdict
    down = effect(np.array(values), "down", smallest).verdict
    assert down == opposite.get(up, up)


def test_the_interval_covers_the_truth_as_often_as_it_says():
    rng = np.random.default_rng(0)
    samples = rng.normal(0.3, 1.0, size=(4000, 3))
    found = [effect(row, "up", 0) for row in samples]
    covered = np.mean([e.low <= 0.3 <= e.high for e in found])
    assert covered == pytest.approx(0.95, abs=0.015)
