"""``report``: one model's metrics, curves, figures and page, written to a folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from common.atomic import write_text
from common.errors import UserError
from eval.evaluate import evaluate
from eval.operating import (
    OperatingCurves,
    operating_curves,
    reading_grid,
    similarity_histogram,
)
from eval.plots import save_figure
from eval.plots_report import error_rates_figure, histogram_figure, utility_figure
from eval.readers import EmbeddingSet
from eval.report_files import write_classes, write_metrics
from eval.report_html import Page, render
from eval.report_text import (
    cards,
    images_text,
    jumps,
    recommendation_text,
    settings_text,
    summary_text,
    terminal_text,
)
from eval.result import EvaluationResult
from eval.thresholds import (
    DEFAULT_FACTOR,
    Recommendation,
    check_factor,
    failing_classes,
    recommend,
    threshold_for_far,
)

TAR_AT = (1e-4, 1e-3, 1e-2)
TARGET_SPREAD = 4  # the second pass resolves FARs from target / 4 to 4 * target


@dataclass(frozen=True)
class Report:
    """What was found and where it was written.

    Attributes:
        off: (C,) whether a class's FAR or FRR is off at the chosen threshold.
        summary: the same for a terminal.
    """

    result: EvaluationResult
    recommendation: Recommendation | None
    off: np.ndarray
    files: list[Path]
    summary: str


def write_report(
    data: EmbeddingSet,
    out: Path,
    *,
    target_far: float | None = None,
    factor: float = DEFAULT_FACTOR,
    **settings: Any,
) -> Report:
    """Evaluates ``data`` and writes ``metrics.json``, ``per_class.csv``, ``report.html`` and the
    figures ``utility``, ``similarities`` and ``error_rates`` (PNG and SVG) to ``out``.

    Args:
        target_far: recommend a threshold for this FAR over all negative pairs. Without it the
            threshold shown first is that of the highest mean utility.
        factor: a class is off when its FAR or FRR exceeds the reference by this factor.
        settings: of :func:`eval.evaluate`.

    TAR is reported at those of 1e-4, 1e-3, 1e-2 for which there are enough negative pairs.

    Raises:
        UserError: settings out of range, too few negatives for ``target_far``, ``out`` cannot be
            written.
    """
    check_factor(factor)
    total = _negative_pairs(data.labels, settings.get("gallery_labels"))
    if target_far is not None:
        _check_target(target_far, total)
    settings.setdefault("tar_at", [far for far in TAR_AT if far * total >= 1])
    results = [evaluate(data.embeddings, data.labels, domains=data.domains, **settings)]
    result = results[0]
    recommendation, extra = None, []
    if target_far is not None:
        results += _result_around(target_far, result, data, settings)
        recommendation = _recommend(results, target_far, factor)
        extra = [recommendation.threshold]
    curves = operating_curves(results, reading_grid(result, extra))
    at = (
        curves.nearest(recommendation.threshold)
        if recommendation
        else int(np.argmax(curves.utility.mean(axis=0)))
    )
    reference = curves.overall_far[at] if target_far is None else target_far
    far_fails, frr_fails = failing_classes(curves, at, reference, factor)
    files = [
        write_metrics(out / "metrics.json", data, result, curves, at, recommendation),
        write_classes(out / "per_class.csv", result, curves, at, far_fails, frr_fails),
        *_write_figures(out, result, curves, at, far_fails | frr_fails),
        _write_page(out / "report.html", data, result, curves, at, recommendation, factor),
    ]
    summary = terminal_text(result, curves, recommendation, out)
    return Report(result, recommendation, far_fails | frr_fails, files, summary)


def _negative_pairs(labels: np.ndarray, gallery_labels: np.ndarray | None) -> int:
    if gallery_labels is not None:
        classes, sizes = np.unique(gallery_labels, return_counts=True)
        at = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
        return int((len(gallery_labels) - np.where(classes[at] == labels, sizes[at], 0)).sum())
    sizes = np.unique(labels, return_counts=True)[1]
    return (len(labels) ** 2 - int((sizes**2).sum())) // 2


def _check_target(target_far: float, total: int) -> None:
    if not 0 < target_far < 1:
        raise UserError(f"the target FAR is {target_far:g}; it must lie between 0 and 1")
    if target_far * total < 1:
        raise UserError(
            f"a target FAR of {target_far:g} needs at least {1 / target_far:.4g} negative "
            f"pairs, there are {total:,}; ask for a higher FAR or bring more images"
        )


def _result_around(
    target_far: float, result: EvaluationResult, data: EmbeddingSet, settings: dict[str, Any]
) -> list[EvaluationResult]:
    """A second pass whose finest bins lie around the target, where the first one's do not."""
    around = (target_far / TARGET_SPREAD, min(1.0, target_far * TARGET_SPREAD))
    low, high = sorted(result.settings["far_range"])
    if low <= around[0] and around[1] <= high:
        return []
    changed = {**settings, "far_range": around, "tar_at": ()}
    return [evaluate(data.embeddings, data.labels, **changed)]


def _recommend(
    results: Sequence[EvaluationResult], target_far: float, factor: float
) -> Recommendation:
    counts = results[-1].counts
    curves = operating_curves(results, np.array([threshold_for_far(counts, target_far)]))
    return recommend(counts, curves, target_far, factor=factor)


def _write_figures(
    out: Path, result: EvaluationResult, curves: OperatingCurves, at: int, off: np.ndarray
) -> list[Path]:
    distance = result.settings["distance"]
    similarity = float(result.counts.geometry.to_score(curves.thresholds[at]))
    return [
        *save_figure(
            utility_figure(curves, (result.d_min, result.d_max), at, distance), out / "utility"
        ),
        *save_figure(
            histogram_figure(similarity_histogram(result), similarity), out / "similarities"
        ),
        *save_figure(error_rates_figure(curves, at, off), out / "error_rates"),
    ]


def _write_page(
    path: Path,
    data: EmbeddingSet,
    result: EvaluationResult,
    curves: OperatingCurves,
    at: int,
    recommendation: Recommendation | None,
    factor: float,
) -> Path:
    page = Page(
        title=data.name,
        subtitle=f"{images_text(result)}, {result.n_classes:,} classes, "
        f"{data.embeddings.shape[1]:,} dimensions",
        summary=summary_text(result, curves),
        cards=cards(result),
        recommendation=recommendation_text(recommendation, curves) if recommendation else [],
        settings=settings_text(result, factor),
        domains=result.domains,
        curves=curves,
        similarities=result.counts.geometry.to_score(curves.thresholds),
        calibration=(result.d_min, result.d_max),
        distance=result.settings["distance"],
        start=at,
        jumps=jumps(result, curves, recommendation),
        target_far=recommendation.target_far if recommendation else None,
        factor=factor,
        histogram=similarity_histogram(result),
    )
    write_text(path, render(page))
    return path
