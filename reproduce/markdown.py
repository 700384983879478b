"""A results table as a Markdown page: mean ± standard deviation over seeds, delta to the base."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from common.atomic import write_text
from reproduce.columns import notes, text_columns
from reproduce.seal import seal

CAPTION = (
    "R@1: share of test images whose nearest other image has their class (self excluded by index; "
    "images without another of their class left out). OPIS: variance over classes of the utility, "
    "averaged over the thresholds of FAR 1e-2 to 1e-1; lower is better. Noise floor: what classes "
    "that do not differ would give. Δ: mean of the paired differences, seed by seed, to the base "
    "loss. Mean ± standard deviation over seeds, which covers training randomness, not the choice "
    "of classes."
)


def write(frame: pd.DataFrame, bases: Mapping[str, str | None], title: str, path: Path) -> str:
    """Writes the page and returns its text.

    Args:
        bases: for each row, the row that its deltas refer to.
        path: of the page; the CSV of the same name beside it, if there, is named with its checksum.
    """
    head, *rows = text_columns(frame, bases)
    lines = [f"# {title}", "", *table([head, *rows], left=3)]
    for paragraph in (CAPTION, *notes(rows)):
        lines += ["", paragraph]
    lines += ["", f"{origin(frame)} {seal(path.with_suffix('.csv'))}".strip(), ""]
    text = "\n".join(lines)
    write_text(path, text)
    return text


def table(rows: list[list[str]], left: int = 1) -> list[str]:
    """Lines of a Markdown table, heading first; all columns after ``left`` are right-aligned."""
    head, *body = rows
    rule = ["---"] * left + ["---:"] * (len(head) - left)
    return ["| " + " | ".join(cells) + " |" for cells in (head, rule, *body)]


def origin(frame: pd.DataFrame) -> str:
    """One sentence: commits, devices, seconds and the rules by which epochs were kept."""
    commits = ", ".join(
        f"{str(commit)[:12]}{' (dirty)' if str(dirty) == 'True' else ''}"
        for commit, dirty in frame[["commit", "dirty"]].drop_duplicates().itertuples(index=False)
    )
    rules = ", ".join(sorted(set(frame["selection"])))
    devices = "; ".join(sorted(set(frame["device"])))
    seconds = frame["seconds"].sum()
    return f"Made by commit {commits} on {devices}; {seconds:.0f} s in all; epoch kept: {rules}."
