"""Second looks in float64 at what float32 cannot tell apart."""

from __future__ import annotations

import numpy as np
import torch
from numba import njit

from eval.exact_pass import RESOLUTION
from eval.geometry import Geometry
from eval.kernels import TOLERANCE
from eval.positives import ClassPositives
from eval.prepare import Prepared

CHUNK = 16384


def settle_near_ties(
    rank: np.ndarray,
    events: np.ndarray,
    values: np.ndarray,
    relevant_stop: np.ndarray,
    positives: ClassPositives,
    images: Prepared,
    geometry: Geometry,
) -> None:
    """Adds to ``rank`` the negatives that lay within the tolerance of a positive and beat it.

    Args:
        rank: (P,) changed in place.
        events: (E, 2) query and negative, sorted rows.
        values: (E,) the float32 scores that were near.
        relevant_stop: (N,) end of each query's positives that matter.
    """
    for begin in range(0, len(events), CHUNK):
        part = torch.from_numpy(events[begin : begin + CHUNK].astype(np.int64))
        part = part.to(images.embeddings.device)
        left, _ = geometry.vectors(images.embeddings[part[:, 0]].double())
        _, right = geometry.vectors(images.embeddings[part[:, 1]].double())
        exact = np.round((left * right).sum(1).cpu().numpy(), RESOLUTION)
        _add_beaten(
            rank,
            events[begin : begin + CHUNK],
            values[begin : begin + CHUNK],
            exact,
            positives.start,
            relevant_stop,
            positives.scores,
            positives.other,
            images.order,
        )


def rank_rows(
    rank: np.ndarray,
    queries: np.ndarray,
    positives: ClassPositives,
    images: Prepared,
    geometry: Geometry,
) -> None:
    """Ranks all positives of ``queries`` anew in float64, in place.

    The way out for sets in which nearly everything is tied, so that near ties could not be kept.
    """
    if not len(queries):
        return
    left, right = geometry.vectors(images.embeddings.double())
    for begin in range(0, len(queries), 64):
        rows = queries[begin : begin + 64]
        scores = np.round((left[rows] @ right.T).cpu().numpy(), RESOLUTION)
        for q, row in zip(rows, scores, strict=True):
            order = np.lexsort((images.order, -row))
            order = order[order != q]
            same = images.codes[order] == images.codes[q]
            rank[positives.start[q] : positives.start[q + 1]] = np.flatnonzero(same) + 1


@njit(cache=True)
def _add_beaten(rank, events, values, exact, start, relevant_stop, scores, others, order):
    for e in range(len(events)):
        q, z = events[e]
        for p in range(start[q], relevant_stop[q]):
            if scores[p] < values[e] - TOLERANCE:
                break
            near = scores[p] <= values[e] + TOLERANCE
            wins = exact[e] > scores[p] or (exact[e] == scores[p] and order[z] < order[others[p]])
            if near and wins:
                rank[p] += 1
