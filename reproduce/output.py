"""What a filled table leaves: its CSV, its page, its figure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reproduce import latex_table, markdown, results
from reproduce.figures import pareto
from reproduce.table import Planned, Table


def write(
    table: Table,
    scale: str,
    runs: list[Planned],
    records: list[dict[str, Any]],
    folder: Path,
    latex: bool = False,
) -> str:
    """Writes ``folder/<scale>/<table>.csv`` and .md and the figure; returns the page.

    Args:
        runs, records: of the table, in the same order.
        latex: a .tex file as well.
    """
    keyed = [
        (run.key_columns(table.name), record) for run, record in zip(runs, records, strict=True)
    ]
    frame = results.to_frame(keyed)
    path = results.csv_path(table.name, scale, folder)
    results.write(frame, path)
    bases = {row.name: row.base for row in table.rows[scale]}
    page = markdown.write(frame, bases, table.title, path.with_suffix(".md"))
    figure = pareto.draw(
        frame, bases, table.title, path.parent / "figures" / f"{table.name}_pareto"
    )
    written = [str(path), str(path.with_suffix(".md")), str(figure)]
    if latex:
        latex_table.write(frame, bases, table.title, path.with_suffix(".tex"))
        written.append(str(path.with_suffix(".tex")))
    return f"{page}\nwrote {', '.join(written)}"
