"""The embedded default data set: characters of four kinds of scripts in many typefaces.

Class = a character, image = the character drawn in one typeface, in the manner of Omniglot. See
``embedded/glyphs.md`` for what is in it, and ``build_glyphs.py`` for how it was made.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd

from common.errors import UserError
from datasets.dataset import ArraySource
from datasets.index import Index, table_digest

FOLDER = Path(__file__).parent / "embedded"
PICTURES = "glyphs.npz"
MANIFEST = "glyphs.json"
_BROKEN = "fetch it anew with `git checkout -- datasets/embedded`"
_UNREADABLE = (
    OSError,
    EOFError,
    ValueError,
    KeyError,
    IndexError,
    zipfile.BadZipFile,
    lzma.LZMAError,
)


def load(root: Path | None = None, domain: str | None = None, folder: Path = FOLDER) -> ArraySource:
    """Opens the glyphs, 32 x 32 grey, bright ink on dark ground.

    The index has the columns ``character``, ``typeface`` and ``family`` (serif, brush, handwriting,
    ...) besides the usual ones; labels look like ``kanji/U+4E9C``.

    Args:
        root: where the user keeps data sets; of no effect, the glyphs come with the code.
        domain: ``alphabets``, ``hangul``, ``kana`` or ``kanji``; None is all four.
        folder: where pictures and manifest lie.

    Raises:
        UserError: a file is missing, or checksum or counts are not those of the manifest, or there
            is no such domain.
    """
    manifest = read_manifest(folder)
    table, images = read_pictures(folder / PICTURES)
    digest = content_digest(table, images)
    if digest != manifest["sha256"] or counts(table) != manifest["counts"]:
        raise UserError(
            f"{folder / PICTURES} does not hold what {MANIFEST} beside it says (its content has "
            f"SHA-256 {digest[:12]}...); {_BROKEN}"
        )
    index = Index("glyphs", table, digest)
    if domain is not None:
        part = index.subset(domain=domain).table
        images = images[(table["domain"] == domain).to_numpy()]
        # Of this domain alone: a letter more or less leaves the runs on kanji as they are.
        index = Index("glyphs", part, content_digest(part, images))
    return ArraySource(index, images, tuple(manifest["mean"]), tuple(manifest["std"]))


def read_manifest(folder: Path) -> dict:
    """What the pictures' file must hold: ``sha256``, ``counts``, ``mean``, ``std``, versions.

    Raises:
        UserError: missing or not JSON.
    """
    try:
        return json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"cannot read {folder / MANIFEST} ({error}); {_BROKEN}") from error


def read_pictures(path: Path) -> tuple[pd.DataFrame, np.ndarray]:
    """Decodes the file: the index table of N rows, and uint8 images of shape (N, 32, 32).

    Raises:
        UserError: missing or damaged.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        classes, faces = arrays["class"], arrays["typeface"]
        characters = [chr(code) for code in arrays["class_character"]]
        labels = [
            f"{domain}/U+{ord(character):04X}"
            for domain, character in zip(arrays["class_domain"], characters, strict=True)
        ]
        table = pd.DataFrame(
            {
                "label": np.array(labels, dtype=object)[classes],
                "domain": arrays["class_domain"].astype(object)[classes],
                "split": arrays["class_split"].astype(object)[classes],
                "character": np.array(characters, dtype=object)[classes],
                "typeface": arrays["typeface_name"].astype(object)[faces],
                "family": arrays["typeface_family"].astype(object)[faces],
            }
        )
        table.insert(0, "key", table["label"] + "/" + table["typeface"])
        return table, unpack(arrays["pictures"])
    except _UNREADABLE as error:
        raise UserError(f"cannot read {path} ({error}); {_BROKEN}") from error


def pack(levels: np.ndarray) -> np.ndarray:
    """Levels 0..15, shape (N, H, W), H even -> bytes (N, H / 2, W): a byte holds two rows' pixels.

    Vertical pairs compress better than horizontal ones: strokes are more often upright.
    """
    return (levels[:, 0::2] << 4) | levels[:, 1::2]


def unpack(packed: np.ndarray) -> np.ndarray:
    """The inverse of :func:`pack`, scaled to 0..255: shape (N, H / 2, W) -> uint8 (N, H, W)."""
    count, half, width = packed.shape
    levels = np.empty((count, half, 2, width), dtype=np.uint8)
    levels[:, :, 0] = packed >> 4
    levels[:, :, 1] = packed & 15
    levels *= 17
    return levels.reshape(count, 2 * half, width)


def content_digest(table: pd.DataFrame, images: np.ndarray) -> str:
    """Hexadecimal SHA-256 over the decoded table and images, whatever the compression."""
    digest = hashlib.sha256(table_digest(table).encode())
    digest.update(np.ascontiguousarray(images))
    return digest.hexdigest()


def counts(table: pd.DataFrame) -> dict[str, dict[str, dict[str, int]]]:
    """Domain -> split -> numbers of ``classes`` and ``images``."""
    return {
        domain: {
            split: {"classes": int(rows["label"].nunique()), "images": len(rows)}
            for split, rows in part.groupby("split")
        }
        for domain, part in table.groupby("domain")
    }
