"""Accepted pairs of each class at any threshold: the one source of all error-rate curves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eval import kernels
from eval.geometry import Geometry
from eval.pairs import Pairs
from eval.prepared import FOLDS, Prepared

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
    """

    pairs: Pairs
    images: Prepared
    geometry: Geometry

    @property
    def kept(self) -> np.ndarray:
        """(C,) which classes have a positive; the others are left out of per-class results."""
        return self.images.kept

    @property
    def positive_pairs(self) -> np.ndarray:
        """(C kept,) same-class pairs of the whole set, each unordered pair once."""
        sizes = self.images.gallery.sizes
        if self.images.separate:
            return (self.images.queries.sizes * sizes)[self.kept]
        return (sizes * (sizes - 1) // 2)[self.kept]

    @property
    def negative_pairs(self) -> np.ndarray:
        """(C kept,) pairs of the whole set with one end in the class."""
        counted = self.pairs.negative_counts.sum(1)
        return np.rint(counted * self.images.weights).astype(np.int64)[self.kept]

    def far(self, thresholds: np.ndarray) -> np.ndarray:
        """(C kept, T) share of each class's negative pairs within each distance."""
        within = self.pairs.negatives.within(self.to_scores(thresholds))[self.kept]
        return within / self.pairs.negative_counts.sum(1)[self.kept][:, None]

    def frr(self, thresholds: np.ndarray) -> np.ndarray:
        """(C kept, T) share of each class's positive pairs beyond each distance."""
        accepted, total = self._positives_by_class(thresholds)
        return 1 - accepted[self.kept] / total[self.kept][:, None]

    def overall_far(self, thresholds: np.ndarray) -> np.ndarray:
        """(T,) share of all cross-class pairs within each distance."""
        within = self.pairs.negatives.within(self.to_scores(thresholds))
        return self.images.weights @ within / 2 / self.pairs.total_negatives

    def overall_frr(self, thresholds: np.ndarray) -> np.ndarray:
        """(T,) share of all same-class pairs beyond each distance."""
        accepted, total = self._positives_by_class(thresholds)
        weights = self.images.weights
        return 1 - weights @ accepted / (weights @ total)

    def rates_without_a_fold(self, thresholds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """FAR and FRR (C', F, T), each with one fold of the class's images left out.

        C' are the classes of which a positive and a negative are left whichever fold is missing.
        """
        queries, gallery = self.images.queries, self.images.gallery
        classes = len(self.images.classes)
        base = (queries.codes * FOLDS + queries.folds) * FOLDS
        accepted, total = self.positives(base, gallery.folds, classes * FOLDS**2, thresholds)
        accepted = _without_each_fold(accepted.reshape(classes, FOLDS, FOLDS, -1))
        total = _without_each_fold(total.reshape(classes, FOLDS, FOLDS, 1))
        within = self.pairs.negatives.within_by_fold(self.to_scores(thresholds))
        negatives = self.pairs.negative_counts[..., None]
        within = within.sum(1, keepdims=True) - within
        negatives = negatives.sum(1, keepdims=True) - negatives
        usable = (total > 0).all((1, 2)) & (negatives > 0).all((1, 2))
        return within[usable] / negatives[usable], 1 - accepted[usable] / total[usable]

    def threshold_at_rank(self, k: int) -> float:
        """The k-th smallest distance of all cross-class pairs, k from 1."""
        return float(self.geometry.to_distance(np.float64(self.pairs.negatives.kth_largest(k))))

    def positive_histogram(self, edges: np.ndarray) -> np.ndarray:
        """Unordered same-class pairs between ascending distance edges."""
        codes = self.images.queries.codes[self.pairs.positives.query]
        weights = self.images.weights[codes] / (1 if self.images.separate else 2)
        distances = self.geometry.to_distance(self.pairs.positives.scores)
        return np.histogram(distances, edges, weights=weights)[0]

    def negative_histogram(self, edges: np.ndarray) -> np.ndarray:
        """Unordered cross-class pairs between ascending distance edges."""
        return self.pairs.negatives.histogram(self.to_scores(edges)[::-1])[::-1]

    def to_scores(self, thresholds: np.ndarray) -> np.ndarray:
        """Scores from which on pairs are accepted, for distances."""
        return self.geometry.to_score(np.asarray(thresholds, dtype=np.float64)) - SLACK

    def positives(
        self,
        base: np.ndarray,
        other: np.ndarray,
        groups: int,
        thresholds: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Pairs accepted (groups, T) and in all (groups,).

        Args:
            base, other: (Q,), (G,) sum to the group of a pair of a query and a gallery image.
        """
        found, falling = self.pairs.positives, self.to_scores(thresholds)
        table = np.zeros((groups, len(falling) + 1), dtype=np.int64)
        kernels.count_accepted(found.scores, found.other, found.start, base, other, falling, table)
        return np.cumsum(table, 1)[:, :-1], table.sum(1)

    def _positives_by_class(self, thresholds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        codes = self.images.queries.codes
        nothing = np.zeros(len(self.images.gallery.codes), dtype=np.int64)
        return self.positives(codes, nothing, len(self.images.classes), thresholds)


def _without_each_fold(pairs: np.ndarray) -> np.ndarray:
    """(C, F, F, T) pairs by the folds of both ends -> (C, F, T) with neither end in a fold."""
    whole = pairs.sum((1, 2))[:, None]
    both = np.diagonal(pairs, axis1=1, axis2=2).swapaxes(1, 2)
    return whole - pairs.sum(1) - pairs.sum(2) + both
