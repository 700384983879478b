"""The cached table of a folder's images: what is listed, and size and digest of each file.

Listing and digesting 462,000 files takes minutes the first time and a second or two afterwards: a
parquet file keeps the table, and what has the same size and time stamp as before is not read anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from filelock import FileLock
from tqdm import tqdm

from common.atomic import atomic_path
from common.errors import UserError
from datasets.read_image import read_image

VARIABLE = "TCM_INDEX_CACHE"
FOLDER = ".index"
# Columns that this module adds; ``size`` is -1 where a file is missing. ``broken`` is "" for a file
# that decodes, else the reason, and missing where nobody asked yet.
FILE_COLUMNS = ("size", "mtime_ns", "content", "broken")
_VERSION = 1
_STAMP = b"stamp"
_QUIET_BELOW = 2000


def location(folder: Path) -> Path:
    """Where caches and written splits of a data folder go: ``.index/NAME`` beside the folder.

    Not in it: torchvision's ImageFolder, for one, takes every folder inside for a class. The
    environment variable ``TCM_INDEX_CACHE`` names another place, for data on a read-only disk.
    """
    folder = folder.resolve()
    place = os.environ.get(VARIABLE)
    if not place:
        return folder.parent / FOLDER / folder.name
    mark = hashlib.sha256(str(folder).encode()).hexdigest()[:12]
    return Path(place) / f"{folder.name}-{mark}"


def cached_table(
    name: str,
    folder: Path,
    list_images: Callable[[], pd.DataFrame],
    depends_on: Sequence[Path] | None,
    decode: bool = False,
) -> pd.DataFrame:
    """The images that ``list_images`` names, with :data:`FILE_COLUMNS`.

    Two processes may call this at once: one builds, the other waits and reads. Where the cache
    cannot be written a warning says so, and the table is built anew each time.

    Args:
        name: of the cache's file.
        folder: keys of the table are paths relative to it.
        list_images: gives a table with a ``key`` column; called when there is no fresh cache.
        depends_on: annotation files that decide the listing. None: it follows from the folder
            itself and is made anew each time (only the digests are cached then).
        decode: also decode every image once and fill ``broken``.

    Raises:
        UserError: what ``list_images`` raises.
    """
    path = location(folder) / f"{name}.parquet"
    with _locked(path) as writable:
        stamp = None if depends_on is None else _stamp(folder, depends_on)
        old, old_stamp = _read(path)
        fresh = old is not None and stamp is not None and stamp == old_stamp
        if fresh:
            listing = old.drop(columns=list(FILE_COLUMNS))
        else:
            listing = list_images().reset_index(drop=True)
        table, read_any = _add_file_columns(listing, folder, old, decode)
        if writable and (read_any or not (fresh or _same_rows(listing, old))):
            _write(path, table, stamp)
    return table


def content_digest(path: str | os.PathLike) -> str:
    """32 hexadecimal digits of BLAKE2b over the file's bytes.

    Raises:
        UserError: it cannot be read; names it.
    """
    try:
        with open(path, "rb") as file:
            digest = hashlib.blake2b(digest_size=16)
            while block := file.read(1 << 20):
                digest.update(block)
            return digest.hexdigest()
    except OSError as error:
        raise UserError(
            f"cannot read {path} ({error.strerror or error}); check the file and its permissions"
        ) from error


def _broken(path: str) -> str:
    try:
        read_image(path)
    except UserError as error:
        return str(error)
    return ""


def _add_file_columns(
    listing: pd.DataFrame, folder: Path, old: pd.DataFrame | None, decode: bool
) -> tuple[pd.DataFrame, bool]:
    """The table, and whether any file had to be read."""
    paths = [os.path.join(folder, key) for key in listing["key"]]
    size, mtime = _stat_all(paths)
    count = len(paths)
    content = np.full(count, None, dtype=object)
    broken = np.full(count, None, dtype=object)
    if old is not None:
        known = old.drop_duplicates("key").set_index("key").reindex(listing["key"])
        same = (known["size"].to_numpy() == size) & (known["mtime_ns"].to_numpy() == mtime)
        content[same] = known["content"].to_numpy(dtype=object)[same]
        reason = known["broken"].to_numpy(dtype=object)
        asked = same & ~pd.isna(reason)
        broken[asked] = reason[asked]
    content[size < 0] = ""
    broken[size < 0] = "missing"
    unread = np.flatnonzero(pd.isna(content))
    if len(unread):
        content[unread] = _map("reading", content_digest, [paths[i] for i in unread])
    unknown = np.flatnonzero(pd.isna(broken)) if decode else np.empty(0, dtype=np.int64)
    if len(unknown):
        broken[unknown] = _map("decoding", _broken, [paths[i] for i in unknown])
    table = listing.assign(
        size=size,
        mtime_ns=mtime,
        content=pd.array(content, dtype="string"),
        broken=pd.array(broken, dtype="string"),
    )
    return table, bool(len(unread) or len(unknown))


def _same_rows(listing: pd.DataFrame, old: pd.DataFrame | None) -> bool:
    return (
        old is not None
        and set(listing.columns) == set(old.columns) - set(FILE_COLUMNS)
        and len(listing) == len(old)
        and all((listing[name].to_numpy() == old[name].to_numpy()).all() for name in listing)
    )


def _stat_all(paths: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Sizes and modification times (ns), shape (N,) int64; -1 where there is no such file."""
    facts = np.full((len(paths), 2), -1, dtype=np.int64)
    for row, path in enumerate(paths):
        try:
            found = os.stat(path)
        except OSError:
            continue
        facts[row] = found.st_size, found.st_mtime_ns
    return facts[:, 0].copy(), facts[:, 1].copy()


def _map(what: str, function: Callable[[str], str], paths: list[str]) -> np.ndarray:
    # Threads: reading and decoding release the interpreter's lock.
    results = np.empty(len(paths), dtype=object)
    quiet = True if len(paths) < _QUIET_BELOW else None
    with ThreadPoolExecutor(min(16, 2 * (os.cpu_count() or 1))) as pool:
        done = pool.map(function, paths)
        for row, value in enumerate(tqdm(done, what, len(paths), leave=False, disable=quiet)):
            results[row] = value
    return results


def _stamp(folder: Path, files: Sequence[Path]) -> str:
    facts = []
    for path in files:
        found = path.stat()
        facts.append([os.path.relpath(path, folder), found.st_size, found.st_mtime_ns])
    return json.dumps([_VERSION, facts])


def _read(path: Path) -> tuple[pd.DataFrame | None, str | None]:
    try:
        stored = pq.read_table(path)
    except (OSError, pa.ArrowException):
        # No cache yet, or a damaged one: either way it is built anew.
        return None, None
    stamp = (stored.schema.metadata or {}).get(_STAMP)
    table = stored.to_pandas()
    if not {"key", *FILE_COLUMNS} <= set(table.columns):
        return None, None
    return table, stamp.decode() if stamp else None


def _write(path: Path, table: pd.DataFrame, stamp: str | None) -> None:
    stored = pa.Table.from_pandas(table, preserve_index=False)
    metadata = {**(stored.schema.metadata or {}), _STAMP: (stamp or "").encode()}
    try:
        with atomic_path(path) as temporary:
            pq.write_table(stored.replace_schema_metadata(metadata), temporary)
    except UserError as error:
        _warn_unwritable(str(error))


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[bool]:
    """Holds the cache's lock; yields whether the cache can be written."""
    lock = FileLock(path.with_suffix(".lock"))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not os.access(path.parent, os.W_OK):
            raise PermissionError(f"{path.parent} is read-only")
        lock.acquire()
    except OSError as error:
        _warn_unwritable(f"cannot write {path} ({error.strerror or error})")
        yield False
        return
    try:
        yield True
    finally:
        lock.release()


def _warn_unwritable(problem: str) -> None:
    warnings.warn(
        f"{problem}; the index is built anew each time, unless {VARIABLE} names a writable folder",
        stacklevel=2,
    )
