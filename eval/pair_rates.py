"""False-accept and false-reject rates of a set of pairs: all of a set's, or those of a list."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from common.errors import UserError
from eval.counts import SLACK, ClassCounts
from eval.evaluate import evaluate
from eval.negatives import SortedNegatives
from eval.thresholds import BINNED_TOLERANCE, ROUNDING, highest_rank

LARGEST_FAR = 0.1  # bins are fine at least up to here
RUNS = 1000  # units of a list whose identities are unknown


class PairRates(Protocol):
    """Pairs of which each is accepted at distances up to a threshold.

    Attributes:
        negatives, positives: how many there are, each unordered pair once.
        tolerance: relative error of FAR at the threshold of a rank.
        two_ended: a negative pair lies between two units of the bootstrap, and counts for both.
    """

    negatives: int
    positives: int
    tolerance: float
    two_ended: bool

    def far(self, thresholds: np.ndarray) -> np.ndarray:
        """(T,) share of negative pairs within each distance."""
        ...

    def frr(self, thresholds: np.ndarray) -> np.ndarray:
        """(T,) share of positive pairs beyond each distance."""
        ...

    def negative_at(self, k: int) -> float:
        """The k-th smallest distance of a negative pair, k from 1; k = 0 is just below all."""
        ...

    def positive_at(self, k: int) -> float:
        """The k-th smallest distance of a positive pair, k from 1."""
        ...

    def by_unit(self, thresholds: np.ndarray) -> tuple[np.ndarray, ...]:
        """Accepted negatives (U, T), negatives (U,), accepted positives (U, T), positives (U,).

        Of each unit that the bootstrap draws: identities, each with the pairs that have an end in
        it.
        """
        ...


@dataclass(frozen=True)
class AllPairs:
    """All pairs of one set; the units are its identities."""

    counts: ClassCounts
    two_ended = True

    @property
    def negatives(self) -> int:
        return self.counts.pairs.total_negatives

    @property
    def positives(self) -> int:
        return int(self.counts.positive_pairs.sum())

    @property
    def tolerance(self) -> float:
        exact = isinstance(self.counts.pairs.negatives, SortedNegatives)
        return ROUNDING if exact else BINNED_TOLERANCE

    def far(self, thresholds: np.ndarray) -> np.ndarray:
        return self.counts.overall_far(thresholds)

    def frr(self, thresholds: np.ndarray) -> np.ndarray:
        return self.counts.overall_frr(thresholds)

    def negative_at(self, k: int) -> float:
        if k > 0:
            return self.counts.threshold_at_rank(k)
        nearest = self.counts.pairs.negatives.kth_largest(1)
        return float(self.counts.geometry.to_distance(np.float64(nearest + 4 * SLACK)))

    def positive_at(self, k: int) -> float:
        # Each pair is there twice, once for either end.
        return float(self.counts.geometry.to_distance(self._falling[2 * (k - 1)]))

    @functools.cached_property
    def _falling(self) -> np.ndarray:
        return np.sort(self.counts.pairs.positives.scores)[::-1]

    def by_unit(self, thresholds: np.ndarray) -> tuple[np.ndarray, ...]:
        counts, images = self.counts, self.counts.images
        within = counts.pairs.negatives.within(counts.to_scores(thresholds))
        no_group = np.zeros(len(images.gallery.codes), dtype=np.int64)
        classes = len(images.classes)
        accepted, total = counts.positives(images.queries.codes, no_group, classes, thresholds)
        return within, counts.pairs.negative_counts.sum(1), accepted, total


class ListedPairs:
    """The pairs of a list, in float64.

    Args:
        distances: (E,) of the pairs.
        same: (E,) whether they are positives.
        ends: (E, 2) codes from 0 of the identities of both images; None where they are unknown:
            then up to 1,000 runs of pairs that are neighbours in the list are the units.
    """

    tolerance = ROUNDING

    def __init__(
        self, distances: np.ndarray, same: np.ndarray, ends: np.ndarray | None = None
    ) -> None:
        self.two_ended = ends is not None
        if ends is None:
            runs = np.arange(len(same)) * min(RUNS, len(same)) // max(1, len(same))
            ends = np.stack([runs, runs], 1)
        self._units = int(ends.max(initial=-1)) + 1
        self._kinds = [(distances[kind], ends[kind]) for kind in (~same, same)]
        self._negatives, self._positives = (np.sort(values) for values, _ in self._kinds)
        self.negatives, self.positives = len(self._negatives), len(self._positives)

    def far(self, thresholds: np.ndarray) -> np.ndarray:
        return np.searchsorted(self._negatives, thresholds, "right") / self.negatives

    def frr(self, thresholds: np.ndarray) -> np.ndarray:
        return 1 - np.searchsorted(self._positives, thresholds, "right") / self.positives

    def negative_at(self, k: int) -> float:
        if k == 0:
            return float(np.nextafter(self._negatives[0], -np.inf))
        return float(self._negatives[k - 1])

    def positive_at(self, k: int) -> float:
        return float(self._positives[k - 1])

    def by_unit(self, thresholds: np.ndarray) -> tuple[np.ndarray, ...]:
        found = []
        order = np.argsort(thresholds)
        for distances, ends in self._kinds:
            table = np.zeros((self._units, len(thresholds) + 1))
            at = np.searchsorted(thresholds[order], distances, "left")
            for column in ends.T:
                np.add.at(table, (column, at), 1)
            accepted = np.empty((self._units, len(thresholds)))
            accepted[:, order] = np.cumsum(table, 1)[:, :-1]
            found += [accepted, table.sum(1)]
        return tuple(found)


def count_all_pairs(
    embeddings: Any, labels: Any, fars: Iterable[float], **settings: Any
) -> AllPairs:
    """One pass of :func:`eval.evaluate` over all pairs, its bins fine around ``fars``."""
    fars = [*fars, LARGEST_FAR]
    ends = (min(fars), max(fars))
    found = evaluate(embeddings, labels, ks=(1,), far_range=ends, grid_points=1, **settings)
    return AllPairs(found.counts)


def pairs_needed(far: float) -> int:
    """Negative pairs of which one alone is a share of ``far``."""
    return math.ceil(round(1 / far, 6))


def threshold_at_far(rates: PairRates, far: float) -> float:
    """The largest distance of a negative pair at which FAR is at most ``far``.

    Raises:
        UserError: there are too few negative pairs, or the nearest ones tie.
    """
    if rates.negatives < pairs_needed(far):
        raise UserError(
            f"FAR {far:g} needs at least {pairs_needed(far):,} negative pairs, there are "
            f"{rates.negatives:,}; ask for a higher FAR or bring more images"
        )

    def far_at(rank: int) -> float:
        return float(rates.far(np.array([rates.negative_at(rank)]))[0])

    k = highest_rank(far, rates.negatives, far_at, rates.tolerance)
    if k == 0:
        raise UserError(
            f"no threshold has a FAR as low as {far:g}: the nearest of {rates.negatives:,} "
            f"negative pairs tie and already give {far_at(1):.3g}; ask for at least that"
        )
    return rates.negative_at(k)
