"""What all figures share: colours, style, and how they are written."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from common.atomic import atomic_path

# Okabe and Ito's colours: told apart by all common kinds of colour vision, and in grey print by
# the line styles beside them.
BLUE, VERMILION, GREY, INK = "#0072b2", "#d55e00", "#8a949e", "#1b232b"
RANGE_COLOUR = "#f0e8c0"
STYLE = {
    "svg.hashsalt": "eval",  # the same figure gives the same bytes
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "legend.frameon": False,
    "grid.color": "#e3e7ea",
}
RASTERISE_ABOVE = 200  # curves; beyond that an SVG of vectors is slow to open
DPI = 160


# Decorates functions that draw: the style holds inside and changes nothing outside.
styled = mpl.rc_context(STYLE)


def save_figure(figure: Figure, path: Path) -> list[Path]:
    """Writes ``path`` as ``.png`` and ``.svg`` and returns both paths.

    Raises:
        UserError: the folder cannot be written.
    """
    written = []
    for suffix in (".png", ".svg"):
        target = path.with_suffix(suffix)
        with mpl.rc_context(STYLE), atomic_path(target) as temporary:
            metadata = {"Date": None} if suffix == ".svg" else {"Software": None}
            figure.savefig(temporary, dpi=DPI, metadata=metadata)
        written.append(target)
    return written


def new_figure(width: float, height: float) -> tuple[Figure, Axes]:
    """A figure of that size in inches, drawn without a display, and its one axes."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.add_subplot()


def legend_below(figure: Figure, axes: Axes, columns: int) -> None:
    """Puts the legend of ``axes`` under the plot."""
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=columns)
