"""One threshold for a target FAR: how sure it is, and which classes it fails."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from common.errors import UserError
from eval.counts import ClassCounts
from eval.operating import OperatingCurves
from eval.resampling import central, resampled_ratio

DEFAULT_FACTOR = 2.0
GRID_POINTS = 401
GRID_SPREAD = 4
ROUNDING = 1e-9
BINNED_TOLERANCE = 0.02  # in large sets FAR is interpolated within bins


@dataclass(frozen=True)
class Recommendation:
    """A threshold, its uncertainty over the choice of classes, and its failures.

    Attributes:
        target_far: asked for, over all negative pairs.
        threshold: a distance; accept pairs at most that far apart.
        threshold_interval: central 95 % of the thresholds that resampled classes would give.
        far, frr: of all pairs at ``threshold``.
        far_interval: central 95 % of the FAR at ``threshold`` over resampled classes: what the same
            threshold may give on other classes like these.
        factor: a class fails beyond this multiple of ``target_far`` or of ``frr``.
        far_fails, frr_fails: (C,) whether the class's FAR, FRR is off by more than that.
    """

    target_far: float
    threshold: float
    threshold_interval: tuple[float, float]
    far: float
    frr: float
    far_interval: tuple[float, float]
    factor: float
    far_fails: np.ndarray
    frr_fails: np.ndarray

    @property
    def fails(self) -> np.ndarray:
        """(C,) whether the threshold fails the class in either way."""
        return self.far_fails | self.frr_fails


def recommend(
    counts: ClassCounts,
    curves: OperatingCurves,
    target_far: float,
    *,
    factor: float = DEFAULT_FACTOR,
    seed: int = 0,
) -> Recommendation:
    """Judges the one threshold of ``curves``, that for ``target_far``.

    The bootstrap draws classes with replacement, 2,000 times, classes of one image included, and
    pools the negatives of the drawn ones at fixed thresholds: two copies of a class never form
    pairs. Between the 401 thresholds from a quarter to four times the target it interpolates.

    Args:
        counts: with the finest bins around the target.
        curves: error rates at the threshold alone, T = 1.
    """
    threshold = float(curves.thresholds[0])
    grid = _grid(counts, target_far, threshold)
    resampled = _resampled_far(counts, grid, seed)
    reached = float(curves.overall_far[0])  # the target, less what rounding to whole pairs takes
    crossings = np.array([_crossing(grid, far, reached) for far in resampled])
    far_fails, frr_fails = failing_classes(curves, 0, target_far, factor)
    return Recommendation(
        target_far=target_far,
        threshold=threshold,
        threshold_interval=central(crossings),
        far=reached,
        frr=float(curves.overall_frr[0]),
        far_interval=central(resampled[:, np.searchsorted(grid, threshold)]),
        factor=factor,
        far_fails=far_fails,
        frr_fails=frr_fails,
    )


def threshold_for_far(counts: ClassCounts, target_far: float) -> float:
    """The k-th smallest negative distance, k = floor(f n), or the next smaller one where ties at
    that distance would carry FAR above the target.

    Raises:
        UserError: the nearest negative pairs tie, so that no threshold has so low a FAR.
    """
    total = counts.pairs.total_negatives

    def far_at(rank: int) -> float:
        return float(counts.overall_far(np.array([counts.threshold_at_rank(rank)]))[0])

    k = highest_rank(target_far, total, far_at, BINNED_TOLERANCE)
    if k == 0:
        lowest = far_at(1)
        raise UserError(
            f"no threshold has a FAR as low as {target_far:g}: the nearest of {total:,} negative "
            f"pairs already give {lowest:.3g}; ask for at least that, or bring more images"
        )
    return counts.threshold_at_rank(k)


def highest_rank(far: float, total: int, far_at: Callable[[int], float], tolerance: float) -> int:
    """The largest k of which the k-th smallest of ``total`` negative distances keeps to ``far``.

    k = floor(f n), or less where ties at that distance would carry FAR above it; 0 if none does.

    Args:
        far_at: FAR at the k-th smallest distance, k from 1.
        tolerance: relative error of ``far_at``.
    """
    k = math.floor(round(far * total, 6))  # 0.1 x 30 is 3

    def too_many(rank: int) -> bool:
        return far_at(rank) > far * (1 + tolerance)

    if k and too_many(k):
        # Ranks that are fine come before those that are not.
        k = bisect.bisect_left(range(1, k + 1), True, key=too_many)
    return k


def check_factor(factor: float) -> None:
    """Refuses factors that would fail classes for being average.

    Raises:
        UserError: not a number above 1.
    """
    if not 1 < factor < float("inf"):
        raise UserError(f"the factor is {factor:g}; it must be a number above 1")


def failing_classes(
    curves: OperatingCurves, at: int, far: float, factor: float
) -> tuple[np.ndarray, np.ndarray]:
    """(C,) and (C,): whose FAR at threshold ``at`` is above ``factor * far``, and whose FRR is
    above ``factor`` times that of all pairs.

    Where a class has few pairs this can be chance: look at its counts too.
    """
    return (
        curves.far[:, at] > factor * far,
        curves.frr[:, at] > factor * curves.overall_frr[at],
    )


def _grid(counts: ClassCounts, target_far: float, threshold: float) -> np.ndarray:
    """Thresholds (T,), ascending, around that for ``target_far``, which is one of them."""
    total = counts.pairs.total_negatives
    ends = [target_far / GRID_SPREAD, min(1.0, target_far * GRID_SPREAD)]
    low, high = (counts.threshold_at_rank(max(1, round(far * total))) for far in ends)
    return np.unique([*np.linspace(low, high, GRID_POINTS), threshold])


def _resampled_far(counts: ClassCounts, grid: np.ndarray, seed: int) -> np.ndarray:
    """(RESAMPLES, T) FAR of the negatives of classes drawn with replacement; rises along T."""
    weights, pairs = counts.images.weights, counts.pairs
    within = weights[:, None] * pairs.negatives.within(counts.to_scores(grid))
    wholes = weights * pairs.negative_counts.sum(1)
    far = resampled_ratio(within, wholes, seed, two_ended=True)
    return np.maximum.accumulate(far, axis=1)  # a pair may count -1 times, a rate only rises


def _crossing(thresholds: np.ndarray, far: np.ndarray, target: float) -> float:
    """Where a rising FAR curve first reaches ``target``; the nearest end if it never does."""
    at = int(np.searchsorted(far, target * (1 - ROUNDING)))
    if at == 0 or at == len(far):
        return float(thresholds[min(at, len(far) - 1)])
    share = min(1.0, (target - far[at - 1]) / (far[at] - far[at - 1]))
    return float(thresholds[at - 1] + share * (thresholds[at] - thresholds[at - 1]))
