"""The results of a table as a CSV: a row per run and seed, each with everything that made it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from common.atomic import atomic_path
from common.errors import UserError

RESULTS = Path("results")
KEY = ("table", "row", "dataset", "backbone", "loss", "seed")
# Metrics a row must have; others may be empty where a run does not measure them.
REQUIRED = ("recall_at_1", "opis")
PROVENANCE = (
    "run_hash",
    "config_hash",
    "data_checksum",
    "code_hash",
    "schema_version",
    "selection",
    "selected_epoch",
    "training_images",
    "training_classes",
    "notes",
    "seconds",
    "train_seconds",
    "data_wait_seconds",
    "peak_memory_mb",
    "commit",
    "dirty",
    "device",
    "threads",
    "versions",
)
# A hash of digits alone is still no number.
TYPES = {"seed": "Int64", "commit": "str"} | dict.fromkeys(PROVENANCE[:4], "str")
# What a run did where its configuration leaves a choice to the machine; newer than the others, so
# that a table may lack them.
CHOSEN = ("amp", "tf32", "processes")


def csv_path(table: str, scale: str, root: Path = RESULTS) -> Path:
    """``results/<scale>/<table>.csv``."""
    return root / scale / f"{table}.csv"


def to_frame(keyed_records: list[tuple[dict[str, Any], dict[str, Any]]]) -> pd.DataFrame:
    """Rows from (key columns, run record) pairs, in the order given."""
    rows = [
        {
            **key,
            **record["metrics"],
            **{name: record[name] for name in PROVENANCE},
            **{name: record[name] for name in CHOSEN if name in record},
        }
        for key, record in keyed_records
    ]
    return pd.DataFrame(rows)


def write(frame: pd.DataFrame, path: Path) -> None:
    """Writes the rows whole; floats with 10 significant digits."""
    with atomic_path(path) as temporary:
        frame.to_csv(temporary, index=False, float_format="%.10g", lineterminator="\n")


def read(path: Path) -> pd.DataFrame:
    """Reads a results CSV and refuses one that cannot be trusted.

    Raises:
        UserError: missing file or column, no rows, a repeated key, a required metric that is
            missing, not a number or out of its range; names the row.
    """
    try:
        frame = pd.read_csv(path, keep_default_na=True, dtype=TYPES)
    except FileNotFoundError:
        raise UserError(f"{path} is not there: run its table first") from None
    except (ValueError, OSError, pd.errors.ParserError) as error:
        raise UserError(f"{path}: not a readable CSV ({' '.join(str(error).split())})") from None
    missing = [name for name in (*KEY, *REQUIRED, *PROVENANCE) if name not in frame.columns]
    if missing:
        raise UserError(f"{path}: column {missing[0]} is missing; write it with its table script")
    if frame.empty:
        raise UserError(f"{path} has no rows: rerun its table")
    for row in frame.to_dict("records"):
        _check_row(row, path)
    repeated = frame[frame.duplicated(list(KEY))]
    if len(repeated):
        raise UserError(f"{path}: {_name(repeated.iloc[0])} is there twice; remove one row")
    return frame


def _check_row(row: dict[str, Any], path: Path) -> None:
    for metric in REQUIRED:
        # One text in a column makes pandas read the whole column as texts.
        value = pd.to_numeric(row[metric], errors="coerce")
        if not 0 <= value <= 1:
            raise UserError(
                f"{path}: {_name(row)} has {metric}={row[metric]}, not a number from 0 to 1; "
                "rerun it"
            )


def _name(row) -> str:
    return f"row {row['row']!r} on {row['dataset']} with seed {row['seed']}"
