"""Data sets that are folders of image files: finding the folder, the options, the source."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import pandas as pd
from PIL import Image

from common.errors import UserError
from datasets.catalogue import Counts, entry
from datasets.index import Index, table_digest
from datasets.index_cache import cached_table
from datasets.read_image import read_image

# ImageNet's, as torchvision states them: what most backbones were trained with.
MEAN = (0.485, 0.456, 0.406)
STD = (0.229, 0.224, 0.225)
BROKEN = ("raise", "skip", "keep")


@dataclass(frozen=True)
class FileOptions:
    """Options that all data sets of image files share.

    Attributes:
        resized: use the copy that ``prepare --resize`` made, with this shorter side in pixels.
        decode_side: decode JPEGs at reduced size, see :func:`datasets.read_image.read_image`. Crops
            of large photographs come out less sharp; None decodes in full.
        broken: ``raise`` stops at missing or empty files when the data set is opened, and at
            damaged ones when they are read. ``skip`` decodes every image once (the outcome is
            cached), leaves missing and damaged ones out and says so in the index's notes. ``keep``
            keeps all rows, for verification.
    """

    resized: int | None = None
    decode_side: int | None = None
    broken: str = "raise"

    @classmethod
    def parse(cls, name: str, options: dict, others: Sequence[str] = ()) -> FileOptions:
        """From keyword arguments; ``others`` are the data set's own options, for the message.

        Raises:
            UserError: an unknown option or an impossible value.
        """
        known = [field.name for field in fields(cls)]
        unknown = [key for key in options if key not in known]
        if unknown:
            choice = ", ".join(sorted((*known, *others)))
            raise UserError(f"{name} has no option {unknown[0]!r}; choose from {choice}")
        made = cls(**options)
        for key in ("resized", "decode_side"):
            side = getattr(made, key)
            if side is not None and not (isinstance(side, int) and side >= 1):
                raise UserError(f"{name}: {key} is {side!r}; give a number of pixels")
        if made.broken not in BROKEN:
            raise UserError(f"{name}: broken is {made.broken!r}; choose from {', '.join(BROKEN)}")
        return made


@dataclass(frozen=True)
class Layout:
    """How a data set lies on disk.

    Attributes:
        name: of the data set, and of its cache.
        holds: whether a folder is the one that keys are relative to.
        looks_for: what ``holds`` looks for, in words.
        list_images: the table (columns ``key``, ``label`` and what the data set adds) of a folder.
        depends_on: annotation files that decide the table; None if the folder itself does.
        explain: says what a folder without this layout seems to be; "" if it has no idea.
    """

    name: str
    holds: Callable[[Path], bool]
    looks_for: str
    list_images: Callable[[Path], pd.DataFrame]
    depends_on: Callable[[Path], Sequence[Path] | None]
    explain: Callable[[Path], str] = lambda folder: ""


class FileSource:
    """A ``datasets.Source`` of image files.

    Args:
        index: keys are paths relative to ``folder``, or absolute.
        folder: of the images.
        decode_side: see :class:`FileOptions`.
        expected: counts that verification compares with; None if nothing is known.
    """

    def __init__(
        self,
        index: Index,
        folder: Path,
        decode_side: int | None = None,
        expected: Counts | None = None,
    ) -> None:
        self.index = index
        self.mean = MEAN
        self.std = STD
        self.folder = folder
        self.decode_side = decode_side
        self.expected = expected

    def path(self, key: str) -> str:
        """The image's file."""
        return os.path.join(self.folder, key)

    def read(self, key: str) -> Image.Image:
        """The image in RGB; see ``datasets.Source``."""
        return read_image(self.path(key), self.decode_side)


def candidates(name: str, root: Path, resized: int | None = None) -> list[Path]:
    """Folders in which the data set may lie, in the order they are tried."""
    names = entry(name).folders
    if resized is not None:
        made = root / f"{name}-{resized}"
        return [*(made / inner for inner in names), made]
    nested = [root / outer / inner for outer in names for inner in names]
    return [*nested, *(root / outer for outer in names), root]


def locate(layout: Layout, root: Path | None, resized: int | None = None) -> Path:
    """The data set's folder under ``root``: the root itself, its own folder, or one further down.

    Raises:
        UserError: not there; says what to do.
    """
    name = layout.name
    if root is None:
        raise UserError(f"{name} needs --root, the folder in which your data sets lie")
    if not root.is_dir():
        raise UserError(f"{root} is not a folder; give the one in which your data sets lie")
    places = candidates(name, root, resized)
    for place in places:
        if layout.holds(place):
            return place
    resize = "" if resized is None else f" --resize {resized}"
    advice = f"run `python -m datasets prepare {name} --root {root}{resize}`"
    for place in places:
        found = layout.explain(place) if place.is_dir() else ""
        if found:
            raise UserError(f"{place} is not {name} as expected: {found}; {advice}")
    raise UserError(f"{name} is not under {root} ({layout.looks_for} not found); {advice}")


@dataclass(frozen=True)
class Opened:
    """The files of a data set before labels are dealt into splits."""

    folder: Path
    table: pd.DataFrame
    notes: tuple[str, ...]


def open_layout(layout: Layout, root: Path | None, options: FileOptions) -> Opened:
    """Locates, lists and checks the files of a data set.

    Raises:
        UserError: the data set is not there, its annotations are broken, or files are missing.
    """
    folder = locate(layout, root, options.resized)
    return open_folder(layout, folder, options)


def open_folder(layout: Layout, folder: Path, options: FileOptions) -> Opened:
    """As :func:`open_layout`, in a folder that is known."""
    table = cached_table(
        layout.name,
        folder,
        lambda: layout.list_images(folder),
        layout.depends_on(folder),
        decode=options.broken == "skip",
    )
    notes = ()
    if options.resized is not None:
        notes = (f"images reduced to a shorter side of {options.resized} pixels",)
    if options.broken == "raise":
        _check_files(layout.name, folder, table)
    elif options.broken == "skip":
        table, skipped = _skip_broken(layout.name, table)
        notes += skipped
    return Opened(folder, table, notes)


def make_source(
    name: str,
    opened: Opened,
    table: pd.DataFrame,
    options: FileOptions,
    expected: Counts | None,
    notes: Sequence[str] = (),
) -> FileSource:
    """The source over ``table``, which has got its ``domain`` and ``split``.

    The fingerprint covers keys, labels, domains, splits and the bytes of every image.
    """
    table = table.drop(columns=["mtime_ns", "broken"])
    digest = hashlib.sha256(table_digest(table).encode())
    digest.update("\n".join(table["content"]).encode())
    index = Index(name, table, digest.hexdigest(), (*opened.notes, *notes))
    return FileSource(index, opened.folder, options.decode_side, expected)


def _check_files(name: str, folder: Path, table: pd.DataFrame) -> None:
    for what, rows in (("missing", table["size"] < 0), ("empty", table["size"] == 0)):
        if rows.any():
            first = os.path.join(folder, table.loc[rows, "key"].iloc[0])
            raise UserError(
                f"{name}: {int(rows.sum()):,} of {len(table):,} images are {what}, the first is "
                f"{first}; fetch them anew, or leave them out with broken=skip (--skip-broken)"
            )


def _skip_broken(name: str, table: pd.DataFrame) -> tuple[pd.DataFrame, tuple[str, ...]]:
    rows = table["broken"] != ""
    if not rows.any():
        return table, ()
    if rows.all():
        raise UserError(f"{name}: every image is missing or broken; prepare the data set anew")
    keys = list(table.loc[rows, "key"])
    shown = ", ".join(keys[:3]) + (", ..." if len(keys) > 3 else "")
    note = f"{len(keys):,} missing or broken images skipped: {shown}"
    return table[~rows].reset_index(drop=True), (note,)
