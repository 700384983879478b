"""Finds the image files below a folder."""

from __future__ import annotations

import os
from pathlib import Path

SUFFIXES = frozenset(
    (".jpg", ".jpeg", ".jpe", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm")
)
_NO_DATA = frozenset(("__MACOSX", "Thumbs.db"))


def find_images(folder: Path) -> tuple[list[str], int]:
    """Paths of image files below ``folder``, relative, with ``/``, sorted; and how many others.

    Suffixes are compared in lower case. Hidden files and folders (names that begin with a dot) and
    what macOS and Windows leave behind are passed over. Links to folders are followed, once each.
    """
    images: list[str] = []
    others = 0
    seen: set[tuple[int, int]] = set()
    for place, folders, files in os.walk(folder, followlinks=True):
        facts = os.stat(place)
        if (facts.st_dev, facts.st_ino) in seen:
            folders.clear()
            continue
        seen.add((facts.st_dev, facts.st_ino))
        folders[:] = sorted(name for name in folders if _is_data(name))
        inner = os.path.relpath(place, folder)
        prefix = "" if inner == "." else Path(inner).as_posix() + "/"
        for name in files:
            if not _is_data(name):
                continue
            if os.path.splitext(name)[1].lower() in SUFFIXES:
                images.append(prefix + name)
            else:
                others += 1
    return sorted(images), others


def _is_data(name: str) -> bool:
    return not name.startswith(".") and name not in _NO_DATA
