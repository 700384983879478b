"""Whether the folders that a table writes into can be written, and have room."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def problems(folders: dict[str, Path], needed_bytes: float) -> list[str]:
    """A sentence for each option whose folder cannot be written, or has too little room.

    Makes nothing: a folder that is not there yet is judged by the nearest one above it.

    Args:
        folders: option (``--runs``) -> folder; the first is the one that needs the room.
        needed_bytes: of all runs that are to be trained, as estimated.
    """
    said = []
    for option, folder in folders.items():
        place = _nearest(folder)
        if not place.is_dir():
            said.append(f"{option} {folder}: {place} is a file; choose another folder")
        elif not os.access(place, os.W_OK | os.X_OK):
            said.append(f"{option} {folder}: {place} cannot be written; choose another folder")
    option, folder = next(iter(folders.items()))
    free = free_bytes(folder)
    if free < needed_bytes:
        said.append(
            f"{option} {folder}: {free / 2**30:.1f} GiB are free, about "
            f"{needed_bytes / 2**30:.1f} GiB are needed; make room or choose another folder"
        )
    return said


def free_bytes(folder: Path) -> int:
    """Free space for this user where the folder is, or will be."""
    return shutil.disk_usage(_nearest(folder)).free


def _nearest(folder: Path) -> Path:
    place = folder.absolute()
    while not place.exists():
        place = place.parent
    return place
