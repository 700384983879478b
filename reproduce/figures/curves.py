"""Figs. 1 and 2: utility of single classes against the threshold, and similarity histograms."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd

from reproduce.figures import style

BASE, TCM = "#0072B2", "#D55E00"


def draw(curves: pd.DataFrame, histograms: pd.DataFrame, title: str, stem: Path) -> Path:
    """Draws a line of panels per base loss: it, it with TCM, and both histograms; the PNG's path.

    Args:
        curves, histograms: as :func:`reproduce.curve_data.of_pair` makes them, of one pair after
            another.
    """
    pairs = _pairs(curves)
    with mpl.rc_context(style.SETTINGS):
        figure = style.new_figure(13.2, 0.7 + 3.1 * len(pairs))
        grid = figure.subplots(len(pairs), 3, squeeze=False)
        for axes, (base, other) in zip(grid, pairs, strict=True):
            for axis, group, colour in ((axes[0], base, BASE), (axes[1], other, TCM)):
                _utility(axis, group, colour)
                axis.set_xlim(base["threshold"].min(), base["threshold"].max())
            _similarity(axes[2], histograms, base.iloc[0], other.iloc[0])
        for axis in grid[-1][:2]:
            axis.set_xlabel("threshold (distance)")
        grid[-1][2].set_xlabel("cosine similarity of a pair")
        figure.suptitle(
            f"{title}\nutility of single classes (thin), of all on average (black), and of the "
            "middle 80 % of them (band); grey: calibration range",
            fontsize=10.5,
        )
        return style.save(figure, stem)


def _pairs(curves: pd.DataFrame) -> list[tuple[pd.DataFrame, pd.DataFrame]]:
    groups = [
        group for _, group in curves.groupby(["dataset", "backbone", "row", "seed"], sort=False)
    ]
    return list(zip(groups[::2], groups[1::2], strict=True))


def _utility(axis, group: pd.DataFrame, colour: str) -> None:
    first = group.iloc[0]
    x = group["threshold"]
    axis.axvspan(first["d_min"], first["d_max"], color="#e4e4e4", lw=0, zorder=0)
    for edge in ("d_min", "d_max"):
        axis.axvline(first[edge], color="#777777", lw=0.8, ls=":", zorder=1)
    axis.fill_between(x, group["p10"], group["p90"], color=colour, alpha=0.2, lw=0, zorder=1)
    for name in [name for name in group if name.startswith("class ")]:
        axis.plot(x, group[name], color=colour, lw=0.7, alpha=0.8, zorder=2)
    axis.plot(x, group["mean"], color="black", lw=1.8, zorder=3)
    axis.set_ylim(0, 1.02)
    axis.set_ylabel("utility  (higher is better)")
    axis.set_title(
        f"{first['row']}, {first['dataset']}: OPIS {1e3 * first['opis']:.3f}e-3", fontsize=9.5
    )


def _similarity(axis, histograms: pd.DataFrame, base: pd.Series, other: pd.Series) -> None:
    axis.set_ylabel("share of pairs in a bin")
    for run, colour, dashes in ((base, BASE, "-"), (other, TCM, "--")):
        mine = pd.Series(False, index=histograms.index)
        if len(histograms):
            mine = histograms["run_hash"] == run["run_hash"]
        if not mine.any():
            axis.text(
                0.5, 0.5, "no cosine similarity:\nhyperbolic distance", ha="center", va="center",
                transform=axis.transAxes,
            )  # fmt: skip
            return
        rows = histograms[mine]
        edges = np.append(rows["low"], rows["high"].iloc[-1])
        for kind, weight in (("negatives", 1.0), ("positives", 2.0)):
            axis.stairs(
                rows[kind], edges, color=colour, ls=dashes, lw=weight, label=f"{run['row']}, {kind}"
            )
    drawn = histograms[histograms["run_hash"].isin([base["run_hash"], other["run_hash"]])]
    filled = drawn[drawn[["positives", "negatives"]].max(axis=1) > 1e-3]
    axis.set_xlim(filled["low"].min(), filled["high"].max())
    axis.set_ylim(bottom=0)
    axis.set_title(f"seed {base['seed']}", fontsize=9.5)
    axis.legend(fontsize=7.5, loc="best")
