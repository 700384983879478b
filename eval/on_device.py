"""The same counting by torch's operations, for embeddings on a GPU; see ``eval.compiled``."""

from __future__ import annotations

import functools

import numpy as np
import torch

from eval.binning import TAIL, Bins
from eval.compiled import counter_type
from eval.pairs import Ranks
from eval.prepared import Prepared
from eval.ranking import Ranking
from eval.scores import Single

NEAR_AT_ONCE = 2**20  # near ties compared in float64 at a time


class DeviceRanking(Ranking):
    """A :class:`Ranking` whose counters live on the embeddings' device."""

    def __init__(self, scores, single: Single, positives, cutoff, limits) -> None:
        super().__init__(scores, single, positives, cutoff, limits)
        device = single.left.device
        on_device = functools.partial(_on_device, device=device)
        self._start, self._stop_at = on_device(positives.start[:-1]), on_device(self._stop)
        # One more, so that a place behind the last can be looked at.
        self._sorted = on_device(np.append(positives.scores, -np.inf))
        self._from = on_device(cutoff)
        self._counts = torch.zeros(len(self._above), dtype=torch.int64, device=device)
        self._hits = torch.zeros(len(self._reached), dtype=torch.int64, device=device)

    def add_tensors(self, q: torch.Tensor, z: torch.Tensor, values: torch.Tensor) -> None:
        """Counts negatives z (E,) of queries q (E,), with products ``values`` (E,)."""
        self._hits.scatter_add_(0, q, (values >= self._from[q]).long())
        value = values.double() + self._offset
        a, b = self._start[q], self._stop_at[q]
        begin = a
        for _ in range(_steps(a, b)):
            middle = torch.div(a + b, 2, rounding_mode="floor")
            below = self._sorted[middle] < value - self._tolerance
            open_ = a < b
            b = torch.where(open_ & below, middle, b)
            a = torch.where(open_ & ~below, middle + 1, a)
        near = (a > begin) & (self._sorted[a - 1] <= value + self._tolerance)
        clear = ~near
        self._counts.scatter_add_(0, (a + q)[clear], torch.ones_like(a[clear]))
        pairs = torch.stack([q[near], z[near]], 1).int().cpu().numpy()
        for at in range(0, len(pairs), NEAR_AT_ONCE):
            self._settle(pairs[at : at + NEAR_AT_ONCE])

    def ranks(self) -> Ranks:
        """The result, once all pairs were added."""
        self._above += self._counts.cpu().numpy()
        self._reached += self._hits.cpu().numpy()
        return super().ranks()


def _on_device(array: np.ndarray, device: torch.device) -> torch.Tensor:
    return torch.from_numpy(array).to(device)


def _steps(a: torch.Tensor, b: torch.Tensor) -> int:
    """Halvings that a search between any a and b takes."""
    return int((b - a).max()).bit_length() if len(a) else 0


class DeviceCounter:
    """Histograms on the device; the attributes are numpy's once they are asked for.

    Args and attributes: as :class:`eval.compiled.CompiledCounter`.
    """

    def __init__(
        self,
        images: Prepared,
        single: Single,
        bins: Bins,
        ranking: DeviceRanking | None,
        block: tuple[int, int],
    ) -> None:
        self._images, self._single, self._bins, self._ranking = images, single, bins, ranking
        device, groups = single.left.device, images.groups
        on_device = functools.partial(_on_device, device=device)
        kind = torch.int32 if counter_type(images) is np.int32 else torch.int64
        self._hist = torch.zeros(len(groups.classes) * bins.count, dtype=kind, device=device)
        self._tail = torch.zeros(TAIL, dtype=torch.float64, device=device)
        self._row_offset = on_device(groups.of_query * bins.count)
        if groups.of_gallery is not None:
            self._column_offset = on_device(groups.of_gallery * bins.count)
        self._own_class = on_device(images.queries.codes), on_device(images.gallery.codes)
        self._weight = on_device(images.pair_ends)
        if ranking is not None:
            self._floors = on_device(ranking.floors)

    @property
    def hist(self) -> np.ndarray:
        """(g, B) negatives of each group."""
        return self._hist.view(-1, self._bins.count).cpu().numpy()

    @property
    def tail(self) -> np.ndarray:
        """(TAIL,) weights of both ends of all pairs near the top."""
        return self._tail.cpu().numpy()

    def count(self, rows: slice, columns: slice) -> None:
        """Multiplies and counts one block."""
        products = self._single.left[rows] @ self._single.right[columns].T
        own, other = self._own_class[0][rows, None], self._own_class[1][None, columns]
        negative = own < other if self._images.symmetric else own != other
        i, j = negative.nonzero(as_tuple=True)
        values = products[i, j]
        q, z = i + rows.start, j + columns.start
        index = self._find_bins(values)
        one = torch.ones((), dtype=self._hist.dtype, device=index.device).expand(len(index))
        self._hist.scatter_add_(0, self._row_offset[q] + index, one)
        if not self._images.sampled:
            self._hist.scatter_add_(0, self._column_offset[z] + index, one)
        top = values >= float(self._bins.starts[2])
        place = ((values[top] - self._bins.starts[2]) * self._bins.tail_scale).long()
        self._tail.scatter_add_(0, place.clamp_(max=TAIL - 1), self._weight[q[top]])
        if self._ranking is None:
            return
        matters = values >= self._floors[q]
        self._ranking.add_tensors(q[matters], z[matters], values[matters])
        if self._images.symmetric:
            matters = values >= self._floors[z]
            self._ranking.add_tensors(z[matters], q[matters], values[matters])

    def _find_bins(self, values: torch.Tensor) -> torch.Tensor:
        """(E,) int64 bins of products."""
        index = torch.zeros_like(values)
        first = 0
        for start, scale, count in zip(
            self._bins.starts, self._bins.scales, self._bins.counts, strict=True
        ):
            inside = (values - float(start)) * float(scale) + float(first)
            index = torch.where(values >= float(start), inside, index)
            first += count
        return index.clamp_(min=0, max=self._bins.count - 1).long()
