"""Reads what is known of the paper: its claims (claims.yaml) and its numbers (values.csv)."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import yaml
from pydantic import ValidationError

from common.errors import UserError
from reproduce.claims import Claims

FOLDER = Path(__file__).parent / "paper"
VALUE_COLUMNS = (
    "table",
    "row",
    "dataset",
    "backbone",
    "metric",
    "value",
    "source",
    "confidence",
    "note",
)


def claims(path: Path | None = None) -> Claims:
    """Reads and validates the claims.

    Raises:
        UserError: missing, empty or wrong file; names the key.
    """
    path = path or FOLDER / "claims.yaml"
    try:
        tree = yaml.safe_load(path.read_text(encoding="utf-8"))
        read = Claims.model_validate(tree)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UserError(f"{path}: cannot be read ({' '.join(str(error).split())})") from None
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"]) or "(whole file)"
        raise UserError(f"{path}: {key}: {first['msg']}") from None
    numbers = [claim.id for claim in read.claims]
    if len(set(numbers)) < len(numbers):
        raise UserError(f"{path}: two claims have the same id; give each its own")
    return read


def values(path: Path | None = None) -> pd.DataFrame:
    """Reads the paper's numbers; cells that are not known have an empty ``value``.

    Raises:
        UserError: missing or empty file, missing column, a value that is no number, no source.
    """
    path = path or FOLDER / "values.csv"
    try:
        frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    except (OSError, ValueError, pd.errors.ParserError) as error:
        raise UserError(f"{path}: cannot be read ({' '.join(str(error).split())})") from None
    missing = [name for name in VALUE_COLUMNS if name not in frame.columns]
    if missing:
        raise UserError(f"{path}: column {missing[0]} is missing")
    if frame.empty:
        raise UserError(f"{path} has no rows: restore it from git")
    for line, row in enumerate(frame.to_dict("records"), start=2):
        if not row["source"]:
            raise UserError(f"{path}, line {line}: a value needs its source")
    numbers = pd.to_numeric(frame["value"].where(frame["value"] != ""), errors="coerce")
    wrong = frame.index[(frame["value"] != "") & numbers.isna()]
    if len(wrong):
        text = frame["value"][wrong[0]]
        raise UserError(f"{path}, line {wrong[0] + 2}: value {text!r} is not a number")
    frame["value"] = numbers
    return frame
