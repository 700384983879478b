"""All results of a scale, each table checked, for the check, the report and the figures."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from common.errors import UserError
from reproduce import drift, results, time_results
from reproduce.keys import Keys
from reproduce.runtime import Runtime
from reproduce.seal import require_sealed
from reproduce.tables import TABLES


@dataclass(frozen=True)
class Found:
    """Results by table, step times among them, and what a reader should be warned of."""

    frames: dict[str, pd.DataFrame]
    warnings: list[str] = field(default_factory=list)


def read_all(scale: str, root: Path = results.RESULTS) -> Found:
    """Reads every results CSV that is there and refuses any that cannot be trusted.

    Raises:
        UserError: no results at all, or one that is broken, incomplete, edited or of another
            configuration.
    """
    frames, warnings, keys = {}, [], Keys(Runtime(device="cpu"))
    for table in TABLES.values():
        path = results.csv_path(table.name, scale, root)
        if path.exists():
            frames[table.name] = results.read(path)
            require_sealed(path)
            warnings += drift.require_current(frames[table.name], table, scale, path, keys)
    drift.require_same_data(frames)
    path = results.csv_path(time_results.NAME, scale, root)
    if path.exists():
        frames[time_results.NAME] = time_results.read(path)
    if not frames:
        raise UserError(f"no results under {root / scale}: run python -m reproduce.table2 first")
    return Found(frames, warnings)
