"""What ``verify`` writes and prints."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import asdict
from pathlib import Path

import numpy as np

from common.atomic import write_text
from eval.fold_accuracy import FOLDS
from eval.jsonable import plain
from eval.markdown import markdown_table
from eval.one_threshold import OneThreshold, Rates
from eval.plots import save_figure
from eval.plots_det import det_figure
from eval.verification import Verification


def write_verification(name: str, found: Verification, folder: Path) -> list[Path]:
    """Writes ``verification.json``, ``det.csv``, ``det.png`` and ``det.svg``; returns their paths.

    Args:
        name: of the embeddings.
    """
    tree = asdict(found)
    tree["det"] = "det.csv"
    summary, table = folder / "verification.json", folder / "det.csv"
    text = json.dumps(plain({"name": name, **tree}), indent=2, allow_nan=False)
    write_text(summary, text + "\n")
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(("threshold", "far", "frr", "tar"))
    for row in zip(found.det.thresholds, found.det.far, found.det.frr, strict=True):
        writer.writerow([f"{value:.9g}" for value in (*row, 1 - row[2])])
    write_text(table, lines.getvalue())
    return [summary, table, *save_figure(det_figure(found), folder / "det.png")]


def summary_text(name: str, found: Verification, folder: Path) -> str:
    """The main numbers as short tables, and what was left out and why."""
    settings = found.settings
    rows = [("measure", "value", "95 % interval", f"threshold ({settings['distance']})")]
    for at in found.tar_at:
        ends = " to ".join(f"{100 * end:.2f}" for end in at.interval)
        rows.append((f"TAR at FAR {at.far:g}", _percent(at.tar), f"{ends} %", _at(at.threshold)))
    error = found.equal_error
    rows.append(("equal error rate", _percent(error.rate), "", _at(error.threshold)))
    if found.accuracy:
        one = found.accuracy
        value = f"{100 * one.mean:.2f} ± {100 * one.std:.2f} %"
        measure = f"accuracy, {FOLDS} folds of {one.pairs // FOLDS:,} pairs"
        rows.append((measure, value, "", f"{_at(np.mean(one.thresholds))} (mean)"))
    parts = [
        f"{name}: {found.positives:,} same and {found.negatives:,} different pairs "
        f"({settings['pairs']}); intervals: bootstrap over {settings['bootstrap']}",
        markdown_table(rows),
    ]
    if found.one_threshold:
        share = settings["calibration_share"]
        parts += [
            f"\nOne threshold for all, fixed on {share:.0%} of the identities, on the others:",
            markdown_table(_one_threshold_rows(found.one_threshold)),
        ]
    parts += found.left_out
    return "\n".join([*parts, f"written to {folder}: verification.json, det.csv, det.png, det.svg"])


def _one_threshold_rows(results: list[OneThreshold]) -> list[tuple[str, ...]]:
    rows = [("FAR wanted", "threshold", "on", "TAR", "FAR", "identities")]
    for one in results:
        first = (f"{one.target_far:g}", _at(one.threshold))
        for name, rates in [("all", one.overall), *one.domains.items()]:
            rows.append((*first, name, *_rates(rates)))
            first = ("", "")
    return rows


def _rates(rates: Rates) -> tuple[str, str, str]:
    far = f"{rates.far:.3g}" if rates.negatives else "-"
    return _percent(rates.tar), far, f"{rates.identities:,}"


def _percent(rate: float) -> str:
    return f"{100 * rate:.2f} %" if np.isfinite(rate) else "-"


def _at(threshold: float) -> str:
    return f"{threshold:.4g}"
