"""Per-class error rates over all thresholds that a reader may want to try."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class OperatingCurves:
    """FAR and FRR of every class (C) at every threshold (T), and of all pairs together.

    Attributes:
        classes: (C,) names as texts.
        images: (C,) images of each class.
        thresholds: (T,) distances, ascending; a pair is accepted when its distance is at most that.
        positives, negatives: (C,) pairs of each class.
        far, frr: (C, T) in [0, 1].
        overall_far, overall_frr: (T,) over all negative and all positive pairs.
        overall_negatives, overall_positives: numbers of those pairs.
        c: weight of specificity in the utility.
    """

    classes: np.ndarray
    images: np.ndarray
    thresholds: np.ndarray
    positives: np.ndarray
    negatives: np.ndarray
    far: np.ndarray
    frr: np.ndarray
    overall_far: np.ndarray
    overall_frr: np.ndarray
    overall_negatives: int
    overall_positives: int
    c: float

    @property
    def utility(self) -> np.ndarray:
        """(C, T): U = (1 + c²) φ ψ / (c² φ + ψ) with φ = 1 - FAR, ψ = 1 - FRR; 0 where both are."""
        specificity, sensitivity = 1 - self.far, 1 - self.frr
        weighted = self.c**2 * specificity + sensitivity
        product = (1 + self.c**2) * specificity * sensitivity
        return np.divide(product, weighted, out=np.zeros_like(product), where=weighted > 0)

    def nearest(self, distance: float) -> int:
        """Index of the threshold nearest to ``distance``."""
        return int(np.argmin(np.abs(self.thresholds - distance)))
