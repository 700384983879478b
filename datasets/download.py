"""Fetches files over HTTP: mirrors in order, resumed after a break, verified, then moved."""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
from pathlib import Path

import pooch
from tqdm import tqdm

from common.atomic import TEMPORARY_PREFIX
from common.errors import UserError
from datasets.catalogue import Download
from datasets.http_reader import MirrorError, ResumingReader

_BLOCK = 1 << 20


def fetch(item: Download, folder: Path, pause: float = 1.0) -> Path:
    """The file of ``item`` in ``folder``, fetched from the first mirror that has it.

    A file that is there already with the right checksum is kept; one with a wrong one is an error,
    never overwritten. A broken download leaves a part behind and is taken up there the next time.

    Raises:
        UserError: every mirror failed (says how, and what to do by hand), a file that is there has
            a wrong checksum, the disk is full or read-only.
    """
    target = folder / item.file
    if target.is_file():
        check_md5(target, item)
        return target
    failures = []
    for url in item.urls:
        try:
            return _fetch_from(url, item, folder, pause)
        except MirrorError as error:
            failures.append(f"{url}: {error}")
        except OSError as error:
            raise UserError(
                f"cannot write {target} ({error.strerror or error}); check free space and "
                "permissions"
            ) from error
    tried = "; ".join(failures) or "no server offers it"
    manual = f"{item.manual}, " if item.manual else ""
    raise UserError(
        f"cannot fetch {item.file} ({tried}); by hand: {manual}put it into {folder}, and run "
        "prepare again"
    )


def check_md5(path: Path, item: Download) -> None:
    """Compares a file with the published checksum, where there is one.

    Raises:
        UserError: it is another file.
    """
    if item.md5 is not None and pooch.file_hash(str(path), alg="md5") != item.md5:
        raise UserError(
            f"{path} has a wrong checksum (not the published md5 {item.md5}); it is damaged or "
            "another file, delete it and run prepare again"
        )


def part_path(item: Download, url: str, folder: Path) -> Path:
    """Where an unfinished download lies; each mirror has its own."""
    mirror = hashlib.sha256(url.encode()).hexdigest()[:8]
    return folder / f"{TEMPORARY_PREFIX}{mirror}-{item.file}"


def _fetch_from(url: str, item: Download, folder: Path, pause: float) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    part = part_path(item, url, folder)

    def download(url: str, output: str, _: object) -> None:
        _copy_to_part(url, part, item.file, pause)
        os.replace(part, output)

    # pooch reports each file's name and hash; the progress bar says enough.
    pooch.get_logger().setLevel(logging.WARNING)
    known = None if item.md5 is None else f"md5:{item.md5}"
    try:
        pooch.retrieve(url, known, fname=item.file, path=folder, downloader=download)
    except ValueError as error:
        raise MirrorError(f"what it sent has a wrong checksum (not md5 {item.md5})") from error
    return folder / item.file


def _copy_to_part(url: str, part: Path, name: str, pause: float) -> None:
    start = part.stat().st_size if part.exists() else 0
    reader = ResumingReader(url, start, pause=pause)
    bar = tqdm(desc=name, unit="B", unit_scale=True, initial=start, disable=None)
    with reader, bar, part.open("ab") as file:
        try:
            while block := reader.read(_BLOCK):
                if bar.total is None and reader.total is not None:
                    bar.total = reader.total
                    _check_space(part.parent, reader.total - reader.position + len(block))
                file.write(block)
                bar.update(len(block))
        except MirrorError:
            too_long = reader.total is not None and start > reader.total
            if too_long or reader.position == 0:
                part.unlink()
            raise


def _check_space(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise UserError(
            f"{folder} has {free / 1e9:.1f} GB free, but {needed / 1e9:.1f} GB more are needed; "
            "make room or choose another --root"
        )
