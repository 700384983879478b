"""Copies of data sets with smaller images: from a folder, or straight from an archive's stream."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import shutil
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from PIL import Image
from tqdm import tqdm

from common.errors import UserError
from datasets.read_image import read_image
from datasets.scan import SUFFIXES
from datasets.unpack import members, named_damage

JPEG_QUALITY = 95
_PARTIAL = ".partial"


def reduce_image(source: str | Path | bytes, side: int, name: str | None = None) -> bytes:
    """The encoded file with its shorter side reduced to ``side`` pixels.

    Images that are no larger stay as they are, byte for byte. Others become RGB: PNG where the
    file is one, else JPEG of quality 95.

    Args:
        source: a path, or the file's bytes.
        side: pixels, at least 1.
        name: what to call it in messages; by default the path.

    Raises:
        UserError: missing or damaged.
    """
    data = source if isinstance(source, bytes) else _read(source)
    name = name or str(source)
    # Twice the side leaves the reduction proper to a good filter, not to the JPEG decoder.
    image = read_image(io.BytesIO(data), 2 * side, name=name)
    with Image.open(io.BytesIO(data)) as original:
        kind = "PNG" if original.format == "PNG" else "JPEG"
        if min(original.size) <= side:
            return data
    width, height = image.size
    scale = side / min(width, height)
    size = (max(side, round(width * scale)), max(side, round(height * scale)))
    buffer = io.BytesIO()
    options = {"quality": JPEG_QUALITY} if kind == "JPEG" else {}
    image.resize(size, Image.Resampling.LANCZOS).save(buffer, kind, **options)
    return buffer.getvalue()


def resize_folder(
    folder: Path, keys: Sequence[str], others: Sequence[Path], target: Path, side: int
) -> None:
    """Makes ``target``: every image of ``keys`` reduced, and copies of the files ``others``.

    An interrupted run is taken up: what is finished is not made anew.

    Args:
        folder: of the images; keys and others lie below it.
        keys: relative paths.
        others: annotation files.
        target: must not exist yet.
        side: shorter side, pixels.

    Raises:
        UserError: an image is missing or damaged, or the disk is full or read-only.
    """
    outside = [key for key in keys if PurePosixPath(key).is_absolute() or ".." in key.split("/")]
    if outside:
        raise UserError(f"{folder}: {outside[0]!r} leads out of the folder; mend the annotations")
    jobs = ((key, os.path.join(folder, key)) for key in keys)
    partial = _partial(target)
    with _writing(target):
        _reduce_all(jobs, partial, side, len(keys))
        for path in others:
            copy = partial / path.relative_to(folder)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
        os.replace(partial, target)


def resize_stream(
    stream: BinaryIO, name: str, md5: str | None, target: Path, side: int, pause_at: int = 64
) -> None:
    """Reads a tar archive from front to back and keeps its images only, reduced, in ``target``.

    The archive itself is not stored. What an interrupted run had finished is kept, although the
    stream must be read again.

    Args:
        stream: the archive's bytes, e.g. a ``ResumingReader``.
        name: what to call it in messages.
        md5: hexadecimal checksum of the whole stream, or None.
        target: must not exist yet; the archive's top folder is made in it.
        side: shorter side, pixels.
        pause_at: images held in memory at most.

    Raises:
        UserError: the archive is damaged or not the published one, an image is damaged, or the disk
            is full or read-only.
    """
    checked = _Md5Reader(stream)

    def jobs() -> Iterator[tuple[str, bytes]]:
        with named_damage(name):
            for member in members(checked, name):
                if PurePosixPath(member.name).suffix.lower() in SUFFIXES:
                    yield member.name, member.file.read()

    partial = _partial(target)
    with _writing(target):
        _reduce_all(jobs(), partial, side, None, pause_at)
        checked.drain()
        if md5 is not None and checked.hexdigest() != md5:
            raise UserError(
                f"{name} has a wrong checksum (not the published md5 {md5}); delete {partial} and "
                "run prepare again"
            )
        os.replace(partial, target)


class _Md5Reader(io.RawIOBase):
    """Passes a stream on and digests what went by."""

    def __init__(self, stream: BinaryIO) -> None:
        super().__init__()
        self._stream = stream
        self._digest = hashlib.md5(usedforsecurity=False)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:
        data = self._stream.read(len(buffer))
        self._digest.update(data)
        buffer[: len(data)] = data
        return len(data)

    def drain(self) -> None:
        """Reads on to the end: archives are padded behind their last member."""
        while self.read(1 << 20):
            pass

    def hexdigest(self) -> str:
        return self._digest.hexdigest()


def _reduce_all(
    jobs: Iterator[tuple[str, str | bytes]],
    folder: Path,
    side: int,
    total: int | None,
    pause_at: int = 64,
) -> None:
    pending: deque[Future] = deque()
    bar = tqdm(desc=f"reducing to {side} pixels", total=total, unit="images", disable=None)
    with bar, ThreadPoolExecutor(min(16, os.cpu_count() or 1)) as pool:
        try:
            for key, source in jobs:
                pending.append(pool.submit(_reduce_one, source, key, folder / key, side))
                while len(pending) >= pause_at:
                    pending.popleft().result()
                    bar.update()
            while pending:
                pending.popleft().result()
                bar.update()
        finally:
            for future in pending:
                future.cancel()


def _reduce_one(source: str | bytes, key: str, target: Path, side: int) -> None:
    if target.exists():
        return
    data = reduce_image(source, side, key if isinstance(source, bytes) else None)
    target.parent.mkdir(parents=True, exist_ok=True)
    # Renamed when whole; flushing 462,000 small files to disk one by one would take hours.
    temporary = target.with_name(target.name + _PARTIAL)
    temporary.write_bytes(data)
    os.replace(temporary, target)


def _read(path: str | Path) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise UserError(f"cannot read {path} ({error.strerror or error}); fetch it anew") from error


def _partial(target: Path) -> Path:
    return target.with_name(target.name + _PARTIAL)


@contextlib.contextmanager
def _writing(target: Path) -> Iterator[None]:
    """Turns failures to write into the sentence that says so."""
    if target.exists():
        raise UserError(f"{target} is there already; delete it to make it anew")
    try:
        yield
    except OSError as error:
        raise UserError(
            f"cannot write {target} ({error.strerror or error}); check free space and permissions, "
            "then run again to go on"
        ) from error
