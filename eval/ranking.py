"""Places of each query's positives, from the few negatives that can come before them.

A positive matters if it can be among a query's ``limit`` nearest. Those that a sample shows to be
far beyond are dropped; the pass then counts the negatives of at least the sample's cutoff. Where
these turn out to be too few, the query is ranked anew: the result does not depend on the sample.
"""

from __future__ import annotations

from threading import Lock

import numpy as np

from eval import kernels
from eval.pairs import Ranks
from eval.positives import Positives
from eval.prepared import Prepared
from eval.scores import Scores, Single

ANEW = 64  # queries that are ranked anew at a time


class Ranking:
    """Collects the negatives that a pass finds at or above ``floors``; see the module's text.

    Args:
        scores, single: of the set.
        positives: all of them.
        cutoff: (Q,) see :class:`eval.binning.Sample`.
        limits: (Q,) ranks that matter.

    Attributes:
        floors: (Q,) float32, products below this matter for no rank of the query.
    """

    def __init__(
        self,
        scores: Scores,
        single: Single,
        positives: Positives,
        cutoff: np.ndarray,
        limits: np.ndarray,
    ) -> None:
        self._scores, self._offset, self._tolerance = scores, single.offset, single.tolerance
        self._positives, self._cutoff, self._limits = positives, cutoff, limits
        start, count = positives.start[:-1], np.diff(positives.start)
        least = cutoff.astype(np.float64) + self._offset - 2 * self._tolerance
        matters = np.concatenate([[0], np.cumsum(positives.scores >= np.repeat(least, count))])
        self._stop = start + matters[positives.start[1:]] - matters[start]
        self._dropped = self._stop < positives.start[1:]
        floors = np.full(len(start), np.inf)
        some = np.flatnonzero(self._stop > start)
        floors[some] = positives.scores[self._stop[some] - 1] - self._offset - 2 * self._tolerance
        floors[self._dropped] = np.minimum(floors, cutoff)[self._dropped]
        self.floors = np.nextafter(floors.astype(np.float32), np.float32(-np.inf))
        self._above = np.zeros(len(positives.scores) + len(start), dtype=np.int64)
        self._reached = np.zeros(len(start), dtype=np.int64)
        self._lock = Lock()

    def add(self, pairs: np.ndarray, values: np.ndarray) -> None:
        """Counts negatives, from any thread.

        Args:
            pairs: (E, 2) query and gallery image, int32; changed.
            values: (E,) their float32 products.
        """
        positives = self._positives
        with self._lock:
            near = kernels.rank_pairs(
                pairs,
                values,
                len(pairs),
                self._offset,
                self._tolerance,
                self._cutoff,
                positives.start,
                self._stop,
                positives.scores,
                self._above,
                self._reached,
            )
        if near:
            self._settle(pairs[:near])

    def _settle(self, pairs: np.ndarray) -> None:
        """Counts near ties (E, 2) by their exact scores."""
        positives, exact = self._positives, self._scores.pairs(pairs)
        with self._lock:
            kernels.rank_exactly(
                pairs,
                exact,
                positives.start,
                self._stop,
                positives.scores,
                positives.other,
                self._scores.images.gallery.order,
                self._above,
            )

    def ranks(self) -> Ranks:
        """The result, once all pairs were added."""
        images, positives = self._scores.images, self._positives
        first = np.empty(len(self._stop), dtype=np.int64)
        precision = np.empty(len(self._stop))
        kernels.summarise_ranks(
            self._above,
            positives.start,
            self._stop,
            images.relevant,
            self._limits,
            first,
            precision,
        )
        unsure = np.flatnonzero(self._dropped & (self._reached < self._limits))
        for begin in range(0, len(unsure), ANEW):
            queries = unsure[begin : begin + ANEW]
            for q, row in zip(queries, self._scores.rows(queries), strict=True):
                first[q], precision[q] = rank_row(row, q, images)
        return Ranks(first, precision)


def rank_row(row: np.ndarray, query: int, images: Prepared) -> tuple[int, float]:
    """First hit and term of MAP@R of one query from its exact scores (G,) with all images."""
    order = np.lexsort((images.gallery.order, -row))
    order = order[order != images.own[query]]
    at = np.flatnonzero(images.gallery.codes[order] == images.queries.codes[query])
    if not len(at):
        return np.iinfo(np.int64).max, 0.0
    hits = at[at < len(at)]
    return int(at[0]) + 1, float((np.arange(1, len(hits) + 1) / (hits + 1)).sum() / len(at))
