"""What one pass over all pairs leaves behind, and the counts that every metric is made from."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from eval.prepare import FOLDS


class Negatives(Protocol):
    """The cross-class pairs, seen from each class."""

    def within(self, scores: np.ndarray) -> np.ndarray:
        """(C, T): pairs of each class with a score of at least ``scores`` (T,)."""
        ...

    def within_by_fold(self, scores: np.ndarray) -> np.ndarray:
        """(C, F, T): the same by the fold of the class's end; within the calibration range."""
        ...

    def kth_largest(self, k: int) -> float:
        """The k-th largest score, k from 1, each unordered pair counted once."""
        ...

    def histogram(self, edges: np.ndarray) -> np.ndarray:
        """(len(edges) - 1,) unordered pairs between ascending score edges."""
        ...


@dataclass(frozen=True)
class Positives:
    """All ordered same-class pairs, exactly: query by query, from the most similar on.

    Attributes:
        scores: (P,) float64.
        query: (P,) sorted row of the query.
        other: (P,) sorted row of the other image.
        rank: (P,) place among all other images, from 1; a lower bound where it is beyond
            ``max_rank`` of the query (no metric reads it there).
    """

    scores: np.ndarray
    query: np.ndarray
    other: np.ndarray
    rank: np.ndarray


@dataclass(frozen=True)
class Pairs:
    """Everything the metrics need."""

    positives: Positives
    negatives: Negatives
    negative_counts: np.ndarray  # (C, F) pairs of each fold of each class
    total_negatives: int  # unordered


def max_ranks(sizes: np.ndarray, ks: tuple[int, ...]) -> np.ndarray:
    """(C,) ranks up to which a class's queries matter: R for MAP@R, the largest k for R@K."""
    return np.maximum(sizes - 1, max(ks))


def negative_counts(codes: np.ndarray, folds: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """(C, F): images of a fold times images of other classes."""
    members = np.zeros((len(sizes), FOLDS), dtype=np.int64)
    np.add.at(members, (codes, folds), 1)
    return members * (len(codes) - sizes)[:, None]


class SortedNegatives:
    """Negatives kept one by one, for small sets.

    Args:
        scores: (M,) of the unordered pairs.
        groups: (2, M) FOLDS * class + fold of either end.
        n_classes: C.
    """

    def __init__(self, scores: np.ndarray, groups: np.ndarray, n_classes: int) -> None:
        self._ascending = np.sort(scores)
        both = np.concatenate([scores, scores])
        order = np.lexsort((both, groups.ravel()))
        bounds = np.searchsorted(groups.ravel()[order], np.arange(FOLDS * n_classes + 1))
        ordered = both[order]
        self._by_group = [ordered[a:b] for a, b in itertools.pairwise(bounds)]
        self._n_classes = n_classes

    def within(self, scores: np.ndarray) -> np.ndarray:
        return self.within_by_fold(scores).sum(1)

    def within_by_fold(self, scores: np.ndarray) -> np.ndarray:
        counts = [len(s) - np.searchsorted(s, scores, side="left") for s in self._by_group]
        return np.array(counts, dtype=np.float64).reshape(self._n_classes, FOLDS, -1)

    def kth_largest(self, k: int) -> float:
        return float(self._ascending[-k])

    def histogram(self, edges: np.ndarray) -> np.ndarray:
        return np.histogram(self._ascending, edges)[0]


class BinnedNegatives:
    """Negatives counted in bins: finest where the calibration range lies.

    Within a bin, pairs are taken as spread evenly.

    Args:
        edges: (B + 1,) ascending score edges.
        counts: (C, B) pairs of each class.
        fold_edges, fold_counts: (E + 1,) and (C, F, E): coarser, from the range upwards.
        tail_edges, tail: (E' + 1,) and (E',): all pairs near the top, in very fine bins.
    """

    def __init__(self, edges, counts, fold_edges, fold_counts, tail_edges, tail) -> None:
        self._edges, self._fold_edges, self._tail_edges = edges, fold_edges, tail_edges
        self._above = _above_edges(counts)
        self._fold_above = _above_edges(fold_counts)
        self._above_all = self._above.sum(0) / 2
        self._tail_above = _above_edges(tail)

    def within(self, scores: np.ndarray) -> np.ndarray:
        return _interpolate(self._edges, self._above, scores)

    def within_by_fold(self, scores: np.ndarray) -> np.ndarray:
        return _interpolate(self._fold_edges, self._fold_above, scores)

    def kth_largest(self, k: int) -> float:
        if k <= self._tail_above[0]:
            return _invert(self._tail_edges, self._tail_above, k)
        return _invert(self._edges, self._above_all, k)

    def histogram(self, edges: np.ndarray) -> np.ndarray:
        return -np.diff(self.within(edges).sum(0) / 2)


def _above_edges(counts: np.ndarray) -> np.ndarray:
    """(..., B) pairs in bins -> (..., B + 1) pairs at or above each edge."""
    above = np.zeros((*counts.shape[:-1], counts.shape[-1] + 1), dtype=np.int64)
    np.cumsum(counts[..., ::-1], axis=-1, out=above[..., 1:])
    return above[..., ::-1]


def _interpolate(edges: np.ndarray, above: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """(..., B + 1) pairs above edges -> (..., T) pairs above scores."""
    bins = np.clip(np.searchsorted(edges, scores, "right") - 1, 0, len(edges) - 2)
    share = np.clip((edges[bins + 1] - scores) / (edges[bins + 1] - edges[bins]), 0, 1)
    upper = above[..., bins + 1]
    return upper + share * (above[..., bins] - upper)


def _invert(edges: np.ndarray, above: np.ndarray, k: int) -> float:
    """The score at or above which k pairs lie; ``above`` falls along ascending ``edges``."""
    # Of ascending values, so that the search needs no copy.
    i = len(above) - 1 - int(np.searchsorted(above[::-1], k, side="left"))
    i = min(max(i, 0), len(edges) - 2)
    inside = above[i] - above[i + 1]
    share = (k - above[i + 1]) / inside if inside else 0.0
    return float(edges[i + 1] - share * (edges[i + 1] - edges[i]))
