"""One threshold for a target FAR: how sure it is, and which classes it fails."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from common.errors import UserError
from eval.operating import OperatingCurves

RESAMPLES = 2000
CONFIDENCE = 0.95
DEFAULT_FACTOR = 2.0
RESAMPLES_PER_BLOCK = 100


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
    curves: OperatingCurves,
    at: int,
    target_far: float,
    *,
    factor: float = DEFAULT_FACTOR,
    seed: int = 0,
) -> Recommendation:
    """Judges threshold ``at`` of ``curves``, the one for ``target_far``.

    The bootstrap draws classes with replacement, 2,000 times, and pools the curves of the drawn
    ones at fixed thresholds: two copies of a class never form pairs. Thresholds between those of
    ``curves`` are interpolated, so the grid must be fine around ``at``.

    A class fails when its FAR is above ``factor * target_far`` or its FRR above ``factor`` times
    the FRR of all pairs. Where it has few pairs that can be chance: look at its counts too.

    Raises:
        UserError: the factor is not above 1.
    """
    if not factor > 1:
        raise UserError(f"the factor is {factor:g}; it must be above 1")
    resampled = _resampled_far(curves, seed)
    thresholds = np.array([_crossing(curves.thresholds, far, target_far) for far in resampled])
    overall_frr = float(curves.overall_frr[at])
    return Recommendation(
        target_far=target_far,
        threshold=float(curves.thresholds[at]),
        threshold_interval=_central(thresholds),
        far=float(curves.overall_far[at]),
        frr=overall_frr,
        far_interval=_central(resampled[:, at]),
        factor=factor,
        far_fails=curves.far[:, at] > factor * target_far,
        frr_fails=curves.frr[:, at] > factor * overall_frr,
    )


def _resampled_far(curves: OperatingCurves, seed: int) -> np.ndarray:
    """(RESAMPLES, T) FAR of the pooled negatives of classes drawn with replacement."""
    generator = np.random.default_rng(seed)
    count = len(curves.classes)
    accepts = curves.far * curves.negatives[:, None]
    blocks = []
    for _ in range(RESAMPLES // RESAMPLES_PER_BLOCK):
        drawn = generator.integers(count, size=(RESAMPLES_PER_BLOCK, count))
        weights = np.stack([np.bincount(row, minlength=count) for row in drawn]).astype(float)
        blocks.append((weights @ accepts) / (weights @ curves.negatives)[:, None])
    return np.concatenate(blocks)


def _crossing(thresholds: np.ndarray, far: np.ndarray, target: float) -> float:
    """Where a rising FAR curve reaches ``target``; the nearest end if it never does."""
    above = int(np.searchsorted(far, target, side="right"))
    if above == 0 or above == len(far):
        return float(thresholds[min(above, len(far) - 1)])
    share = (target - far[above - 1]) / (far[above] - far[above - 1])
    return float(thresholds[above - 1] + share * (thresholds[above] - thresholds[above - 1]))


def _central(values: np.ndarray) -> tuple[float, float]:
    low, high = np.quantile(values, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(low), float(high)
