"""The pass for small sets: every pair kept, in float64."""

from __future__ import annotations

import numpy as np

from eval.negatives import SortedNegatives
from eval.pairs import Pairs, Ranks, negative_counts
from eval.positives import Positives
from eval.prepared import Prepared
from eval.ranking import rank_row
from eval.scores import Scores

# 2,048 images have 2 million pairs, 16 MB: less than any block of the large pass.
LARGEST = 2048**2


def exact_pass(scores: Scores) -> Pairs:
    """All pairs, at most :data:`LARGEST` of them."""
    images = scores.images
    queries, gallery = images.queries, images.gallery
    matrix = scores.block(slice(0, len(queries.codes)), slice(0, len(gallery.codes)))
    across = queries.codes[:, None] != gallery.codes[None, :]
    i, j = np.nonzero(np.triu(across) if images.symmetric else across)
    groups, n_classes = images.groups, len(images.classes)
    if images.sampled:
        ends, weights = groups.of_query[i][None], images.weights[queries.codes[i]] / 2
    else:
        ends, weights = np.stack([groups.of_query[i], groups.of_gallery[j]]), np.ones(len(i))
    negatives = SortedNegatives(matrix[i, j], ends, weights, groups, n_classes)
    positives, ranks = _rank(matrix, images)
    return Pairs(positives, ranks, negatives, *negative_counts(images))


def _rank(matrix: np.ndarray, images: Prepared) -> tuple[Positives, Ranks]:
    """Sorts each row: by score, then by the index that the image came with."""
    codes, gallery = images.queries.codes, images.gallery
    scores, others = [np.empty(0)], [np.empty(0, dtype=np.int32)]
    ranked = [rank_row(row, q, images) for q, row in enumerate(matrix)]
    for q, row in enumerate(matrix):
        same = np.arange(gallery.starts[codes[q]], gallery.starts[codes[q] + 1])
        same = same[same != images.own[q]]
        order = same[np.argsort(-row[same], kind="stable")]
        scores.append(row[order])
        others.append(order.astype(np.int32))
    start = np.concatenate([[0], np.cumsum(images.relevant)])
    first, precision = (np.array(column) for column in zip(*ranked, strict=True))
    return Positives(np.concatenate(scores), np.concatenate(others), start), Ranks(first, precision)
