"""Splits classes at random into training and testing, and writes the split down."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pandas as pd

from common.atomic import write_text
from common.errors import UserError
from datasets.index_cache import VARIABLE


def written_split(
    name: str, labels: pd.Series, fraction: float, seed: int, folder: Path
) -> tuple[np.ndarray, str]:
    """Each row's split, shape (N,), from the file that holds it; the file is made if there is none.

    The draw: class names in their sorted order are permuted by NumPy's ``default_rng(seed)``; the
    first ``round(fraction * classes)`` are for testing. The file, ``class,split``, is read from
    then on, so that a later version of NumPy, or classes moved by hand, cannot change it unseen.

    Args:
        name: of the data set, for messages.
        labels: class of each image.
        fraction: share of the classes for testing, in (0, 1).
        seed: any integer >= 0.
        folder: where the file lies.

    Returns:
        The splits, and a sentence for the index's notes.

    Raises:
        UserError: a part would be without a class, the file names other classes, or it cannot be
            read or written.
    """
    classes = sorted(labels.unique())
    test = round(fraction * len(classes)) if isinstance(fraction, int | float) else 0
    if not 0 < test < len(classes):
        raise UserError(
            f"{name}: a test share of {fraction} of {len(classes)} classes leaves one part empty; "
            "choose test_fraction between 0 and 1, and have two classes at least"
        )
    if not isinstance(seed, int) or seed < 0:
        raise UserError(f"{name}: the seed of the split is {seed!r}; give an integer from 0 up")
    path = folder / f"split-{fraction:g}-seed{seed}.csv"
    if not path.is_file():
        chosen = np.random.default_rng(seed).permutation(len(classes))[:test]
        splits = np.full(len(classes), "train", dtype=object)
        splits[chosen] = "test"
        _write(path, pd.DataFrame({"class": classes, "split": splits}))
    known = _read(path)
    if sorted(known) != classes:
        changed = sorted(set(known) ^ set(classes))
        raise UserError(
            f"{path} was made for other classes ({len(changed)} differ, e.g. {changed[0]!r}); "
            "delete it to draw a new split"
        )
    note = (
        f"{len(classes) - test:,} training and {test:,} test classes drawn by seed {seed}, "
        f"written to {path.name}"
    )
    return labels.map(known).to_numpy(dtype=object), note


def _write(path: Path, table: pd.DataFrame) -> None:
    text = io.StringIO()
    table.to_csv(text, index=False, lineterminator="\n")
    try:
        write_text(path, text.getvalue())
    except UserError as error:
        raise UserError(
            f"{error}; or name a writable folder for the split in the variable {VARIABLE}"
        ) from error


def _read(path: Path) -> dict[str, str]:
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
        known = dict(zip(table["class"], table["split"], strict=True))
    except (OSError, ValueError, KeyError) as error:
        raise UserError(f"cannot read {path} ({error}); delete it to draw a new split") from error
    odd = [split for split in known.values() if split not in ("train", "test")]
    if odd:
        raise UserError(f"{path}: split {odd[0]!r} is neither train nor test; mend or delete it")
    return known
