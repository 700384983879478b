"""Files appear whole or not at all: written under a temporary name, then renamed."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from common.errors import UserError

TEMPORARY_PREFIX = ".tmp-"


@contextlib.contextmanager
def atomic_path(path: str | os.PathLike) -> Iterator[Path]:
    """Yields a temporary path beside ``path``; on success it replaces ``path``, else it is removed.

    The temporary name keeps the suffix, so that writers which look at it (matplotlib, pandas) do
    the right thing. Missing parent folders are made. The data is flushed to disk before the rename:
    after a power cut, too, the file is the old one or the new one.

    Raises:
        UserError: the folder cannot be written (read-only, full disk), with the path.
    """
    path = Path(path)
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(
            prefix=TEMPORARY_PREFIX, suffix="".join(path.suffixes), dir=path.parent
        )
        os.close(handle)
        temporary = Path(name)
        yield temporary
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        temporary.chmod(0o666 & ~_umask())
        os.replace(temporary, path)
    except OSError as error:
        raise UserError(
            f"cannot write {path} ({error.strerror or error}); "
            "check free space and permissions, the previous file (if any) is untouched"
        ) from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def write_bytes(path: str | os.PathLike, data: bytes) -> None:
    """Writes ``data`` to ``path`` atomically."""
    with atomic_path(path) as temporary:
        temporary.write_bytes(data)


def write_text(path: str | os.PathLike, text: str) -> None:
    """Writes ``text`` to ``path`` atomically, as UTF-8 with ``\\n`` line ends."""
    write_bytes(path, text.encode("utf-8"))


def _umask() -> int:
    # There is no way to read the umask without setting it.
    mask = os.umask(0)
    os.umask(mask)
    return mask
