"""One style for all figures: legible in grey and to colour-blind readers, the same bytes twice."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from common.atomic import atomic_path

# Okabe and Ito's palette: told apart under every common colour blindness. Each base loss also has
# its own marker, so that nothing depends on colour.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
SETTINGS = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "axes.axisbelow": True,
    "legend.frameon": False,
    "svg.hashsalt": "tcm-repro",
    "svg.fonttype": "none",
}


def look(number: int) -> tuple[str, str]:
    """Colour and marker of the family of that number; 49 are told apart."""
    return COLOURS[number % len(COLOURS)], MARKERS[(number + number // len(COLOURS)) % len(MARKERS)]


def point(
    axis,
    x: float,
    y: float,
    errors: tuple[float, float],
    number: int,
    *,
    added: bool,
    size: float = 8,
    line: float = 1,
) -> None:
    """A family's marker with error bars, those of 0 left out; open where something was added.

    Args:
        errors: half lengths of the bars in x and y.
        number: of the family.
        added: whether the row adds something to its base loss.
        size, line: of the marker, and width of the bars.
    """
    colour, marker = look(number)
    axis.errorbar(
        x,
        y,
        xerr=errors[0] or None,
        yerr=errors[1] or None,
        fmt=marker,
        color=colour,
        markerfacecolor="white" if added else colour,
        markersize=size,
        elinewidth=line,
        capsize=2,
        zorder=3,
    )


def new_figure(width: float = 6.4, height: float = 4.4) -> Figure:
    """A figure that belongs to no global state (no pyplot)."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save(figure: Figure, stem: Path) -> Path:
    """Writes ``stem.png`` and ``stem.svg`` whole, without dates; returns the PNG's path."""
    for suffix, metadata in ((".svg", {"Date": None}), (".png", {"Software": None})):
        path = stem.with_name(stem.name + suffix)
        with atomic_path(path) as temporary, mpl.rc_context(SETTINGS):
            figure.savefig(temporary, dpi=160, metadata=metadata)
    return stem.with_name(stem.name + ".png")
