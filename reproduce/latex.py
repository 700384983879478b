r"""LaTeX export of results tables, in booktabs style.

    python -m reproduce.latex --table table2 --scale demo

The file is a whole ``table`` environment: ``\input`` it in a document that loads booktabs and
graphicx. It is made from the results CSV alone.
"""

if not __package__:
    raise SystemExit("run this from the repository root as: python -m reproduce.latex")

import argparse
import re
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from common.atomic import write_text
from common.errors import UserError, run_cli
from reproduce import results
from reproduce.columns import notes, text_columns
from reproduce.tables import TABLES

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


def main(argv: list[str]) -> int:
    """Exports one table, or all that have results."""
    parser = argparse.ArgumentParser(prog="python -m reproduce.latex", description="LaTeX export")
    parser.add_argument("--table", choices=TABLES, help="default: all that have results")
    parser.add_argument("--scale", choices=("demo", "paper"), default="demo")
    parser.add_argument("--results", type=Path, default=results.RESULTS)
    options = parser.parse_args(argv)
    wanted = [options.table] if options.table else list(TABLES)
    paths = {name: results.csv_path(name, options.scale, options.results) for name in wanted}
    there = [name for name in wanted if options.table or paths[name].exists()]
    if not there:
        raise UserError(
            f"no results under {options.results / options.scale}: run python -m reproduce.table2 "
            "first"
        )
    for name in there:
        bases = {row.name: row.base for row in TABLES[name].rows[options.scale]}
        out = paths[name].with_suffix(".tex")
        write(results.read(paths[name]), bases, TABLES[name].title, out)
        print(f"wrote {out}")
    return 0


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


if __name__ == "__main__":
    raise SystemExit(run_cli(main))
