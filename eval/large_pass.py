"""The pass for large sets: blocks of float32 products, each counted once and forgotten.

Images are sorted by class. Of one set, half of the matrix is enough: a product counts for both of
its ends. Threads take blocks in turn, multiply and count them (on a GPU, torch does). Positives are
few: they are computed apart, in float64, and so are near ties between them and negatives: R@K and
MAP@R are exact whatever the block size or the number of threads.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue

import numba
import torch
from tqdm import tqdm

from eval.binning import Bins, choose_bins, sample_products
from eval.compiled import CompiledCounter
from eval.negatives import BinnedNegatives
from eval.on_device import DeviceCounter, DeviceRanking
from eval.pairs import Pairs, negative_counts, rank_limits
from eval.positives import class_positives
from eval.prepared import Prepared
from eval.ranking import Ranking
from eval.scores import Scores

ATTEMPTS = 3  # at placing the bins; the second always lands but for rounding
BLOCK = (1024, 512)  # rows and columns: a block and its histograms stay in a core's cache
DEVICE_BLOCK = (2048, 4096)


def large_pass(
    scores: Scores,
    *,
    ks: tuple[int, ...],
    far_range: tuple[float, float],
    memory_mb: float,
    threads: int | None,
    progress: bool,
    block: tuple[int, int] | None = None,
    compiled: bool | None = None,
) -> Pairs:
    """Counts all pairs; see the module's text.

    Args:
        ks: of R@K; ranks beyond the largest, and beyond R of MAP@R, are not followed.
        far_range: the histogram is finest there.
        memory_mb: for the histograms, and for the positives, in MiB; the rest needs about 100 MiB.
        threads: None for all.
        block: rows and columns of a block.
        compiled: the compiled loops (CPU alone) or torch's operations; None for what suits.
    """
    images = scores.images
    if compiled is None:
        compiled = images.gallery.embeddings.device.type == "cpu"
    threads = thread_count(threads) if compiled else 1
    block = block or (BLOCK if compiled else DEVICE_BLOCK)
    limits = rank_limits(images, ks)
    counts, total = negative_counts(images)
    before = torch.get_num_threads(), torch.get_float32_matmul_precision()
    torch.set_num_threads(thread_count(None) if not compiled else threads)
    torch.set_float32_matmul_precision("highest")  # no TF32
    try:
        single = scores.single()
        positives = class_positives(scores, memory_mb, threads)
        sample = sample_products(single, images, limits)
        ranks_on = Ranking if compiled else DeviceRanking
        ranking = ranks_on(scores, single, positives, sample.cutoff, limits)
        self_score = scores.geometry.self_score
        bins = choose_bins(sample, images, single, self_score, far_range, memory_mb, threads)
        made = CompiledCounter if compiled else DeviceCounter
        for attempt in range(ATTEMPTS):
            wanted = None if attempt else ranking
            counters = [made(images, single, bins, wanted, block) for _ in range(threads)]
            _count(counters, images, block, progress)
            negatives = _together(counters, images, bins)
            better = bins.around(negatives, total, far_range)
            if better is None:
                break
            # The sample misjudged the range: count again with bins where it really lies.
            bins = better
        return Pairs(positives, ranking.ranks(), negatives, counts, total)
    finally:
        torch.set_num_threads(before[0])
        torch.set_float32_matmul_precision(before[1])


def thread_count(threads: int | None) -> int:
    """The number of threads asked for, one for each core for None."""
    most = numba.config.NUMBA_NUM_THREADS
    return most if threads is None else max(1, min(threads, most))


def _count(counters: list, images: Prepared, block: tuple[int, int], progress: bool) -> None:
    """Gives out the blocks that hold cross-class pairs."""
    tasks = _blocks(images, block)
    free: SimpleQueue = SimpleQueue()
    for counter in counters:
        free.put(counter)

    def work(task: tuple[slice, slice]) -> int:
        counter = free.get()
        try:
            counter.count(*task)
        finally:
            free.put(counter)
        rows, columns = task
        return (rows.stop - rows.start) * (columns.stop - columns.start)

    total = sum((r.stop - r.start) * (c.stop - c.start) for r, c in tasks)
    bar = tqdm(total=total, unit="pair", unit_scale=True, disable=not progress)
    if len(counters) == 1 or len(tasks) == 1:
        with bar:
            for task in tasks:
                bar.update(work(task))
        return
    # One thread a product: several products run at a time.
    pool = ThreadPoolExecutor(len(counters), initializer=torch.set_num_threads, initargs=(1,))
    with bar, pool:
        for done in pool.map(work, tasks):
            bar.update(done)


def _blocks(images: Prepared, block: tuple[int, int]) -> list[tuple[slice, slice]]:
    queries, gallery = images.queries, images.gallery
    rows, columns = block
    tasks = []
    for i in range(0, len(queries.codes), rows):
        # Of one set, columns before the end of the first row's class are no later negatives.
        first = int(gallery.starts[queries.codes[i] + 1]) if images.symmetric else 0
        taken = slice(i, min(len(queries.codes), i + rows))
        tasks += [
            (taken, slice(j, min(len(gallery.codes), j + columns)))
            for j in range(first, len(gallery.codes), columns)
        ]
    return tasks


def _together(counters: list, images: Prepared, bins: Bins) -> BinnedNegatives:
    first = counters[0]
    for other in counters[1:]:
        first.hist += other.hist
        first.tail += other.tail
    return BinnedNegatives(
        bins.edges, first.hist, images.groups, images.weights, bins.tail_edges, first.tail
    )
