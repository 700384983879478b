"""Stanford Online Products: photographs of products, split by product in its own lists."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from datasets.annotations import read_columns
from datasets.catalogue import entry
from datasets.files import FileOptions, FileSource, Layout, make_source, open_layout

LISTS = {"train": "Ebay_train.txt", "test": "Ebay_test.txt"}


def load(root: Path | None, **options: object) -> FileSource:
    """Opens the archive's tree: ``Ebay_train.txt``, ``Ebay_test.txt`` and the ``*_final`` folders.

    Labels are the lists' class numbers; the column ``kind`` names the folder (``bicycle``, ...).

    Args:
        root: where data sets lie; see :func:`datasets.files.locate`.
        options: see :class:`datasets.files.FileOptions`.

    Raises:
        UserError: not there, or files are missing or broken.
    """
    parsed = FileOptions.parse("sop", options)
    opened = open_layout(LAYOUT, root, parsed)
    table = opened.table.assign(domain="sop")
    return make_source("sop", opened, table, parsed, entry("sop").counts)


def list_images(folder: Path) -> pd.DataFrame:
    """Columns ``key``, ``label``, ``kind``, ``split``.

    Raises:
        UserError: a list is missing or broken.
    """
    parts = []
    for split, name in LISTS.items():
        rows = read_columns(
            folder / name, ("image_id", "class_id", "super_class_id", "path"), header=True
        )
        parts.append(rows.assign(split=split))
    rows = pd.concat(parts, ignore_index=True)
    kind = rows["path"].str.split("/").str[0].str.removesuffix("_final")
    return pd.DataFrame(
        {"key": rows["path"], "label": rows["class_id"], "kind": kind, "split": rows["split"]}
    )


def explain(folder: Path) -> str:
    """What a folder without both lists seems to be."""
    missing = [name for name in LISTS.values() if not (folder / name).is_file()]
    if len(missing) == 1:
        return f"{missing[0]} is missing"
    if any(folder.glob("*_final")):
        return f"there are images, but {' and '.join(missing)} are missing"
    return ""


LAYOUT = Layout(
    name="sop",
    holds=lambda folder: all((folder / name).is_file() for name in LISTS.values()),
    looks_for=" and ".join(LISTS.values()),
    list_images=list_images,
    depends_on=lambda folder: [folder / name for name in LISTS.values()],
    explain=explain,
)
