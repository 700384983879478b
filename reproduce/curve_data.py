"""Utility curves and similarity histograms of finished runs, reduced to what the figures draw."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd

from common.errors import UserError
from eval import EvaluationResult, evaluate
from eval.opis import utility
from reproduce.choice_data import under_choices
from reproduce.config import RunConfig, load

THRESHOLDS = 61
CLASSES = 12
BINS = 80
# The curves go on beyond the calibration range by so many times its width, on either side.
BEYOND = 1.5
KINDS = ("utility", "similarity", "det", "choices")
FARS = np.geomspace(1e-5, 1, 51)
KEY = ("row", "dataset", "backbone", "seed", "run_hash")


def of_pair(base: dict, other: dict, runs: Path, classes: int = CLASSES) -> dict[str, pd.DataFrame]:
    """What the figures and the report draw on, of a base run and the run with TCM, by kind.

    - ``utility``, a line per threshold: ``threshold`` (distance), ``in_range`` (of calibration),
      ``mean``, ``p10`` and ``p90`` over all classes, and ``class 0`` ... of single classes, the
      same in both runs, spread evenly over the ranks by the base's mean utility in its range.
    - ``similarity``, a line per bin from ``low`` to ``high`` (cosine): ``positives`` and
      ``negatives`` are shares of all pairs of the kind. None for hyperbolic runs.
    - ``det``, a line per false-accept rate: ``far`` and ``frr`` over all pairs.
    - ``choices``: see :func:`reproduce.choice_data.under_choices`.

    Args:
        base, other: rows of a results table.
        runs: folder of the run store.

    Raises:
        UserError: a run folder is not there.
    """
    results = [_evaluated(row, runs) for row in (base, other)]
    order = np.argsort(results[0].utility.mean(1), kind="stable")
    picked = order[np.linspace(0, len(order) - 1, min(classes, len(order))).round().astype(int)]
    names = results[0].classes[picked]
    pairs = list(zip((base, other), results, strict=True))
    # One range for both, so that the panels can be compared.
    ends = [_range(result) for result in results]
    thresholds = np.linspace(min(a for a, _ in ends), max(b for _, b in ends), THRESHOLDS)
    curves = [_with_key(row, _curves(result, names, thresholds)) for row, result in pairs]
    histograms = [
        _with_key(row, _histogram(result))
        for row, result in pairs
        if result.settings["distance"] == "euclidean"
    ]
    choices = [_with_key(row, under_choices(result)) for row, result in pairs]
    rates = [_with_key(row, _rates(result)) for row, result in pairs]
    joined = {"utility": curves, "similarity": histograms, "det": rates, "choices": choices}
    return {kind: _joined(frames) for kind, frames in joined.items()}


def _evaluated(row: dict, runs: Path) -> EvaluationResult:
    folder = runs / str(row["run_hash"])
    config = _config(folder, row)
    with np.load(folder / "embeddings.npz", allow_pickle=False) as data:
        embeddings, labels = data["embeddings"], data["labels"]
    chosen = config.evaluation
    return evaluate(
        embeddings,
        labels,
        far_range=chosen.far_range,
        c=chosen.c,
        distance=chosen.distance,
        curvature=chosen.curvature,
        grid_points=chosen.grid_points,
        threads=config.train.threads,
    )


def _config(folder: Path, row: dict) -> RunConfig:
    if not (folder / "embeddings.npz").exists():
        raise UserError(
            f"{folder} does not hold the run of row {row['row']!r} on {row['dataset']} with seed "
            f"{row['seed']}: rerun python -m reproduce.{row['table']}, or give --runs"
        )
    return load(folder / "config.yaml")


def _range(result: EvaluationResult) -> tuple[float, float]:
    width = result.d_max - result.d_min
    return max(0.0, result.d_min - BEYOND * width), result.d_max + BEYOND * width


def _curves(result: EvaluationResult, names: np.ndarray, thresholds: np.ndarray) -> pd.DataFrame:
    rates = result.counts.far(thresholds), result.counts.frr(thresholds)
    curves = utility(1 - rates[0], 1 - rates[1], result.settings["c"])
    at = {name: i for i, name in enumerate(result.classes)}
    columns = {
        "threshold": thresholds,
        "in_range": (thresholds >= result.d_min) & (thresholds <= result.d_max),
        "d_min": result.d_min,
        "d_max": result.d_max,
        "opis": result.opis,
        "mean": curves.mean(0),
        "p10": np.quantile(curves, 0.1, axis=0),
        "p90": np.quantile(curves, 0.9, axis=0),
    }
    single = {f"class {i}": curves[at[name]] for i, name in enumerate(names)}
    return pd.DataFrame(columns | single)


def _histogram(result: EvaluationResult) -> pd.DataFrame:
    similarity = np.linspace(-1, 1, BINS + 1)
    # Distances ascend where similarities fall.
    distances = np.sqrt(np.maximum(2 - 2 * similarity[::-1], 0))
    positives = result.counts.positive_histogram(distances)[::-1].astype(float)
    negatives = result.counts.negative_histogram(distances)[::-1].astype(float)
    return pd.DataFrame(
        {
            "low": similarity[:-1],
            "high": similarity[1:],
            "positives": positives / positives.sum(),
            "negatives": negatives / negatives.sum(),
        }
    )


def _rates(result: EvaluationResult) -> pd.DataFrame:
    n = result.counts.pairs.total_negatives
    fars = FARS[np.floor(FARS * n) >= 1]
    thresholds = [result.counts.threshold_at_rank(int(far * n)) for far in fars]
    return pd.DataFrame({"far": fars, "frr": result.counts.overall_frr(np.array(thresholds))})


def _with_key(row: dict, frame: pd.DataFrame) -> pd.DataFrame:
    key = pd.DataFrame({name: [row[name]] * len(frame) for name in KEY})
    return pd.concat([key, frame], axis=1)


def _joined(frames: Iterable[pd.DataFrame]) -> pd.DataFrame:
    frames = list(frames)
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()
