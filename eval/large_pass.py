"""The pass for large sets on a CPU: half of the similarity matrix, block by block, each score once.

Rows are sorted by class. Each block is a float32 matrix product; one compiled loop puts each score
into the histograms of both ends' classes and counts it into the ranks that it decides. Positives
are few: they are computed apart, in float64. Near ties are compared again in float64, so that R@K
and MAP@R are exact whatever the block size or the number of threads.
"""

from __future__ import annotations

import numba
import numpy as np
import torch
from tqdm import tqdm

from eval import kernels
from eval.binning import FOLD_BINS, TAIL, Bins, choose_bins, sample_scores
from eval.geometry import Geometry
from eval.pairs import BinnedNegatives, Pairs, Positives, max_ranks, negative_counts
from eval.positives import ClassPositives, class_positives
from eval.prepare import FOLDS, Prepared
from eval.recheck import rank_rows, settle_near_ties

ATTEMPTS = 3  # at placing the bins; the second always lands but for rounding
EVENTS = 2**20  # near ties that each thread can keep
ROWS, COLUMNS = 1024, 4096


class _Counters:
    """What the compiled loop writes: a copy for each thread, summed at the end."""

    def __init__(self, threads: int, images: Prepared, bins: Bins, positives: int, columns: int):
        n = len(images.codes)
        # A bin of a class holds at most its images times all others.
        wide = int(images.sizes.max()) * n >= 2**31
        kind = np.int64 if wide else np.int32
        classes = len(images.classes)
        self.hist = np.zeros((threads, classes, bins.count), dtype=kind)
        self.fold_hist = np.zeros((threads, classes, FOLDS, FOLD_BINS + 1), dtype=kind)
        self.scratch = np.empty((threads, columns + 1), dtype=np.int32)
        self.tail = np.zeros((threads, TAIL), dtype=np.int64)
        self.above = np.zeros((threads, positives + 1), dtype=np.int32)
        self.events = np.empty((threads, EVENTS, 2), dtype=np.int32)
        self.values = np.empty((threads, EVENTS), dtype=np.float32)
        self.n_events = np.zeros(threads, dtype=np.int64)
        self.lost = np.zeros((threads, n), dtype=np.bool_)

    def negatives(self, bins: Bins) -> BinnedNegatives:
        """The histograms of all threads together."""
        return BinnedNegatives(
            bins.edges,
            self.hist.sum(0, dtype=np.int64),
            bins.fold_edges,
            self.fold_hist.sum(0, dtype=np.int64),
            bins.tail_edges,
            self.tail.sum(0),
        )

    def kept_events(self) -> tuple[np.ndarray, np.ndarray]:
        """(E, 2) query and negative of the near ties, and (E,) their float32 scores."""
        pairs = [self.events[t, :n] for t, n in enumerate(self.n_events)]
        values = [self.values[t, :n] for t, n in enumerate(self.n_events)]
        return np.concatenate(pairs), np.concatenate(values)


def large_pass(
    images: Prepared,
    geometry: Geometry,
    *,
    ks: tuple[int, ...],
    far_range: tuple[float, float],
    memory_mb: float,
    threads: int | None,
    progress: bool,
    block: tuple[int, int] = (ROWS, COLUMNS),
) -> Pairs:
    """Counts all pairs; see the module's text.

    Args:
        ks: of R@K; ranks beyond the largest, and beyond R of MAP@R, are not followed.
        far_range: the histogram is finest there.
        memory_mb: for the histograms, in MiB; the rest needs about 100 MiB and 12 bytes a positive.
        threads: None for all.
        block: rows and columns of a block.
    """
    threads = kernels.thread_count(threads)
    counts = negative_counts(images.codes, images.folds, images.sizes)
    left, right = (v.float().contiguous() for v in geometry.vectors(images.embeddings))
    before = numba.get_num_threads(), torch.get_num_threads()
    numba.set_num_threads(threads)
    torch.set_num_threads(threads)
    try:
        positives = class_positives(images, geometry)
        relevant = np.repeat(max_ranks(images.sizes, ks), images.sizes)
        sample = sample_scores(left, right, images, relevant)
        bins = choose_bins(sample, images, geometry, far_range, memory_mb, threads)
        stop, floor = _relevant(positives, sample.cutoff)
        for _ in range(ATTEMPTS):
            counters = _Counters(threads, images, bins, len(positives.scores), block[1])
            _count(left, right, images, positives, stop, floor, bins, counters, block, progress)
            negatives = counters.negatives(bins)
            better = bins.around(negatives, counts, far_range)
            if better is None:
                break
            # The sample misjudged the range: count again with bins where it really lies.
            bins = better
        rank = _ranks(positives, stop, relevant, counters.above.sum(0))
        settle_near_ties(rank, *counters.kept_events(), stop, positives, images, geometry)
        rank_rows(rank, np.flatnonzero(counters.lost.any(0)), positives, images, geometry)
    finally:
        numba.set_num_threads(before[0])
        torch.set_num_threads(before[1])
    return Pairs(
        Positives(positives.scores, positives.query, positives.other, rank),
        negatives,
        counts,
        int(counts.sum()) // 2,
    )


def _relevant(positives: ClassPositives, cutoff: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(N,) end of each query's positives that can still matter, and the least score to look at."""
    matters = positives.scores >= np.repeat(cutoff, np.diff(positives.start))
    stop = positives.start[:-1] + np.bincount(
        positives.query, weights=matters, minlength=len(cutoff)
    ).astype(np.int64)
    some = stop > positives.start[:-1]
    floor = np.full(len(cutoff), np.inf, dtype=np.float32)
    floor[some] = positives.scores[stop[some] - 1] - 2 * kernels.TOLERANCE
    return stop, floor


def _count(left, right, images, positives, stop, floor, bins, counters, block, progress) -> None:
    n = len(images.codes)
    class_stop = images.starts[1:][images.codes]
    codes = images.codes.astype(np.int32)
    rows, columns = block
    buffer = torch.empty(rows * columns, dtype=torch.float32)
    total = n * (n + 1) // 2
    with tqdm(total=total, unit="pair", unit_scale=True, disable=not progress) as bar:
        for i in range(0, n, rows):
            i_stop = min(n, i + rows)
            # Columns before the end of the first row's class hold no negatives of these rows.
            for j in range(int(class_stop[i]), n, columns):
                j_stop = min(n, j + columns)
                shape = (i_stop - i, j_stop - j)
                scores = buffer[: shape[0] * shape[1]].view(shape)
                torch.mm(left[i:i_stop], right[j:j_stop].T, out=scores)
                kernels.count_block(
                    scores.numpy(),
                    i,
                    j,
                    class_stop,
                    codes,
                    images.folds,
                    positives.start,
                    stop,
                    positives.scores,
                    floor,
                    counters.scratch,
                    counters.hist,
                    counters.fold_hist,
                    counters.tail,
                    counters.above,
                    counters.events,
                    counters.values,
                    counters.n_events,
                    counters.lost,
                    *bins.numbers,
                )
            bar.update((i_stop - i) * (2 * n - i - i_stop + 1) // 2)


def _ranks(positives: ClassPositives, stop, relevant, above: np.ndarray) -> np.ndarray:
    """(P,) place among the positives plus the negatives above, or a bound where irrelevant."""
    running = np.concatenate([[0], np.cumsum(above[:-1])])
    first = positives.start[:-1][positives.query]
    rank = positives.place + running[1:] - running[first]
    irrelevant = np.arange(len(rank)) >= stop[positives.query]
    return np.where(irrelevant, relevant[positives.query] + 1, rank)
