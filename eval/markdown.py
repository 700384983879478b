"""Tables for people: Markdown that also lines up in a terminal."""

from __future__ import annotations

from collections.abc import Sequence


def markdown_table(rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table, its first row the head; bars and line breaks inside cells are escaped."""
    cells = [[_escaped(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        "| " + " | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) + " |"
        for row in cells
    ]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([lines[0], rule, *lines[1:]])


def _escaped(cell: str) -> str:
    shown = cell if cell.isprintable() else ascii(cell)
    return shown.replace("|", "\\|")
