"""Bootstrap over classes: draws classes with replacement, their curves at fixed thresholds.

A drawn class brings its own pairs with the original others, so two copies of a class never form
pairs, and thresholds stay where all classes put them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

RESAMPLES = 2000
CONFIDENCE = 0.95
PER_BLOCK = 100


def class_weights(count: int, seed: int = 0) -> Iterator[np.ndarray]:
    """Blocks (PER_BLOCK, C) of how often each of ``count`` classes is drawn, RESAMPLES rows in all.

    The same seed gives the same draws: what is computed from them is paired.
    """
    generator = np.random.default_rng(seed)
    for _ in range(RESAMPLES // PER_BLOCK):
        drawn = generator.integers(count, size=(PER_BLOCK, count))
        yield np.stack([np.bincount(row, minlength=count) for row in drawn]).astype(float)


def resampled_opis(utility: np.ndarray, seed: int = 0) -> np.ndarray:
    """(RESAMPLES,) OPIS of drawn classes, from utility curves (C, T).

    Each is times C / (C - 1): a draw repeats classes, which makes its variance smaller by that.
    """
    count = len(utility)
    centred = utility - utility.mean(axis=0)  # small numbers keep their digits when squared
    found = []
    for weights in class_weights(count, seed):
        mean = weights @ centred / count
        square = weights @ centred**2 / count
        found.append((square - mean**2).mean(axis=1))
    return np.concatenate(found) * (count / (count - 1))


def resampled_ratio(
    parts: np.ndarray, wholes: np.ndarray, seed: int = 0, two_ended: bool = False
) -> np.ndarray:
    """(RESAMPLES, ...) pooled parts (C, ...) over pooled wholes (C,) of drawn classes.

    ``two_ended``: what is counted are pairs of two classes, with each of them. A pair of classes
    drawn w and v times would stand w v times in a draw; w + v - 1 says the same to first order and
    needs no table of all pairs of classes. Without it, draws would spread half as far as they do.
    """
    half = 0.5 if two_ended else 0.0
    once = half * parts.sum(0), half * wholes.sum()
    return np.concatenate(
        [
            (weights @ parts - once[0])
            / (weights @ wholes - once[1]).reshape(-1, *[1] * (parts.ndim - 1))
            for weights in class_weights(len(wholes), seed)
        ]
    )


def central(values: np.ndarray) -> tuple[float, float]:
    """The central 95 % of ``values``."""
    low, high = np.quantile(values, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(low), float(high)
