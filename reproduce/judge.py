"""Judges the claims from the results tables, each alone and corrected for their number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pandas as pd

from common.errors import UserError
from reproduce import spread, verdict
from reproduce.aggregate import paired_differences
from reproduce.claims import Claim, Claims, Limit, Pair, Spread
from reproduce.metrics import scaled
from reproduce.verdict import NOT_RUN

NOT_TESTED = "not tested"


@dataclass(frozen=True)
class Finding:
    """One comparison of a claim on one data set, with its own verdict.

    Attributes:
        metric: its name for sentences.
        rows, place: which rows; on which data set and backbone.
        short: the number alone, for a table.
        measured: the number with its interval, and what it is held against.
        n: pairs of runs, or rows, or repeats.
        effect: None where nothing was tested, only counted.
        below_floor: the effect on OPIS is smaller than the base's noise floor.
    """

    part: Pair | Spread | Limit
    metric: str
    rows: str
    place: str
    short: str
    measured: str
    n: int
    verdict: str
    effect: verdict.Effect | None = None
    below_floor: bool = False

    @property
    def what(self) -> str:
        """What was compared, as it begins a sentence."""
        return f"{self.metric}, {self.rows}, {self.place}"


@dataclass(frozen=True)
class Judged:
    """A claim with its verdict, alone and after Holm's correction, and what led to it.

    Attributes:
        corrected: the verdict after Holm's correction over the claims that were tested;
            ``not tested`` where the verdict is a count without a p-value.
        p: adjusted p-value of the verdict, None where nothing was tested.
        reason: why the claim is ``not run``.
        remarks: what a reader should know, such as two forms of OPIS that disagree.
    """

    claim: Claim
    verdict: str
    findings: list[Finding] = field(default_factory=list)
    corrected: str = NOT_RUN
    p: float | None = None
    reason: str = ""
    remarks: list[str] = field(default_factory=list)


def judge_all(known: Claims, frames: Mapping[str, pd.DataFrame]) -> list[Judged]:
    """All claims, in their order, none left out.

    Args:
        frames: results by table; a claim whose table is not among them is ``not run``.

    Raises:
        UserError: a run has no value of a metric that a claim is about.
    """
    judged = [judge(claim, frames, known.confidence) for claim in known.claims]
    tested = [one for one in judged if one.findings and all(f.effect for f in one.findings)]
    p_values = [verdict.p_of_all([f.effect for f in one.findings]) for one in tested]
    # The interval is two-sided: each direction has half of what it leaves out.
    level = (1 - known.confidence) / 2
    adjusted = {
        name: verdict.holm([p[name] for p in p_values])
        for name in (verdict.REPRODUCED, verdict.CONTRADICTED, verdict.NO_EFFECT)
    }
    corrected = {}
    for i, one in enumerate(tested):
        p = adjusted[one.verdict][i] if one.verdict in adjusted else None
        stands = p is not None and p < level
        corrected[one.claim.id] = replace(
            one, corrected=one.verdict if stands else verdict.INCONCLUSIVE, p=p
        )
    return [corrected.get(one.claim.id, one) for one in judged]


def judge(claim: Claim, frames: Mapping[str, pd.DataFrame], confidence: float) -> Judged:
    """One claim alone; ``not run`` where a table or row of one of its parts is not there."""
    findings: list[Finding] = []
    for part in claim.parts:
        if part.table not in frames:
            return Judged(
                claim,
                NOT_RUN,
                reason=f"{part.table} has no results; run python -m reproduce.{part.table}",
            )
        found = _JUDGES[type(part)](part, frames, confidence)
        if isinstance(found, str):
            return Judged(claim, NOT_RUN, reason=found)
        findings += found
    whole = verdict.of_all([finding.verdict for finding in findings])
    return Judged(claim, whole, findings, NOT_TESTED, remarks=_disagreements(findings))


def _pair(part: Pair, frames, confidence: float) -> list[Finding] | str:
    frame = frames[part.table]
    if part.datasets:
        frame = frame[frame["dataset"].isin(part.datasets)]
    findings = []
    for (dataset, backbone), group in frame.groupby(["dataset", "backbone"], sort=False):
        base, other = (group[group["row"] == name] for name in (part.base, part.other))
        if base.empty or other.empty:
            continue
        _require_values(part, pd.concat([base, other]))
        differences = paired_differences(group, part.base, part.other, part.metric, {})
        smallest = part.smallest
        if smallest is None:
            smallest = part.smallest_relative * float(base[part.metric].mean())
        effect = verdict.effect(differences, part.direction, smallest, confidence)
        show = scaled(part.metric)
        share = ""
        if part.smallest_relative is not None:
            share = f" ({effect.mean / float(base[part.metric].mean()):+.0%} of {part.base})"
        below = part.metric == "opis" and abs(effect.mean) < float(base["opis_floor"].mean())
        findings.append(
            Finding(
                part,
                show.name,
                f"{part.other} against {part.base}",
                f"{dataset}, {backbone}",
                f"{show(float(differences.mean()))}{show.unit}",
                f"as claimed {show(effect.mean)} [{show(effect.low)}, {show(effect.high)}]"
                f"{show.unit}{share}, holds above {show(effect.holds_above)}",
                effect.pairs,
                effect.verdict,
                effect,
                below,
            )
        )
    return findings or f"{part.table} has no runs of both {part.base} and {part.other}"


def _spread(part: Spread, frames, confidence: float) -> list[Finding] | str:
    findings = []
    places = frames[part.table][["dataset", "backbone"]].drop_duplicates()
    for dataset, backbone in places.itertuples(index=False):
        points = spread.points(frames, dataset, backbone, part.metric)
        for metric, rows, short, measured, holds in spread.claims(points, part):
            known = len(spread.accurate(points, part)) >= part.rows
            word = (verdict.REPRODUCED if holds else verdict.CONTRADICTED) if known else None
            findings.append(
                Finding(
                    part,
                    metric,
                    rows,
                    f"{dataset}, {backbone}",
                    short,
                    measured,
                    len(points),
                    word or verdict.INCONCLUSIVE,
                )
            )
    return findings


def _limit(part: Limit, frames, confidence: float) -> list[Finding] | str:
    findings = []
    for (row, batch), group in frames[part.table].groupby(["row", "batch_size"], sort=False):
        ratios = (group["tcm_ms"] / group["base_ms"]).to_numpy(dtype=float)
        effect = verdict.effect(part.limit - ratios, "up", 0.0, confidence)
        low, high = part.limit - effect.high, part.limit - effect.low
        findings.append(
            Finding(
                part,
                "step time with TCM over without",
                f"{row}, batch {batch}",
                str(group["backbone"].iloc[0]),
                f"{ratios.mean():.3f}",
                f"{ratios.mean():.4f} [{low:.4f}, {high:.4f}], limit {part.limit:g}",
                len(ratios),
                effect.verdict,
                effect,
            )
        )
    return findings


_JUDGES = {Pair: _pair, Spread: _spread, Limit: _limit}


def _require_values(part: Pair, rows: pd.DataFrame) -> None:
    if part.metric not in rows:
        raise UserError(
            f"{part.table}: column {part.metric} is missing, a claim needs it; "
            f"rerun python -m reproduce.{part.table}"
        )
    for row in rows[rows[part.metric].isna()].to_dict("records"):
        raise UserError(
            f"{part.table}: row {row['row']!r} on {row['dataset']} with seed {row['seed']} has no "
            f"{part.metric}, a claim needs it; rerun python -m reproduce.{part.table} --force"
        )


def _disagreements(findings: list[Finding]) -> list[str]:
    """Where OPIS, averaged over distances, and opis_far, averaged over log FAR, part."""
    by_key = {}
    for finding in findings:
        if isinstance(finding.part, Pair) and finding.part.metric in ("opis", "opis_far"):
            key = (finding.rows, finding.place)
            by_key.setdefault(key, {})[finding.part.metric] = finding.verdict
    return [
        f"OPIS and OPIS (log FAR) disagree on {', '.join(key)}: {both['opis']}, {both['opis_far']}"
        for key, both in by_key.items()
        if len(both) == 2 and both["opis"] != both["opis_far"]
    ]
