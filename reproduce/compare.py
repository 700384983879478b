"""Our numbers against the paper's, and those that were published of its base methods."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pandas as pd

# A value matches within half a point of accuracy, a tenth of OPIS, or two standard deviations.
ACCURACY_TOLERANCE = 0.005
OPIS_TOLERANCE = 0.10
DEVIATIONS = 2


def lines(frames: dict[str, pd.DataFrame], paper: pd.DataFrame) -> Iterator[str]:
    """A line for each number of the reference: paper, ours, delta, verdict."""
    for cell in paper.to_dict("records"):
        name = ", ".join(
            cell[column] for column in ("table", "row", "dataset", "backbone", "metric")
        )
        yield f"  {name}: {_compared(cell, frames.get(cell['table']))}"


def _compared(cell: dict, frame: pd.DataFrame | None) -> str:
    ours = None
    if frame is not None:
        same = (frame["row"] == cell["row"]) & (frame["dataset"] == cell["dataset"])
        same &= frame["backbone"].str.split(".").str[0] == cell["backbone"]
        ours = frame.loc[same, cell["metric"]].dropna() if cell["metric"] in frame else None
    if math.isnan(cell["value"]):
        return f"no reference ({cell['note']})"
    if not cell["dataset"] or not cell["backbone"]:
        return f"published {cell['value']:g}: no verdict ({cell['note']})"
    if ours is None or ours.empty:
        return f"published {cell['value']:g}: not run"
    mean, std = float(ours.mean()), float(ours.std(ddof=1)) if len(ours) > 1 else 0.0
    delta = mean - cell["value"]
    allowed = OPIS_TOLERANCE * cell["value"] if "opis" in cell["metric"] else ACCURACY_TOLERANCE
    word = "match" if abs(delta) <= max(allowed, DEVIATIONS * std) else "differs"
    return f"published {cell['value']:g}, ours {mean:.5g}, delta {delta:+.3g}: {word}"
