"""Names beside points, where they cover neither each other nor a point."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.text import Text
from matplotlib.transforms import Bbox

# Directions to try, in points: right, left, above, below, then the corners, then farther out.
_DIRECTIONS = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1))
_DISTANCES = (8, 14, 24, 36, 50, 70)
_NEAR = 14
_LEADER = {"arrowstyle": "-", "lw": 0.5, "shrinkA": 0, "shrinkB": 4}
_POINT = 5  # half the size of a marker, in points


def place(
    axis,
    points: Sequence[tuple[float, float]],
    errors: Sequence[tuple[float, float]],
    names: Sequence[str],
    colours: Sequence[str],
) -> None:
    """Writes each name near its point, at the first place that is free.

    Args:
        axis: its limits must be final.
        points: (x, y) of each.
        errors: half lengths of the bars of each, in x and y; names keep clear of them.
        names: an empty one is a point to be kept clear of.
        colours: of the names.
    """
    figure = axis.figure
    figure.draw_without_rendering()
    renderer = figure.canvas.get_renderer()
    scale = figure.dpi / 72
    frame = axis.get_window_extent(renderer)
    half = _POINT * scale
    taken = []
    for (x, y), (right, up) in zip(points, errors, strict=True):
        corners = axis.transData.transform([(x - right, y), (x + right, y)])
        taken.append(Bbox(np.add(corners, ((-half, -half / 2), (half, half / 2)))))
        corners = axis.transData.transform([(x, y - up), (x, y + up)])
        taken.append(Bbox(np.add(corners, ((-half / 2, -half), (half / 2, half)))))
    for (x, y), name, colour in zip(points, names, colours, strict=True):
        if not name:
            continue
        best = None
        for distance in _DISTANCES:
            for right, up in _DIRECTIONS:
                text = axis.annotate(
                    name,
                    (x, y),
                    (right * distance, up * distance),
                    textcoords="offset points",
                    ha={1: "left", 0: "center", -1: "right"}[right],
                    va={1: "bottom", 0: "center", -1: "top"}[up],
                    fontsize=8,
                    color=colour,
                    zorder=5,
                    arrowprops=_LEADER | {"color": colour} if distance > _NEAR else None,
                )
                # The layout was made without names: it must stay as it is.
                text.set_in_layout(False)
                text.update_positions(renderer)
                # Of the text alone, without its leader.
                box = Text.get_window_extent(text, renderer).padded(scale)
                hidden = sum(box.overlaps(other) for other in taken)
                hidden += 10 * (not (frame.x0 < box.x0 and box.x1 < frame.x1))
                hidden += 10 * (not (frame.y0 < box.y0 and box.y1 < frame.y1))
                if best is None or hidden < best[0]:
                    if best is not None:
                        best[1].remove()
                    best = (hidden, text, box)
                else:
                    text.remove()
                if hidden == 0:
                    break
            if best[0] == 0:
                break
        taken.append(best[2])
