"""Random numbers that are a function of (seed, epoch, position), in any order and any batch.

A counter-based generator: the output function of SplitMix64 (Steele, Lea and Flood, "Fast
splittable pseudorandom number generators", OOPSLA 2014) applied to counters. A generator with a
state would tie the numbers of one image to the images before it in the batch.
"""

from __future__ import annotations

import numpy as np

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def sample_keys(seed: int, epoch: int, positions: np.ndarray) -> np.ndarray:
    """One key for each image of an epoch, shape (B,) -> (B,) uint64.

    Different (seed, epoch, position) give unrelated keys; all three must be >= 0.
    """
    start = _mix(np.array([seed], dtype=np.uint64))
    start = _mix(start + _GOLDEN * np.array([epoch + 1], dtype=np.uint64))
    return _mix(start + _GOLDEN * (np.asarray(positions).astype(np.uint64) + np.uint64(1)))


def uniform(keys: np.ndarray, count: int) -> np.ndarray:
    """``count`` numbers in [0, 1) for each key, shape (B,) -> (B, count) float64."""
    counters = _GOLDEN * np.arange(1, count + 1, dtype=np.uint64)
    return (_mix(keys[:, None] + counters) >> np.uint64(11)) * 2.0**-53


def _mix(values: np.ndarray) -> np.ndarray:
    # Arrays of uint64 wrap around on overflow, as the generator wants it.
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
