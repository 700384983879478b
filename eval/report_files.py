"""The plain files of a report: ``metrics.json`` and ``per_class.csv``."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import asdict
from pathlib import Path

import numpy as np

from common.atomic import write_text
from eval.jsonable import plain
from eval.operating import OperatingCurves, recall_at_1_by_class
from eval.readers import EmbeddingSet
from eval.result import EvaluationResult
from eval.spreadsheet import spreadsheet_safe
from eval.thresholds import Recommendation

CLASS_COLUMNS = (
    *("label", "images", "positives", "negatives", "recall_at_1", "far", "frr", "utility"),
    *("mean_utility", "far_off", "frr_off"),
)


def write_metrics(
    path: Path,
    data: EmbeddingSet,
    result: EvaluationResult,
    curves: OperatingCurves,
    at: int,
    recommendation: Recommendation | None,
) -> Path:
    """All scalars, settings and the recommendation; names are those of the engine's result."""
    tree = {"name": data.name, **result.to_dict()}
    tree["chosen_threshold"] = {
        "threshold": curves.thresholds[at],
        "far": curves.overall_far[at],
        "frr": curves.overall_frr[at],
    }
    if recommendation:
        found = asdict(recommendation)
        for name in ("far_fails", "frr_fails"):
            found[f"classes_{name}"] = curves.classes[found.pop(name)]
        tree["recommendation"] = found
    write_text(path, json.dumps(plain(tree), indent=2, allow_nan=False) + "\n")
    return path


def write_classes(
    path: Path,
    result: EvaluationResult,
    curves: OperatingCurves,
    at: int,
    far_fails: np.ndarray,
    frr_fails: np.ndarray,
) -> Path:
    """A row for each class, lowest utility at the chosen threshold first."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CLASS_COLUMNS)
    recall, utility = recall_at_1_by_class(result), curves.utility[:, at]
    for i in np.argsort(utility, kind="stable"):
        numbers = (recall[i], curves.far[i, at], curves.frr[i, at], utility[i])
        counts = (curves.images[i], curves.positives[i], curves.negatives[i])
        means = f"{result.utility[i].mean():.6g}"
        flags = (int(far_fails[i]), int(frr_fails[i]))
        shown = (f"{number:.6g}" for number in numbers)
        writer.writerow([spreadsheet_safe(curves.classes[i]), *counts, *shown, means, *flags])
    write_text(path, text.getvalue())
    return path
