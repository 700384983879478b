"""The compiled inner loop of the large pass on a CPU."""

from __future__ import annotations

import numba
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


@njit(parallel=True, cache=True, nogil=True)
def count_block(
    block,
    first_row,
    first_column,
    class_stop,
    group,
    pos_start,
    pos_stop,
    pos_scores,
    floor,
    hist,
    tail,
    above,
    events,
    values,
    n_events,
    lost,
    bottom,
    low,
    high,
    below_scale,
    fine_scale,
    above_scale,
    tail_scale,
    fine,
):
    """Adds a block of scores: rows of queries against later columns, for both ends of each pair.

    Rows are sorted by class, so that a row's negatives are the columns from its class's end on.
    Everything that is written has a copy for each thread; the copies are summed afterwards, so the
    result does not depend on the number of threads.

    Args:
        block: (R, M) float32 scores of sorted rows first_row.. and columns first_column...
        class_stop, group: (N,) end of the row's class; FOLDS * class + fold.
        pos_start, pos_stop: (N,) where the query's relevant positives lie in pos_scores, falling.
        floor: (N,) no negative below this score can matter for the query's ranks.
        hist .. lost: see ``eval.large_pass``; bottom .. fine: see ``eval.binning.Bins.numbers``.
    """
    threads, rows, columns = hist.shape[0], block.shape[0], block.shape[1]
    coarse = (hist.shape[2] - fine) // 2
    for t in prange(threads):
        count = n_events[t]
        for i in range(t, rows, threads):
            q = first_row + i
            q_group, q_floor = group[q], floor[q]
            for j in range(max(0, class_stop[q] - first_column), columns):
                value = block[i, j]
                z = first_column + j
                if value < low:
                    index = max(0, min(coarse - 1, int((value - bottom) * below_scale)))
                elif value < high:
                    index = coarse + min(fine - 1, int((value - low) * fine_scale))
                else:
                    index = coarse + fine + min(coarse - 1, int((value - high) * above_scale))
                    tail[t, min(tail.shape[1] - 1, int((value - high) * tail_scale))] += 1
                hist[t, q_group, index] += 1
                hist[t, group[z], index] += 1
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
