"""Step times as a CSV: a line per loss, batch size and repeat, with what made it."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from common.atomic import atomic_path
from common.errors import UserError

NAME = "time_complexity"
KEY = ("row", "batch_size", "repeat")
MEASURED = ("base_ms", "tcm_ms", "base_peak_mb", "tcm_peak_mb")
PROVENANCE = (
    "config_hash",
    "schema_version",
    "commit",
    "dirty",
    "device",
    "threads",
    "versions",
)
COLUMNS = ("table", "row", "backbone", "loss", "batch_size", "repeat", *MEASURED, *PROVENANCE)


def write(frame: pd.DataFrame, path: Path) -> None:
    """Writes the lines whole; floats with 6 significant digits."""
    with atomic_path(path) as temporary:
        frame[list(COLUMNS)].to_csv(
            temporary, index=False, float_format="%.6g", lineterminator="\n"
        )


def read(path: Path) -> pd.DataFrame:
    """Reads step times and refuses a file that cannot be trusted.

    Raises:
        UserError: no file, a missing column, no lines, a repeated or missing repeat, a number that
            is not above 0; names the line.
    """
    again = f"rerun python -m reproduce.{NAME}"
    try:
        frame = pd.read_csv(path)
    except FileNotFoundError:
        raise UserError(f"{path} is not there: run python -m reproduce.{NAME} first") from None
    except (ValueError, OSError, pd.errors.ParserError) as error:
        raise UserError(f"{path}: not a readable CSV ({' '.join(str(error).split())})") from None
    missing = [name for name in COLUMNS if name not in frame.columns]
    if missing:
        raise UserError(f"{path}: column {missing[0]} is missing; {again}")
    if frame.empty:
        raise UserError(f"{path} has no rows: {again}")
    for row in frame.to_dict("records"):
        for name in MEASURED:
            if not pd.to_numeric(row[name], errors="coerce") > 0:
                raise UserError(
                    f"{path}: {_name(row)} has {name}={row[name]}, not above 0; {again}"
                )
    repeated = frame[frame.duplicated(list(KEY))]
    if len(repeated):
        raise UserError(f"{path}: {_name(repeated.iloc[0])} is there twice; {again}")
    counts = frame.groupby(["row", "batch_size"], sort=False)["repeat"].nunique()
    short = counts[counts < counts.max()]
    if len(short):
        row, batch = short.index[0]
        raise UserError(f"{path}: a repeat of row {row!r} at batch {batch} is missing; {again}")
    return frame


def _name(row) -> str:
    return f"row {row['row']!r} at batch {row['batch_size']}, repeat {row['repeat']}"
