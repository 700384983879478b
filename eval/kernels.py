"""Compiled loops over pairs: ranks, products and positives. They release the interpreter lock."""

from __future__ import annotations

import numpy as np
from numba import njit

# Exact scores are rounded to 1e-12; sums in another order may fall on either side.
TIE = 1.5e-12


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
