"""The pass for small sets: every pair kept, in float64."""

from __future__ import annotations

import numpy as np

from eval.geometry import Geometry
from eval.pairs import Pairs, Positives, SortedNegatives, negative_counts
from eval.prepare import FOLDS, Prepared

# 2,048 images have 2 million pairs, 16 MB: less than any block of the large pass.
LARGEST = 2048
# Scores closer than this are ties: sums of products in another order differ by less.
RESOLUTION = 12


def exact_pass(images: Prepared, geometry: Geometry) -> Pairs:
    """All pairs of at most :data:`LARGEST` images, scores rounded to 12 decimals."""
    left, right = (v.cpu().numpy() for v in geometry.vectors(images.embeddings.double()))
    scores = np.round(left @ right.T, RESOLUTION)
    codes = images.codes
    n = len(codes)
    upper_i, upper_j = np.triu_indices(n, 1)
    across = codes[upper_i] != codes[upper_j]
    i, j = upper_i[across], upper_j[across]
    groups = FOLDS * codes + images.folds
    negatives = SortedNegatives(scores[i, j], np.stack([groups[i], groups[j]]), len(images.classes))
    return Pairs(
        _positives(scores, images),
        negatives,
        negative_counts(codes, images.folds, images.sizes),
        len(i),
    )


def _positives(scores: np.ndarray, images: Prepared) -> Positives:
    """Ranks by sorting each row: by score, then by the index that the image came with."""
    codes, n = images.codes, len(images.codes)
    columns = {name: [] for name in ("scores", "query", "other", "rank")}
    for q in range(n):
        order = np.lexsort((images.order, -scores[q]))
        order = order[order != q]
        at = np.flatnonzero(codes[order] == codes[q])
        columns["scores"].append(scores[q, order[at]])
        columns["query"].append(np.full(len(at), q))
        columns["other"].append(order[at])
        columns["rank"].append(at + 1)
    return Positives(**{name: np.concatenate(parts) for name, parts in columns.items()})
