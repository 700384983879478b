"""Cross-class pairs, seen from each class: one by one in small sets, in bins in large ones."""

from __future__ import annotations

import itertools
from typing import Protocol

import numpy as np

from eval.prepared import FOLDS, Groups

# A bin is taken for one value, shared by many pairs, if it holds so many times as much as those
# beside it, and more pairs than this by chance.
PILE_FACTOR, PILE_LEAST = 16, 64
NEAR, AWAY = 2, 5  # which bins count as beside it; float32 may spread a value over two


class Negatives(Protocol):
    """The cross-class pairs."""

    def within(self, scores: np.ndarray) -> np.ndarray:
        """(C, T): pairs of each class with a score of at least ``scores`` (T,)."""
        ...

    def within_by_group(self, scores: np.ndarray, groups: slice) -> np.ndarray:
        """(g, T): the same of some of the groups, see ``eval.prepared.Groups``."""
        ...

    def within_by_fold(self, scores: np.ndarray) -> np.ndarray:
        """(C, F, T): the same by the fold of the class's end."""
        ...

    def kth_largest(self, k: float) -> float:
        """The k-th largest score, k from 1, each unordered pair counted once."""
        ...

    def histogram(self, edges: np.ndarray) -> np.ndarray:
        """(len(edges) - 1,) unordered pairs between ascending score edges."""
        ...


class SortedNegatives:
    """Negatives kept one by one.

    Args:
        scores: (M,) of the pairs, each once.
        ends: (E, M) group of one end or of both.
        weights: (M,) unordered pairs that each stands for.
        groups: see ``eval.prepared.Groups``.
        n_classes: C.
    """

    def __init__(
        self,
        scores: np.ndarray,
        ends: np.ndarray,
        weights: np.ndarray,
        groups: Groups,
        n_classes: int,
    ) -> None:
        order = np.argsort(-scores, kind="stable")
        self._falling, self._running = scores[order], np.cumsum(weights[order])
        both, ends = np.tile(scores, len(ends)), ends.ravel()
        order = np.lexsort((both, ends))
        bounds = np.searchsorted(ends[order], np.arange(len(groups.classes) + 1))
        ordered = both[order]
        self._by_group = [ordered[a:b] for a, b in itertools.pairwise(bounds)]
        self._key, self._n_classes = FOLDS * groups.classes + groups.folds, n_classes

    def within(self, scores: np.ndarray) -> np.ndarray:
        return self.within_by_fold(scores).sum(1)

    def within_by_group(self, scores: np.ndarray, groups: slice) -> np.ndarray:
        counts = [len(s) - np.searchsorted(s, scores, side="left") for s in self._by_group[groups]]
        return np.array(counts, dtype=np.float64).reshape(-1, len(scores))

    def within_by_fold(self, scores: np.ndarray) -> np.ndarray:
        return _by_fold(self, scores, self._key, self._n_classes)

    def kth_largest(self, k: float) -> float:
        # Weights are sums of fractions: k pairs are reached up to rounding.
        at = np.searchsorted(self._running, k * (1 - 1e-12), side="left")
        return float(self._falling[min(at, len(self._falling) - 1)])

    def histogram(self, edges: np.ndarray) -> np.ndarray:
        weights = np.diff(self._running, prepend=0.0)
        return np.histogram(self._falling, edges, weights=weights)[0]


class BinnedNegatives:
    """Negatives counted in bins, finest where the calibration range lies.

    Within a bin, pairs are taken as spread evenly, unless they pile up in it: then they share one
    value, as in sets with duplicates or with few different embeddings, and are taken together.

    Args:
        edges: (B + 1,) ascending score edges.
        hist: (g, B) pairs of each group.
        groups: see ``eval.prepared.Groups``.
        weights: (C,) images that a query of the class stands for.
        tail_edges, tail: (E + 1,) and (E,): both ends of all pairs near the top, in very fine bins.
    """

    def __init__(self, edges, hist, groups: Groups, weights, tail_edges, tail) -> None:
        self._edges, self._tail_edges = edges, tail_edges
        self._n_classes, self._key = len(weights), FOLDS * groups.classes + groups.folds
        self._above = _above_edges(hist)
        # Groups stand class by class.
        bounds = np.searchsorted(groups.classes, np.arange(len(weights) + 1))
        running = np.zeros((len(weights), hist.shape[1] + 1), dtype=np.int64)
        some = np.flatnonzero(np.diff(bounds))
        running[some] = np.add.reduceat(self._above, bounds[some], axis=0, dtype=np.int64)
        self._class_above = running
        self._all_above = weights @ running / 2
        self._tail_above = _above_edges(tail / 2)
        self._piles = _piles(-np.diff(self._all_above))
        self._tail_piles = _piles(tail)

    def within(self, scores: np.ndarray) -> np.ndarray:
        return _interpolate(self._edges, self._class_above, self._piles, scores)

    def within_by_group(self, scores: np.ndarray, groups: slice) -> np.ndarray:
        """(g, T): pairs of some of the groups."""
        return _interpolate(self._edges, self._above[groups], self._piles, scores)

    def within_by_fold(self, scores: np.ndarray) -> np.ndarray:
        return _by_fold(self, scores, self._key, self._n_classes)

    def kth_largest(self, k: float) -> float:
        if k <= self._tail_above[0]:
            return _invert(self._tail_edges, self._tail_above, self._tail_piles, k)
        return _invert(self._edges, self._all_above, self._piles, k)

    def histogram(self, edges: np.ndarray) -> np.ndarray:
        return -np.diff(_interpolate(self._edges, self._all_above, self._piles, edges))


def _by_fold(negatives: Negatives, scores: np.ndarray, key: np.ndarray, classes: int) -> np.ndarray:
    """(C, F, T), where the groups belong to FOLDS * class + fold as ``key`` says."""
    found = np.zeros((classes * FOLDS, len(scores)))
    step = max(1, 2**24 // max(1, len(scores)))
    for begin in range(0, len(key), step):
        part = slice(begin, begin + step)
        np.add.at(found, key[part], negatives.within_by_group(scores, part))
    return found.reshape(classes, FOLDS, -1)


def _above_edges(counts: np.ndarray) -> np.ndarray:
    """(..., B) pairs in bins -> (..., B + 1) pairs at or above each edge."""
    above = np.zeros((*counts.shape[:-1], counts.shape[-1] + 1), dtype=counts.dtype)
    np.cumsum(counts[..., ::-1], axis=-1, out=above[..., 1:])
    return above[..., ::-1]


def _piles(counts: np.ndarray) -> np.ndarray:
    """(B,) which bins hold far more pairs than the fuller side beside them."""
    padded = np.concatenate([np.zeros(AWAY), np.cumsum(counts, dtype=float), np.zeros(AWAY)])
    padded[-AWAY:] = padded[-AWAY - 1]
    total = np.concatenate([[0.0], padded])  # pairs in the bins before each
    at = np.arange(len(counts)) + AWAY
    width = AWAY - NEAR + 1
    before = (total[at - NEAR + 1] - total[at - AWAY]) / width
    after = (total[np.minimum(at + AWAY + 1, len(total) - 1)] - total[at + NEAR]) / width
    return counts > PILE_LEAST + PILE_FACTOR * np.maximum(before, after)


def _interpolate(edges, above, piles, scores: np.ndarray) -> np.ndarray:
    """(..., B + 1) pairs above edges -> (..., T) pairs above scores."""
    bins = np.clip(np.searchsorted(edges, scores, "right") - 1, 0, len(edges) - 2)
    share = np.clip((edges[bins + 1] - scores) / (edges[bins + 1] - edges[bins]), 0, 1)
    share = np.where(piles[bins], np.ceil(share), share)
    upper = above[..., bins + 1]
    return upper + share * (above[..., bins] - upper)


def _invert(edges, above, piles, k: float) -> float:
    """The score at or above which k pairs lie; ``above`` falls along ascending ``edges``."""
    # Of ascending values, so that the search needs no copy.
    i = len(above) - 1 - int(np.searchsorted(above[::-1], k, side="left"))
    i = min(max(i, 0), len(edges) - 2)
    inside = above[i] - above[i + 1]
    share = (k - above[i + 1]) / inside if inside else 0.0
    if piles[i]:
        share = 1.0
    return float(edges[i + 1] - share * (edges[i + 1] - edges[i]))
