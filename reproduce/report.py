"""``results/<scale>/REPORT.md``: what held, what did not, by how much and at what cost.

    python -m reproduce.report --scale demo

Every sentence with a number is made from the results CSVs; nothing is trained.
"""

if not __package__:
    raise SystemExit("run this from the repository root as: python -m reproduce.report")

from collections import Counter
from pathlib import Path

import pandas as pd

from common.atomic import write_text
from common.errors import run_cli
from reproduce import (
    compare,
    curve_data,
    reference,
    report_choices,
    report_claims,
    report_costs,
    results,
)
from reproduce.claims import Claims
from reproduce.judge import Judged, judge_all
from reproduce.read_all import Found, read_all
from reproduce.results_parser import results_parser
from reproduce.tables import TABLES
from reproduce.verdict import NOT_RUN

STAND_IN = (
    "The demo trains small networks on characters drawn in many typefaces. It stands in for the "
    "paper's data sets by shape only, many classes and unseen test classes: its numbers cannot be "
    "compared with the paper's, the directions of the claims can be judged on it."
)


def main(argv: list[str]) -> int:
    """Writes the report and prints where."""
    parser = results_parser("report", __doc__)
    options = parser.parse_args(argv)
    path = options.results / options.scale / "REPORT.md"
    write_text(path, compose(options.scale, options.results))
    print(f"wrote {path}")
    return 0


def compose(scale: str, root: Path = results.RESULTS) -> str:
    """The whole report as Markdown.

    Raises:
        UserError: no results, or one that cannot be trusted.
    """
    found, known = read_all(scale, root), reference.claims()
    judged = judge_all(known, found.frames)
    bases = {
        table.name: {row.name: row.base for row in table.rows[scale]}
        for table in TABLES.values()
        if table.name in found.frames
    }
    changes = report_choices.changes(found.frames, bases)
    sections = [
        f"# What of the paper holds at {scale} scale",
        "",
        *_opening(judged, known, scale),
        "",
        *report_claims.verdict_table(judged),
        "",
        *_how(judged, known),
        *report_claims.stories(judged),
        *_pictures(root / scale),
        "## What it cost",
        "",
        *report_costs.cost_table(found.frames),
        "",
        "## What was easy and what was hard",
        "",
        *report_costs.easy_and_hard(found.frames, judged),
        "",
        "## Where our choices could matter",
        "",
        *report_choices.floor_lines(changes, found.frames),
        "",
        *report_choices.form_lines(changes),
        "",
        *report_choices.choice_lines(_choices(root / scale)),
        "",
        *_numbers(scale, found),
        *_origin(found),
        "",
    ]
    return "\n".join(sections)


def _opening(judged: list[Judged], known: Claims, scale: str) -> list[str]:
    counts = Counter(one.verdict for one in judged)
    run = len(judged) - counts[NOT_RUN]
    words = ", ".join(f"{n} {word}" for word, n in counts.most_common() if word != NOT_RUN)
    lines = [
        f"Of the {len(judged)} claims of the paper ({known.paper.venue}, arXiv "
        f"{known.paper.arxiv}) {run} were run{f': {words}' if words else ''}."
    ]
    return [*lines, "", STAND_IN] if scale == "demo" else lines


def _how(judged: list[Judged], known: Claims) -> list[str]:
    sizes = "; ".join(report_claims.smallest_effects(judged))
    return [
        f"A claim is judged by Student's t interval ({100 * known.confidence:g} %) of paired "
        "differences: runs that share split, initial weights and batch order. The interval covers "
        "training randomness, not the choice of classes. *Reproduced*: it lies beyond the smallest "
        "effect that counts; *contradicted*: beyond it the other way; *no effect that counts*: "
        "between both; *inconclusive*: it crosses one. All parts of a claim must hold. The "
        f"smallest effects were fixed before any run: {sizes}. Holm's correction is over the "
        "claims that were tested, for each direction apart.",
    ]


def _pictures(folder: Path) -> list[str]:
    """Links to the figures that are there."""
    shown = {
        "pareto": "Accuracy against threshold consistency, every row of every table",
        "margin_ablation": "R@1 and OPIS over TCM's margins and weight",
        "time_complexity": "Step time and memory with and without TCM",
    }
    shown |= {f"{name}_utility": f"{table.title}: utility" for name, table in TABLES.items()}
    there = {
        name: text for name, text in shown.items() if (folder / "figures" / f"{name}.png").exists()
    }
    if not there:
        return []
    links = [f"![{text}](figures/{name}.png)" for name, text in there.items()]
    return ["", "## Figures", "", *(line for link in links for line in (link, ""))]


def _choices(folder: Path) -> pd.DataFrame:
    paths = [folder / "figures" / f"{name}_{curve_data.KINDS[-1]}.csv" for name in TABLES]
    frames = [pd.read_csv(path, dtype={"run_hash": str}) for path in paths if path.exists()]
    if not frames:
        return pd.DataFrame()
    # A run may be shown in two tables; its pair is the same in both.
    return pd.concat(frames).drop_duplicates(["run_hash", "choice", "value"])


def _numbers(scale: str, found: Found) -> list[str]:
    if scale != "paper":
        return []
    lines = list(compare.lines(found.frames, reference.values()))
    return ["## Numbers", "", *(f"-{line[1:]}" for line in lines), ""]


def _origin(found: Found) -> list[str]:
    commits: dict[str, list[str]] = {}
    for name, frame in found.frames.items():
        for commit, dirty in frame[["commit", "dirty"]].drop_duplicates().itertuples(index=False):
            text = f"{str(commit)[:12]}{' (dirty)' if str(dirty) == 'True' else ''}"
            commits.setdefault(text, []).append(name)
    lines = ["## Origin", ""]
    lines += [f"- {', '.join(names)}: commit {commit}." for commit, names in commits.items()]
    return [*lines, *(f"- Warning: {warning}." for warning in found.warnings)]


if __name__ == "__main__":
    raise SystemExit(run_cli(main))
