"""Accuracy against consistency (the paper's Fig. 3): R@1 and OPIS, base losses and base+TCM."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd

from reproduce.aggregate import over_seeds
from reproduce.figures import labels, style


def draw(frame: pd.DataFrame, bases: Mapping[str, str | None], title: str, stem: Path) -> Path:
    """Draws one panel per data set and backbone from a results table; returns the PNG's path.

    Base losses are filled markers, their TCM versions open ones of the same shape and colour, an
    arrow leads from one to the other; error bars are one standard deviation over seeds.
    """
    means = over_seeds(frame, ["recall_at_1", "opis"])
    panels = list(means.groupby(["dataset", "backbone"], sort=False))
    with mpl.rc_context(style.SETTINGS):
        figure = style.new_figure(6.8 * len(panels), 4.8)
        axes = figure.subplots(1, len(panels), squeeze=False)[0]
        for axis, ((dataset, backbone), group) in zip(axes, panels, strict=True):
            _panel(axis, group, bases)
            axis.set_title(f"{dataset}, {backbone}", fontsize=10)
        figure.suptitle(title, fontsize=11)
        for axis, (_, group) in zip(axes, panels, strict=True):
            _names(axis, group, bases)
        return style.save(figure, stem)


def frontier(recall: np.ndarray, opis: np.ndarray) -> np.ndarray:
    """Indices of the points that no other point beats: higher R@1 and lower OPIS are better.

    Sorted by R@1. A point is beaten by one that is at least as good in both and better in one.
    """
    kept = []
    for i in range(len(recall)):
        as_good = (recall >= recall[i]) & (opis <= opis[i])
        better = (recall > recall[i]) | (opis < opis[i])
        if not np.any(as_good & better):
            kept.append(i)
    return np.array(sorted(kept, key=lambda i: recall[i]), dtype=int)


def _names(axis, group: pd.DataFrame, bases: Mapping[str, str | None]) -> None:
    rows = group["row"].tolist()
    families = _families(rows, bases)
    points = group[["recall_at_1", "opis"]].to_numpy() * (100, 1e3)
    errors = group[["recall_at_1_std", "opis_std"]].fillna(0).to_numpy() * (100, 1e3)
    colours = [style.look(families.index(bases.get(row) or row))[0] for row in rows]
    # Names keep clear of the arrows too.
    along = [
        (share * points[i] + (1 - share) * points[rows.index(bases[row])]).tolist()
        for i, row in enumerate(rows)
        if bases.get(row) in rows
        for share in np.linspace(0.1, 0.9, 12)
    ]
    blank = [""] * len(along)
    labels.place(
        axis,
        points.tolist() + along,
        errors.tolist() + [(0.0, 0.0)] * len(along),
        rows + blank,
        colours + blank,
    )


def _families(rows: list[str], bases: Mapping[str, str | None]) -> list[str]:
    return list(dict.fromkeys(bases.get(row) or row for row in rows))


def _panel(axis, group: pd.DataFrame, bases: Mapping[str, str | None]) -> None:
    x = 100 * group["recall_at_1"].to_numpy()
    y = 1e3 * group["opis"].to_numpy()
    x_error = np.nan_to_num(100 * group["recall_at_1_std"].to_numpy())
    y_error = np.nan_to_num(1e3 * group["opis_std"].to_numpy())
    names = group["row"].tolist()
    families = _families(names, bases)
    on_front = frontier(x, y)
    axis.step(
        x[on_front],
        y[on_front],
        "--",
        where="pre",
        color="#555555",
        lw=1,
        zorder=1,
        label="Pareto frontier",
    )
    for i, name in enumerate(names):
        base = bases.get(name)
        family = families.index(base or name)
        style.point(axis, x[i], y[i], (x_error[i], y_error[i]), family, added=bool(base))
        if base in names:
            j, colour = names.index(base), style.look(family)[0]
            axis.annotate(
                "",
                (x[i], y[i]),
                (x[j], y[j]),
                arrowprops={"arrowstyle": "->", "color": colour, "shrinkA": 6, "shrinkB": 6},
                zorder=2,
            )
    low, high = (x - x_error).min(), (x + x_error).max()
    margin = max(0.12 * (high - low), 0.1)
    axis.set_xlim(low - margin, high + margin)
    axis.set_ylim(0, 1.15 * (y + y_error).max())
    axis.set_xlabel("R@1, %  (right is better)")
    axis.set_ylabel("OPIS, e-3  (lower is better)")
    axis.legend(fontsize=8, loc="lower left")
