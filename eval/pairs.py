"""What one pass over all pairs leaves behind: every metric is made from it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eval.negatives import Negatives
from eval.positives import Positives
from eval.prepared import FOLDS, Prepared


@dataclass(frozen=True)
class Ranks:
    """How each query's positives stand among all images of the gallery.

    Attributes:
        first: (Q,) rank of the first positive, from 1; beyond every K where that is far or none.
        precision: (Q,) its term of MAP@R (Musgrave et al. 2020): the mean over its R nearest of the
            precision at i where i is a hit.
    """

    first: np.ndarray
    precision: np.ndarray


@dataclass(frozen=True)
class Pairs:
    """Everything the metrics need.

    Attributes:
        negative_counts: (C, F) negatives of each fold of each class.
        total_negatives: cross-class pairs of the whole set, each unordered pair once.
    """

    positives: Positives
    ranks: Ranks
    negatives: Negatives
    negative_counts: np.ndarray
    total_negatives: int


def rank_limits(images: Prepared, ks: tuple[int, ...]) -> np.ndarray:
    """(Q,) ranks up to which a query's positives matter: R for MAP@R, the largest k for R@K."""
    return np.maximum(images.relevant, max(ks))


def negative_counts(images: Prepared) -> tuple[np.ndarray, int]:
    """Negatives (C, F) by class and fold, and all cross-class pairs, each once.

    Of two sets, a class's negatives are its queries against the others' gallery images, and the
    reverse; of a sample, its queries against all images of others.
    """
    queries, gallery = images.queries, images.gallery
    counts = _members(images, queries) * (len(gallery.codes) - gallery.sizes)[:, None]
    if images.separate:
        counts = counts + _members(images, gallery) * (len(queries.codes) - queries.sizes)[:, None]
        return counts, int(counts.sum()) // 2
    return counts, int((gallery.sizes * (len(gallery.codes) - gallery.sizes)).sum()) // 2


def _members(images: Prepared, side) -> np.ndarray:
    """(C, F) images of each fold of each class."""
    found = np.bincount(FOLDS * side.codes + side.folds, minlength=FOLDS * len(images.classes))
    return found.reshape(-1, FOLDS)
