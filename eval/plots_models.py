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
    front = _pareto_front(recall, opis)
    axes.plot(
        1e3 * opis[front], 100 * recall[front], color=GREY, linestyle=":", label="Pareto frontier"
    )
    axes.set(
        xlabel="OPIS in 1e-3 (lower is better: more consistent thresholds)",
        ylabel="R@1 in % (higher is better)",
        title="Accuracy against threshold inconsistency",
    )
    axes.margins(0.12)
    axes.grid(True)
    axes.set_axisbelow(True)
    legend_below(figure, axes, 3)
    return figure


@styled
def sensitivity_figure(groups: Sequence[tuple[str, Sequence[str], np.ndarray]]) -> Figure:
    """OPIS under each choice relative to the declared one, on one logarithmic axis.

    Args:
        groups: (name of the setting, its values as texts, (V,) ratios to the declared OPIS).
    """
    rows = sum(len(values) + 1 for _, values, _ in groups)
    figure, axes = new_figure(6.6, 0.9 + 0.21 * rows)
    positions, texts, height = [], [], 0.0
    for name, values, ratios in groups:
        axes.text(0.005, -height, name, transform=axes.get_yaxis_transform(), weight="bold")
        for value, ratio in zip(values, ratios, strict=True):
            height += 1
            positions.append(-height)
            texts.append(value)
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
    axes.set(
        ylim=(-height + 0.4, 0.9),
        xlabel="OPIS relative to the declared settings (diamond: declared)",
        title="How much of OPIS is convention",
    )
    return figure


def _pareto_front(recall: np.ndarray, opis: np.ndarray) -> np.ndarray:
    """Models that no other beats in both, in order of OPIS."""
    best, front = -np.inf, []
    for i in np.lexsort((-recall, opis)):
        if recall[i] > best:
            best = recall[i]
            front.append(i)
    return np.array(front)


def _plain_log_ticks(axes: Axes, ratios: np.ndarray) -> None:
    low, high = min(ratios.min(), 1) / 1.15, max(ratios.max(), 1) * 1.15
    ladder = [m * 10.0**e for e in range(-6, 7) for m in (1, 2, 5)]
    ladder += [0.7, 0.8, 0.9, 1.1, 1.25, 1.5] if high / low < 4 else []
    ticks = sorted(tick for tick in set(ladder) if low <= tick <= high)
    axes.set_xlim(low, high)
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xticklabels([f"{tick:g}×" for tick in ticks])
