"""Seeds to mean and standard deviation, and paired differences between two rows."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

GROUP = ["row", "dataset", "backbone", "loss"]


def over_seeds(frame: pd.DataFrame, metrics: list[str]) -> pd.DataFrame:
    """One line per row of the table: ``<metric>`` (mean), ``<metric>_std`` (n-1), ``seeds``.

    The order of the rows is kept. With one seed the standard deviation is NaN: unknown, not zero.
    """
    groups = frame.groupby(GROUP, sort=False)
    mean = groups[metrics].mean()
    spread = groups[metrics].std(ddof=1).add_suffix("_std")
    return pd.concat([mean, spread, groups.size().rename("seeds")], axis=1).reset_index()


def paired_differences(
    frame: pd.DataFrame, base: str, other: str, metric: str, where: Mapping[str, str]
) -> np.ndarray:
    """``other`` minus ``base`` of one metric, a value for each seed that both have, by seed.

    Args:
        frame: a results table.
        where: further columns that both rows must match, for instance ``{"dataset": "cub"}``.
    """
    for column, value in where.items():
        frame = frame[frame[column] == value]
    # Rows of one name may stand once per data set and backbone: pairs never cross those.
    sides = [
        frame[frame["row"] == name].set_index(["dataset", "backbone", "seed"])[metric]
        for name in (base, other)
    ]
    both = pd.concat(sides, axis=1, join="inner", keys=["base", "other"]).sort_index()
    return (both["other"] - both["base"]).to_numpy(dtype=float)
