"""``sensitivity``: how OPIS moves with the choices that it leaves open."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from common.atomic import write_text
from eval.evaluate import evaluate
from eval.geometry import geometry
from eval.markdown import markdown_table
from eval.opis import epsilon_opis, opis, utility
from eval.plots import save_figure
from eval.plots_models import sensitivity_figure
from eval.readers import EmbeddingSet
from eval.result import EvaluationResult

FAR_RANGES = ((1e-3, 1e-2), (1e-3, 1e-1), (1e-2, 1e-1), (1e-2, 3e-1), (1e-1, 3e-1))
GRIDS = (11, 101, 1001)
WEIGHTS = (0.5, 1.0, 2.0)
EPSILONS = (0.05, 0.1, 0.2)
DISTANCES = ("euclidean", "cosine")


@dataclass(frozen=True)
class Row:
    """One setting away from the declared ones.

    Attributes:
        setting, value: what was changed, to what.
        declared: whether this is the declared value.
        measure: ``OPIS`` or ``ε-OPIS``.
        found: its value.
        ratio: to its value under the declared settings.
    """

    setting: str
    value: str
    declared: bool
    measure: str
    found: float
    ratio: float


def sensitivity(data: EmbeddingSet, **settings: Any) -> list[Row]:
    """OPIS under other FAR ranges, grids, c and distances, and ε-OPIS under other ε.

    One choice is changed at a time; the others stay as declared in ``settings``, those of
    :func:`eval.evaluate`. Each FAR range takes a pass of its own, for bins are finest within it;
    the other rows come from the first pass: cosine distance is a monotone function of the Euclidean
    one, so that the range stays and only the spacing of the thresholds changes.

    Raises:
        UserError: settings out of range, fewer than 1,000 negative pairs.
    """
    base = evaluate(data.embeddings, data.labels, **settings)
    chosen = base.settings
    declared_range = tuple(chosen["far_range"])
    ranges = {
        bounds: base.opis
        if bounds == declared_range
        else evaluate(data.embeddings, data.labels, **{**settings, "far_range": bounds}).opis
        for bounds in _with(FAR_RANGES, declared_range)
    }
    c, epsilon = chosen["c"], chosen["epsilon"]
    grids = _with(GRIDS, chosen["grid_points"])
    return [
        *_rows("FAR range", {_span(b): v for b, v in ranges.items()}, _span(declared_range)),
        *_rows(
            "thresholds in the range",
            {f"{points:,}": _opis_on_grid(base, points) for points in grids},
            f"{chosen['grid_points']:,}",
        ),
        *_rows(
            "spacing of the thresholds",
            {f"even in {d} distance": _opis_in(base, d) for d in DISTANCES}
            | {"even in log FAR": base.opis_far},
            f"even in {chosen['distance']} distance",
        ),
        *_rows(
            "c, weight of specificity",
            {f"{w:g}": opis(utility(1 - base.far, 1 - base.frr, w)) for w in _with(WEIGHTS, c)},
            f"{c:g}",
        ),
        *_rows(
            "ε (of ε-OPIS)",
            {f"{e:g}": epsilon_opis(base.utility, e) for e in _with(EPSILONS, epsilon)},
            f"{epsilon:g}",
            measure="ε-OPIS",
        ),
    ]


def write_sensitivity(data: EmbeddingSet, out: Path, **settings: Any) -> str:
    """Writes ``sensitivity.csv``, ``sensitivity.md`` and the figure ``sensitivity`` (PNG, SVG) to
    ``out``; returns the table.

    Raises:
        UserError: as :func:`sensitivity`; ``out`` cannot be written.
    """
    rows = sensitivity(data, **settings)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["setting", "value", "declared", "measure", "found", "ratio"])
    for row in rows:
        cells = (row.setting, row.value, int(row.declared), row.measure)
        writer.writerow([*cells, repr(row.found), f"{row.ratio:.6g}"])
    write_text(out / "sensitivity.csv", text.getvalue())
    table = _table(rows)
    write_text(out / "sensitivity.md", table + "\n")
    groups = []
    for name in dict.fromkeys(row.setting for row in rows):
        group = [row for row in rows if row.setting == name]
        groups.append((name, [row.value for row in group], np.array([row.ratio for row in group])))
    save_figure(sensitivity_figure(groups), out / "sensitivity")
    return table


def _opis_on_grid(result: EvaluationResult, points: int) -> float:
    return _opis_at(result, np.linspace(result.d_min, result.d_max, points))


def _opis_in(result: EvaluationResult, distance: str) -> float:
    """OPIS with thresholds spaced evenly in ``distance``, between the same ends."""
    own, other = result.counts.geometry, geometry(distance)
    ends = [float(other.to_distance(own.to_score(np.float64(d)))) for d in _ends(result)]
    points = np.linspace(*ends, result.settings["grid_points"])
    return _opis_at(result, own.to_distance(other.to_score(points)))


def _ends(result: EvaluationResult) -> tuple[float, float]:
    return result.d_min, result.d_max


def _opis_at(result: EvaluationResult, thresholds: np.ndarray) -> float:
    counts, c = result.counts, result.settings["c"]
    return opis(utility(1 - counts.far(thresholds), 1 - counts.frr(thresholds), c))


def _with(choices: Sequence, declared) -> list:
    return sorted({*choices, declared})


def _span(bounds: tuple[float, float]) -> str:
    return f"{bounds[0]:g} to {bounds[1]:g}"


def _rows(name: str, found: dict[str, float], declared: str, measure: str = "OPIS") -> list[Row]:
    base = found[declared]
    return [
        Row(name, value, value == declared, measure, number, _ratio(number, base))
        for value, number in found.items()
    ]


def _ratio(found: float, base: float) -> float:
    """found / base; 1 where both are 0, infinite where the base alone is."""
    if base:
        return found / base
    return float("inf") if found else 1.0


def _table(rows: Sequence[Row]) -> str:
    cells = [["setting", "value", "measure", "in 1e-3", "ratio"]]
    for row in rows:
        value = row.value + (" (declared)" if row.declared else "")
        numbers = (f"{1e3 * row.found:.4g}", f"{row.ratio:.3g}")
        cells.append([row.setting, value, row.measure, *numbers])
    return markdown_table(cells)
