"""``compare``: several models on the same labels, with paired intervals over classes."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from common.atomic import write_text
from common.errors import UserError
from eval.evaluate import evaluate
from eval.jsonable import plain
from eval.markdown import markdown_table
from eval.operating import recall_at_1_by_class
from eval.plots import save_figure
from eval.plots_models import pareto_figure
from eval.readers import EmbeddingSet
from eval.resampling import central, resampled_opis, resampled_ratio
from eval.result import EvaluationResult
from eval.spreadsheet import spreadsheet_safe

COLUMNS = (
    "recall_at_1", "map_at_r", "opis", "opis_floor", "opis_corrected", "epsilon_opis", "opis_far",
)  # fmt: skip
HEADS = ("R@1 %", "MAP@R %", "OPIS", "floor", "OPIS - floor", "ε-OPIS", "OPIS in log FAR")
NOTE = (
    "OPIS in units of 1e-3, lower is more consistent. Differences are to the first model; "
    "intervals hold the central 95 % of 2,000 draws of classes, the same draws for both models. "
    "They cover the choice of classes, not the randomness of training."
)


@dataclass(frozen=True)
class Difference:
    """A model less the first one.

    Attributes:
        recall_at_1, opis: the differences.
        recall_at_1_interval, opis_interval: central 95 % over paired draws of classes.
        below_floor: whether the difference in OPIS is smaller than the larger noise floor of the
            two: too small to be told from the noise of small classes.
    """

    recall_at_1: float
    recall_at_1_interval: tuple[float, float]
    opis: float
    opis_interval: tuple[float, float]
    below_floor: bool

    @property
    def verdict(self) -> str:
        """What the difference in OPIS says, in words."""
        low, high = self.opis_interval
        if low <= 0 <= high:
            return "not told apart"
        direction = "more consistent" if self.opis < 0 else "less consistent"
        return f"{direction}, yet below the noise floor" if self.below_floor else direction


def write_comparison(models: Mapping[str, EmbeddingSet], out: Path, **settings: Any) -> str:
    """Evaluates ``models`` by name and writes ``comparison.json``, ``comparison.csv``,
    ``comparison.md`` and the figure ``pareto`` (PNG, SVG) to ``out``; returns the table.

    Args:
        settings: of :func:`eval.evaluate`.

    Raises:
        UserError: the models do not have the same classes with the same numbers of images.
    """
    _require_same_labels(models)
    results = {
        name: evaluate(data.embeddings, data.labels, **settings) for name, data in models.items()
    }
    recall = {name: _resampled_recall(result) for name, result in results.items()}
    opis = {name: resampled_opis(result.utility) for name, result in results.items()}
    base = next(iter(results))
    differences = {
        name: _difference(results[name], results[base], recall[name] - recall[base], opis, name)
        for name in results
        if name != base
    }
    figure = pareto_figure(
        list(results),
        np.array([result.recall_at[1] for result in results.values()]),
        np.array([result.opis for result in results.values()]),
        np.array([central(draws) for draws in recall.values()]),
        np.array([central(draws) for draws in opis.values()]),
    )
    save_figure(figure, out / "pareto")
    table = _table(results, differences, base)
    write_text(out / "comparison.md", table + "\n")
    write_text(out / "comparison.csv", _csv(results))
    tree = {
        "models": {name: result.to_dict() for name, result in results.items()},
        "differences_to": base,
        "differences": {
            name: {**vars(found), "verdict": found.verdict} for name, found in differences.items()
        },
    }
    write_text(out / "comparison.json", json.dumps(plain(tree), indent=2, allow_nan=False) + "\n")
    return table


def _require_same_labels(models: Mapping[str, EmbeddingSet]) -> None:
    sizes = {
        name: dict(zip(*map(np.ndarray.tolist, _counts(data.labels)), strict=True))
        for name, data in models.items()
    }
    base = next(iter(sizes))
    for name, found in sizes.items():
        for label in sizes[base] | found:
            pair = (sizes[base].get(label, 0), found.get(label, 0))
            if pair[0] != pair[1]:
                raise UserError(
                    f"class {label!r} has {pair[0]} images in {base} and {pair[1]} in {name}; "
                    "compare models on the same labels"
                )


def _counts(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.unique(labels, return_counts=True)


def _resampled_recall(result: EvaluationResult) -> np.ndarray:
    images = result.images.astype(float)
    return resampled_ratio(recall_at_1_by_class(result) * images, images)


def _difference(
    result: EvaluationResult,
    base: EvaluationResult,
    recall: np.ndarray,
    opis: Mapping[str, np.ndarray],
    name: str,
) -> Difference:
    difference = result.opis - base.opis
    return Difference(
        recall_at_1=result.recall_at[1] - base.recall_at[1],
        recall_at_1_interval=central(recall),
        opis=difference,
        opis_interval=central(opis[name] - opis[next(iter(opis))]),
        below_floor=bool(abs(difference) < np.fmax(result.opis_floor, base.opis_floor)),
    )


def _cells(result: EvaluationResult) -> list[str]:
    values = {**result.to_dict(), "recall_at_1": result.recall_at[1]}
    return [
        f"{100 * values[name]:.2f}" if name in ("recall_at_1", "map_at_r") else _milli(values[name])
        for name in COLUMNS
    ]


def _table(
    results: Mapping[str, EvaluationResult], differences: Mapping[str, Difference], base: str
) -> str:
    rows = [["model", *HEADS], *([name, *_cells(found)] for name, found in results.items())]
    heads = ["difference", "R@1 points", "95 %", "OPIS", "95 %", "OPIS of the model"]
    changes = [heads]
    for name, found in differences.items():
        low, high = found.recall_at_1_interval
        opis_low, opis_high = found.opis_interval
        changes.append(
            [
                f"{name} less {base}",
                f"{100 * found.recall_at_1:+.2f}",
                f"{100 * low:+.2f} to {100 * high:+.2f}",
                f"{1e3 * found.opis:+.3g}",
                f"{1e3 * opis_low:+.3g} to {1e3 * opis_high:+.3g}",
                found.verdict,
            ]
        )
    return "\n\n".join([markdown_table(rows), markdown_table(changes), NOTE])


def _milli(value: float) -> str:
    return f"{1e3 * value:.4g}"


def _csv(results: Mapping[str, EvaluationResult]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    settings = ["far_range", "epsilon", "c", "distance", "grid_points"]
    writer.writerow(["model", *COLUMNS, "d_min", "d_max", *settings])
    for name, result in results.items():
        values = result.to_dict()
        numbers = [repr(float(values[key])) for key in (*COLUMNS, "d_min", "d_max")]
        far_range = " ".join(f"{far:g}" for far in result.settings["far_range"])
        rest = [result.settings[key] for key in settings[1:]]
        writer.writerow([spreadsheet_safe(name), *numbers, far_range, *rest])
    return text.getvalue()
