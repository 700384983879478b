"""Judges one claim from the results tables."""

from __future__ import annotations

from dataclasses import dataclass, field

import pandas as pd

from reproduce import verdict
from reproduce.aggregate import paired_differences
from reproduce.reference import Claim, Claims, Part

NOT_RUN = "not run"
# metric: (factor, unit) for printing.
UNITS = {"recall_at_1": (100, " points"), "opis": (1e3, "e-3")}


@dataclass(frozen=True)
class Judged:
    """A claim with its verdict and, for each part, the effect and how to print it."""

    claim: Claim
    verdict: str
    parts: list[tuple[Part, verdict.Effect, float, str]] = field(default_factory=list)
    below_floor: list[Part] = field(default_factory=list)


def judge(claim: Claim, frames: dict[str, pd.DataFrame], known: Claims) -> Judged:
    """The verdict of a claim; ``not run`` where a table or row of one of its parts is not there."""
    parts, below = [], []
    for part in claim.parts:
        frame = frames.get(part.table)
        if frame is None:
            return Judged(claim, NOT_RUN)
        differences = paired_differences(frame, part.base, part.other, part.metric, part.where)
        if not len(differences):
            return Judged(claim, NOT_RUN)
        base = frame[frame["row"] == part.base]
        smallest = part.smallest
        if smallest is None:
            smallest = part.smallest_relative * float(base[part.metric].mean())
        found = verdict.effect(differences, part.direction, smallest, known.confidence)
        parts.append((part, found, *UNITS.get(part.metric, (1, ""))))
        if part.metric == "opis" and abs(found.mean) < float(base["opis_floor"].mean()):
            below.append(part)
    return Judged(claim, verdict.of_all([found.verdict for _, found, *_ in parts]), parts, below)
