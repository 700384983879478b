"""Anyone's images in class folders: ``--data folder:PATH``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from common.errors import UserError
from datasets.class_split import written_split
from datasets.files import FileOptions, FileSource, Layout, make_source, open_folder
from datasets.index_cache import location
from datasets.scan import find_images
from datasets.unpack import is_archive, unpack

OPTIONS = ("domains", "seed", "test_fraction")


def load(
    root: Path | None,
    *,
    test_fraction: float = 0.5,
    seed: int = 0,
    domains: bool = False,
    **options: object,
) -> FileSource:
    """Opens a folder, or a zip or tar archive of one, whose folders are classes.

    - A class is a folder that holds images itself; its label is the path below the root, so
      ``Greek/character01`` and ``Latin/character01`` are two classes.
    - Where the root holds ``train`` and ``test`` and nothing else, these are the splits (and not
      part of labels); a class in both is an error. Else classes are split at random and the split
      is written down, see :func:`datasets.class_split.written_split`.
    - Files that are no images by their suffix are counted in the index's notes. Images that lie
      directly in the root belong to no class: an error.

    Args:
        root: the folder or archive; an archive is unpacked beside the cached index, once.
        test_fraction, seed: of the random split.
        domains: the first part of each label is the domain; else all images are of one domain.
        options: see :class:`datasets.files.FileOptions`; ``resized`` has no meaning here.

    Raises:
        UserError: no such folder, no images, a class in both splits, missing or broken files.
    """
    parsed = FileOptions.parse("folder", options, OPTIONS)
    if parsed.resized is not None:
        raise UserError("folder: resized is for prepared data sets; give the small images' folder")
    if root is None:
        raise UserError("folder needs a path: write folder:PATH")
    place = _unpacked(root) if root.is_file() and is_archive(root) else root
    if not place.is_dir():
        raise UserError(f"folder: {root} is not a folder; give one with a folder for each class")
    opened = open_folder(LAYOUT, place, parsed)
    table, notes = opened.table, []
    others = int(table["others"].iloc[0])
    if others:
        notes.append(f"{others:,} files are no images by their suffix and were left out")
    table = table.drop(columns="others")
    if (table["given"] == "").any():
        split, note = written_split("folder", table["label"], test_fraction, seed, location(place))
        notes.append(note)
    else:
        split = table["given"].to_numpy(dtype=object)
    domain = table["label"].str.split("/").str[0] if domains else "folder"
    table = table.drop(columns="given").assign(domain=domain, split=split)
    return make_source("folder", opened, table, parsed, None, notes)


def list_images(folder: Path) -> pd.DataFrame:
    """Columns ``key``, ``label``, ``given`` (split of the folders, or ""), ``others``.

    Raises:
        UserError: no images, or images outside of class folders.
    """
    keys, others = find_images(folder)
    if not keys:
        raise UserError(f"folder: there are no images below {folder}; check the path")
    table = pd.DataFrame({"key": pd.Series(keys, dtype="str")})
    place = table["key"].str.rpartition("/")[0]
    given = table["key"].str.split("/").str[0]
    inside = sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
    if inside == ["test", "train"]:
        place = place.str.partition("/")[2]
    else:
        given = pd.Series(np.full(len(table), ""), dtype="str")
    loose = table.loc[place == "", "key"]
    if not loose.empty:
        raise UserError(
            f"folder: {loose.iloc[0]} is not in a class folder of {folder}; move it into one"
        )
    return table.assign(label=place, given=given, others=others)


def _unpacked(archive: Path) -> Path:
    facts = archive.stat()
    place = location(archive.parent) / f"{archive.name}-{facts.st_size}-{facts.st_mtime_ns}"
    if not place.is_dir():
        unpack(archive, place)
    inside = [path for path in place.iterdir() if not path.name.startswith((".", "__MACOSX"))]
    # Archives usually hold one folder with everything in it.
    return inside[0] if len(inside) == 1 and inside[0].is_dir() else place


LAYOUT = Layout(
    name="folder",
    holds=lambda folder: folder.is_dir(),
    looks_for="class folders",
    list_images=list_images,
    depends_on=lambda folder: None,
)
