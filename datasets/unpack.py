"""Unpacks archives without trusting them: nothing outside the folder, no links, bounded size."""

from __future__ import annotations

import contextlib
import lzma
import os
import shutil
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import BinaryIO, NamedTuple

from tqdm import tqdm

from common.atomic import TEMPORARY_PREFIX
from common.errors import UserError

# Beyond the largest archive (iNaturalist: 120 GB, DigiFace: some 1.2 million files in all).
MAX_BYTES = 400 * 10**9
MAX_MEMBERS = 3_000_000
_DAMAGED = (tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error, lzma.LZMAError)
_SUFFIXES = (".zip", ".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz")


class Member(NamedTuple):
    """A regular file in an archive: its path, its size in bytes, and where to read it from now."""

    name: str
    size: int
    file: BinaryIO


def is_archive(path: Path) -> bool:
    """Whether the name is one of a zip or tar archive."""
    return path.name.lower().endswith(_SUFFIXES)


def members(
    archive: Path | BinaryIO,
    name: str | None = None,
    max_bytes: int = MAX_BYTES,
    max_members: int = MAX_MEMBERS,
) -> Iterator[Member]:
    """The files of an archive in order, each to be read before the next one is asked for.

    Args:
        archive: a zip or tar file, or a stream of a (compressed) tar file.
        name: what to call it in messages; by default its path.
        max_bytes, max_members: limits on the unpacked content.

    Raises:
        UserError: a member lies outside (absolute path, ``..``), is a link or a device, or there is
            more than the limits allow. A damaged archive raises errors of its own, both here and
            when members are read: use it within :func:`named_damage`.
    """
    name = name or str(archive)
    total = 0
    read = _read_tar
    if isinstance(archive, Path) and zipfile.is_zipfile(archive):
        read = _read_zip
    for count, member in enumerate(read(archive, name), 1):
        _check_name(member.name, name)
        total += member.size
        if total > max_bytes or count > max_members:
            raise UserError(
                f"{name} unpacks to more than {max_bytes / 1e9:.3g} GB or {max_members:,} files; "
                "it is not the published archive, delete it"
            )
        yield member


@contextlib.contextmanager
def named_damage(name: str) -> Iterator[None]:
    """Turns what zip and tar readers raise on damaged archives into a UserError with the name."""
    try:
        yield
    except _DAMAGED as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise UserError(
            f"{name} is damaged or cut short ({reason}); delete it and run prepare again"
        ) from error


def unpack(archive: Path, folder: Path, max_bytes: int = MAX_BYTES) -> list[str]:
    """Unpacks into ``folder``, which is made if need be; what is in it stays.

    The content is written to a temporary folder beside and moved at the end, so that ``folder``
    never shows half an archive.

    Returns:
        Names of the new files and folders directly in ``folder``.

    Raises:
        UserError: see :func:`members`; also a full disk, two members of one name (on a file system
            that ignores case, perhaps), or a file that is there already.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _temporary_folder(folder) as temporary:
            _write_all(archive, temporary, max_bytes)
            inside = sorted(os.listdir(temporary))
            for name in inside:
                if (folder / name).exists():
                    raise UserError(
                        f"{folder / name} is there already, {archive.name} holds it, too; "
                        "move it away or delete it and run again"
                    )
            for name in inside:
                os.rename(temporary / name, folder / name)
            return inside
    except OSError as error:
        raise UserError(
            f"cannot unpack {archive} to {folder} ({error.strerror or error}); "
            "check free space, permissions and the archive"
        ) from error


def _write_all(archive: Path, folder: Path, max_bytes: int) -> None:
    bar = tqdm(desc=f"unpacking {archive.name}", unit="B", unit_scale=True, disable=None)
    with bar, named_damage(str(archive)):
        for member in members(archive, max_bytes=max_bytes):
            target = folder / PurePosixPath(member.name)
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                with target.open("xb") as file:
                    shutil.copyfileobj(member.file, file, 1 << 20)
            except FileExistsError as error:
                raise UserError(
                    f"{archive} holds {member.name} twice, or in two spellings that this file "
                    "system takes for one; unpack on a file system that minds upper and lower case"
                ) from error
            bar.update(member.size)


def _read_zip(archive: Path, name: str) -> Iterator[Member]:
    with zipfile.ZipFile(archive) as opened:
        for info in opened.infolist():
            if info.is_dir():
                continue
            mode = info.external_attr >> 16
            if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
                raise _not_plain(name, info.filename)
            try:
                file = opened.open(info)
            except RuntimeError as error:
                raise UserError(f"{name}: {info.filename} is encrypted; unpack by hand") from error
            with file:
                yield Member(info.filename, info.file_size, file)


def _read_tar(archive: Path | BinaryIO, name: str) -> Iterator[Member]:
    how = {"name": archive} if isinstance(archive, Path) else {"fileobj": archive, "mode": "r|*"}
    with tarfile.open(**how) as opened:
        while (info := opened.next()) is not None:
            # tarfile would keep a record of each of 462,000 members.
            opened.members = []
            if info.isdir():
                continue
            if not info.isreg():
                raise _not_plain(name, info.name)
            yield Member(info.name, info.size, opened.extractfile(info))


def _check_name(member: str, archive: str) -> None:
    parts = PurePosixPath(member.replace("\\", "/")).parts
    if not parts or ".." in parts or parts[0] == "/" or ":" in parts[0]:
        raise UserError(
            f"{archive} holds {member!r}, a path that leads out of its folder; "
            "it is not the published archive, delete it"
        )


def _not_plain(archive: str, member: str) -> UserError:
    return UserError(
        f"{archive} holds {member!r}, a link or device; it is not the published archive, delete it"
    )


@contextlib.contextmanager
def _temporary_folder(parent: Path) -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix=TEMPORARY_PREFIX, dir=parent))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
