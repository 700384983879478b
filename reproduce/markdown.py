"""A results table as a Markdown page: mean ± standard deviation over seeds, delta to the base."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from common.atomic import write_text
from reproduce.aggregate import over_seeds, paired_differences

# metric: (heading, factor, decimals)
COLUMNS = {
    "recall_at_1": ("R@1 %", 100, 2),
    "map_at_r": ("MAP@R %", 100, 2),
    "opis": ("OPIS e-3", 1e3, 3),
    "epsilon_opis": ("ε-OPIS e-3", 1e3, 2),
    "opis_floor": ("noise floor e-3", 1e3, 3),
    "opis_far": ("OPIS (log FAR) e-3", 1e3, 3),
}
DELTAS = ("recall_at_1", "opis")
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
    """
    metrics = [name for name in COLUMNS if name in frame.columns]
    heads = ["Row", "Data", "Backbone", *(COLUMNS[name][0] for name in metrics)]
    heads += ["Δ R@1", "Δ OPIS e-3", "seeds"]
    lines = [f"# {title}", "", _line(heads), _line(["---"] * 3 + ["---:"] * (len(heads) - 3))]
    for group in over_seeds(frame, metrics).to_dict("records"):
        cells = [group["row"], group["dataset"], group["backbone"]]
        cells += [_mean_and_std(group, metric) for metric in metrics]
        cells += [_delta(frame, group, bases.get(group["row"]), metric) for metric in DELTAS]
        lines.append(_line([*cells, str(group["seeds"])]))
    lines += ["", CAPTION, "", _origin(frame), ""]
    text = "\n".join(lines)
    write_text(path, text)
    return text


def _mean_and_std(group: dict, metric: str) -> str:
    _, factor, decimals = COLUMNS[metric]
    mean, std = factor * group[metric], factor * group[f"{metric}_std"]
    if math.isnan(mean):
        return ""
    return f"{mean:.{decimals}f}" + ("" if math.isnan(std) else f" ± {std:.{decimals}f}")


def _delta(frame: pd.DataFrame, group: dict, base: str | None, metric: str) -> str:
    if base is None:
        return ""
    where = {name: group[name] for name in ("dataset", "backbone")}
    differences = paired_differences(frame, base, group["row"], metric, where)
    _, factor, decimals = COLUMNS[metric]
    return f"{factor * differences.mean():+.{decimals}f}" if len(differences) else ""


def _origin(frame: pd.DataFrame) -> str:
    commits = ", ".join(
        f"{commit[:12]}{' (dirty)' if dirty else ''}"
        for commit, dirty in sorted(set(zip(frame["commit"], frame["dirty"], strict=True)))
    )
    rules = ", ".join(sorted(set(frame["selection"])))
    devices = "; ".join(sorted(set(frame["device"])))
    seconds = frame["seconds"].sum()
    return f"Made by commit {commits} on {devices}; {seconds:.0f} s in all; epoch kept: {rules}."


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"
