"""TAR, FAR, EER and fold accuracy against scikit-learn, brute force and what is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from sklearn.metrics import roc_curve

from common.errors import UserError
from eval.fold_accuracy import best_threshold, consecutive_folds, draw_folds, fold_accuracy
from eval.geometry import geometry
from eval.pair_rates import ListedPairs, count_all_pairs
from eval.pair_scores import listed_distances
from eval.prepare import prepare
from eval.resampling import class_weights
from eval.verification import verify, verify_pairs
from eval.verification_rates import det, equal_error, tar_at_far
from tests.eval.awkward import brute_force, even_set

FARS = (0.5, 0.2, 0.1, 0.03, 0.01)


def tied(seed: int, count: int = 600) -> tuple[np.ndarray, np.ndarray]:
    """Random distances with many ties, positives somewhat nearer."""
    rng = np.random.default_rng(seed)
    same = rng.random(count) < rng.uniform(0.1, 0.9)
    levels = int(rng.integers(3, 400))
    distances = np.round(rng.normal(size=count) - 1.2 * same, 6)
    return np.round(distances * levels / 8) / levels * 8 + 10, same


def expected_tar(distances, same, far: float) -> tuple[float, float] | None:
    """TAR and FAR at scikit-learn's last point within ``far``; None if that accepts no negative."""
    fars, tars, at = roc_curve(same, -distances, drop_intermediate=False)
    last = np.flatnonzero(fars <= far * (1 + 1e-9))[-1]
    if fars[last] == 0:
        return None
    # Among points of one FAR, the largest distance of a negative pair comes first.
    threshold = distances[~same & (distances <= -at[last])].max()
    point = int(np.flatnonzero(-at == threshold)[0])
    return float(tars[point]), float(fars[point])


def expected_eer(distances, same) -> float:
    fars, tars, _ = roc_curve(same, -distances, drop_intermediate=False)
    gap = fars - (1 - tars)
    i = int(np.flatnonzero(gap >= -1e-9)[0])
    if i == 0 or gap[i] == gap[i - 1]:
        return float(fars[i])
    share = min(1.0, -gap[i - 1] / (gap[i] - gap[i - 1]))
    return float(fars[i - 1] + share * (fars[i] - fars[i - 1]))


@pytest.mark.parametrize("seed", range(25))
def test_rates_of_a_list_are_those_of_scikit_learn(seed):
    distances, same = tied(seed)
    rates = ListedPairs(distances, same)
    fars, tars, at = roc_curve(same, -distances, drop_intermediate=False)
    assert rates.far(-at[1:]) == pytest.approx(fars[1:])
    assert 1 - rates.frr(-at[1:]) == pytest.approx(tars[1:])
    assert equal_error(rates).rate == pytest.approx(expected_eer(distances, same), abs=1e-12)
    for far in FARS:
        expected = expected_tar(distances, same, far)
        if expected is None:
            with pytest.raises(UserError, match=r"needs at least|no threshold has a FAR as low"):
                tar_at_far(rates, far)
            continue
        found = tar_at_far(rates, far)
        assert (found.tar, found.reached_far) == pytest.approx(expected)


def grid_embeddings(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Points of a coarse lattice: many pairs tie, some images are the same."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 9, size=70)
    centres = rng.integers(-3, 4, size=(9, 3))
    return (centres[codes] + rng.integers(-1, 2, size=(70, 3)) + 0.25).astype(np.float32), codes


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("distance", ["euclidean", "cosine"])
def test_all_pairs_agree_with_brute_force_and_with_their_list(seed, distance):
    x, codes = grid_embeddings(seed)
    units = x.astype(np.float64) / np.linalg.norm(x.astype(np.float64), axis=1, keepdims=True)
    s = np.round(units @ units.T, 12)
    matrix = 1 - s if distance == "cosine" else np.sqrt(np.maximum(0, 2 - 2 * s))
    i, j = np.triu_indices(len(x), 1)
    same, distances = codes[i] == codes[j], matrix[i, j]
    rates = count_all_pairs(x, codes, [0.05], distance=distance)
    assert (rates.positives, rates.negatives) == (same.sum(), (~same).sum())
    assert equal_error(rates).rate == pytest.approx(expected_eer(distances, same), abs=1e-12)
    expected = expected_tar(distances, same, 0.05)
    found = verify(x, codes, distance=distance, fars=[0.05], calibration_share=0)
    assert (found.tar_at[0].tar, found.tar_at[0].reached_far) == pytest.approx(expected)
    accepted = distances <= found.tar_at[0].threshold + 1e-9
    assert found.tar_at[0].tar == pytest.approx(accepted[same].mean())
    listed = verify_pairs(
        x, np.stack([i, j], 1), same, labels=codes, distance=distance, fars=[0.05]
    )
    assert listed.tar_at[0].tar == pytest.approx(found.tar_at[0].tar)
    assert listed.tar_at[0].threshold == pytest.approx(found.tar_at[0].threshold, abs=1e-9)
    assert listed.tar_at[0].interval == pytest.approx(found.tar_at[0].interval, abs=0.02)
    assert listed.equal_error.rate == pytest.approx(found.equal_error.rate, abs=1e-12)


def test_hyperbolic_distances_of_a_list():
    rng = np.random.default_rng(0)
    x = rng.uniform(-0.5, 0.5, size=(6, 2))
    pairs, c = np.array([[0, 1], [2, 5], [4, 3]]), 0.7
    expected = [
        np.arccosh(
            1 + 2 * c * ((x[a] - x[b]) ** 2).sum()
            / ((1 - c * (x[a] ** 2).sum()) * (1 - c * (x[b] ** 2).sum()))
        ) / math.sqrt(c)
        for a, b in pairs
    ]  # fmt: skip
    assert listed_distances(x, pairs, geometry("poincare", c)) == pytest.approx(expected)


def test_separated_identities_have_no_errors():
    x = np.repeat(np.eye(25), 3, axis=0) + 1e-3 * np.random.default_rng(0).normal(size=(75, 25))
    found = verify(x, np.repeat(np.arange(25), 3), fars=[0.01], calibration_share=0)
    assert found.equal_error.rate == 0
    assert found.tar_at[0].tar == 1
    assert found.tar_at[0].interval == (1, 1)
    assert (found.accuracy.mean, found.accuracy.std) == (1, 0)


def test_identical_pairs_meet_halfway():
    rates = ListedPairs(np.ones(10), np.arange(10) < 4)
    assert equal_error(rates).rate == pytest.approx(0.5)
    assert equal_error(rates).threshold == 1


def test_interval_covers_the_truth_as_often_as_it_says():
    """Independent normal pairs: TAR at FAR 0.05 is known; 60 lists of 400 pairs."""
    rng = np.random.default_rng(5)
    truth = float(ndtr(ndtri(0.05) + 2))
    same = np.arange(400) % 2 == 0
    covered = 0
    for _ in range(60):
        distances = rng.normal(size=400) - 2 * same
        low, high = tar_at_far(ListedPairs(distances, same), 0.05).interval
        covered += low <= truth <= high
    assert covered >= 51  # 57 are expected; fewer than 51 have a chance below 1 in 200


def test_interval_draws_identities_not_pairs():
    """Every image ten times over says nothing new: with identities drawn, the interval stays."""
    data = even_set((0.4, 0.9))
    few = np.flatnonzero(np.arange(600) % 10 < 4)
    x, codes = data.embeddings[few], data.labels[few]
    once = verify(x, codes, fars=[0.01], calibration_share=0).tar_at[0]
    tripled = verify(
        np.repeat(x, 3, 0), np.repeat(codes, 3), fars=[0.01], calibration_share=0
    ).tar_at[0]
    widths = [at.interval[1] - at.interval[0] for at in (once, tripled)]
    assert widths[1] == pytest.approx(widths[0], rel=0.35)
    assert widths[0] > 0.05


def test_interval_covers_where_identities_lie_nearer_to_all_others():
    """All pairs of 40 identities, each nearer to or farther from all: FAR hangs on which are there.

    Negative distances are normal of variance 1 + 2 / 4, positive ones of variance 1 around -2.
    """
    people, rng = 40, np.random.default_rng(0)
    truth = float(ndtr(math.sqrt(1.5) * ndtri(0.05) + 2))
    a, b = np.triu_indices(people, 1)
    same = np.r_[np.zeros(len(a), bool), np.ones(50 * people, bool)]
    ends = np.concatenate([np.stack([a, b], 1), np.arange(50 * people)[:, None].repeat(2, 1) % 40])
    covered = 0
    for _ in range(40):
        nearness = rng.normal(size=people) / 2
        distances = rng.normal(size=len(same)) + np.where(same, -2, nearness[ends].sum(1))
        low, high = tar_at_far(ListedPairs(distances, same, ends), 0.05).interval
        covered += low <= truth <= high
    assert covered >= 35  # 38 are expected, 30 if the chance of one end alone were seen


def test_interval_is_that_of_a_bootstrap_with_pairs_written_out():
    """A draw that has a twice and b three times has each of their pairs six times."""
    rng = np.random.default_rng(8)
    people = 30
    ends = np.sort(rng.integers(people, size=(1500, 2)), axis=1)
    ends[:500, 1] = ends[:500, 0]
    same = ends[:, 0] == ends[:, 1]
    distances = rng.normal(size=1500) - 2 * same + 0.4 * rng.normal(size=people)[ends].sum(1)
    found = tar_at_far(ListedPairs(distances, same, ends), 0.05, seed=4)
    draws = []
    for weights in np.concatenate(list(class_weights(people, 4)))[:500].astype(int):
        times = np.where(same, weights[ends[:, 0]], weights[ends].prod(1))
        written = np.repeat(np.arange(1500), times)
        draws.append(expected_tar(distances[written], same[written], 0.05)[0])
    low, high = np.quantile(draws, [0.025, 0.975])
    assert high - low > 0.1
    assert found.interval == pytest.approx((low, high), abs=0.2 * (high - low))


@pytest.mark.parametrize(
    ("pairs", "same"),
    [([[0, 1]], [True, False]), ([[0, 9]], [True]), ([[0, -1]], [True]), ([[0.0, 1.0]], [True])],
)
def test_pairs_of_no_rows_are_refused(pairs, same):
    with pytest.raises(UserError, match="pairs"):
        verify_pairs(np.eye(4), np.array(pairs), same)


def test_too_few_negatives_are_counted():
    data = even_set((0.4, 0.9))
    some = data.labels < 6  # 1,500 negatives
    x, codes = data.embeddings[some], data.labels[some]
    message = r"FAR 0.0001 needs at least 10,000 negative pairs, there are 1,500"
    with pytest.raises(UserError, match=message):
        verify(x, codes, fars=[0.01, 1e-4])
    found = verify(x, codes)
    assert [at.far for at in found.tar_at] == [1e-3]
    assert any("FAR 1e-05 needs at least 100,000 negative pairs" in s for s in found.left_out)
    assert any("20 identities" in s for s in found.left_out)
    assert found.accuracy is None
    with pytest.raises(UserError, match="needs at least 1,000 negative pairs among the calib"):
        verify(x, codes, fars=[1e-3], calibration_share=0.5)


@pytest.mark.parametrize("far", [0, 1, -0.1, math.nan, 2])
def test_no_rate_is_refused(far):
    data = even_set((0.4, 0.9))
    with pytest.raises(UserError, match="no false-accept rate"):
        verify(data.embeddings, data.labels, fars=[far])


def test_folds_share_no_identity_and_are_balanced():
    rng = np.random.default_rng(3)
    codes = rng.permutation(np.repeat(np.arange(47), rng.integers(1, 9, size=47)))
    images = prepare(rng.normal(size=(len(codes), 4)), codes)
    pairs, same, folds = draw_folds(images, 1)
    sorted_codes = images.queries.codes
    assert (sorted_codes[pairs[:, 0]] == sorted_codes[pairs[:, 1]]).tolist() == same.tolist()
    members = [set(sorted_codes[pairs[folds == fold]].ravel().tolist()) for fold in range(10)]
    assert sum(map(len, members)) == len(set().union(*members))
    assert len({tuple(pair) for pair in pairs.tolist()}) == len(pairs)
    sizes = {
        (int((same & (folds == f)).sum()), int((~same & (folds == f)).sum())) for f in range(10)
    }
    assert len(sizes) == 1
    assert len(set(next(iter(sizes)))) == 1
    again = draw_folds(images, 1)
    assert (again[0] == pairs).all()
    assert not np.array_equal(draw_folds(images, 2)[0], pairs)


@pytest.mark.parametrize("seed", range(8))
def test_best_threshold_is_that_of_trying_all(seed):
    distances, same = tied(seed, 60)
    at = best_threshold(distances, same)
    tries = [*np.unique(distances), -1.0]
    best = max(np.mean((distances <= t) == same) for t in tries)
    assert np.mean((distances <= at) == same) == pytest.approx(best)


def test_fold_accuracy_by_hand():
    """Nine folds are told apart at 0.5; in the last both pairs are on the wrong side."""
    distances = np.tile([0.2, 0.8], 10)
    same = np.tile([True, False], 10)
    same[-2:] = [False, True]
    found = fold_accuracy(distances, same, consecutive_folds(20))
    assert found.accuracies.tolist() == [1.0] * 9 + [0.0]
    assert found.thresholds == pytest.approx(0.5)
    assert (found.mean, found.std) == pytest.approx((0.9, math.sqrt(0.1)))
    assert consecutive_folds(25).tolist() == [i * 10 // 25 for i in range(25)]


def test_curve_falls_from_all_to_nothing_and_holds_true_rates():
    data = even_set((0.4, 0.9))
    some = data.labels < 20
    truth = brute_force(data.embeddings[some], data.labels[some])
    curve = det(count_all_pairs(data.embeddings[some], data.labels[some], [0.01]))
    assert curve.far[0] == 0
    assert (np.diff(curve.far) >= 0).all()
    assert (np.diff(curve.frr) <= 0).all()
    assert (curve.far[-1], curve.frr[-1]) == (1, 0)
    for at, far in zip(curve.thresholds[1::40], curve.far[1::40], strict=True):
        assert far == pytest.approx((truth.negatives <= at + 1e-9).mean(), abs=1e-4)


def test_large_sets_agree_with_their_list():
    """Beyond 2,048 images the engine counts in bins; TAR and EER move by little."""
    rng = np.random.default_rng(2)
    codes = np.repeat(np.arange(210), 10)
    x = (rng.normal(size=(210, 16))[codes] + 0.8 * rng.normal(size=(2100, 16))).astype(np.float32)
    binned = count_all_pairs(x, codes, [1e-4], threads=1)
    i, j = np.triu_indices(len(x), 1)
    distances = listed_distances(x, np.stack([i, j], 1), geometry("euclidean"))
    exact = ListedPairs(distances, codes[i] == codes[j], np.stack([codes[i], codes[j]], 1))
    assert equal_error(binned).rate == pytest.approx(equal_error(exact).rate, rel=2e-3)
    for far in (1e-3, 1e-4):
        assert binned.tolerance > exact.tolerance
        found, expected = tar_at_far(binned, far), tar_at_far(exact, far)
        assert found.tar == pytest.approx(expected.tar, abs=2e-3)
        assert found.interval == pytest.approx(expected.interval, abs=0.01)
