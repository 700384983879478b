"""Where the calibration range lies, from a sample of images, and histogram bins to suit it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from scipy import stats

from eval.negatives import BinnedNegatives
from eval.prepared import Prepared
from eval.scores import Single

COARSE = 256  # bins below the calibration range
FINE = 1024  # bins within it, where memory allows
FEWEST_FINE = 512
ABOVE, TOP = 192, 64  # bins above it, up to the nearest of the sampled pairs, and beyond
TAIL = 2**17  # bins above it, over all classes together: for TAR at small FAR
SAMPLE = 256  # images that are compared with all others beforehand
DEEPEST = 256  # queries for which that many sampled negatives say nothing are not pruned
SPREAD = 512  # queries whose products show how negatives spread
MISJUDGED = 1e-4  # chance that a query's pruning has to be undone
# The range is widened by these factors of FAR, since a sample only estimates it.
WIDER = (0.7, 1.3)
# Products are float32: zones reach beyond what must lie in them by this share of their tolerance.
MARGIN, LEAST_MARGIN = 0.1, 1e-12


@dataclass(frozen=True)
class Sample:
    """Products of all queries with a few gallery images.

    Attributes:
        negatives: (S,) those of some cross-class pairs, ascending.
        cutoff: (Q,) what many more negatives than matter for the query's ranks very likely reach.
    """

    negatives: np.ndarray
    cutoff: np.ndarray


def sample_products(single: Single, images: Prepared, limits: np.ndarray) -> Sample:
    """Compares all queries with :data:`SAMPLE` gallery images, drawn with a fixed seed.

    Args:
        limits: (Q,) ranks that matter.
    """
    queries, gallery = len(images.queries.codes), len(images.gallery.codes)
    device = single.left.device
    drawn = np.random.default_rng(0).choice(gallery, size=min(gallery, SAMPLE), replace=False)
    columns = torch.from_numpy(np.sort(drawn)).to(device)
    codes = torch.from_numpy(images.gallery.codes).to(device)[columns]
    own_codes = torch.from_numpy(images.queries.codes).to(device)
    # How many of the sample lie among the nearest `limit` is binomial.
    share = len(columns) / gallery
    place = stats.binom.isf(MISJUDGED, limits, share).astype(np.int64)
    depth = int(min(place[place < DEEPEST].max(initial=0) + 1, len(columns)))
    cutoff, parts = np.full(queries, -np.inf, dtype=np.float32), []
    right = single.right[columns]
    for i in range(0, queries, 2048):
        rows = slice(i, min(queries, i + 2048))
        products = single.left[rows] @ right.T
        products[own_codes[rows, None] == codes[None]] = -torch.inf
        parts.append(products[:: max(1, queries // SPREAD)].flatten().cpu())
        best = torch.topk(products, depth, dim=1).values.cpu().numpy()
        usable = np.flatnonzero(place[rows] < depth)
        cutoff[rows][usable] = best[usable, place[rows][usable]]
    negatives = torch.cat(parts)
    negatives = torch.sort(negatives[torch.isfinite(negatives)]).values.double().numpy()
    return Sample(negatives, cutoff)


@dataclass(frozen=True)
class Bins:
    """Edges of the histograms, in float32 products; a score is a product plus ``offset``.

    Attributes:
        bottom, low, high, far, top: where the zones meet; ``low`` to ``high`` is the finest.
        counts: bins of the four zones.
        margin: what float32 may be off by.
    """

    bottom: float
    low: float
    high: float
    far: float
    top: float
    counts: tuple[int, int, int, int]
    offset: float
    margin: float

    @property
    def count(self) -> int:
        """Number of bins."""
        return sum(self.counts)

    @property
    def _zones(self) -> list[tuple[float, float, int]]:
        ends = (self.bottom, self.low, self.high, self.far, self.top)
        return list(zip(ends[:-1], ends[1:], self.counts, strict=True))

    @property
    def edges(self) -> np.ndarray:
        """(count + 1,) ascending scores."""
        parts = [np.linspace(a, b, n, endpoint=False) for a, b, n in self._zones]
        return self.offset + np.append(np.concatenate(parts), self.top)

    @property
    def tail_edges(self) -> np.ndarray:
        """(TAIL + 1,) scores from ``high`` to ``top``."""
        return self.offset + np.linspace(self.high, self.top, TAIL + 1)

    @property
    def starts(self) -> tuple[np.float32, ...]:
        """(4,) products where the zones begin."""
        return tuple(np.float32(a) for a, _, _ in self._zones)

    @property
    def scales(self) -> tuple[np.float32, ...]:
        """(4,) bins of each zone per unit."""
        return tuple(np.float32(n / (b - a)) for a, b, n in self._zones)

    @property
    def tail_scale(self) -> np.float32:
        """Tail bins per unit."""
        return np.float32(TAIL / (self.top - self.high))

    def around(
        self, negatives: BinnedNegatives, total: int, far_range: tuple[float, float]
    ) -> Bins | None:
        """None if the calibration range lies in the fine bins, else bins that are fine there."""
        ends = [negatives.kth_largest(max(1, math.ceil(far * total))) for far in far_range]
        first, last = min(ends) - self.offset, max(ends) - self.offset
        if self.low <= first and last <= self.high:
            return None
        # The bins in which the ends were found hold them for certain.
        edges = self.edges - self.offset
        low = edges[max(0, np.searchsorted(edges, first, "right") - 1)] - self.margin
        high = edges[min(np.searchsorted(edges, last, "left"), self.count)] + self.margin
        return replace(
            self,
            bottom=min(self.bottom, low - self.margin),
            low=float(low),
            high=float(high),
            far=max(self.far, high + self.margin),
            top=max(self.top, high + 2 * self.margin),
        )


def choose_bins(
    sample: Sample,
    images: Prepared,
    single: Single,
    self_score: float,
    far_range: tuple[float, float],
    memory_mb: float,
    copies: int,
) -> Bins:
    """Bins around the estimated calibration range, as many as memory allows.

    Args:
        self_score: an upper bound of all scores.
        memory_mb: for ``copies`` of all histograms and what is made of them, in MiB.
    """
    margin = max(MARGIN * single.tolerance, LEAST_MARGIN)
    far_low, far_high = min(far_range) * WIDER[0], min(1.0, max(far_range) * WIDER[1])
    low, high = np.quantile(sample.negatives, [1 - far_high, 1 - far_low])
    low, high = low - margin, high + margin
    far = max(sample.negatives[-1], high + margin)
    top = max(self_score - single.offset, far) + margin
    bottom = min(sample.negatives[0], low) - margin
    bytes_per_bin = len(images.groups.classes) * (4 * copies + 4) + len(images.classes) * 16
    fine = int(memory_mb * 2**20 / bytes_per_bin) - (COARSE + ABOVE + TOP)
    counts = (COARSE, max(FEWEST_FINE, min(FINE, fine)), ABOVE, TOP)
    ends = (float(end) for end in (bottom, low, high, far, top))
    return Bins(*ends, counts, single.offset, margin)
