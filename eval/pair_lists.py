"""Lists of pairs from CSV files, and the distances of their pairs."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from common.errors import UserError
from eval.parsing import parsing, require_file, shown
from eval.readers import CONTAINERS
from eval.readers_table import read_csv_columns

COLUMNS = ("first", "second", "same")
KINDS = {
    **dict.fromkeys(("1", "same", "true"), True),
    **dict.fromkeys(("0", "different", "false"), False),
}
KEYS = ("keys", "key")


@dataclass(frozen=True)
class PairList:
    """Pairs of images.

    Attributes:
        pairs: (E, 2) rows of the embeddings, from 0.
        same: (E,) whether both are of one identity.
    """

    pairs: np.ndarray
    same: np.ndarray


def read_pair_list(
    path: Path, count: int, keys: np.ndarray | None = None, labels: np.ndarray | None = None
) -> PairList:
    """Reads a CSV file (UTF-8, comma) with the columns ``first``, ``second`` and ``same``.

    Args:
        path: its lines name two images, and say 1 or 0, same or different, true or false, in
            whatever case.
        count: N, images that there are.
        keys: (N,) texts that name the images; None: they are named by row, from 0.
        labels: (N,) or None; what a line says must agree with them.

    Raises:
        UserError: a line that is not so, with its number; no pairs.
    """
    require_file(path)
    places = None if keys is None else _places(keys)
    pairs, same = [], []
    with parsing(path, "the list"), open(path, encoding="utf-8-sig", newline="") as file:
        rows = csv.reader(file, strict=True)
        header = next(rows, [])
        at, width = _columns(header, path), len(header)
        for row in rows:
            where = f"{shown(path)}, line {rows.line_num}"
            if len(row) != width:
                raise UserError(f"{where} has {len(row)} cells, the header has {width}; mend it")
            first, second, kind = (row[at[name]].strip() for name in COLUMNS)
            if kind.lower() not in KINDS:
                raise UserError(
                    f"{where}: {kind[:40]!r} says neither same nor different; write 1 or 0"
                )
            ends = tuple(_image(name, count, places, where) for name in (first, second))
            if ends[0] == ends[1]:
                raise UserError(f"{where} pairs an image with itself; name two images")
            is_same = KINDS[kind.lower()]
            if labels is not None and (labels[ends[0]] == labels[ends[1]]) != is_same:
                raise UserError(f"{where} says {kind!r}, the images' labels say otherwise; mend it")
            pairs.append(ends)
            same.append(is_same)
    if not pairs:
        raise UserError(f"{shown(path)} lists no pairs; write one a line under the header")
    return PairList(np.array(pairs), np.array(same))


def read_keys(path: Path, labels: Path | None, count: int) -> np.ndarray | None:
    """(N,) texts of the column or array ``keys`` (or ``key``) of the embeddings' or labels' file.

    Raises:
        UserError: not one for each embedding, or one that is there twice.
    """
    found, source = {}, path
    if path.suffix.lower() in CONTAINERS:
        found = CONTAINERS[path.suffix.lower()](path, KEYS)
    if not found and labels is not None and labels.suffix.lower() == ".csv":
        found, source = read_csv_columns(labels, KEYS), labels
    if not found:
        return None
    keys = next(iter(found.values()))
    if keys.shape != (count,):
        raise UserError(
            f"{shown(source)}: keys have shape {keys.shape}; give one each for {count} embeddings"
        )
    if keys.dtype.kind not in "iuU":
        raise UserError(f"{shown(source)}: keys are of type {keys.dtype}; save texts or integers")
    texts = keys.astype(np.str_)
    values, counts = np.unique(texts, return_counts=True)
    if (counts > 1).any():
        twice = values[counts > 1][0]
        raise UserError(f"{shown(source)} has the key {str(twice)[:40]!r} twice; make keys unique")
    return texts


def _columns(header: list[str], path: Path) -> dict[str, int]:
    """Where each column is; others are read past."""
    names = [name.strip() for name in header]
    for name in COLUMNS:
        if names.count(name) != 1:
            raise UserError(
                f"{shown(path)} has {names.count(name)} columns named {name!r}; its first line "
                f"must name {', '.join(COLUMNS)} once each"
            )
    return {name: place for place, name in enumerate(names)}


def _places(keys: np.ndarray) -> dict[str, int]:
    return {str(key).strip(): place for place, key in enumerate(keys)}


def _image(name: str, count: int, places: dict[str, int] | None, where: str) -> int:
    if places is not None:
        if name not in places:
            raise UserError(f"{where}: no image has the key {name[:40]!r}; mend the list")
        return places[name]
    if not (name.isascii() and name.isdigit() and len(name) < 19 and int(name) < count):
        raise UserError(
            f"{where}: {name[:40]!r} is no row; rows of {count} embeddings are 0 to {count - 1}"
        )
    return int(name)
