"""Fig. 6: R@1 and OPIS over TCM's margins, as heat maps and as curves, and over its weight."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import matplotlib as mpl
import pandas as pd

from reproduce.aggregate import over_seeds
from reproduce.figures import style
from reproduce.metrics import scaled
from reproduce.sections import TCMConfig

METRICS = {"recall_at_1": "higher is better", "opis": "lower is better"}


def draw(
    frame: pd.DataFrame, settings: Mapping[str, TCMConfig | None], title: str, stem: Path
) -> Path:
    """Draws one line of panels per metric; returns the PNG's path.

    Error bars are one standard deviation over seeds, where a cell has several; the paper's margins
    are framed, the base loss without TCM is a dashed line.

    Args:
        frame: a results table on one data set.
        settings: TCM's settings of each row, None for the base loss.
    """
    means = over_seeds(frame, list(METRICS)).set_index("row")
    tcm = {row: settings[row] for row in means.index if settings[row] is not None}
    default = TCMConfig()
    cells = {
        (one.margin_plus, one.margin_minus): row
        for row, one in tcm.items()
        if (one.lambda_plus, one.lambda_minus) == (default.lambda_plus, default.lambda_minus)
    }
    weights = {
        one.lambda_plus: row
        for row, one in tcm.items()
        if (one.margin_plus, one.margin_minus) == (default.margin_plus, default.margin_minus)
    }
    base = next((row for row in means.index if settings[row] is None), None)
    with mpl.rc_context(style.SETTINGS):
        figure = style.new_figure(13.6, 7.6)
        grid = figure.subplots(2, 3)
        for axes, (metric, better) in zip(grid, METRICS.items(), strict=True):
            label = f"{scaled(metric).heading}  ({better})"
            _heat(axes[0], means, cells, metric, label, (default.margin_plus, default.margin_minus))
            above = sorted({plus for plus, _ in cells})
            for i, plus in enumerate(above):
                rows = {minus: row for (p, minus), row in sorted(cells.items()) if p == plus}
                _curve(axes[1], means, rows, metric, i, f"m⁺ = {plus:g}")
            _curve(axes[2], means, dict(sorted(weights.items())), metric, len(above), "λ⁺ = λ⁻ = λ")
            for axis in axes[1:]:
                if base is not None:
                    value = scaled(metric).factor * means.loc[base, metric]
                    axis.axhline(value, color="#555555", ls="--", lw=1, label=f"{base} alone")
                axis.set_ylabel(label)
                axis.legend(fontsize=8)
        for axis, text in zip(grid[-1][1:], ("m⁻", "λ"), strict=True):
            axis.set_xlabel(text)
        for axis in grid[:, 2]:
            axis.set_xscale("log")
            axis.set_xticks(sorted(weights), [f"{weight:g}" for weight in sorted(weights)])
            axis.minorticks_off()
        place = f"{means['dataset'].iloc[0]}, {means['backbone'].iloc[0]}"
        figure.suptitle(f"{title}: {place}", fontsize=11)
        return style.save(figure, stem)


def _heat(axis, means: pd.DataFrame, cells, metric: str, label: str, default) -> None:
    shown = scaled(metric)
    plus, minus = sorted({p for p, _ in cells}), sorted({m for _, m in cells})
    values = pd.DataFrame(index=plus, columns=minus, dtype=float)
    for (p, m), row in cells.items():
        values.loc[p, m] = shown.factor * means.loc[row, metric]
    image = axis.imshow(values, cmap="cividis", origin="lower", aspect="auto")
    axis.figure.colorbar(image, ax=axis)
    axis.set_title(label, fontsize=9.5)
    axis.grid(False)
    axis.set_xticks(range(len(minus)), [f"{m:g}" for m in minus])
    axis.set_yticks(range(len(plus)), [f"{p:g}" for p in plus])
    axis.set_xlabel("m⁻  (left: more restrictive)")
    axis.set_ylabel("m⁺  (up: more restrictive)")
    middle = (values.max(axis=None) + values.min(axis=None)) / 2
    for i, p in enumerate(plus):
        for j, m in enumerate(minus):
            value = values.loc[p, m]
            if value == value:
                colour = "black" if value > middle else "white"
                text = f"{value:.{shown.decimals}f}"
                axis.text(j, i, text, ha="center", va="center", color=colour, fontsize=9)
    if default in cells:
        corner = (minus.index(default[1]) - 0.47, plus.index(default[0]) - 0.47)
        axis.add_patch(mpl.patches.Rectangle(corner, 0.94, 0.94, fill=False, ec="#D55E00", lw=2.5))
        axis.set_title(f"{label}; framed: the paper's margins", fontsize=9.5)


def _curve(axis, means: pd.DataFrame, rows: dict[float, str], metric: str, i: int, label) -> None:
    colour, marker = style.look(i)
    factor = scaled(metric).factor
    axis.errorbar(
        list(rows),
        [factor * means.loc[row, metric] for row in rows.values()],
        yerr=[factor * means[f"{metric}_std"].fillna(0)[row] for row in rows.values()],
        fmt=f"{marker}-",
        color=colour,
        lw=1.2,
        elinewidth=1,
        capsize=3,
        label=label,
    )
