"""OPIS of a finished run under other choices than the declared ones, from one pass over its pairs.

Away from the calibration range the negatives of a large set are counted in coarser bins, so that
values under other ranges are approximate, to a few per cent. ``python -m eval sensitivity`` takes a
pass for each.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from eval import EvaluationResult
from eval.opis import opis, utility

POINTS = 201
FAR_RANGES = ((1e-3, 1e-2), (1e-3, 1e-1), (1e-1, 3e-1))
WEIGHTS = (0.5, 2.0)


def under_choices(result: EvaluationResult) -> pd.DataFrame:
    """A line per choice: ``choice``, ``value``, ``opis``; one choice is changed at a time."""
    declared, c = tuple(result.settings["far_range"]), result.settings["c"]
    lines = [("as declared", "", result.opis)]
    for bounds in FAR_RANGES:
        grid = _even(result, bounds)
        value = f"{bounds[0]:g} to {bounds[1]:g}"
        lines.append(("FAR range", value, _opis(result, grid, c)))
    if result.settings["distance"] == "euclidean":
        # Even in 1 - s, which is d^2 / 2.
        cosine = np.sqrt(np.linspace(result.d_min**2, result.d_max**2, POINTS))
        lines.append(("distance", "cosine", _opis(result, cosine, c)))
    lines.append(("distance", "none, even in log FAR", result.opis_far))
    grid = _even(result, declared)
    lines += [("weight c", f"{weight:g}", _opis(result, grid, weight)) for weight in WEIGHTS]
    lines.append(("noise floor", "subtracted", result.opis_corrected))
    return pd.DataFrame(lines, columns=["choice", "value", "opis"])


def _even(result: EvaluationResult, bounds: tuple[float, float]) -> np.ndarray:
    """Thresholds evenly over a range that is given as false-accept rates."""
    n = result.counts.pairs.total_negatives
    ends = [result.counts.threshold_at_rank(max(1, math.ceil(far * n))) for far in sorted(bounds)]
    return np.linspace(*ends, POINTS)


def _opis(result: EvaluationResult, thresholds: np.ndarray, c: float) -> float:
    counts = result.counts
    return opis(utility(1 - counts.far(thresholds), 1 - counts.frr(thresholds), c))
