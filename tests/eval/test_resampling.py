"""The class bootstrap and the threshold for a target FAR."""

from __future__ import annotations

import numpy as np
import pytest

from common.errors import UserError
from eval import evaluate
from eval.resampling import central, class_weights, resampled_opis, resampled_ratio
from eval.thresholds import check_factor, threshold_for_far


def test_draws_are_the_same_each_time_and_add_up():
    first, again = (np.concatenate(list(class_weights(7, seed=3))) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert first.shape == (2000, 7)
    assert (first.sum(axis=1) == 7).all()


def test_opis_of_draws_against_loops():
    rng = np.random.default_rng(0)
    utility = rng.uniform(0.9, 1, size=(6, 4))
    found = resampled_opis(utility)
    weights = np.concatenate(list(class_weights(6)))
    for draw in range(0, 2000, 250):
        drawn = np.repeat(utility, weights[draw].astype(int), axis=0)
        variances = [np.mean([(u - column.mean()) ** 2 for u in column]) for column in drawn.T]
        assert found[draw] == pytest.approx(np.mean(variances) * 6 / 5, rel=1e-9)
    variance = np.mean((utility - utility.mean(axis=0)) ** 2)
    assert found.mean() == pytest.approx(variance, rel=0.05)


def test_interval_covers_the_population_about_as_often_as_it_says():
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(200):
        sizes = rng.integers(50, 150, size=60).astype(float)
        rates = rng.beta(2, 38, size=60)  # mean 0.05
        low, high = central(resampled_ratio(rates * sizes, sizes, seed=int(rng.integers(1e9))))
        covered += low <= 0.05 <= high
    assert 0.88 <= covered / 200 <= 0.99


def ring(degrees: list[float]) -> np.ndarray:
    angles = np.radians(degrees)
    return np.column_stack([np.cos(angles), np.sin(angles)])


def test_threshold_is_the_kth_smallest_distance():
    # Two classes at 0 and 1 degrees, 90 and 100: negatives at 89, 90, 99, 100 degrees.
    counts = evaluate(ring([0, 1, 90, 100]), [0, 0, 1, 1]).counts
    for target, degrees in ((0.25, 89), (0.49, 89), (0.5, 90), (0.75, 99), (0.99, 99)):
        expected = 2 * np.sin(np.radians(degrees) / 2)
        assert threshold_for_far(counts, target) == pytest.approx(expected, rel=1e-9)


def test_ties_never_carry_far_above_the_target():
    # Negatives: one pair at 80 degrees, eight at 90 in two stacks.
    stacks = [0, 0, 0, 90, 90, 90]
    counts = evaluate(ring([*stacks, 170, 170]), [0, 0, 0, 1, 1, 1, 2, 2]).counts
    total = counts.pairs.total_negatives
    assert total == 9 + 6 + 6
    # Six pairs at 80 degrees come first, then nine at 90.
    for k in range(6, 15):
        threshold = threshold_for_far(counts, k / total)
        assert threshold == pytest.approx(2 * np.sin(np.radians(80) / 2))
        assert counts.overall_far(np.array([threshold]))[0] == pytest.approx(6 / total)
    with pytest.raises(UserError, match=r"nearest of 21 negative pairs already give 0\.286"):
        threshold_for_far(counts, 5 / total)


@pytest.mark.parametrize("factor", [1, 0.5, -2, float("nan"), float("inf")])
def test_factor_is_above_one(factor):
    with pytest.raises(UserError, match="above 1"):
        check_factor(factor)


def test_draws_of_classes_spread_rates_of_pairs_as_drawing_both_ends_does():
    # FAR between classes depends on both: 40 classes, some near to all others.
    rng = np.random.default_rng(5)
    near = rng.uniform(0, 0.2, size=40)
    rates = near[:, None] + near[None, :]
    np.fill_diagonal(rates, 0.0)
    pairs = 1.0 - np.eye(40)
    found = resampled_ratio(rates.sum(1), pairs.sum(1), seed=1, two_ended=True)
    weights = np.concatenate(list(class_weights(40, seed=1)))
    drawn = np.einsum("ra,ab,rb->r", weights, rates, weights)
    exact = drawn / np.einsum("ra,ab,rb->r", weights, pairs, weights)
    assert found.std() == pytest.approx(exact.std(), rel=0.1)
    assert np.corrcoef(found, exact)[0, 1] > 0.98
