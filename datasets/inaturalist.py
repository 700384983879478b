"""iNaturalist-2018 in the open-world split of Smooth-AP: other species in testing than in training.

The images are those of both the training and the validation part of the 2018 competition. Two text
files name the images of each split, one path a line, e.g. ``train_val2018/Aves/2761/0a1b.jpg``.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pandas as pd

from common.errors import UserError
from datasets.annotations import read_columns, read_text
from datasets.catalogue import Counts, entry
from datasets.files import FileOptions, FileSource, Layout, make_source, open_layout

SPLITS = ("published", "stand-in")
IMAGES = "train_val2018"
SPLIT_FILES = {"train": "Inaturalist_train_set1.txt", "test": "Inaturalist_test_set1.txt"}
ANNOTATIONS = ("train2018.json", "val2018.json")
STAND_IN_NOTE = (
    "stand-in for the published iNaturalist split: the same numbers of classes, other classes"
)
_SPLIT_FOLDERS = ("", "Inat_dataset_splits", "Inat_dataset_splits/Inat_dataset_splits")


def load(root: Path | None, *, split: str = "published", **options: object) -> FileSource:
    """Opens ``train_val2018`` with the two split files, or with the stand-in for them.

    Labels are super-category and number of the species, e.g. ``Aves/2761``.

    The stand-in rule: species are ordered by the SHA-256 digest of the text
    ``inaturalist-2018/<category id>``; the first 5,690 are for training, the other 2,452 for
    testing. Which images there are follows from ``train2018.json`` and ``val2018.json``. Whoever
    uses it must choose it, and the index's notes say so in every result.

    Args:
        root: where data sets lie; see :func:`datasets.files.locate`.
        split: ``published`` or ``stand-in``.
        options: see :class:`datasets.files.FileOptions`.

    Raises:
        UserError: not there, split files or images are missing or broken.
    """
    parsed = FileOptions.parse("inaturalist", options, ("split",))
    if split not in SPLITS:
        raise UserError(f"inaturalist: split is {split!r}; choose from {', '.join(SPLITS)}")
    counts = entry("inaturalist").counts
    if split == "published":
        opened = open_layout(LAYOUT, root, parsed)
        table = opened.table.assign(domain="inaturalist")
        return make_source("inaturalist", opened, table, parsed, counts)
    opened = open_layout(STAND_IN, root, parsed)
    table = opened.table.assign(
        domain="inaturalist", split=stand_in_split(opened.table["label"], counts.train_classes)
    )
    expected = Counts(None, None, counts.train_classes, counts.test_classes)
    return make_source("inaturalist", opened, table, parsed, expected, [STAND_IN_NOTE])


def stand_in_split(labels: pd.Series, train_classes: int) -> np.ndarray:
    """``train`` or ``test`` for each label ``super/category``, shape (N,); see :func:`load`."""
    classes = labels.unique()
    numbers = [label.rsplit("/", 1)[-1] for label in classes]
    digests = [hashlib.sha256(f"inaturalist-2018/{n}".encode()).hexdigest() for n in numbers]
    order = np.argsort(digests)
    chosen = set(classes[order[:train_classes]])
    return np.where(labels.isin(chosen), "train", "test")


def list_published(folder: Path) -> pd.DataFrame:
    """Columns ``key``, ``label``, ``split`` from the two split files.

    Raises:
        UserError: a split file is missing or has lines of another form.
    """
    parts = []
    for split in SPLIT_FILES:
        path = split_file(folder, split)
        if path is None:
            raise UserError(
                f"inaturalist: {SPLIT_FILES[split]} is missing in {folder}; "
                f"{entry('inaturalist').downloads[0].manual}"
            )
        keys = read_columns(path, ("path",))["path"]
        parts.append(pd.DataFrame({"key": keys, "label": _labels(path, keys), "split": split}))
    return pd.concat(parts, ignore_index=True)


def list_annotated(folder: Path) -> pd.DataFrame:
    """Columns ``key``, ``label`` of all images in the two annotation files.

    Raises:
        UserError: one is missing or is not what the competition published.
    """
    parts = []
    for name in ANNOTATIONS:
        path = folder / name
        try:
            images = json.loads(read_text(path))["images"]
            keys = pd.Series([image["file_name"] for image in images], dtype="str")
        except (ValueError, KeyError, TypeError) as error:
            raise UserError(
                f"{path} is not an annotation file of iNaturalist-2018 ({error!r}); fetch it anew"
            ) from error
        parts.append(pd.DataFrame({"key": keys, "label": _labels(path, keys)}))
    return pd.concat(parts, ignore_index=True)


def split_file(folder: Path, split: str) -> Path | None:
    """Where the split's list lies: beside the images or in the folder its archive makes."""
    for inner in _SPLIT_FOLDERS:
        path = folder / inner / SPLIT_FILES[split]
        if path.is_file():
            return path
    return None


def _labels(path: Path, keys: pd.Series) -> pd.Series:
    parts = keys.str.split("/")
    odd = keys[(parts.str.len() != 4) | ~keys.str.startswith(f"{IMAGES}/")]
    if not odd.empty:
        raise UserError(
            f"{path}: {odd.iloc[0]!r} is not of the form {IMAGES}/super/category/image; "
            "fetch the file anew"
        )
    return parts.str[1] + "/" + parts.str[2]


def _holds(folder: Path) -> bool:
    return (folder / IMAGES).is_dir()


def _explain(folder: Path) -> str:
    archive = folder / f"{IMAGES}.tar.gz"
    return f"{archive.name} is not unpacked yet" if archive.is_file() else ""


LAYOUT = Layout(
    name="inaturalist",
    holds=_holds,
    looks_for=IMAGES,
    list_images=list_published,
    depends_on=lambda folder: [p for split in SPLIT_FILES if (p := split_file(folder, split))],
    explain=_explain,
)
STAND_IN = Layout(
    name="inaturalist",
    holds=_holds,
    looks_for=IMAGES,
    list_images=list_annotated,
    depends_on=lambda folder: [p for name in ANNOTATIONS if (p := folder / name).is_file()],
    explain=_explain,
)
