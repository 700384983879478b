"""Some queries against the whole gallery, where all pairs are too many.

Queries are drawn at random within each class, and each stands for the n / m images of its class: m
drawn of n. Classes of one image are one stratum together, for they only serve as negatives. Rates
of a class need no weights; what is pooled over classes does. OPIS is a variance, to which the
chance of the draw adds: a jackknife over each class's queries estimates how much, and a bootstrap
of queries within classes gives intervals. Both know that the m were drawn of only n images.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from common.errors import UserError
from eval import opis as formulas
from eval.counts import ClassCounts
from eval.prepared import Prepared, take_queries
from eval.resampling import central

LEAST = 2  # queries of each class: one alone tells nothing of chance
DRAWS = 500
POINTS = 100  # thresholds at which chance is looked at


def draw_queries(images: Prepared, count: int, seed: int) -> Prepared:
    """A class-stratified sample of ``count`` queries of one set.

    Every class gets two, or its two or more images if they are fewer; the rest goes by size.

    Raises:
        UserError: too few for all classes, more than there are images, or a gallery of its own.
    """
    if images.separate:
        raise UserError("give either a gallery or sample_queries: all queries are compared with it")
    sizes = images.gallery.sizes
    strata = np.where(sizes == 1, len(sizes), np.arange(len(sizes)))[images.gallery.codes]
    totals = np.bincount(strata, minlength=len(sizes) + 1)
    least = np.minimum(totals, LEAST)
    if not least.sum() <= count <= len(strata):
        raise UserError(
            f"sample_queries={count}: with these classes and images give {least.sum()} to "
            f"{len(strata)}"
        )
    taken = least + _shares(totals - least, count - int(least.sum()))
    rng = np.random.default_rng(seed)
    order = np.lexsort((rng.random(len(strata)), strata))
    place = np.arange(len(strata)) - np.repeat(np.cumsum(totals) - totals, totals)
    chosen = np.sort(order[place < np.repeat(taken, totals)])
    weights = totals / np.maximum(taken, 1)
    weights = np.where(sizes == 1, weights[-1], weights[:-1])
    return take_queries(images, chosen, weights)


def _shares(room: np.ndarray, count: int) -> np.ndarray:
    """``count`` dealt in proportion to ``room``, at most that much each; largest remainders."""
    exact = room * (count / max(1, room.sum()))
    whole = np.floor(exact).astype(np.int64)
    rest = np.argsort(-(exact - whole), kind="stable")[: count - int(whole.sum())]
    whole[rest] += 1
    return whole


@dataclass(frozen=True)
class _Queries:
    """One class's queries: their rates, and how many of how many images they are."""

    far: np.ndarray  # (m, T)
    frr: np.ndarray  # (m, T)
    hits: np.ndarray  # (m, H)
    size: int

    @property
    def unseen(self) -> float:
        """Share of the class that was not drawn: without it there is no chance."""
        return 1 - len(self.far) / self.size


def sampling_variance(counts: ClassCounts, thresholds: np.ndarray, c: float) -> np.ndarray:
    """(C kept,) variance that the draw adds to each class's utility, averaged over thresholds."""
    found = []
    nothing = np.zeros((len(counts.images.queries.codes), 0))
    for each in _classes(counts, thresholds, nothing):
        m = len(each.far)
        if m < 2 or each.unseen == 0:
            found.append(0.0)
            continue
        far, frr = ((rates.sum(0) - rates) / (m - 1) for rates in (each.far, each.frr))
        without = formulas.utility(1 - far, 1 - frr, c)
        spread = ((without - without.mean(0)) ** 2).sum(0)
        found.append(float(each.unseen * (m - 1) / m * spread.mean()))
    return np.array(found)


def intervals(
    counts: ClassCounts,
    thresholds: np.ndarray,
    c: float,
    ks: tuple[int, ...],
    centre: dict[str, float],
    seed: int,
) -> dict[str, tuple[float, float]]:
    """95 % intervals of OPIS and of R@K: how far the whole set's values may lie from these.

    Args:
        thresholds: at which the draws are looked at; they stay where the sample put them.
        centre: the estimates, by name; the draws' spread is laid around them.
    """
    ranks, rng = counts.pairs.ranks, np.random.default_rng(seed)
    names = [f"recall_at_{k}" for k in ks] + ["map_at_r"]
    scores = np.stack([*(ranks.first <= k for k in ks), ranks.precision], 1).astype(float)
    middle = formulas.utility(1 - counts.far(thresholds), 1 - counts.frr(thresholds), c).mean(0)
    total = np.zeros((DRAWS, len(thresholds)))
    square, pooled, images = np.zeros_like(total), np.zeros((DRAWS, len(names))), 0
    classes = 0
    for each in _classes(counts, thresholds, scores):
        m = len(each.far)
        drawn = rng.multinomial(m, np.full(m, 1 / m), size=DRAWS) / m
        wider = np.sqrt(each.unseen * m / max(1, m - 1))
        far, frr, hits = (
            rates.mean(0) + wider * (drawn @ rates - rates.mean(0))
            for rates in (each.far, each.frr, each.hits)
        )
        curves = formulas.utility(1 - far.clip(0, 1), 1 - frr.clip(0, 1), c) - middle
        total += curves
        square += curves**2
        pooled += each.size * hits
        images, classes = images + each.size, classes + 1
    opis = (square / classes - (total / classes) ** 2).mean(1)
    found = {"opis": opis, **dict(zip(names, (pooled / images).T, strict=True))}
    return {name: central(draws - draws.mean() + centre[name]) for name, draws in found.items()}


def _classes(counts: ClassCounts, thresholds: np.ndarray, hits: np.ndarray) -> Iterator[_Queries]:
    """Each kept class's queries; ``hits`` (Q, H) is passed on."""
    images, scores = counts.images, counts.to_scores(thresholds)
    queries, gallery = images.queries, images.gallery
    each, nothing = np.arange(len(queries.codes)), np.zeros(len(gallery.codes), dtype=np.int64)
    accepted, total = counts.positives(each, nothing, len(each), thresholds)
    for code in np.flatnonzero(images.kept):
        at = slice(int(queries.starts[code]), int(queries.starts[code + 1]))
        size = int(gallery.sizes[code])
        far = counts.pairs.negatives.within_by_group(scores, at) / (len(gallery.codes) - size)
        yield _Queries(far, 1 - accepted[at] / total[at, None], hits[at], size)
