"""The compiled inner loop of the large pass: counts one block of products."""

from __future__ import annotations

import numpy as np
from numba import njit


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
