"""CUB-200-2011: 200 species of birds, the first 100 for training, the others for testing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from common.errors import UserError
from datasets.annotations import read_columns, whole_numbers
from datasets.catalogue import entry
from datasets.files import FileOptions, FileSource, Layout, make_source, open_layout

IMAGES, LABELS = "images.txt", "image_class_labels.txt"
# Song et al., "Deep Metric Learning via Lifted Structured Feature Embedding" (CVPR 2016).
LAST_TRAINING_CLASS = 100


def load(root: Path | None, **options: object) -> FileSource:
    """Opens the archive's tree: ``images.txt``, ``image_class_labels.txt``, ``images/``.

    Labels are the names of the class folders, e.g. ``001.Black_footed_Albatross``. The file
    ``train_test_split.txt`` is of the classification task and plays no part.

    Args:
        root: where data sets lie; see :func:`datasets.files.locate`.
        options: see :class:`datasets.files.FileOptions`.

    Raises:
        UserError: not there, or files are missing or broken.
    """
    parsed = FileOptions.parse("cub", options)
    opened = open_layout(LAYOUT, root, parsed)
    test = opened.table["class_id"] > LAST_TRAINING_CLASS
    table = opened.table.assign(domain="cub", split=np.where(test, "test", "train"))
    return make_source("cub", opened, table, parsed, entry("cub").counts)


def list_images(folder: Path) -> pd.DataFrame:
    """Columns ``key``, ``label``, ``class_id``.

    Raises:
        UserError: an annotation file is missing, broken, or at odds with the folders' names.
    """
    images = read_columns(folder / IMAGES, ("image_id", "path"))
    labels = read_columns(folder / LABELS, ("image_id", "class_id"))
    for path, table in ((folder / IMAGES, images), (folder / LABELS, labels)):
        twice = table.loc[table["image_id"].duplicated(), "image_id"]
        if not twice.empty:
            raise UserError(f"{path}: image {twice.iloc[0]} is listed twice; fetch the file anew")
    table = images.merge(labels, on="image_id", how="left")
    bare = table.loc[table["class_id"].isna(), "image_id"]
    if not bare.empty:
        raise UserError(f"{folder / LABELS}: no class for image {bare.iloc[0]}; fetch it anew")
    class_id = whole_numbers(folder / LABELS, table["class_id"])
    label = table["path"].str.split("/").str[0]
    numbers = pd.to_numeric(label.str.split(".").str[0], errors="coerce").to_numpy()
    odd = np.flatnonzero(numbers != class_id)
    if len(odd):
        row = odd[0]
        raise UserError(
            f"{folder / LABELS}: image {table['image_id'][row]} has class {class_id[row]}, but "
            f"lies in folder {label[row]!r}; fetch both annotation files anew"
        )
    return pd.DataFrame({"key": "images/" + table["path"], "label": label, "class_id": class_id})


def explain(folder: Path) -> str:
    """What a folder without CUB's annotations seems to be."""
    if (folder / "train").is_dir() and (folder / "test").is_dir():
        return entry("cub").mistakes[5994, 5794]
    if (folder / "lists").is_dir() and (folder / "images").is_dir():
        return "this is CUB-200 of 2010, an older and smaller set"
    if (folder / "images").is_dir():
        return f"there are images, but {IMAGES} or {LABELS} is missing"
    return ""


LAYOUT = Layout(
    name="cub",
    holds=lambda folder: (folder / IMAGES).is_file() and (folder / LABELS).is_file(),
    looks_for=f"{IMAGES} and {LABELS}",
    list_images=list_images,
    depends_on=lambda folder: [folder / IMAGES, folder / LABELS],
    explain=explain,
)
