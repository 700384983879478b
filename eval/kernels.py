"""The compiled inner loops: they release the interpreter lock, and threads share their work."""

from __future__ import annotations

import numpy as np
from numba import njit

# Exact scores are rounded to 1e-12; sums in another order may fall on either side.
TIE = 1.5e-12


@njit(fastmath=True, error_model="numpy")
def _find_bins(row, begin, end, edges, scales, bins, out):
    """Bins of a row's scores; without branches, so that it is vectorised."""
    bottom, low, high, far = edges
    scale0, scale1, scale2, scale3 = scales
    base1 = np.float32(bins[0])
    base2 = base1 + np.float32(bins[1])
    base3 = base2 + np.float32(bins[2])
    last = base3 + np.float32(bins[3] - 1)
    for j in range(begin, end):
        value = row[j]
        index = (value - bottom) * scale0
        index = index if index > np.float32(0) else np.float32(0)
        index = (value - low) * scale1 + base1 if value >= low else index
        index = (value - high) * scale2 + base2 if value >= high else index
        index = (value - far) * scale3 + base3 if value >= far else index
        out[j] = np.uint32(np.int32(index if index < last else last))


@njit(fastmath=True, error_model="numpy")
def _flag(row, begin, end, least, floor, flags):
    """Marks from 0 on the scores that reach ``least`` or their column's own floor."""
    for j in range(begin, end):
        own = floor[j]
        flags[j - begin] = np.uint8(row[j] >= (own if own < least else least))


@njit(cache=True, nogil=True, error_model="numpy")
def count_block(
    block,
    first_row,
    first_column,
    skip_from,
    skip_to,
    symmetric,
    count_columns,
    row_offset,
    column_offset,
    row_floor,
    column_floor,
    weight,
    edges,
    scales,
    bins,
    tail_scale,
    hist,
    tail,
    index,
    flags,
    row_pairs,
    row_values,
    column_pairs,
    column_values,
):
    """Counts a block of scores, and picks those that matter for somebody's ranks.

    Args:
        block: (r, c) float32 scores of queries first_row.. and gallery images first_column...
        skip_from, skip_to: (Q,) where the query's own class lies in the gallery: no negatives.
        symmetric: of one set, count the pairs with later images alone.
        count_columns: add each pair to the gallery image's histogram too.
        row_offset, column_offset: (Q,), (G,) where a histogram begins in ``hist``.
        row_floor, column_floor: (Q,), (G,) scores from which on a negative matters for the ranks.
        weight: (Q,) images that the query stands for.
        edges, scales, bins: see ``eval.binning.Bins``; hist: all histograms, one after the other.
        tail: weights in very fine bins above ``edges[2]``.
        index (c,), flags (c + 8,): scratch.
        row_pairs .. column_values: (r c, 2) and (r c,): room for the picked pairs.

    Returns:
        numbers of pairs picked for rows and for columns.
    """
    rows, columns = block.shape
    high = edges[2]
    last, one = len(tail) - 1, hist.dtype.type(1)
    words = flags.view(np.uint64)
    offsets = column_offset[first_column : first_column + columns]
    floors = column_floor[first_column : first_column + columns]
    picked_rows = picked_columns = 0
    for i in range(rows):
        q = first_row + i
        row = block[i]
        own_floor = row_floor[q]
        own_hist = hist[row_offset[q] :]
        least = own_floor if own_floor < high else high
        for part in range(2):
            if part == 0:
                begin, end = 0, min(columns, skip_from[q] - first_column)
                if symmetric:
                    continue
            else:
                begin, end = max(0, skip_to[q] - first_column), columns
            if begin >= end:
                continue
            _find_bins(row, begin, end, edges, scales, bins, index)
            if count_columns:
                for j in range(begin, end):
                    own_hist[np.uint64(index[j])] += one
                    hist[np.uint64(offsets[j] + index[j])] += one
            else:
                for j in range(begin, end):
                    own_hist[np.uint64(index[j])] += one
            # Few are picked: eight flags are looked at as one word.
            _flag(row, begin, end, least, floors, flags)
            flags[end - begin : end - begin + 8] = 0
            marked = 0
            for w in range((end - begin + 7) // 8):
                index[marked] = w
                marked += words[w] != 0
            for k in range(marked):
                for f in range(8 * index[k], 8 * index[k] + 8):
                    if not flags[f]:
                        continue
                    j = begin + np.int64(f)
                    value = row[j]
                    if value >= high:
                        tail[min(last, int((value - high) * tail_scale))] += weight[q]
                    if value >= own_floor:
                        row_pairs[picked_rows, 0] = q
                        row_pairs[picked_rows, 1] = first_column + j
                        row_values[picked_rows] = value
                        picked_rows += 1
                    if value >= floors[j]:
                        column_pairs[picked_columns, 0] = first_column + j
                        column_pairs[picked_columns, 1] = q
                        column_values[picked_columns] = value
                        picked_columns += 1
    return picked_rows, picked_columns


@njit(cache=True, nogil=True, error_model="numpy")
def rank_pairs(
    pairs, values, count, offset, tolerance, cutoff, start, stop, scores, above, reached
):
    """Counts picked negatives above the positives that they beat.

    ``above[p + q]`` gets the negatives of query q that beat its positive p but not p's predecessor;
    a query has one place more than positives, for negatives that beat none. A running sum over the
    query's positives gives the number above each. Near ties are moved to the front of ``pairs``;
    returns their number.

    Args:
        cutoff: (Q,) ``reached`` counts the negatives of at least this.
        start, stop: (Q,) a query's positives that can matter, in ``scores``, falling.
    """
    near = 0
    for e in range(count):
        q = pairs[e, 0]
        value = np.float64(values[e])
        reached[q] += value >= cutoff[q]
        value += offset
        a, b = start[q], stop[q]  # first positive clearly below the negative
        while a < b:
            middle = (a + b) // 2
            if scores[middle] < value - tolerance:
                b = middle
            else:
                a = middle + 1
        if a > start[q] and scores[a - 1] <= value + tolerance:
            pairs[near, 0], pairs[near, 1] = q, pairs[e, 1]
            near += 1
        else:
            above[a + q] += 1
    return near


@njit(cache=True, nogil=True)
def rank_exactly(pairs, exact, start, stop, scores, others, order, above):
    """The same for near ties (E, 2), by their exact scores (E,), and by index where those tie."""
    for e in range(len(pairs)):
        q, z = pairs[e]
        a, b = start[q], stop[q]
        while a < b:
            middle = (a + b) // 2
            gap = exact[e] - scores[middle]
            if gap > TIE or (gap >= -TIE and order[z] < order[others[middle]]):
                b = middle
            else:
                a = middle + 1
        above[a + q] += 1


@njit(cache=True, nogil=True, fastmath=True)
def paired_products(x, y, rows, others, out):
    """(E,) float64 inner products of matched rows."""
    for e in range(len(rows)):
        a, b = x[rows[e]], y[others[e]]
        total = 0.0
        for d in range(len(a)):
            total += np.float64(a[d]) * np.float64(b[d])
        out[e] = total


@njit(cache=True, nogil=True)
def sort_positives(block, first_row, first_column, codes, starts, own, start, scores, others):
    """Writes each query's positives, the most similar first, ties by place in the gallery.

    Args:
        block: (r, c) float64 scores of queries first_row.. and gallery images first_column...
        codes, own, start: (Q,) class, place in the gallery or -1, where its positives begin.
        starts: (C + 1,) where the classes begin in the gallery.
        scores, others: (P,) written.
    """
    for i in range(len(block)):
        q = first_row + i
        begin, end = starts[codes[q]], starts[codes[q] + 1]
        values = block[i, begin - first_column : end - first_column]
        p = start[q]
        for at in np.argsort(-values, kind="mergesort"):
            if begin + at != own[q]:
                scores[p] = values[at]
                others[p] = begin + at
                p += 1


@njit(cache=True, nogil=True)
def summarise_ranks(above, start, stop, relevant, limit, first, precision):
    """From ``above`` of :func:`rank_pairs`: each query's first hit, and its term of MAP@R.

    Args:
        relevant: (Q,) R.
        limit: (Q,) ranks beyond this were not followed.
        first: (Q,) gets the rank of the first positive; limit + 1 where that is beyond, or none is.
        precision: (Q,) gets the mean over the R nearest of precision at i where i is a hit.
    """
    for q in range(len(first)):
        first[q] = limit[q] + 1
        total, negatives = 0.0, 0
        for p in range(start[q], stop[q]):
            negatives += above[p + q]
            place = p - start[q] + 1
            rank = place + negatives
            if place == 1:
                first[q] = min(first[q], rank)
            if rank <= relevant[q]:
                total += place / rank
        precision[q] = total / max(1, relevant[q])


@njit(cache=True, nogil=True)
def count_accepted(scores, others, start, base, other_group, falling, table):
    """Adds positives to ``table[group]`` at the first threshold that accepts them, T if none does.

    Args:
        scores, others, start: see ``eval.positives``.
        base: (Q,) plus ``other_group`` (G,) of the other image: the group.
        falling: (T,) scores of the thresholds, falling.
        table: (groups, T + 1).
    """
    thresholds = len(falling)
    for q in range(len(base)):
        at = 0  # a query's scores fall: so do their thresholds
        for p in range(start[q], start[q + 1]):
            a, b = at, thresholds
            while a < b:
                middle = (a + b) // 2
                if falling[middle] <= scores[p]:
                    b = middle
                else:
                    a = middle + 1
            at = a
            group = base[q] + other_group[others[p]]
            table[group, a] += 1
