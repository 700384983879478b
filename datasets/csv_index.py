"""Anyone's images listed in a table: ``--data csv:FILE`` with path,label[,domain][,split]."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import numpy as np
import pandas as pd

from common.errors import UserError
from datasets.class_split import written_split
from datasets.files import FileOptions, FileSource, Layout, make_source, open_folder
from datasets.index_cache import location

COLUMNS = ("path", "label", "domain", "split")


def load(
    root: Path | None, *, test_fraction: float = 0.5, seed: int = 0, **options: object
) -> FileSource:
    """Opens the images that a CSV file names.

    The first line names the columns: ``path`` (relative to the file's folder, or absolute),
    ``label``, and, if you like, ``domain`` and ``split`` (``train`` or ``test``). Without
    ``domain`` all images are of one domain; without ``split`` classes are split at random and the
    split is written down, see :func:`datasets.class_split.written_split`.

    Args:
        root: the CSV file, UTF-8, with commas.
        test_fraction, seed: of the random split.
        options: see :class:`datasets.files.FileOptions`; ``resized`` has no meaning here.

    Raises:
        UserError: the file is missing or broken, a cell is empty, an image is listed twice or
            missing, a class is in both splits; names the line.
    """
    parsed = FileOptions.parse("csv", options, ("seed", "test_fraction"))
    if parsed.resized is not None:
        raise UserError("csv: resized is for prepared data sets; list the small images instead")
    if root is None:
        raise UserError("csv needs a file: write csv:FILE")
    layout = Layout(
        name=f"csv-{root.stem}",
        holds=lambda folder: True,
        looks_for=root.name,
        list_images=lambda folder: list_images(root),
        depends_on=lambda folder: [root],
    )
    if not root.is_file():
        raise UserError(f"csv: there is no file {root}; check the path")
    opened = open_folder(layout, root.parent, parsed)
    table, notes = opened.table, []
    if "domain" not in table:
        table = table.assign(domain="csv")
    if "split" not in table:
        place = location(root.parent) / root.stem
        split, note = written_split("csv", table["label"], test_fraction, seed, place)
        table, notes = table.assign(split=split), [note]
    return make_source("csv", opened, table, parsed, None, notes)


def list_images(path: Path) -> pd.DataFrame:
    """Columns ``key``, ``label`` and, where the file has them, ``domain``, ``split``.

    Raises:
        UserError: see :func:`load`.
    """
    rows = _read_rows(path)
    table = pd.DataFrame([row for _, row in rows], dtype="str")
    lines = [line for line, _ in rows]
    if "split" in table:
        odd = np.flatnonzero(~table["split"].isin(("train", "test")))
        if len(odd):
            raise UserError(
                f"{path}: line {lines[odd[0]]} has split {table['split'][odd[0]]!r}; "
                "write train or test"
            )
    # The same file under two spellings (a/b.png, ./a/b.png) is one image.
    keys = table["path"].map(os.path.normpath)
    twice = np.flatnonzero(keys.duplicated())
    if len(twice):
        first = int(np.argmax(keys == keys[twice[0]]))
        raise UserError(
            f"{path}: lines {lines[first]} and {lines[twice[0]]} both name {keys[twice[0]]}; "
            "list each image once"
        )
    return table.drop(columns="path").assign(key=keys.astype("str"))


def _read_rows(path: Path) -> list[tuple[int, dict[str, str]]]:
    """(line number, column -> text) of each row that is not blank."""
    rows = []
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            header = [name.strip() for name in next(reader, [])]
            _check_header(path, header)
            for cells in reader:
                if not any(cell.strip() for cell in cells):
                    continue
                if len(cells) != len(header):
                    raise UserError(
                        f"{path}: line {reader.line_num} has {len(cells)} cells instead of "
                        f"{len(header)}; put quotes around text with commas"
                    )
                row = {name: cell.strip() for name, cell in zip(header, cells, strict=True)}
                row = {name: row[name] for name in COLUMNS if name in row}
                empty = [name for name, cell in row.items() if not cell]
                if empty:
                    raise UserError(f"{path}: line {reader.line_num} has no {empty[0]}; fill it in")
                rows.append((reader.line_num, row))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"cannot read {path} ({reason}); save it as UTF-8 with commas") from error
    if not rows:
        raise UserError(f"{path}: there is no row below the first line; list your images")
    return rows


def _check_header(path: Path, header: list[str]) -> None:
    for column in COLUMNS[:2]:
        if column not in header:
            raise UserError(
                f"{path}: the first line has no column {column!r} ({', '.join(header)}); "
                "it must begin like path,label"
            )
