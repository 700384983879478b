"""Guards around parsers of files from strangers: one-line errors, size claims checked first."""

from __future__ import annotations

import contextlib
import os
import re
import warnings
from collections.abc import Iterator
from pathlib import Path

from common.errors import UserError

# Honest embeddings shrink by less than 10, and labels, which may shrink by far more, lie beside
# them. Small files may claim anything that is small itself.
SMALL_BYTES = 64 * 2**20
MAX_COMPRESSION = 200
MAX_REASON = 160
ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def shown(text: object) -> str:
    """``text`` for an error message: a name that would break the line is quoted and escaped."""
    plain = str(text)
    return plain if plain.isprintable() else ascii(plain)


def one_line(error: BaseException) -> str:
    """The first words of a parser's complaint, on one line, without addresses in memory."""
    first_line = next(iter(str(error).strip().splitlines()), type(error).__name__)
    words = ADDRESS.sub("", shown(" ".join(first_line.split())))
    return words if len(words) <= MAX_REASON else words[:MAX_REASON] + "..."


@contextlib.contextmanager
def parsing(path: Path, what: str) -> Iterator[None]:
    """Turns whatever a parser raises on a bad file into a :class:`UserError` with one sentence.

    Parsers raise nearly anything on hostile bytes (``zlib.error``, ``struct.error``, ``KeyError``,
    ``RecursionError``, ...), so the net is wide; keep only calls of the parser inside.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except UserError:
        raise
    except Exception as error:
        raise UserError(
            f"{shown(path)}: {what} cannot be read ({one_line(error)}); "
            "the file is damaged or not of the type that its name says, write it again"
        ) from error


def require_file(path: Path) -> int:
    """The size of ``path`` in bytes.

    Raises:
        UserError: it is missing, unreadable, empty, or not a regular file (a folder, a device, a
            pipe: reading those may never end).
    """
    try:
        if not path.is_file():
            kind = "is not a regular file" if path.exists() else "does not exist"
            raise UserError(f"{shown(path)} {kind}; give the path of an embeddings or labels file")
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
    except (OSError, ValueError) as error:
        raise UserError(
            f"{shown(path)} cannot be opened ({one_line(error)}); check the path and permissions"
        ) from error
    if size == 0:
        raise UserError(f"{shown(path)} is empty; write it again")
    return size


def check_claim(path: Path, what: str, claimed: int, stored: int) -> None:
    """Refuses, before any memory is taken, what cannot be read into this machine's memory.

    Args:
        claimed: bytes that ``what`` says it needs when unpacked.
        stored: bytes of the whole file.

    Raises:
        UserError: it claims more than the machine's memory, or is large and packed more than
            200-fold, which floats never are: a decompression bomb.
    """
    if claimed > _memory_bytes():
        raise UserError(
            f"{shown(path)}: {what} claims {claimed:,} bytes, more than this machine's memory; "
            "the file is damaged, or needs a larger machine"
        )
    if claimed > SMALL_BYTES and claimed > MAX_COMPRESSION * max(stored, 1):
        raise UserError(
            f"{shown(path)}: {what} claims {claimed:,} bytes unpacked from a file of {stored:,}, "
            "which looks like a decompression bomb; save it uncompressed if it is genuine"
        )


def _memory_bytes() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not on every system
        return 2**40
