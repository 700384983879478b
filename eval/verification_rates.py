"""TAR at a FAR with its interval, equal error rate and DET curve, from the rates of pairs."""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass

import numpy as np

from eval.pair_rates import PairRates, threshold_at_far
from eval.resampling import central, resampled_ratio
from eval.thresholds import GRID_POINTS, GRID_SPREAD, ROUNDING

CURVE_POINTS = 300  # of either rate


@dataclass(frozen=True)
class TarAtFar:
    """The true-accept rate at one false-accept rate.

    Attributes:
        far: asked for.
        threshold: the largest distance of a negative pair at which FAR is at most that; a pair is
            accepted at this distance and below.
        reached_far: FAR at the threshold, over all negative pairs.
        tar: share of the positive pairs accepted, in [0, 1].
        interval: central 95 % of the TAR at that FAR over the bootstrap's draws.
    """

    far: float
    threshold: float
    reached_far: float
    tar: float
    interval: tuple[float, float]


@dataclass(frozen=True)
class EqualError:
    """Where FAR and FRR are equal, on straight lines between neighbouring thresholds.

    Attributes:
        rate: in [0, 1].
        threshold: the distance, of the pair that is nearer to equality of those on either side.
    """

    rate: float
    threshold: float


@dataclass(frozen=True)
class DetCurve:
    """Detection error trade-off: (T,) ascending distances and both rates there, in [0, 1]."""

    thresholds: np.ndarray
    far: np.ndarray
    frr: np.ndarray


def tar_at_far(rates: PairRates, far: float, seed: int = 0) -> TarAtFar:
    """TAR at the threshold for ``far``, with a bootstrap interval.

    Each of 2,000 draws takes units with replacement; two copies of an identity never form a pair,
    and a negative pair counts by both of its ends, see :func:`eval.resampling.resampled_ratio`. The
    threshold is found anew in each draw, among 401 from a quarter of the FAR to four times it: the
    interval holds the chance of the threshold as well as of the positives.

    Raises:
        UserError: see :func:`eval.pair_rates.threshold_at_far`.
    """
    threshold = threshold_at_far(rates, far)
    at = np.array([threshold])
    reached = float(rates.far(at)[0])
    draws = _draws(rates, far, threshold, seed)
    tar = float(1 - rates.frr(at)[0])
    return TarAtFar(far, threshold, reached, tar, central(draws[np.isfinite(draws)]))


def _draws(rates: PairRates, far: float, threshold: float, seed: int) -> np.ndarray:
    """(RESAMPLES,) TAR at ``far``; NaN where a draw holds no positive pair."""
    ranks = (far * rates.negatives / GRID_SPREAD, far * rates.negatives * GRID_SPREAD)
    low = rates.negative_at(math.floor(ranks[0]))
    high = rates.negative_at(min(rates.negatives, math.ceil(ranks[1])))
    grid = np.unique([*np.linspace(low, high, GRID_POINTS), threshold])
    within, negatives, accepted, positives = rates.by_unit(grid)
    with np.errstate(invalid="ignore", divide="ignore"):
        fars = resampled_ratio(within, negatives, seed, rates.two_ended)
        tars = resampled_ratio(accepted, positives, seed)  # of the same draws
    # A pair may count -1 times, but a rate only rises.
    fars, each = np.maximum.accumulate(fars, axis=1), np.arange(len(fars))
    last = np.maximum((fars <= far * (1 + rates.tolerance)).sum(1) - 1, 0)
    # The distance of the last negative that is accepted: what lies beyond has the same FAR.
    first = (fars < fars[each, last, None]).sum(1)
    return tars[each, first]


def equal_error(rates: PairRates) -> EqualError:
    """The equal error rate: as on the ROC curve through all thresholds, joined by lines."""

    def gap(threshold: float) -> float:
        at = np.array([threshold])
        return float(rates.far(at)[0] - rates.frr(at)[0])

    def first(distance_at, count: int) -> int:
        """The lowest rank at which FAR is at least FRR, ``count`` + 1 for none."""
        ranks = range(1, count + 1)
        return 1 + bisect.bisect_left(ranks, True, key=lambda k: gap(distance_at(k)) >= -ROUNDING)

    k = first(rates.negative_at, rates.negatives)
    j = first(rates.positive_at, rates.positives)
    after = [rates.negative_at(k)] if k <= rates.negatives else []
    after += [rates.positive_at(j)] if j <= rates.positives else []
    before = [rates.negative_at(k - 1)] if k > 1 else []
    before += [rates.positive_at(j - 1)] if j > 1 else []
    high = np.array([min(after)])
    far, frr = float(rates.far(high)[0]), float(rates.frr(high)[0])
    low, far_before, frr_before = high, 0.0, 1.0  # nothing is accepted below all distances
    if before:
        low = np.array([max(before)])
        far_before, frr_before = float(rates.far(low)[0]), float(rates.frr(low)[0])
    gap_before, gap_after = frr_before - far_before, max(0.0, far - frr)
    share = gap_before / (gap_before + gap_after)
    rate = far_before + share * (far - far_before)
    nearer = low if gap_before < gap_after and before else high
    return EqualError(float(rate), float(nearer[0]))


def det(rates: PairRates) -> DetCurve:
    """The curve at the distances of pairs whose ranks are evenly spaced in the log of each rate.

    FAR by the nearest negatives, FRR by the farthest positives; the ends are where nothing and
    where everything is accepted. In large sets FAR well below the lowest that was asked for is
    interpolated within bins.
    """
    negatives = np.unique(np.geomspace(1, rates.negatives, CURVE_POINTS).astype(np.int64))
    farthest = np.unique(np.geomspace(1, rates.positives, CURVE_POINTS).astype(np.int64))
    distances = [rates.negative_at(int(k)) for k in (0, *negatives)]
    distances += [rates.positive_at(rates.positives + 1 - int(k)) for k in farthest]
    thresholds = np.unique(distances)
    return DetCurve(thresholds, rates.far(thresholds), rates.frr(thresholds))
