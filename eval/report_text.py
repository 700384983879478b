"""The words of a report: headline numbers with what they mean, settings, recommendation."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from eval.operating import OperatingCurves
from eval.report_html import Card
from eval.result import EvaluationResult
from eval.thresholds import Recommendation

CLASSES_NAMED = 8
SETTING_NAMES = {
    "ks": "K of Recall@K",
    "far_range": "FAR range of the calibration",
    "epsilon": "ε, share of best and of worst classes",
    "c": "c, weight of specificity in the utility",
    "distance": "distance, of L2-normalised embeddings",
    "grid_points": "thresholds averaged over",
    "seed": "seed of the noise floor's parts and of sampled queries",
    "pairs": "pairs",
}


def rate(value: float) -> str:
    """A rate in per cent with three digits."""
    return "0" if value == 0 else f"{100 * value:.3g} %"


def milli(value: float) -> str:
    """OPIS as the field writes it: 0.17e-3."""
    return f"{1e3 * value:.3g}e-3" if np.isfinite(value) else "not defined"


def cards(result: EvaluationResult) -> list[Card]:
    """Headline metrics, most important first; intervals where queries were sampled."""

    def within(name: str, show) -> str:
        ends = result.intervals.get(name)
        return f" (95 % interval {show(ends[0])} to {show(ends[1])})" if ends else ""

    largest = max(result.recall_at)
    found = [
        Card(
            f"Recall@{k}",
            rate(value),
            "share of images with an image of their own class "
            + ("nearest" if k == 1 else f"among the {k} nearest")
            + within(f"recall_at_{k}", rate),
        )
        for k, value in result.recall_at.items()
        if k in (1, largest)
    ]
    found += [
        Card("MAP@R", rate(result.map_at_r), "precision over an image's R nearest, order counts"),
        Card(
            "OPIS",
            milli(result.opis),
            "variance of utility across classes, averaged over the calibration range; lower is "
            "more consistent" + within("opis", milli),
        ),
        Card(
            "Noise floor",
            milli(result.opis_floor),
            "the OPIS of classes that do not differ, given their sizes: smaller effects are noise",
        ),
        Card("OPIS, floor taken off", milli(result.opis_corrected), "what is left above noise"),
        Card(
            "ε-OPIS",
            milli(result.epsilon_opis),
            f"squared gap between the best and the worst {result.settings['epsilon']:.0%} of "
            "the classes",
        ),
        Card(
            "OPIS in log FAR",
            milli(result.opis_far),
            "averaged evenly in log FAR: the same under any monotone change of the distance",
        ),
    ]
    if result.domains:
        text = "variance of utility across domains, the pairs of each pooled"
        found.append(Card("OPIS across domains", milli(result.opis_across_domains), text))
    for far, tar in result.tar_at.items():
        text = f"share of positives accepted where {rate(far)} of all negatives are"
        found.append(Card(f"TAR at FAR {far:g}", rate(tar.tar), text))
    return found


def images_text(result: EvaluationResult) -> str:
    """How many images, and how they were compared where not each with each."""
    if result.counts.images.sampled:
        return f"{result.n_images:,} images, {result.n_queries:,} of them queries"
    if result.counts.images.separate:
        return f"{result.n_images:,} queries against {result.n_gallery:,} images"
    return f"{result.n_images:,} images"


def summary_text(result: EvaluationResult, curves: OperatingCurves) -> list[str]:
    """What one threshold means for single classes, in a sentence or two."""
    at = curves.nearest(result.d_min)
    far = curves.far[:, at]
    low, high = np.quantile(far, [0.1, 0.9])
    worst = int(np.argmax(far))
    sentences = [
        f"One threshold, {curves.thresholds[at]:.4g}, that accepts "
        f"{rate(curves.overall_far[at])} of all negative pairs means a FAR from {rate(low)} (10th "
        f"percentile) to {rate(high)} (90th) for single classes; the highest is "
        f"{rate(far[worst])}, of class {_quoted(curves.classes[worst])}."
    ]
    if result.left_out_classes:
        sentences.append(
            f"{_counted(result.left_out_classes, 'class', 'classes')} of one image "
            "left out of per-class numbers for want of a positive pair, and kept as negatives."
        )
    return sentences


def recommendation_text(found: Recommendation, curves: OperatingCurves) -> list[str]:
    """The recommended threshold, its uncertainty, and the classes that it fails."""
    low, high = found.threshold_interval
    far_low, far_high = found.far_interval
    sentences = [
        f"For FAR {found.target_far:g} accept distances up to {found.threshold:.4g} (95 % interval "
        f"over the choice of classes: {low:.4g} to {high:.4g}). FAR is {rate(found.far)} (interval "
        f"{rate(far_low)} to {rate(far_high)}), FRR {rate(found.frr)}."
    ]
    count = int(found.fails.sum())
    if not count:
        text = f"It fails no class: none is off by more than a factor of {found.factor:g}."
        return [*sentences, text]
    at = curves.nearest(found.threshold)
    excess = np.maximum(
        curves.far[:, at] / found.target_far, curves.frr[:, at] / max(found.frr, 1e-12)
    )
    excess[~found.fails] = -1
    named = [
        f"{_quoted(curves.classes[i])} (FAR {rate(curves.far[i, at])}, "
        f"FRR {rate(curves.frr[i, at])})"
        for i in np.argsort(-excess, kind="stable")[: min(count, CLASSES_NAMED)]
    ]
    rest = f" and {count - CLASSES_NAMED:,} more" if count > CLASSES_NAMED else ""
    return [
        *sentences,
        f"It fails {count:,} of {_counted(len(found.fails), 'class', 'classes')}: FAR above "
        f"{found.factor:g}× the target in {int(found.far_fails.sum()):,}, FRR above "
        f"{found.factor:g}× that of all pairs in {int(found.frr_fails.sum()):,}. "
        f"Worst: {', '.join(named)}{rest}.",
    ]


def jumps(
    result: EvaluationResult, curves: OperatingCurves, found: Recommendation | None
) -> list[tuple[str, int]]:
    """Thresholds worth a button: name and index."""
    low, high = sorted(result.settings["far_range"])
    best = int(np.argmax(curves.utility.mean(axis=0)))
    equal = int(np.argmin(np.abs(curves.overall_far - curves.overall_frr)))
    buttons = [
        (f"FAR {low:g}", curves.nearest(result.d_min)),
        (f"FAR {high:g}", curves.nearest(result.d_max)),
        ("highest mean utility", best),
        ("FAR = FRR", equal),
    ]
    if found:
        at = curves.nearest(found.threshold)
        buttons.insert(0, (f"recommended for FAR {found.target_far:g}", at))
    return buttons


def settings_text(result: EvaluationResult, factor: float) -> list[tuple[str, str]]:
    """Every declared choice by name, for "How it was computed"."""
    rows = []
    for name, value in result.settings.items():
        text = ", ".join(f"{item:g}" for item in value) if isinstance(value, list) else str(value)
        rows.append((SETTING_NAMES.get(name, name), text))
    return [
        *rows,
        ("calibration range", f"distances {result.d_min:.6g} to {result.d_max:.6g}"),
        ("queries", f"{result.n_queries:,} ({result.left_out_queries:,} without a positive)"),
        ("a class is off", f"FAR or FRR more than {factor:g}× the reference"),
        ("a match", "distance at most the threshold; an image never meets itself"),
        ("a class's negatives", "pairs with exactly one end in the class"),
    ]


def terminal_text(
    result: EvaluationResult, curves: OperatingCurves, found: Recommendation | None, out: Path
) -> str:
    """The report's main lines for a terminal."""
    low, high = sorted(result.settings["far_range"])
    lines = [
        f"{images_text(result)}, {result.n_classes:,} classes, "
        f"{result.settings['distance']} distance, calibration range FAR {low:g} to {high:g}"
    ]
    lines += [f"  {card.name:<24}{card.value}" for card in cards(result)]
    lines += summary_text(result, curves)
    lines += recommendation_text(found, curves) if found else []
    lines.append(f"open {out / 'report.html'}")
    return "\n".join(line if line.isprintable() else ascii(line)[1:-1] for line in lines)


def _counted(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"


def _quoted(label: str) -> str:
    return f"“{label}”"
