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
    holm,
    of_all,
    p_of_all,
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
        ([0.1, -0.1, 0.0], "not down", 1.0, REPRODUCED),
        ([-3.0, -3.1, -2.9], "not down", 1.0, CONTRADICTED),
        ([-0.9, -1.1, -1.0], "not down", 1.0, INCONCLUSIVE),
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


def test_p_values_by_hand():
    # Mean 2, standard error 1/sqrt(3), against 0.1: t = 3.2909, 2 degrees of freedom, whose upper
    # tail has the closed form (1 - t / sqrt(t^2 + 2)) / 2.
    found = effect(np.array([1.0, 2.0, 3.0]), "up", smallest=0.1)
    t = 1.9 * math.sqrt(3)
    assert found.p_values[REPRODUCED] == pytest.approx((1 - t / math.sqrt(t * t + 2)) / 2)
    t = 2.1 * math.sqrt(3)
    assert found.p_values[CONTRADICTED] == pytest.approx((1 + t / math.sqrt(t * t + 2)) / 2)


@given(st.lists(finite, min_size=2, max_size=8), st.floats(0, 10), st.sampled_from(["up", "down"]))
def test_a_verdict_is_a_p_value_below_half_of_what_the_interval_leaves_out(
    values, smallest, direction
):
    found = effect(np.array(values), direction, smallest)
    for verdict, p in found.p_values.items():
        if abs(p - 0.025) > 1e-9:
            assert (found.verdict == verdict) == (p < 0.025)


def test_holm_by_hand():
    # Four tests: 0.005 x 4, 0.01 x 3, 0.03 x 2, 0.04 x 1, the last held up to the one before it.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_keeps_the_order_and_lies_between_no_correction_and_bonferroni(p_values):
    adjusted = holm(p_values)
    order = np.argsort(p_values, kind="stable")
    assert np.all(np.diff(np.array(adjusted)[order]) >= 0)
    for raw, corrected in zip(p_values, adjusted, strict=True):
        assert min(raw, 1) <= corrected <= min(1, len(p_values) * raw) + 1e-12


def test_holm_holds_the_rate_of_false_claims():
    rng = np.random.default_rng(1)
    wrong = [min(holm(list(row))) < 0.05 for row in rng.uniform(size=(4000, 8))]
    assert np.mean(wrong) == pytest.approx(0.05, abs=0.012)


def test_a_claim_is_as_sure_as_its_least_sure_part_and_contradicted_by_one():
    parts = [
        effect(np.array([3.0, 3.1, 2.9]), "up", 1.0),
        effect(np.array([-5.0, -4.0, -9.0]), "up", 1.0),
    ]
    found = p_of_all(parts)
    assert found[REPRODUCED] == parts[1].p_values[REPRODUCED]
    smallest = min(part.p_values[CONTRADICTED] for part in parts)
    assert found[CONTRADICTED] == pytest.approx(2 * smallest)
