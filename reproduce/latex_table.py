"""A results table as a LaTeX ``table`` environment, in booktabs style."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from common.atomic import write_text
from reproduce.columns import notes, text_columns

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "±": r"$\pm$",
    "Δ": r"$\Delta$",
    "ε": r"$\varepsilon$",
    "†": r"$^\dagger$",
    "‡": r"$^\ddagger$",
    "<": r"$<$",
    ">": r"$>$",
}


def write(frame: pd.DataFrame, bases: Mapping[str, str | None], title: str, path: Path) -> str:
    """Writes the table and returns its text.

    Args:
        frame: a results table, a line per run.
        bases: for each row, the row that its deltas refer to.
        title: becomes the caption.
    """
    head, *rows = text_columns(frame, bases)
    # A column that says the same in every line says it once, in the caption.
    same = [i for i in (1, 2) if rows and len({row[i] for row in rows}) == 1 and len(rows) > 1]
    caption = ", ".join([title, *(rows[0][i] for i in same)])
    kept = [i for i in range(len(head)) if i not in same]
    alignment = "".join("l" if i < 3 else "r" for i in kept)
    explained = " ".join(
        ["Mean $\\pm$ standard deviation over seeds.", *(escape(note) for note in notes(rows))]
    )
    lines = [
        f"% From {path.with_suffix('.csv').name} by python -m reproduce.latex; needs booktabs.",
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escape(caption)}. {explained}}}",
        rf"\label{{tab:{path.stem}}}",
        r"\resizebox{\textwidth}{!}{%",
        rf"\begin{{tabular}}{{{alignment}}}",
        r"\toprule",
        _line(head, kept),
        r"\midrule",
    ]
    previous = None
    for row in rows:
        family = bases.get(row[0]) or row[0]
        if previous is not None and (row[1] != previous[1] or row[2] != previous[2]):
            lines.append(r"\midrule")
        elif previous is not None and family != (bases.get(previous[0]) or previous[0]):
            lines.append(r"\addlinespace")
        lines.append(_line(row, kept))
        previous = row
    lines += [r"\bottomrule", r"\end{tabular}}", r"\end{table}", ""]
    text = "\n".join(lines)
    write_text(path, text)
    return text


def escape(text: str) -> str:
    """The text with everything that LaTeX would take for itself written out."""
    written = "".join(_SPECIAL.get(character, character) for character in text)
    return re.sub(r"(?<!\w)-(?=\d)", "$-$", written)


def _line(cells: list[str], kept: list[int]) -> str:
    return " & ".join(escape(cells[i]) for i in kept) + r" \\"
