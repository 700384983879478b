"""The compiled inner loop of the large pass on a CPU."""

from __future__ import annotations

import numba
import numpy as np
from numba import njit, prange

# A negative this near to a positive of the query is compared again in float64.
TOLERANCE = 1e-5


@njit(inline="always")
def _rank(value, start, stop, scores, above, events, values, n_events, lost, q, z):
    """Counts one negative of query q above the positives that it beats; their scores fall.

    ``above[p]`` gets the negatives that beat p but not its predecessor: a running sum over the
    query's positives gives the number above each. Near ties are kept for a second look.
    """
    a, b = start, stop  # first positive clearly below the negative
    while a < b:
        middle = (a + b) // 2
        if scores[middle] < value - TOLERANCE:
            b = middle
        else:
            a = middle + 1
    if a < stop:
        above[a] += 1
    if a > start and scores[a - 1] <= value + TOLERANCE:
        if n_events < len(values):
            events[n_events, 0] = q
            events[n_events, 1] = z
            values[n_events] = value
            n_events += 1
        else:
            lost[q] = True
    return n_events


@njit(fastmath=True, error_model="numpy")
def _bins(row, start, numbers, coarse, fine, out):
    """Bins of a row's scores from ``start`` on; without branches, so that it is vectorised."""
    bottom, low, high, below_scale, fine_scale, above_scale = numbers
    fine_start, above_start = np.float32(coarse), np.float32(coarse + fine)
    last = np.float32(2 * coarse + fine - 1)
    for j in range(start, len(row)):
        value = row[j]
        below = (value - bottom) * below_scale
        below = below if below > np.float32(0) else np.float32(0)
        index = (value - low) * fine_scale + fine_start if value >= low else below
        index = (value - high) * above_scale + above_start if value >= high else index
        out[j] = np.int32(index if index < last else last)


@njit(error_model="numpy")
def _select(row, start, first_column, least, floor, out):
    """Columns whose score reaches ``least`` or their own floor; without mispredicted branches."""
    count = 0
    for j in range(start, len(row)):
        out[count] = j
        own = floor[first_column + j]
        count += row[j] >= (own if own < least else least)
    return count


@njit(parallel=True, cache=True, nogil=True, error_model="numpy")
def count_block(
    block,
    first_row,
    first_column,
    class_stop,
    codes,
    folds,
    pos_start,
    pos_stop,
    pos_scores,
    floor,
    scratch,
    hist,
    fold_hist,
    tail,
    above,
    events,
    values,
    n_events,
    lost,
    numbers,
    fold_scale,
    tail_scale,
    fine,
):
    """Adds a block of scores: rows of queries against later columns, for both ends of each pair.

    Rows are sorted by class, so that a row's negatives are the columns from its class's end on.
    Everything that is written has a copy for each thread; the copies are summed afterwards, so the
    result does not depend on the number of threads.

    Args:
        block: (R, M) float32 scores of sorted rows first_row.. and columns first_column...
        class_stop, codes, folds: (N,) end of the row's class; its class; its fold.
        pos_start, pos_stop: (N,) where the query's relevant positives lie in pos_scores, falling.
        floor: (N,) no negative below this score can matter for the query's ranks.
        scratch .. lost: see ``eval.large_pass``; the rest: see ``eval.binning.Bins.numbers``.
    """
    threads, rows, columns = hist.shape[0], block.shape[0], block.shape[1]
    low, high = numbers[1], numbers[2]
    fold_bins, tail_bins = fold_hist.shape[3] - 1, tail.shape[1]
    coarse = (hist.shape[2] - fine) // 2
    for t in prange(threads):
        count = n_events[t]
        buffer = scratch[t]
        for i in range(t, rows, threads):
            q = first_row + i
            q_code, q_fold, q_floor = codes[q], folds[q], floor[q]
            start = max(0, class_stop[q] - first_column)
            _bins(block[i], start, numbers, coarse, fine, buffer)
            q_hist = hist[t, q_code]
            for j in range(start, columns):
                index = buffer[j]
                q_hist[index] += 1
                hist[t, codes[first_column + j], index] += 1
            chosen = _select(block[i], start, first_column, min(low, q_floor), floor, buffer)
            for k in range(chosen):
                value = block[i, buffer[k]]
                z = first_column + buffer[k]
                if value >= low:
                    index = fold_bins
                    if value < high:
                        index = min(fold_bins - 1, int((value - low) * fold_scale))
                    else:
                        tail[t, min(tail_bins - 1, int((value - high) * tail_scale))] += 1
                    fold_hist[t, q_code, q_fold, index] += 1
                    fold_hist[t, codes[z], folds[z], index] += 1
                if value >= q_floor:
                    count = _rank(
                        value,
                        pos_start[q],
                        pos_stop[q],
                        pos_scores,
                        above[t],
                        events[t],
                        values[t],
                        count,
                        lost[t],
                        q,
                        z,
                    )
                if value >= floor[z]:
                    count = _rank(
                        value,
                        pos_start[z],
                        pos_stop[z],
                        pos_scores,
                        above[t],
                        events[t],
                        values[t],
                        count,
                        lost[t],
                        z,
                        q,
                    )
        n_events[t] = count


def thread_count(threads: int | None) -> int:
    """The number of threads asked for, numba's own default for None."""
    most = numba.config.NUMBA_NUM_THREADS
    return most if threads is None else max(1, min(threads, most))
