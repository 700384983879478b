"""Verdicts on the paper's claims, and its numbers against ours at paper scale.

    python -m reproduce.check --scale demo

Exit code 0 when everything could be judged, whatever the verdicts (``--strict``: 1 unless all
claims that were run are reproduced); 2 when results or the reference are missing, broken or stale.
A row that other code made than today's is a warning: a changed comment changes the code's hash.
"""

if not __package__:
    raise SystemExit("run this from the repository root as: python -m reproduce.check")

import sys

from common.errors import run_cli
from reproduce import compare, reference
from reproduce.judge import Judged, judge_all
from reproduce.read_all import read_all
from reproduce.results_parser import results_parser

REMINDER = (
    "n counts pairs of runs that share split, initial weights and batch order: the intervals cover "
    "training randomness, not the choice of classes. Second column: after Holm's correction over "
    "the claims that were tested."
)


def main(argv: list[str]) -> int:
    """Prints a verdict a line."""
    parser = results_parser("check", __doc__)
    parser.add_argument("--strict", action="store_true", help="exit 1 unless all is reproduced")
    options = parser.parse_args(argv)

    found = read_all(options.scale, options.results)
    for warning in found.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    known = reference.claims()
    judged = judge_all(known, found.frames)
    print(f"Claims at {options.scale} scale ({known.paper.arxiv}):")
    for item in judged:
        print(_lines(item))
    print(REMINDER)
    if options.scale == "paper":
        print("\nNumbers:")
        for line in compare.lines(found.frames, reference.values()):
            print(line)
    run = [item for item in judged if item.findings]
    if options.strict and not all(item.verdict == "reproduced" for item in run):
        return 1
    return 0


def _lines(item: Judged) -> str:
    columns = f"{item.verdict.upper():<22} {item.corrected.upper():<22}"
    lines = [f"  {item.claim.id:>2}. {columns} {item.claim.text}"]
    if item.reason:
        lines.append(f"not run: {item.reason}")
    for one in item.findings:
        below = "; smaller than the noise floor" if one.below_floor else ""
        lines.append(f"{one.what}: {one.measured}, n={one.n}: {one.verdict}{below}")
    lines += item.remarks
    if item.claim.caveat:
        lines.append(f"note: {item.claim.caveat}")
    return "\n      ".join(lines)


if __name__ == "__main__":
    raise SystemExit(run_cli(main))
