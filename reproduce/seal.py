"""A page says which CSV it was made from, so that a CSV that was edited later is noticed."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from common.errors import UserError

_LENGTH = 16


def seal(path: Path) -> str:
    """For a table's page: names its CSV's checksum; empty where the CSV is not there."""
    return f"sha256 of {path.name}: `{_digest(path)}`." if path.exists() else ""


def require_sealed(path: Path) -> None:
    """The CSV is the one that the page beside it was made from, if the page says which.

    Raises:
        UserError: a cell was edited since, or the page is of another run of the table.
    """
    page = path.with_suffix(".md")
    if not page.exists():
        return
    text = page.read_text(encoding="utf-8")
    found = re.search(f"sha256 of {re.escape(path.name)}: `([^`]*)`", text)
    if found and found[1] != _digest(path):
        raise UserError(
            f"{path} was changed after {page.name} was made from it (sha256 {_digest(path)}, not "
            f"{found[1]}): rerun its table, which trains nothing that is there"
        )


def _digest(path: Path) -> str:
    # Git may have changed the ends of lines.
    data = path.read_bytes().replace(b"\r\n", b"\n")
    return hashlib.sha256(data).hexdigest()[:_LENGTH]
