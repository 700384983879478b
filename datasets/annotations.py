"""Reads the text and MATLAB files that data sets are annotated with."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from scipy.io import loadmat

from common.errors import UserError


def read_columns(path: Path, names: tuple[str, ...], header: bool = False) -> pd.DataFrame:
    """A text file with one row a line, columns apart by white space; the last one may hold spaces.

    Windows line ends, a byte order mark and empty lines do no harm.

    Args:
        path: the file, UTF-8.
        names: of the columns; all values are strings.
        header: whether the first line names the columns and is left out.

    Raises:
        UserError: the file is missing or not text, or a line has too few columns; names the line.
    """
    lines = read_text(path).splitlines()
    rows = []
    for number, line in enumerate(lines, 1):
        if (header and number == 1) or not line.strip():
            continue
        parts = line.strip().split(None, len(names) - 1)
        if len(parts) != len(names):
            raise UserError(
                f"{path}: line {number} has {len(parts)} columns instead of {len(names)} "
                f"({', '.join(names)}); fetch the file anew"
            )
        rows.append(parts)
    if not rows:
        raise UserError(f"{path}: the file has no rows; fetch it anew")
    return pd.DataFrame(rows, columns=list(names), dtype="str")


def read_text(path: Path) -> str:
    """The file's text.

    Raises:
        UserError: missing, unreadable or not UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"cannot read {path} ({reason}); fetch it anew") from error


def whole_numbers(path: Path, values: pd.Series) -> np.ndarray:
    """A column of whole numbers, shape (N,) int64.

    Raises:
        UserError: one is not a number; names it.
    """
    numbers = pd.to_numeric(values, errors="coerce")
    odd = numbers.isna() | (numbers % 1 != 0)
    if odd.any():
        raise UserError(
            f"{path}: {values.name} is {values[odd].iloc[0]!r} instead of a whole number; "
            "fetch the file anew"
        )
    return numbers.to_numpy(dtype=np.int64)


def read_struct(path: Path, variable: str, names: tuple[str, ...]) -> pd.DataFrame:
    """Fields of a MATLAB struct array, a row an element.

    Raises:
        UserError: missing, damaged, or it lacks the variable or a field.
    """
    array = _matlab(path, variable)
    missing = [name for name in names if name not in (array.dtype.names or ())]
    if missing:
        raise UserError(
            f"{path}: {variable} has no field {missing[0]!r}, so this is another file of the same "
            "name; fetch the one with it"
        )
    array = np.atleast_1d(array)
    return pd.DataFrame({name: list(array[name]) for name in names})


def read_names(path: Path, variable: str) -> list[str]:
    """A MATLAB cell array of strings.

    Raises:
        UserError: missing, damaged, or it lacks the variable.
    """
    return [str(value) for value in np.atleast_1d(_matlab(path, variable))]


def _matlab(path: Path, variable: str) -> np.ndarray:
    try:
        return loadmat(path, squeeze_me=True, variable_names=[variable])[variable]
    except KeyError as error:
        raise UserError(f"{path} has no variable {variable!r}; fetch the file anew") from error
    except Exception as error:
        # SciPy's reader raises whatever the damaged bytes lead it to.
        raise UserError(f"cannot read {path} ({error}); fetch it anew") from error
