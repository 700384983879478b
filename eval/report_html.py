"""``report.html``: one file with its data, styles and scripts inside, which asks no network."""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from eval.operating import OperatingCurves
from eval.result import DomainResult

PAGE_FOLDER = Path(__file__).with_name("page")
MAX_CLASSES_ON_PAGE = 10_000


@dataclass(frozen=True)
class Card:
    """One number with a name and what it means."""

    name: str
    value: str
    explanation: str


@dataclass(frozen=True)
class Page:
    """Everything that the page shows; texts are plain, the page escapes them.

    Attributes:
        title, subtitle: what was evaluated.
        summary: sentences under the title.
        cards: headline metrics.
        recommendation: sentences about the recommended threshold, empty without one.
        settings: (name, value) pairs of "How it was computed".
        domains: metrics of each domain by name, empty without domains.
        curves: error rates of the classes.
        similarities: (T,) cosine similarity at each threshold of ``curves``.
        calibration: lowest and highest threshold of the calibration range.
        distance: name of the distance.
        start: index of the threshold shown first.
        jumps: (text, index of threshold) of the buttons under the slider.
        target_far: reference for each class's FAR; None for the FAR of all pairs.
        factor: a class is off beyond this multiple.
        histogram: edges (B + 1,), shares of positives (B,), shares of negatives (B,).
    """

    title: str
    subtitle: str
    summary: Sequence[str]
    cards: Sequence[Card]
    recommendation: Sequence[str]
    settings: Sequence[tuple[str, str]]
    domains: Mapping[str, DomainResult]
    curves: OperatingCurves
    similarities: np.ndarray
    calibration: tuple[float, float]
    distance: str
    start: int
    jumps: Sequence[tuple[str, int]]
    target_far: float | None
    factor: float
    histogram: tuple[np.ndarray, np.ndarray, np.ndarray]


def render(page: Page) -> str:
    """The page as HTML. With more than ``MAX_CLASSES_ON_PAGE`` classes it holds those of lowest
    utility at the first threshold, and says so.
    """
    chosen = _classes_on_page(page)
    note = "Worst first: lowest utility at the chosen threshold. Choose a class to see its curve."
    if len(chosen) < len(page.curves.classes):
        note += (
            f" The {len(chosen):,} worst of {len(page.curves.classes):,} classes at the first "
            "threshold are on this page; per_class.csv holds all."
        )
    parts = {
        "title": html.escape(page.title),
        "subtitle": html.escape(page.subtitle),
        "summary": _paragraphs(page.summary),
        "cards": "\n".join(map(_card, page.cards)),
        "recommendation": _paragraphs(page.recommendation, ' class="note"'),
        "domains": _domains(page.domains),
        "classes_note": html.escape(note),
        "method": _settings(page.settings),
        "style": _asset("style.css"),
        "script": _asset("plots.js") + _asset("app.js"),
        "data": script_safe_json(_payload(page, chosen)),
    }
    # One pass, so that a placeholder's name inside a label stays a text.
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], _asset("page.html"))


def script_safe_json(value: object) -> str:
    """JSON that can stand inside ``<script>``: no ``<`` can close it, whatever the labels hold."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _classes_on_page(page: Page) -> np.ndarray:
    order = np.argsort(page.curves.utility[:, page.start], kind="stable")
    return np.sort(order[:MAX_CLASSES_ON_PAGE])


def _payload(page: Page, chosen: np.ndarray) -> dict:
    curves = page.curves
    utility = curves.utility
    low, high = np.quantile(utility, [0.1, 0.9], axis=0)
    edges, positive, negative = page.histogram
    return {
        "thresholds": curves.thresholds.tolist(),
        "similarities": page.similarities.tolist(),
        "calibration": [float(end) for end in page.calibration],
        "distance": page.distance,
        "c": curves.c,
        "start": page.start,
        "jumps": [{"label": text, "at": index} for text, index in page.jumps],
        "targetFar": page.target_far,
        "factor": page.factor,
        "overall": {
            "far": curves.overall_far.tolist(),
            "frr": curves.overall_frr.tolist(),
            "falseAccepts": (curves.overall_far * curves.overall_negatives).tolist(),
            "falseRejects": (curves.overall_frr * curves.overall_positives).tolist(),
            "negatives": curves.overall_negatives,
            "positives": curves.overall_positives,
        },
        "utility": {
            name: _rounded(values)
            for name, values in (("mean", utility.mean(axis=0)), ("low", low), ("high", high))
        },
        "classes": {
            "names": curves.classes[chosen].tolist(),
            "images": curves.images[chosen].tolist(),
            "positives": curves.positives[chosen].tolist(),
            "negatives": curves.negatives[chosen].tolist(),
            "far": _base64(curves.far[chosen]),
            "frr": _base64(curves.frr[chosen]),
        },
        "histogram": {
            "edges": _rounded(edges),
            "positive": _rounded(positive),
            "negative": _rounded(negative),
        },
    }


def _rounded(values: np.ndarray) -> list[float]:
    return [float(f"{value:.6g}") for value in values]


def _base64(values: np.ndarray) -> str:
    return base64.b64encode(values.astype("<f4").tobytes()).decode("ascii")


def _asset(name: str) -> str:
    return (PAGE_FOLDER / name).read_text(encoding="utf-8")


def _paragraphs(sentences: Sequence[str], attributes: str = "") -> str:
    return "\n".join(f"<p{attributes}>{html.escape(sentence)}</p>" for sentence in sentences)


def _card(card: Card) -> str:
    return (
        f'<div class="card"><h3>{html.escape(card.name)}</h3>'
        f'<div class="value">{html.escape(card.value)}</div>'
        f"<p>{html.escape(card.explanation)}</p></div>"
    )


def _settings(settings: Sequence[tuple[str, str]]) -> str:
    rows = (
        f"<dt>{html.escape(name)}</dt><dd>{html.escape(value)}</dd>" for name, value in settings
    )
    return '<dl class="settings">\n' + "\n".join(rows) + "\n</dl>"


def _domains(domains: Mapping[str, DomainResult]) -> str:
    if not domains:
        return ""
    rows = [
        f"<tr><td>{html.escape(name)}</td>"
        + "".join(
            f'<td class="number">{text}</td>'
            for text in (
                f"{found.n_classes:,}",
                f"{100 * found.recall_at[min(found.recall_at)]:.3g} %",
                f"{100 * found.map_at_r:.3g} %",
                f"{1e3 * found.opis:.3g}e-3",
            )
        )
        + "</tr>"
        for name, found in domains.items()
    ]
    k = min(next(iter(domains.values())).recall_at)
    heads = ("Classes", f"Recall@{k}", "MAP@R", "OPIS")
    head = "".join(f'<th scope="col" class="number">{text}</th>' for text in heads)
    return (
        '<h3>By domain</h3>\n<div class="scroller"><table>\n'
        f'<thead><tr><th scope="col">Domain</th>{head}</tr></thead>\n'
        f"<tbody>{''.join(rows)}</tbody>\n</table></div>"
    )
