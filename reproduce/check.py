"""Verdicts on the paper's claims, and its numbers against ours at paper scale.

    python -m reproduce.check --scale demo

Exit code 0 when everything could be judged, whatever the verdicts (``--strict``: 1 unless all
claims that were run are reproduced); 2 when results or the reference are missing, broken or stale.
"""

if not __package__:
    raise SystemExit("run this from the repository root as: python -m reproduce.check")

import argparse
from pathlib import Path

import pandas as pd

from common.errors import UserError, run_cli
from reproduce import compare, reference, results
from reproduce.judge import Judged, judge
from reproduce.tables import TABLES

REMINDER = (
    "n counts pairs of runs that share split, initial weights and batch order: the intervals cover "
    "training randomness, not the choice of classes."
)


def main(argv: list[str]) -> int:
    """Prints a verdict a line."""
    parser = argparse.ArgumentParser(
        prog="python -m reproduce.check", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--scale", choices=("demo", "paper"), default="demo")
    parser.add_argument("--results", type=Path, default=results.RESULTS)
    parser.add_argument("--strict", action="store_true", help="exit 1 unless all is reproduced")
    options = parser.parse_args(argv)

    frames = read_frames(options.scale, options.results)
    judged = [
        judge(claim, frames, known) for known in [reference.claims()] for claim in known.claims
    ]
    print(f"Claims at {options.scale} scale ({reference.claims().paper.arxiv}):")
    for item in judged:
        print(_line(item))
    print(REMINDER)
    if options.scale == "paper":
        print("\nNumbers:")
        for line in compare.lines(frames, reference.values()):
            print(line)
    run = [item for item in judged if item.parts]
    if options.strict and not all(item.verdict == "reproduced" for item in run):
        return 1
    return 0


def read_frames(scale: str, root: Path) -> dict[str, pd.DataFrame]:
    """All results of a scale that are there, each checked against its table's rows and seeds.

    Raises:
        UserError: no results at all, or one that is broken, incomplete or of another configuration.
    """
    frames = {}
    for table in TABLES.values():
        path = results.csv_path(table.name, scale, root)
        if path.exists():
            frames[table.name] = results.read(path)
            compare.require_complete(frames[table.name], table, scale, path)
    if not frames:
        raise UserError(f"no results under {root / scale}: run python -m reproduce.table2 first")
    return frames


def _line(item: Judged) -> str:
    text = f"  {item.claim.id:>2}. {item.verdict.upper():<22} {item.claim.text}"
    for part, effect, scale, unit in item.parts:
        below = "; smaller than the noise floor" if part in item.below_floor else ""
        text += (
            f"\n      {part.metric}, {part.other} - {part.base}: as claimed "
            f"{scale * effect.mean:+.3f} [{scale * effect.low:+.3f}, {scale * effect.high:+.3f}]"
            f"{unit}, counts from {scale * effect.smallest:.3f}, n={effect.pairs}: "
            f"{effect.verdict}{below}"
        )
    return text + (f"\n      note: {item.claim.caveat}" if item.claim.caveat else "")


if __name__ == "__main__":
    raise SystemExit(run_cli(main))
