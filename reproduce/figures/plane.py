"""Fig. 3: every finished run of every table in one accuracy-consistency plane per data set."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import pandas as pd

from reproduce.aggregate import over_seeds
from reproduce.figures import labels, style
from reproduce.figures.pareto import frontier

# Rows far behind would press the accurate ones into a corner: they are listed, not drawn.
SHOWN_WITHIN = 10.0
ACCURATE_WITHIN = 2.0
COLUMNS = 2


def draw(runs: pd.DataFrame, stem: Path) -> Path:
    """Draws a panel per data set and backbone; returns the PNG's path.

    Filled markers with a name are base losses, open ones of the same colour and shape the rows that
    add something to them; error bars are one standard deviation over seeds, none for a single seed.

    Args:
        runs: of all tables, each run once, as :func:`reproduce.pool.pool` makes them; ``base`` is
            the row that a row adds something to, None for a base loss.
    """
    means = over_seeds(runs, ["recall_at_1", "opis"])
    known = runs.dropna(subset="base").drop_duplicates("row").set_index("row")["base"]
    bases = dict(known)
    panels = list(means.groupby(["dataset", "backbone"], sort=False))
    families = list(dict.fromkeys(bases.get(row) or row for row in means["row"]))
    columns = min(COLUMNS, len(panels))
    lines = -(-len(panels) // columns)
    with mpl.rc_context(style.SETTINGS):
        figure = style.new_figure(6.6 * columns, 4.8 * lines)
        axes = list(figure.subplots(lines, columns, squeeze=False).flat)
        for axis, ((dataset, backbone), group) in zip(axes, panels, strict=False):
            _panel(axis, group, bases, families)
            axis.set_title(f"{dataset}, {backbone}", fontsize=10)
        for axis in axes[len(panels) :]:
            axis.remove()
        figure.suptitle(
            "Accuracy against threshold consistency: every row of every table (mean over seeds)",
            fontsize=11,
        )
        for axis, (_, group) in zip(axes, panels, strict=False):
            _name_bases(axis, group, bases, families)
        return style.save(figure, stem)


def _panel(axis, group: pd.DataFrame, bases, families: list[str]) -> None:
    x, y = 100 * group["recall_at_1"].to_numpy(), 1e3 * group["opis"].to_numpy()
    x_error = 100 * group["recall_at_1_std"].fillna(0).to_numpy()
    y_error = 1e3 * group["opis_std"].fillna(0).to_numpy()
    shown = x >= x.max() - SHOWN_WITHIN
    front = frontier(x, y)
    axis.axvspan(x.max() - ACCURATE_WITHIN, x.max() + 100, color="#f2f2f2", zorder=0, lw=0)
    axis.step(
        x[front], y[front], "--", where="pre", color="#555555", lw=1, zorder=1, label="frontier"
    )
    for i in shown.nonzero()[0]:
        row = group["row"].iloc[i]
        family, added = families.index(bases.get(row) or row), bool(bases.get(row))
        errors = x_error[i], y_error[i]
        style.point(axis, x[i], y[i], errors, family, added=added, size=7, line=0.8)
    low, high = x[shown].min(), x.max()
    margin = max(0.12 * (high - low), 0.1)
    axis.set_xlim(low - margin - x_error[shown].max(), high + 1.6 * margin + x_error[shown].max())
    axis.set_ylim(0, 1.15 * (y[shown] + y_error[shown]).max())
    axis.set_xlabel("R@1, %  (right is better)")
    axis.set_ylabel("OPIS, e-3  (lower is better)")
    note = "filled: base loss, open: with an addition (TCM, HIER)\ndashed: Pareto frontier\n"
    note += f"grey: within {ACCURATE_WITHIN:g} points of the best R@1"
    for i in (~shown).nonzero()[0]:
        note += f"\nnot shown: {group['row'].iloc[i]}, R@1 {x[i]:.1f}, OPIS {y[i]:.2f}"
    axis.text(0.02, 0.02, note, transform=axis.transAxes, fontsize=7.5, color="#444444", zorder=5)


def _name_bases(axis, group: pd.DataFrame, bases, families: list[str]) -> None:
    x, y = 100 * group["recall_at_1"].to_numpy(), 1e3 * group["opis"].to_numpy()
    shown = x >= x.max() - SHOWN_WITHIN
    rows = group["row"].to_numpy()[shown]
    names = ["" if bases.get(row) else row for row in rows]
    colours = [style.look(families.index(bases.get(row) or row))[0] for row in rows]
    errors = group[["recall_at_1_std", "opis_std"]].fillna(0).to_numpy()[shown] * (100, 1e3)
    labels.place(axis, list(zip(x[shown], y[shown], strict=True)), errors, names, colours)
