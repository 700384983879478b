"""Figures of a report: utility curves, similarities, error rates of the classes."""

from __future__ import annotations

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from eval.operating import OperatingCurves
from eval.plots import (
    BLUE,
    INK,
    RANGE_COLOUR,
    RASTERISE_ABOVE,
    VERMILION,
    legend_below,
    new_figure,
    styled,
)


@styled
def utility_figure(
    curves: OperatingCurves, calibration: tuple[float, float], chosen: int, distance: str
) -> Figure:
    """Utility of every class against the threshold, with mean and 10th and 90th percentile."""
    figure, axes = new_figure(6.4, 4.0)
    utility, thresholds = curves.utility, curves.thresholds
    count = len(utility)
    lines = LineCollection(
        [np.column_stack([thresholds, values]) for values in utility],
        colors=BLUE,
        linewidths=0.6,
        alpha=float(np.clip(10 / count, 0.04, 0.6)),
        rasterized=count > RASTERISE_ABOVE,
    )
    axes.axvspan(*calibration, color=RANGE_COLOUR, label="calibration range", zorder=0)
    axes.add_collection(lines)
    axes.plot([], [], color=BLUE, linewidth=0.8, label=f"a class ({count:,})")
    axes.plot(thresholds, utility.mean(axis=0), color=INK, linewidth=2, label="mean")
    for quantile, label in ((0.1, "10th and 90th percentile"), (0.9, None)):
        values = np.quantile(utility, quantile, axis=0)
        axes.plot(thresholds, values, color=INK, linewidth=1, linestyle=":", label=label)
    axes.axvline(
        thresholds[chosen], color=VERMILION, linestyle="--", linewidth=1.2, label="chosen threshold"
    )
    axes.set(
        xlim=(thresholds[0], thresholds[-1]),
        ylim=(0, 1.01),
        xlabel=f"threshold ({distance} distance)",
        ylabel="utility",
        title="Utility of every class against the threshold",
    )
    legend_below(figure, axes, 3)
    return figure


@styled
def histogram_figure(
    histogram: tuple[np.ndarray, np.ndarray, np.ndarray], similarity: float
) -> Figure:
    """Similarities of positive and negative pairs, each as shares of their own number."""
    edges, positive, negative = histogram
    figure, axes = new_figure(6.4, 3.2)
    for shares, colour, line, label in (
        (negative, VERMILION, "--", "negative pairs"),
        (positive, BLUE, "-", "positive pairs (same class)"),
    ):
        axes.stairs(shares, edges, fill=True, color=colour, alpha=0.18)
        axes.stairs(shares, edges, color=colour, linestyle=line, linewidth=1.5, label=label)
    axes.axvline(similarity, color=INK, linewidth=1.2, label="chosen threshold (accepted: right)")
    shares = np.concatenate([positive, negative])
    axes.set_yscale("log")
    axes.set(
        xlim=(edges[0], edges[-1]),
        ylim=(max(shares[shares > 0].min(), shares.max() * 1e-7) / 1.5, shares.max() * 1.5),
        xlabel="cosine similarity",
        ylabel="share of pairs",
        title="Similarities of positive and negative pairs",
    )
    legend_below(figure, axes, 3)
    return figure


@styled
def error_rates_figure(curves: OperatingCurves, chosen: int, failing: np.ndarray) -> Figure:
    """FAR against FRR of each class at one threshold; rates of zero stand on the axes' edges."""
    figure, axes = new_figure(5.6, 4.6)
    far, frr = curves.far[:, chosen], curves.frr[:, chosen]
    floors = [_floor(rates, curves.overall_far[chosen]) for rates in (far, frr)]
    far, frr = np.maximum(far, floors[0]), np.maximum(frr, floors[1])
    alpha = float(np.clip(60 / len(far), 0.15, 0.8))
    raster = len(far) > RASTERISE_ABOVE
    for mask, colour, marker, label in (
        (~failing, BLUE, "o", "a class"),
        (failing, VERMILION, "^", "a class that this threshold fails"),
    ):
        if mask.any():
            axes.scatter(
                far[mask],
                frr[mask],
                s=16,
                c=colour,
                marker=marker,
                alpha=alpha,
                linewidths=0,
                label=f"{label} ({int(mask.sum()):,})",
                rasterized=raster,
                clip_on=False,
            )
    axes.axvline(max(curves.overall_far[chosen], floors[0]), color=INK, linewidth=1, linestyle=":")
    axes.axhline(
        max(curves.overall_frr[chosen], floors[1]),
        color=INK,
        linewidth=1,
        linestyle=":",
        label="all pairs together",
    )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set(
        xlim=(floors[0], 1),
        ylim=(floors[1], 1),
        xlabel=f"FAR (left edge: {floors[0]:g} or less)",
        ylabel=f"FRR (bottom edge: {floors[1]:g} or less)",
        title=f"Error rates of each class at threshold {curves.thresholds[chosen]:.4g}",
    )
    axes.grid(True, which="major")
    axes.set_axisbelow(True)
    legend_below(figure, axes, 3)
    return figure


def _floor(rates: np.ndarray, overall: float) -> float:
    """A power of ten at or below the positive rates, at least 1e-6."""
    positive = np.append(rates[rates > 0], max(overall, 1e-6))
    return float(10 ** np.floor(np.log10(max(np.quantile(positive, 0.01), 1e-6) / 1.001)))
