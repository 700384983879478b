"""From paired differences to a verdict: Student's t, and a smallest effect that counts."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import stats

REPRODUCED = "reproduced"
CONTRADICTED = "contradicted"
NO_EFFECT = "no effect that counts"
INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True)
class Effect:
    """A mean paired difference in the claimed direction (positive: as claimed) and its interval."""

    mean: float
    low: float
    high: float
    pairs: int
    smallest: float

    @property
    def verdict(self) -> str:
        """Where the interval lies: beyond the smallest effect, beyond it the other way, inside."""
        if self.low > self.smallest:
            return REPRODUCED
        if self.high < -self.smallest:
            return CONTRADICTED
        if -self.smallest < self.low and self.high < self.smallest:
            return NO_EFFECT
        return INCONCLUSIVE


def effect(
    differences: np.ndarray, direction: str, smallest: float, confidence: float = 0.95
) -> Effect:
    """The effect of paired differences (n,), each of one seed, ``direction`` up or down.

    The interval is Student's t with n-1 degrees of freedom. One pair has no interval: it is taken
    as infinitely wide, so its verdict is inconclusive.
    """
    signed = np.asarray(differences, dtype=float) * (1 if direction == "up" else -1)
    n = len(signed)
    mean = float(signed.mean())
    half = math.inf
    if n > 1:
        quantile = stats.t.ppf(0.5 + confidence / 2, n - 1)
        half = float(quantile * signed.std(ddof=1) / math.sqrt(n))
    return Effect(mean, mean - half, mean + half, n, smallest)


def of_all(verdicts: list[str]) -> str:
    """A claim's verdict from its parts: all must hold; one contradicted part contradicts it."""
    if CONTRADICTED in verdicts:
        return CONTRADICTED
    for verdict in (REPRODUCED, NO_EFFECT):
        if set(verdicts) == {verdict}:
            return verdict
    return INCONCLUSIVE
