"""Counts blocks of products with the compiled loops: one object for each thread."""

from __future__ import annotations

import numpy as np
import torch

from eval.binning import TAIL, Bins
from eval.block_kernel import count_block
from eval.prepared import Prepared
from eval.ranking import Ranking
from eval.scores import Single

LARGEST_INT32 = 2**31 - 1


class CompiledCounter:
    """Histograms and scratch space of one thread.

    Args:
        images, single, bins: of the pass.
        ranking: takes what matters for ranks; None to count alone.
        block: (rows, columns) at most.

    Attributes:
        hist: (g, B) negatives of each group.
        tail: (TAIL,) weights of both ends of all pairs near the top.
    """

    def __init__(
        self,
        images: Prepared,
        single: Single,
        bins: Bins,
        ranking: Ranking | None,
        block: tuple[int, int],
    ) -> None:
        self._images, self._single, self._bins, self._ranking = images, single, bins, ranking
        groups, queries, gallery = images.groups, images.queries, images.gallery
        self.hist = np.zeros((len(groups.classes), bins.count), dtype=counter_type(images))
        self.tail = np.zeros(TAIL)
        self._skip = gallery.starts[queries.codes], gallery.starts[queries.codes + 1]
        self._row_offset = (groups.of_query * bins.count).astype(np.uint64)
        both = groups.of_query if groups.of_gallery is None else groups.of_gallery
        self._column_offset = (both * bins.count).astype(np.uint64)
        nothing = np.full(len(gallery.codes), np.inf, dtype=np.float32)
        self._floors = (nothing[: len(queries.codes)], nothing)
        if ranking is not None:
            self._floors = ranking.floors, ranking.floors if images.symmetric else nothing
        self._weight = images.pair_ends
        rows, columns = block
        self._products = torch.empty(rows * columns)
        self._bin_of = np.empty(columns, dtype=np.uint32)
        self._flags = np.zeros(8 * (columns // 8 + 2), dtype=np.uint8)
        most = rows * columns if ranking is not None else 1
        self._picked = tuple(
            (np.empty((most, 2), dtype=np.int32), np.empty(most, dtype=np.float32))
            for _ in range(2)
        )

    def count(self, rows: slice, columns: slice) -> None:
        """Multiplies and counts one block."""
        shape = rows.stop - rows.start, columns.stop - columns.start
        products = self._products[: shape[0] * shape[1]].view(shape)
        torch.mm(self._single.left[rows], self._single.right[columns].T, out=products)
        images, bins = self._images, self._bins
        numbers = count_block(
            products.numpy(),
            rows.start,
            columns.start,
            *self._skip,
            images.symmetric,
            not images.sampled,
            self._row_offset,
            self._column_offset,
            *self._floors,
            self._weight,
            bins.starts,
            bins.scales,
            bins.counts,
            bins.tail_scale,
            self.hist.ravel(),
            self.tail,
            self._bin_of,
            self._flags,
            *self._picked[0],
            *self._picked[1],
        )
        for (pairs, values), number in zip(self._picked, numbers, strict=True):
            if number:
                self._ranking.add(pairs[:number], values[:number])


def counter_type(images: Prepared) -> type:
    """Integers that hold the pairs of any group: its images times all others."""
    groups = images.groups
    members = np.bincount(groups.of_query, minlength=len(groups.classes))
    if images.separate:
        members += np.bincount(groups.of_gallery, minlength=len(groups.classes))
    most = int(members.max()) * max(len(images.queries.codes), len(images.gallery.codes))
    return np.int32 if most <= LARGEST_INT32 else np.int64
