"""How far apart accurate rows lie in consistency: the paper's Fig. 3 as a count."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd

from reproduce.aggregate import over_seeds
from reproduce.claims import Spread
from reproduce.metrics import scaled
from reproduce.pool import pool


def points(
    frames: Mapping[str, pd.DataFrame], dataset: str, backbone: str, metric: str
) -> pd.DataFrame:
    """One line per row on a data set, of all tables: mean R@1 and ``metric`` over its seeds."""
    runs = pool(frames)
    here = runs[(runs["dataset"] == dataset) & (runs["backbone"] == backbone)]
    return over_seeds(here, ["recall_at_1", metric])


def accurate(rows: pd.DataFrame, part: Spread) -> pd.DataFrame:
    """Those within ``part.within`` of the best R@1."""
    return rows[rows["recall_at_1"] >= rows["recall_at_1"].max() - part.within]


def claims(rows: pd.DataFrame, part: Spread) -> Iterator[tuple[str, str, str, str, bool]]:
    """The two things that a Spread says: metric, rows, short, measured, whether it holds."""
    name = scaled(part.metric).name
    near = accurate(rows, part)
    least, most = (near.iloc[pick(near[part.metric])] for pick in (np.argmin, np.argmax))
    ratio = float(most[part.metric] / least[part.metric])
    yield (
        f"largest over smallest {name}",
        f"rows within {100 * part.within:g} points of the best R@1",
        f"{ratio:.2f}",
        f"{ratio:.2f} ({most['row']} over {least['row']}, {len(near)} rows), "
        f"claimed at least {part.ratio:g}",
        ratio >= part.ratio,
    )
    best = near.iloc[int(np.argmax(near["recall_at_1"]))]
    yield (
        f"lowest {name} elsewhere than best R@1",
        "the same rows",
        "no" if best["row"] == least["row"] else "yes",
        f"best R@1: {best['row']}; lowest {name}: {least['row']}",
        bool(best[part.metric] > least[part.metric]),
    )
