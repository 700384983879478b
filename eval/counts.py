"""Accepted pairs of each class at any threshold: the one source of all error-rate curves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eval.geometry import Geometry
from eval.pairs import Pairs
from eval.prepare import FOLDS, Prepared

# Scores are rounded to 12 decimals: a threshold that was made from a pair's own distance must
# accept that pair, whatever the rounding on the way through the square root.
SLACK = 0.6e-12


@dataclass(frozen=True)
class ClassCounts:
    """Pairs of one set, ready to be counted at thresholds.

    Args:
        pairs: from one pass.
        images: the sorted images.
        geometry: maps distances to scores.
        kept: (C,) which classes have a positive; the others are left out of per-class results.
    """

    pairs: Pairs
    images: Prepared
    geometry: Geometry
    kept: np.ndarray

    def far(self, thresholds: np.ndarray) -> np.ndarray:
        """(C kept, T) share of each class's negative pairs within each distance."""
        within = self.pairs.negatives.within(self._scores(thresholds))
        return (within / self.pairs.negative_counts.sum(1)[:, None])[self.kept]

    def frr(self, thresholds: np.ndarray) -> np.ndarray:
        """(C kept, T) share of each class's positive pairs beyond each distance."""
        codes = self.images.codes[self.pairs.positives.query]
        accepted, total = self._positives(codes, len(self.images.classes), thresholds)
        return 1 - accepted[self.kept] / total[self.kept][:, None]

    def overall_far(self, thresholds: np.ndarray) -> np.ndarray:
        """(T,) share of all cross-class pairs within each distance."""
        within = self.pairs.negatives.within(self._scores(thresholds)).sum(0) / 2
        return within / self.pairs.total_negatives

    def overall_frr(self, thresholds: np.ndarray) -> np.ndarray:
        """(T,) share of all same-class pairs beyond each distance."""
        scores = self.pairs.positives.scores
        accepted, total = self._positives(np.zeros(len(scores), dtype=int), 1, thresholds)
        return 1 - accepted[0] / total[0]

    def rates_without_a_fold(self, thresholds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """FAR and FRR (C', F, T), each with one fold of the class's images left out.

        C' are the classes of which a positive pair is left whichever fold is missing.
        """
        positives, folds = self.pairs.positives, self.images.folds
        a, b = folds[positives.query], folds[positives.other]
        classes = len(self.images.classes)
        group = (self.images.codes[positives.query] * FOLDS + a) * FOLDS + b
        accepted, total = self._positives(group, classes * FOLDS**2, thresholds)
        accepted = _without_each_fold(accepted.reshape(classes, FOLDS, FOLDS, -1))
        total = _without_each_fold(total.reshape(classes, FOLDS, FOLDS, 1))
        within = self.pairs.negatives.within_by_fold(self._scores(thresholds))
        negatives = self.pairs.negative_counts[..., None]
        usable = (total > 0).all((1, 2))
        within = (within.sum(1, keepdims=True) - within)[usable]
        negatives = (negatives.sum(1, keepdims=True) - negatives)[usable]
        return within / negatives, 1 - accepted[usable] / total[usable]

    def threshold_at_rank(self, k: int) -> float:
        """The k-th smallest distance of all cross-class pairs, k from 1."""
        return float(self.geometry.to_distance(np.float64(self.pairs.negatives.kth_largest(k))))

    def positive_histogram(self, edges: np.ndarray) -> np.ndarray:
        """Unordered same-class pairs between ascending distance edges."""
        distances = self.geometry.to_distance(self.pairs.positives.scores)
        return np.histogram(distances, edges)[0] // 2

    def negative_histogram(self, edges: np.ndarray) -> np.ndarray:
        """Unordered cross-class pairs between ascending distance edges."""
        return self.pairs.negatives.histogram(self._scores(edges)[::-1])[::-1]

    def _scores(self, thresholds: np.ndarray) -> np.ndarray:
        return self.geometry.to_score(np.asarray(thresholds, dtype=np.float64)) - SLACK

    def _positives(self, group: np.ndarray, groups: int, thresholds: np.ndarray):
        """Pairs accepted (groups, T) and in all (groups,); group -1 is left out."""
        # A pair is accepted from the first threshold on whose score it reaches.
        falling = self._scores(thresholds)
        first = np.searchsorted(-falling, -self.pairs.positives.scores, side="left")
        counted = group >= 0
        width = len(thresholds) + 1
        flat = np.bincount(group[counted] * width + first[counted], minlength=groups * width)
        table = flat.reshape(groups, width)
        return np.cumsum(table, 1)[:, :-1], table.sum(1)


def _without_each_fold(pairs: np.ndarray) -> np.ndarray:
    """(C, F, F, T) pairs by the folds of both ends -> (C, F, T) with neither end in a fold."""
    whole = pairs.sum((1, 2))[:, None]
    both = np.diagonal(pairs, axis1=1, axis2=2).swapaxes(1, 2)
    return whole - pairs.sum(1) - pairs.sum(2) + both
