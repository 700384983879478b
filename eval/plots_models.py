"""Figures beyond one report: models against each other, OPIS under other settings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullFormatter, NullLocator

from eval.plots import BLUE, GREY, INK, VERMILION, legend_below, new_figure, styled

MARKERS = "osD^vPX*"
COLOURS = (BLUE, VERMILION, "#009e73", "#cc79a7", INK, "#56b4e9", "#e69f00")


@styled
def pareto_figure(
    names: Sequence[str],
    recall: np.ndarray,
    opis: np.ndarray,
    recall_interval: np.ndarray,
    opis_interval: np.ndarray,
) -> Figure:
    """R@1 against OPIS of several models, with 95 % intervals and the Pareto frontier.

    Args:
        recall, opis: (M,) of each model.
        recall_interval, opis_interval: (M, 2) lower and upper ends.
    """
    figure, axes = new_figure(5.8, 4.4)
    for i, name in enumerate(names):
        axes.errorbar(
            1e3 * opis[i],
            100 * recall[i],
            xerr=1e3 * np.abs(opis_interval[i] - opis[i])[:, None],
            yerr=100 * np.abs(recall_interval[i] - recall[i])[:, None],
            fmt=MARKERS[i % len(MARKERS)],
            markersize=7,
            color=COLOURS[i % len(COLOURS)],
            elinewidth=1,
            capsize=2.5,
            label=name,
        )
    axes.set(
        xlabel="OPIS in 1e-3 (lower is better: more consistent thresholds)",
        ylabel="R@1 in % (higher is better)",
        title="Accuracy against threshold inconsistency",
    )
    axes.margins(0.12)
    _draw_frontier(axes, recall, opis)
    axes.grid(True)
    axes.set_axisbelow(True)
    legend_below(figure, axes, 3)
    return figure


@styled
def sensitivity_figure(groups: Sequence[tuple[str, Sequence[str], np.ndarray]]) -> Figure:
    """OPIS under each choice relative to the declared one, on one logarithmic axis.

    Args:
        groups: (name of the setting, its values as texts, (V,) ratios to the declared OPIS). Zeros
            and infinities have no point.
    """
    rows = sum(len(values) + 1 for _, values, _ in groups)
    figure, axes = new_figure(6.6, 0.9 + 0.21 * rows)
    positions, texts, height = [], [], 0.0
    for name, values, ratios in groups:
        positions.append(-height)
        texts.append(name)
        for value, ratio in zip(values, ratios, strict=True):
            height += 1
            positions.append(-height)
            texts.append(value)
            if not 0 < ratio < np.inf:
                continue  # no place on a logarithmic axis; the table says what it is
            axes.plot([1, ratio], [-height, -height], color=GREY, linewidth=1.2, zorder=1)
            same = np.isclose(ratio, 1)
            axes.scatter(
                ratio, -height, s=34, c=INK if same else BLUE, marker="D" if same else "o", zorder=2
            )
        height += 1.4
    axes.axvline(1, color=INK, linewidth=1, linestyle=":", zorder=0)
    axes.set_xscale("log")
    _plain_log_ticks(axes, np.concatenate([ratios for _, _, ratios in groups]))
    axes.set_yticks(positions, texts)
    axes.tick_params(axis="y", length=0)
    names = {name for name, _, _ in groups}
    for label in axes.get_yticklabels():
        label.set_weight("bold" if label.get_text() in names else "normal")
    axes.set(
        ylim=(-height + 0.4, 0.9),
        xlabel="OPIS, ε-OPIS for ε, relative to that of the declared settings (diamonds)",
        title="How much of OPIS is convention",
    )
    return figure


def _draw_frontier(axes: Axes, recall: np.ndarray, opis: np.ndarray) -> None:
    """Stairs through the models that no other beats in both; what lies below them is beaten."""
    best, front = -np.inf, []
    for i in np.lexsort((-recall, opis)):
        if recall[i] > best:
            best = recall[i]
            front.append(i)
    right, bottom = axes.get_xlim()[1], axes.get_ylim()[0]
    x = [1e3 * opis[front[0]], *(1e3 * opis[front]), right]
    y = [bottom, *(100 * recall[front]), 100 * best]
    axes.step(x, y, where="post", color=GREY, linestyle=":", zorder=0, label="Pareto frontier")
    axes.set(xlim=(axes.get_xlim()[0], right), ylim=(bottom, axes.get_ylim()[1]))


def _plain_log_ticks(axes: Axes, ratios: np.ndarray) -> None:
    shown = np.append(ratios[(ratios > 0) & np.isfinite(ratios)], 1.0)
    low, high = shown.min() / 1.15, shown.max() * 1.15
    ladder = [m * 10.0**e for e in range(-6, 7) for m in (1, 2, 5)]
    ladder += [0.7, 0.8, 0.9, 1.1, 1.25, 1.5] if high / low < 4 else []
    ticks = sorted(tick for tick in set(ladder) if low <= tick <= high)
    axes.set_xlim(low, high)
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xticklabels([f"{tick:g}×" for tick in ticks])
