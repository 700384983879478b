"""DET curves: false rejects against false accepts of all pairs, one threshold for all classes."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import pandas as pd

from reproduce.figures import style


def draw(rates: pd.DataFrame, title: str, stem: Path) -> Path:
    """Draws a panel per data set and backbone; returns the PNG's path.

    Base losses are solid lines, the same with TCM dashed ones of the same colour.

    Args:
        rates: ``far`` and ``frr`` of runs, as :func:`reproduce.curve_data.of_pair` makes them, of
            one pair after another.
    """
    panels = list(rates.groupby(["dataset", "backbone"], sort=False))
    with mpl.rc_context(style.SETTINGS):
        figure = style.new_figure(6.4 * len(panels), 4.6)
        axes = figure.subplots(1, len(panels), squeeze=False)[0]
        for axis, ((dataset, backbone), group) in zip(axes, panels, strict=True):
            for i, (row, run) in enumerate(group.groupby("row", sort=False)):
                colour, marker = style.look(i // 2)
                # A rate of 0 cannot be shown on a logarithmic axis; no one accepts half of all.
                run = run[(run["frr"] > 0) & (run["far"] < 0.5)]
                axis.plot(
                    run["far"],
                    run["frr"],
                    "--" if i % 2 else "-",
                    color=colour,
                    marker=marker,
                    markevery=(3 * (i // 2) % 10, 10),
                    markerfacecolor="white" if i % 2 else colour,
                    markersize=5,
                    lw=1.4,
                    label=row,
                )
            axis.axvspan(1e-2, 1e-1, color="#e4e4e4", lw=0, zorder=0)
            axis.set_xscale("log")
            axis.set_yscale("log")
            axis.set_xlabel("false-accept rate, all cross-class pairs  (left is better)")
            axis.set_ylabel("false-reject rate  (lower is better)")
            axis.set_title(f"{dataset}, {backbone}; grey: calibration range", fontsize=9.5)
            axis.legend(fontsize=8)
        figure.suptitle(f"{title}: error rates of all pairs at every threshold", fontsize=11)
        return style.save(figure, stem)
