"""Embeddings and labels from files: what is wrong with a bad one is said in one sentence."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from common.errors import UserError
from eval.parsing import shown
from eval.readers_numpy import read_npy, read_npz
from eval.readers_table import read_csv_columns, read_parquet, read_safetensors

# Either spelling; tables usually name a column in the singular, arrays in the plural.
SPELLINGS = {
    "embeddings": ("embeddings", "embedding"),
    "labels": ("labels", "label"),
    "domains": ("domains", "domain"),
}
CONTAINERS = {".npz": read_npz, ".parquet": read_parquet, ".safetensors": read_safetensors}
EMBEDDING_SUFFIXES = (".npz", ".npy", ".parquet", ".safetensors")
LABEL_SUFFIXES = (".csv", ".npy")
ROWS_PER_CHECK = 8192
ROWS_NAMED = 5
MAX_NORM = 1e18  # its square still fits float32


@dataclass(frozen=True)
class EmbeddingSet:
    """Embeddings with their labels, as read and checked.

    Attributes:
        name: the file's name without its ending.
        embeddings: (N, D) float16, float32 or float64; finite, no zero rows; not normalised.
        labels: (N,) integers or texts, at least two classes; None where none were asked for.
        domains: (N,) integers or texts, or None.
    """

    name: str
    embeddings: np.ndarray
    labels: np.ndarray | None
    domains: np.ndarray | None


def read_embedding_set(
    path: str | Path, labels: str | Path | None = None, *, labels_needed: bool = True
) -> EmbeddingSet:
    """Reads embeddings and labels.

    Args:
        path: ``.npz``, ``.parquet`` or ``.safetensors`` with ``embeddings``, ``labels`` and,
            optionally, ``domains`` (the singular is fine too), or ``.npy`` with embeddings alone.
        labels: ``.csv`` with a column ``label`` and, optionally, ``domain``, or a ``.npy`` array;
            needed where ``path`` holds no labels, an error where it does.
        labels_needed: False takes embeddings without labels, or of one class only, as well.

    Labels that are all whole numbers become integers, whatever the file type, so that the same
    labels from a CSV and from an array are equal; ``007`` stays a text.

    Raises:
        UserError: anything wrong with the files, naming the file and, where it is about rows, the
            rows (counted from 0).
    """
    path = Path(path)
    arrays = _read_arrays(path)
    if labels is not None:
        if "labels" in arrays:
            raise UserError(
                f"{shown(path)} holds labels itself; leave out --labels {shown(labels)}"
            )
        arrays |= _read_labels(Path(labels))
    if "embeddings" not in arrays:
        raise UserError(f"{shown(path)} has no 'embeddings'; add that array or column")
    if labels_needed and "labels" not in arrays:
        raise UserError(
            f"{shown(path)} has no 'labels'; add that array or column, or give --labels FILE.csv"
        )
    labels_path = path if labels is None else Path(labels)
    embeddings = check_embeddings(arrays["embeddings"], path)
    tags = {
        name: _check_tags(arrays[name], name, len(embeddings), labels_path)
        for name in ("labels", "domains")
        if name in arrays
    }
    if labels_needed and len(np.unique(tags["labels"])) < 2:
        raise UserError(
            f"{shown(labels_path)} has one class only ({shown(tags['labels'][0])}); "
            "thresholds can be judged on two classes or more"
        )
    return EmbeddingSet(path.stem, embeddings, tags.get("labels"), tags.get("domains"))


def check_embeddings(embeddings: np.ndarray, path: Path) -> np.ndarray:
    """(N, D) floating-point numbers that can be normalised; integers become float32.

    Raises:
        UserError: wrong type or shape; rows with NaN or infinity, of length zero, or too long.
    """
    if embeddings.ndim != 2 or 0 in embeddings.shape:
        raise UserError(
            f"{shown(path)}: embeddings have shape {embeddings.shape}; "
            "they need two dimensions, (images, features)"
        )
    if embeddings.dtype.kind in "iu":
        embeddings = embeddings.astype(np.float32)
    if embeddings.dtype.kind != "f":
        raise UserError(
            f"{shown(path)}: embeddings are of type {embeddings.dtype}; save floating-point numbers"
        )
    from common.geometry import NORM_EPSILON  # here, for it brings torch

    # Engines want native byte order; long doubles have no counterpart in torch.
    kind = f"f{min(embeddings.dtype.itemsize, 8)}"
    embeddings = embeddings.astype(np.dtype(kind), copy=False)
    norms = _norms(embeddings)
    _refuse_rows(~np.isfinite(norms), "NaN or infinity", path)
    _refuse_rows(norms <= NORM_EPSILON, "a zero vector", path)
    _refuse_rows(norms > MAX_NORM, f"a vector longer than {MAX_NORM:g}", path)
    return embeddings


def _read_arrays(path: Path) -> dict[str, np.ndarray]:
    suffix = path.suffix.lower()
    if suffix == ".npy":
        return {"embeddings": read_npy(path)}
    if suffix not in CONTAINERS:
        raise UserError(
            f"{shown(path)}: files of type '{shown(suffix)}' are not read; "
            f"save embeddings as one of {', '.join(EMBEDDING_SUFFIXES)}"
        )
    spellings = tuple(spelling for group in SPELLINGS.values() for spelling in group)
    return _canonical(CONTAINERS[suffix](path, spellings), path)


def _read_labels(path: Path) -> dict[str, np.ndarray]:
    suffix = path.suffix.lower()
    if suffix == ".npy":
        return {"labels": read_npy(path)}
    if suffix != ".csv":
        raise UserError(
            f"{shown(path)}: labels of type '{shown(suffix)}' are not read; "
            f"save them as one of {', '.join(LABEL_SUFFIXES)}"
        )
    found = _canonical(read_csv_columns(path, SPELLINGS["labels"] + SPELLINGS["domains"]), path)
    if "labels" not in found:
        raise UserError(f"{shown(path)} has no column 'label'; name it in the first line")
    return found


def _canonical(arrays: dict[str, np.ndarray], path: Path) -> dict[str, np.ndarray]:
    found = {}
    for name, spellings in SPELLINGS.items():
        present = [spelling for spelling in spellings if spelling in arrays]
        if len(present) > 1:
            raise UserError(f"{shown(path)} has both {' and '.join(present)}; keep one")
        if present:
            found[name] = arrays[present[0]]
    return found


def _check_tags(tags: np.ndarray, name: str, count: int, path: Path) -> np.ndarray:
    """(N,) labels or domains as integers or texts."""
    if tags.ndim != 1:
        raise UserError(f"{shown(path)}: {name} have shape {tags.shape}; they need ({count},)")
    if len(tags) != count:
        raise UserError(
            f"{shown(path)} has {len(tags)} {name} for {count} embeddings; give one per embedding"
        )
    if tags.dtype.kind == "S":
        try:
            tags = np.char.decode(tags, "utf-8")
        except UnicodeDecodeError as error:
            raise UserError(f"{shown(path)}: {name} are not UTF-8; save them as texts") from error
    if tags.dtype.kind == "f":
        whole = np.isfinite(tags) & (tags == np.floor(tags)) & (np.abs(tags) < 2**53)
        _refuse_rows(~whole, f"no whole number as {name[:-1]}", path)
        return tags.astype(np.int64)
    if tags.dtype.kind in "iub":
        limit = np.iinfo(np.int64).max
        _refuse_rows(tags > limit, f"a {name[:-1]} above {limit}", path)
        return tags.astype(np.int64)
    if tags.dtype.kind != "U":
        raise UserError(f"{shown(path)}: {name} are of type {tags.dtype}; save integers or texts")
    _refuse_rows(_not_unicode(tags), "letters that Unicode does not have", path)
    _refuse_rows(np.char.strip(tags) == "", f"an empty {name[:-1]}", path)
    return _integers_if_all(tags)


def _not_unicode(texts: np.ndarray) -> np.ndarray:
    """(N,) whether a text holds a number that stands for no letter: a damaged array can."""
    points = np.ascontiguousarray(texts).view(np.uint32).reshape(len(texts), -1)
    if not texts.dtype.isnative:
        points = points.byteswap()
    return ((points > 0x10FFFF) | ((points >= 0xD800) & (points < 0xE000))).any(axis=1)


def _integers_if_all(texts: np.ndarray) -> np.ndarray:
    try:
        numbers = texts.astype(np.int64)
    except (ValueError, OverflowError):
        return texts
    return numbers if (numbers.astype(np.str_) == texts).all() else texts


def _norms(embeddings: np.ndarray) -> np.ndarray:
    """(N,) lengths; NaN or infinite where a component is, or where the square overflows float64."""
    norms = np.empty(len(embeddings))
    with np.errstate(all="ignore"):
        for start in range(0, len(embeddings), ROWS_PER_CHECK):
            block = embeddings[start : start + ROWS_PER_CHECK].astype(np.float64)
            norms[start : start + len(block)] = np.sqrt((block**2).sum(axis=1))
    return norms


def _refuse_rows(bad: np.ndarray, fault: str, path: Path) -> None:
    rows = np.flatnonzero(bad)
    if len(rows):
        named = ", ".join(map(str, rows[:ROWS_NAMED]))
        more = f" and {len(rows) - ROWS_NAMED} more" if len(rows) > ROWS_NAMED else ""
        subject = f"row {named} holds" if len(rows) == 1 else f"rows {named}{more} hold"
        raise UserError(
            f"{shown(path)}: {subject} {fault} (rows count from 0); mend or drop what is wrong"
        )
