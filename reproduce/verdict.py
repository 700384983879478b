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
NOT_RUN = "not run"


@dataclass(frozen=True)
class Effect:
    """A mean paired difference in the claimed direction (positive: as claimed) and its interval.

    Attributes:
        mean, low, high: the mean and the ends of its two-sided interval.
        pairs: number of differences.
        smallest: the smallest effect that counts, at least 0.
        holds_above: the claim holds where the interval lies above this: ``smallest``, or
            ``-smallest`` where the claim is only that nothing is lost.
        p_values: one-sided, of a mean beyond ``holds_above`` (reproduced), below ``-smallest``
            (contradicted) and between both (no effect; the larger of two tests), by verdict.
    """

    mean: float
    low: float
    high: float
    pairs: int
    smallest: float
    holds_above: float
    p_values: dict[str, float]

    @property
    def verdict(self) -> str:
        """Where the interval lies: beyond the smallest effect, beyond it the other way, inside."""
        if self.low > self.holds_above:
            return REPRODUCED
        if self.high < -self.smallest:
            return CONTRADICTED
        if -self.smallest < self.low and self.high < self.holds_above:
            return NO_EFFECT
        return INCONCLUSIVE


def effect(
    differences: np.ndarray, direction: str, smallest: float, confidence: float = 0.95
) -> Effect:
    """The effect of paired differences (n,), each of one seed.

    The interval is Student's t with n-1 degrees of freedom. One pair has no interval: it is taken
    as infinitely wide, so its verdict is inconclusive.

    Args:
        direction: ``up``, ``down``, or ``not down`` for a claim that nothing is lost.
        smallest: smallest effect that counts, in the unit of the differences.
        confidence: of the two-sided interval.
    """
    signed = np.asarray(differences, dtype=float) * (-1 if direction == "down" else 1)
    n = len(signed)
    mean = float(signed.mean())
    error = float(signed.std(ddof=1)) / math.sqrt(n) if n > 1 else math.inf
    half = math.inf
    if n > 1:
        half = float(stats.t.ppf(0.5 + confidence / 2, n - 1)) * error
    holds_above = -smallest if direction == "not down" else smallest
    above = {limit: _p_above(mean, error, n, limit) for limit in (holds_above, -smallest)}
    below = {limit: _p_above(-mean, error, n, -limit) for limit in (holds_above, -smallest)}
    p_values = {
        REPRODUCED: above[holds_above],
        CONTRADICTED: below[-smallest],
        NO_EFFECT: max(above[-smallest], below[holds_above]),
    }
    return Effect(mean, mean - half, mean + half, n, smallest, holds_above, p_values)


def of_all(verdicts: list[str]) -> str:
    """A claim's verdict from its parts: all must hold; one contradicted part contradicts it."""
    if CONTRADICTED in verdicts:
        return CONTRADICTED
    for verdict in (REPRODUCED, NO_EFFECT):
        if set(verdicts) == {verdict}:
            return verdict
    return INCONCLUSIVE


def p_of_all(effects: list[Effect]) -> dict[str, float]:
    """A claim's p-values from its parts, by verdict.

    All parts must hold for ``reproduced`` and ``no effect``: the largest p-value is the claim's.
    One part is enough for ``contradicted``: the smallest, times the number of parts (Bonferroni).
    """
    found = {
        verdict: max(one.p_values[verdict] for one in effects)
        for verdict in (REPRODUCED, NO_EFFECT)
    }
    smallest = min(one.p_values[CONTRADICTED] for one in effects)
    return found | {CONTRADICTED: min(1.0, len(effects) * smallest)}


def holm(p_values: list[float]) -> list[float]:
    """Holm's step-down adjusted p-values, in the order given.

    The k-th smallest of m is multiplied by m - k + 1; none is smaller than the one before it, and
    none is above 1. (Holm, A simple sequentially rejective multiple test procedure, 1979.)
    """
    m = len(p_values)
    adjusted, running = [1.0] * m, 0.0
    for place, i in enumerate(sorted(range(m), key=p_values.__getitem__)):
        running = max(running, (m - place) * p_values[i])
        adjusted[i] = min(1.0, running)
    return adjusted


def _p_above(mean: float, error: float, n: int, limit: float) -> float:
    """One-sided p-value against a true mean of at most ``limit``; 1 for a single pair."""
    if n < 2:
        return 1.0
    if error == 0:
        return 0.0 if mean > limit else 1.0
    return float(stats.t.sf((mean - limit) / error, n - 1))
