"""The report's verdicts: a table, what held, what did not, what is open and what it would take."""

from __future__ import annotations

import math
import re

from scipy import stats

from reproduce import verdict
from reproduce.claims import Pair
from reproduce.judge import Finding, Judged
from reproduce.markdown import table
from reproduce.metrics import scaled

HEADINGS = {
    verdict.REPRODUCED: "What held",
    verdict.CONTRADICTED: "What did not hold",
    verdict.NO_EFFECT: "What makes no difference that counts",
    verdict.INCONCLUSIVE: "What these runs cannot decide",
    verdict.NOT_RUN: "What was not run",
}
LARGEST_NEED = 1000


def verdict_table(judged: list[Judged]) -> list[str]:
    """A line per claim, none left out."""
    rows = [["#", "claim", "verdict", "after Holm", "measured", "adjusted p", "n"]]
    for one in judged:
        p = "" if one.p is None else f"{one.p:.2g}"
        n = sorted({finding.n for finding in one.findings})
        counts = " to ".join(str(number) for number in dict.fromkeys((n[0], n[-1]))) if n else ""
        text = one.claim.text
        verdicts = [f"**{one.verdict}**", one.corrected]
        rows.append([str(one.claim.id), text, *verdicts, _measured(one), p, counts])
    return table(rows, left=5)


def _measured(one: Judged) -> str:
    """The numbers of each metric, those of its first and last place where there are several."""
    by_metric: dict[str, list[str]] = {}
    for finding in one.findings:
        delta = "Δ " if isinstance(finding.part, Pair) else ""
        by_metric.setdefault(delta + finding.metric, []).append(finding.short)
    return "; ".join(f"{metric} {_span(numbers)}" for metric, numbers in by_metric.items())


def _span(numbers: list[str]) -> str:
    """The smallest to the largest of numbers with one unit; words as they are."""
    found = {text: re.match(r"[-+]?[\d.]+", text) for text in numbers}
    if len(found) == 1 or not all(found.values()):
        return ", ".join(found)
    ordered = sorted(found, key=lambda text: float(found[text][0]))
    return f"{found[ordered[0]][0]} to {ordered[-1]}"


def stories(judged: list[Judged]) -> list[str]:
    """A section per verdict that occurs, a paragraph per claim with all its numbers."""
    lines: list[str] = []
    for word, heading in HEADINGS.items():
        chosen = [one for one in judged if one.verdict == word]
        if chosen:
            lines += ["", f"## {heading}", ""]
        for one in chosen:
            lines += _story(one)
    return lines


def _story(one: Judged) -> list[str]:
    lines = [f"**Claim {one.claim.id}.** {_sentence(one.claim.text)}", ""]
    if one.reason:
        lines.append(f"- Not run: {one.reason}.")
    for finding in one.findings:
        lines.append(f"- {told(finding)}")
    lines += [f"- {_sentence(remark)}" for remark in one.remarks]
    if one.claim.caveat:
        lines.append(f"- Note: {one.claim.caveat}.")
    lines.append(f"- Source: {one.claim.source}.")
    return [*lines, ""]


def told(finding: Finding) -> str:
    """One comparison as a sentence, with what it would take where it is open."""
    text = f"{finding.what}: {finding.measured}, n = {finding.n}: *{finding.verdict}*"
    if finding.below_floor:
        text += ", smaller than the noise floor of OPIS"
    if finding.verdict == verdict.INCONCLUSIVE and finding.effect is not None:
        text += f"; {_need(finding)}"
    return text + "."


def pairs_needed(effect: verdict.Effect, confidence: float) -> int | None:
    """The least number of pairs that would decide, were mean and spread to stay as they are.

    None if it is above ``LARGEST_NEED``, or the spread is not known (one pair).
    """
    if effect.pairs < 2:
        return None
    quantile = 0.5 + confidence / 2
    half = effect.mean - effect.low
    deviation = half * math.sqrt(effect.pairs) / stats.t.ppf(quantile, effect.pairs - 1)
    # How far the mean lies from the nearest limit that it would have to stay clear of.
    gap = min(abs(effect.mean - effect.holds_above), abs(effect.mean + effect.smallest))
    for n in range(effect.pairs + 1, LARGEST_NEED + 1):
        if stats.t.ppf(quantile, n - 1) * deviation / math.sqrt(n) < gap:
            return n
    return None


def _need(finding: Finding) -> str:
    effect = finding.effect
    direction = "the claimed" if effect.mean > 0 else "the other"
    text = f"the mean points {direction} way"
    if effect.pairs < 2:
        return f"{text}, and one pair has no interval"
    needed = pairs_needed(effect, 0.95)
    if needed is None:
        return f"{text}, so near to a limit that {LARGEST_NEED} pairs would not decide"
    kind = "seeds" if isinstance(finding.part, Pair) else "repeats"
    return f"{text}, and about {needed} {kind} would decide if mean and spread stayed"


def spread_of_pairs(judged: list[Judged]) -> list[tuple[Finding, float]]:
    """Paired comparisons with the ratio of their interval's half width to their mean."""
    found = []
    for one in judged:
        for finding in one.findings:
            effect = finding.effect
            if isinstance(finding.part, Pair) and effect.pairs > 1 and effect.mean:
                found.append((finding, (effect.mean - effect.low) / abs(effect.mean)))
    return sorted(found, key=lambda pair: pair[1])


def smallest_effects(judged: list[Judged]) -> list[str]:
    """The smallest effects that count, in words, each once."""
    words = []
    for one in judged:
        for part in one.claim.parts:
            if isinstance(part, Pair) and part.smallest is not None:
                shown = scaled(part.metric)
                words.append(f"{shown.factor * part.smallest:g}{shown.unit} of {shown.name}")
            elif isinstance(part, Pair):
                share = f"{100 * part.smallest_relative:g} %"
                words.append(f"{share} of the base's {scaled(part.metric).name}")
    return list(dict.fromkeys(words))


def _sentence(text: str) -> str:
    text = text[:1].upper() + text[1:]
    return text if text.endswith(".") else f"{text}."
