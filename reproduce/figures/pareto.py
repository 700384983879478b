"""Accuracy against consistency (the paper's Fig. 3): R@1 and OPIS, base losses and base+TCM."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd

from reproduce.aggregate import over_seeds
from reproduce.figures import style


def draw(frame: pd.DataFrame, bases: Mapping[str, str | None], title: str, stem: Path) -> Path:
    """Draws one panel per data set and backbone from a results table; returns the PNG's path.

    Base losses are filled markers, their TCM versions open ones of the same shape and colour, an
    arrow leads from one to the other; error bars are one standard deviation over seeds.
    """
    means = over_seeds(frame, ["recall_at_1", "opis"])
    panels = list(means.groupby(["dataset", "backbone"], sort=False))
    with mpl.rc_context(style.SETTINGS):
        figure = style.new_figure(7.6 * len(panels), 4.6)
        axes = figure.subplots(1, len(panels), squeeze=False)[0]
        for axis, ((dataset, backbone), group) in zip(axes, panels, strict=True):
            _panel(axis, group, bases)
            axis.set_title(f"{dataset}, {backbone}", fontsize=10)
        figure.suptitle(title, fontsize=11)
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


def _panel(axis, group: pd.DataFrame, bases: Mapping[str, str | None]) -> None:
    x = 100 * group["recall_at_1"].to_numpy()
    y = 1e3 * group["opis"].to_numpy()
    x_error = np.nan_to_num(100 * group["recall_at_1_std"].to_numpy())
    y_error = np.nan_to_num(1e3 * group["opis_std"].to_numpy())
    names = group["row"].tolist()
    families = list(dict.fromkeys(bases.get(name) or name for name in names))
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
        colour, marker = style.look(family)
        axis.errorbar(
            x[i],
            y[i],
            xerr=x_error[i] or None,
            yerr=y_error[i] or None,
            fmt=marker,
            color=colour,
            markerfacecolor="white" if base else colour,
            markersize=8,
            elinewidth=1,
            capsize=2,
            label=name,
            zorder=3,
        )
        if base in names:
            j = names.index(base)
            axis.annotate(
                "",
                (x[i], y[i]),
                (x[j], y[j]),
                arrowprops={"arrowstyle": "->", "color": colour, "shrinkA": 6, "shrinkB": 6},
                zorder=2,
            )
    axis.set_ylim(0, 1.1 * (y + y_error).max())
    axis.set_xlabel("R@1, %  (right is better)")
    axis.set_ylabel("OPIS, e-3  (lower is better)")
    axis.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.01, 0.5))
