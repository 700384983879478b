"""Compares a data set with what was published, and looks at every image."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

from common.errors import UserError
from datasets.catalogue import Counts, Entry
from datasets.duplicates import Twins, count_twins, near_groups, perceptual_hash
from datasets.files import FileSource
from datasets.index import Index
from datasets.read_image import format_of, read_image

# Enough for a 32 x 32 reduction, and a truncated JPEG shows at any size.
_LOOK_SIDE = 64
_SUFFIX_FORMATS = {
    ".jpg": ("JPEG", "MPO"),
    ".jpeg": ("JPEG", "MPO"),
    ".jpe": ("JPEG", "MPO"),
    ".png": ("PNG",),
    ".gif": ("GIF",),
    ".bmp": ("BMP",),
    ".webp": ("WEBP",),
}


@dataclass(frozen=True)
class Report:
    """What verification found.

    Attributes:
        problems: each a sentence; none means verified.
        remarks: what one should know, but which is no fault of the copy.
    """

    problems: tuple[str, ...]
    remarks: tuple[str, ...]


class Look(NamedTuple):
    """One image decoded: the error or "", whether its suffix lies, its perceptual hash."""

    error: str
    wrong_suffix: bool
    hash: np.ndarray | None


def verify(
    source: FileSource,
    entry: Entry | None = None,
    sample: int | None = None,
    seed: int = 0,
    skip_broken: bool = False,
) -> Report:
    """Checks counts, files and twins of a data set opened with ``broken="keep"``.

    Args:
        source: the data set.
        entry: the facts about it, for the meaning of wrong counts.
        sample: decode only so many images, drawn by ``seed``; counts and presence are checked for
            all of them nevertheless. None decodes all.
        seed: of the sample.
        skip_broken: missing, empty and damaged images are remarks, not problems.

    Raises:
        UserError: ``sample`` is less than 1.
    """
    if sample is not None and sample < 1:
        raise UserError(f"--sample is {sample}; give the number of images to decode, 1 or more")
    index = source.index
    problems = count_problems(index, source.expected, entry.mistakes if entry else {})
    broken = _file_problems(source)
    size = index.table["size"].to_numpy()
    rows = np.flatnonzero(size > 0)
    remarks = [str(counts_of(index)), *index.notes]
    if sample is not None and sample < len(rows):
        rows = np.sort(np.random.default_rng(seed).choice(rows, sample, replace=False))
        remarks.append(f"{sample:,} of {len(index):,} images were decoded (--sample)")
    looks = _look_at(source, rows)
    broken += _decoding_problems(rows, looks)
    if skip_broken:
        remarks += [f"left out in training (--skip-broken): {text}" for text in broken]
    else:
        problems += broken
    wrong = [source.path(index.table["key"][row]) for row, look in looks if look.wrong_suffix]
    if wrong:
        remarks.append(
            f"{len(wrong):,} images are of another format than their suffix says (no harm), e.g. "
            f"{wrong[0]}"
        )
    remarks += _twin_remarks(index, looks)
    return Report(tuple(problems), tuple(remarks))


def counts_of(index: Index) -> Counts:
    """Numbers of images and classes in both splits."""
    split = index.table["split"]
    train, test = index.table[split == "train"], index.table[split == "test"]
    return Counts(len(train), len(test), train["label"].nunique(), test["label"].nunique())


def count_problems(
    index: Index, expected: Counts | None, mistakes: dict[tuple[int, int], str]
) -> list[str]:
    """Differences from the published counts, with the likely cause."""
    found = counts_of(index)
    if expected is None or expected.agrees_with(found):
        return []
    cause = mistakes.get((found.train_images, found.test_images), "")
    if not cause and expected.train_images is not None:
        missing = (expected.train_images + expected.test_images) - len(index)
        if missing > 0:
            cause = f"{missing:,} images are not listed, the annotations are cut short"
        elif missing < 0:
            cause = f"{-missing:,} images too many are listed"
    why = f": {cause}" if cause else ""
    return [f"{found} instead of {expected}{why}"]


def _file_problems(source: FileSource) -> list[str]:
    problems = []
    table = source.index.table
    for what, rows in (("missing", table["size"] < 0), ("empty", table["size"] == 0)):
        if not rows.any():
            continue
        keys = list(table.loc[rows, "key"])
        text = f"{len(keys):,} images are {what}, e.g. {source.path(keys[0])}"
        other = _other_case(Path(source.path(keys[0]))) if what == "missing" else None
        if other:
            text += f" (there is {other!r}: upper and lower case differ, unpack anew)"
        problems.append(text)
    return problems


def _other_case(path: Path) -> str | None:
    """A file or folder that differs from a missing one in upper and lower case only."""
    while not path.parent.is_dir() and path.parent != path:
        path = path.parent
    if not path.parent.is_dir():
        return None
    names = os.listdir(path.parent)
    return next((name for name in names if name.lower() == path.name.lower()), None)


def _look_at(source: FileSource, rows: np.ndarray) -> list[tuple[int, Look]]:
    keys = source.index.table["key"]
    with ThreadPoolExecutor(min(16, os.cpu_count() or 1)) as pool:
        looks = pool.map(_look, (source.path(keys[row]) for row in rows))
        bar = tqdm(looks, "decoding", len(rows), unit="images", leave=False, disable=None)
        return list(zip(rows, bar, strict=True))


def _look(path: str) -> Look:
    try:
        image = read_image(path, _LOOK_SIDE)
    except UserError as error:
        return Look(str(error), False, None)
    formats = _SUFFIX_FORMATS.get(os.path.splitext(path)[1].lower())
    wrong = formats is not None and format_of(path) not in formats
    return Look("", wrong, perceptual_hash(image))


def _decoding_problems(rows: np.ndarray, looks: list[tuple[int, Look]]) -> list[str]:
    errors = [look.error for _, look in looks if look.error]
    if not errors:
        return []
    return [f"{len(errors):,} of {len(rows):,} decoded images are broken, e.g. {errors[0]}"]


def _twin_remarks(index: Index, looks: list[tuple[int, Look]]) -> list[str]:
    remarks = []
    table = index.table
    test = (table["split"] == "test").to_numpy()
    present = np.flatnonzero(table["size"].to_numpy() > 0)
    exact = count_twins(table["content"].to_numpy(dtype="str")[present], test[present])
    remarks.append(_twin_text("the same bytes", exact))
    hashed = [(row, look.hash) for row, look in looks if look.hash is not None]
    if hashed:
        rows = np.array([row for row, _ in hashed])
        groups = near_groups(np.stack([value for _, value in hashed]))
        remarks.append(_twin_text("nearly the same picture", count_twins(groups, test[rows])))
    return remarks


def _twin_text(what: str, twins: Twins) -> str:
    return (
        f"images with a twin ({what}): {twins.train:,} within training, {twins.test:,} within "
        f"testing, {twins.across:,} of testing in training"
    )
