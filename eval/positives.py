"""Same-class pairs: few, so they are computed class by class, in float64."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from common.errors import UserError
from eval import kernels
from eval.prepared import Prepared
from eval.scores import Scores

BYTES = 16  # a pair: score, image, and a counter of the negatives above it
SMALL = 128  # neighbouring classes of fewer images together share a product
BLOCK = 2**21  # scores computed at once


@dataclass(frozen=True)
class Positives:
    """All pairs of a query and another image of its class, query by query.

    The most similar comes first, ties by index.

    Attributes:
        scores: (P,) float64, rounded to 12 decimals.
        other: (P,) place of the other image in the sorted gallery, int32.
        start: (Q + 1,) where each query's pairs begin, and P.
    """

    scores: np.ndarray
    other: np.ndarray
    start: np.ndarray

    @property
    def query(self) -> np.ndarray:
        """(P,) place of the query among the sorted queries."""
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))


def class_positives(scores: Scores, memory_mb: float, threads: int) -> Positives:
    """Computes them.

    Raises:
        UserError: they do not fit into ``memory_mb``.
    """
    images = scores.images
    start = np.concatenate([[0], np.cumsum(images.relevant)])
    count = int(start[-1])
    if count * BYTES > memory_mb * 2**20:
        raise UserError(
            f"the {count:,} same-class pairs need {count * BYTES / 2**20:,.0f} MiB, memory_mb is "
            f"{memory_mb:g}: raise it, or evaluate a sample of queries (sample_queries)"
        )
    found = Positives(np.empty(count), np.empty(count, dtype=np.int32), start)

    def fill(part: tuple[slice, slice]) -> None:
        rows, columns = part
        kernels.sort_positives(
            scores.block(rows, columns),
            rows.start,
            columns.start,
            images.queries.codes,
            images.gallery.starts,
            images.own,
            start,
            found.scores,
            found.other,
        )

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(fill, _parts(images)))
    return found


def _parts(images: Prepared) -> list[tuple[slice, slice]]:
    """Queries and the images of their classes: large classes in parts, small ones together."""
    queries, gallery, parts = images.queries.starts, images.gallery.starts, []
    first, classes = 0, len(images.classes)
    while first < classes:
        stop = first + 1
        while stop < classes and gallery[stop + 1] - gallery[first] <= SMALL:
            stop += 1
        columns = slice(int(gallery[first]), int(gallery[stop]))
        step = max(1, BLOCK // max(1, columns.stop - columns.start))
        for begin in range(queries[first], queries[stop], step):
            rows = slice(int(begin), int(min(queries[stop], begin + step)))
            if columns.stop > columns.start:
                parts.append((rows, columns))
        first = stop
    return parts
