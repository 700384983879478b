"""A results table as rows of text, for its Markdown page and its LaTeX export alike."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pandas as pd

from reproduce.aggregate import over_seeds, paired_differences
from reproduce.metrics import OF_DOMAIN, of_domain, scaled

USUAL = ("recall_at_1", "map_at_r", "opis", "epsilon_opis", "opis_floor", "opis_far")
TIMES = ("epoch_seconds", "train_seconds", "peak_memory_mb")
FACES = ("tar_at_far_0.0001", "recall_at_1", "opis", "epsilon_opis", "opis_floor", "opis_far")
MERGED = ("recall_at_1", "opis", "opis_across_domains", "opis_floor", "opis_far")
OF_TABLE = {"hier": (*USUAL, *TIMES), "digiface": FACES, "cross_domain": MERGED}
DELTAS = ("recall_at_1", "opis")
DELTAS_OF_TABLE = {
    "hier": (*DELTAS, "opis_far", "train_seconds"),
    "digiface": ("tar_at_far_0.0001", *DELTAS),
    "cross_domain": (*DELTAS, "opis_across_domains"),
}
BELOW_FLOOR, ORACLE = "†", "‡"
NOTES = {
    BELOW_FLOOR: "smaller than the noise floor of the base's OPIS.",
    ORACLE: "the epoch was chosen on the test classes (oracle); not comparable with the others.",
}


def text_columns(frame: pd.DataFrame, bases: Mapping[str, str | None]) -> list[list[str]]:
    """The heading and one line per row of the table: names, metrics, deltas, number of seeds.

    A metric is mean ± standard deviation over seeds, a delta the mean of the paired differences to
    the row's base, with its sign. Marks are explained in :data:`NOTES`.

    Args:
        frame: a results table, a line per run.
        bases: for each row, the row that its deltas refer to.
    """
    frame = _with_epoch_seconds(frame)
    table = str(frame["table"].iloc[0])
    metrics = [name for name in OF_TABLE.get(table, USUAL) if name in frame]
    if table == "cross_domain":
        domains = sorted({of_domain(name)[0] for name in frame if of_domain(name)[0]})
        metrics += [f"{domain}_{name}" for domain in domains for name in OF_DOMAIN]
    deltas = [name for name in DELTAS_OF_TABLE.get(table, DELTAS) if name in frame]
    head = ["Row", "Data", "Backbone", *(scaled(name).heading for name in metrics)]
    lines = [[*head, *(f"Δ {scaled(name).heading.removesuffix(' %')}" for name in deltas), "seeds"]]
    oracle = frame.groupby("row")["selection"].agg(lambda rules: "oracle" in set(rules))
    for group in over_seeds(frame, metrics).to_dict("records"):
        name = group["row"] + (f" {ORACLE}" if oracle[group["row"]] else "")
        cells = [name, group["dataset"], group["backbone"]]
        cells += [_mean_and_std(group, metric) for metric in metrics]
        cells += [_delta(frame, group, bases.get(group["row"]), metric) for metric in deltas]
        lines.append([*cells, str(group["seeds"])])
    return lines


def notes(lines: list[list[str]]) -> list[str]:
    """The explanations of the marks that occur in the lines."""
    cells = [cell for line in lines for cell in line]
    return [f"{mark}: {text}" for mark, text in NOTES.items() if any(mark in c for c in cells)]


def _with_epoch_seconds(frame: pd.DataFrame) -> pd.DataFrame:
    """Training seconds per epoch; only where the last epoch was kept is their number known."""
    known = frame["selection"] == "last"
    seconds = frame["train_seconds"] / frame["selected_epoch"].where(known & (known != 0))
    return frame.assign(epoch_seconds=seconds)


def _mean_and_std(group: dict, metric: str) -> str:
    mean, std, shown = group[metric], group[f"{metric}_std"], scaled(metric)
    if math.isnan(mean):
        return ""
    return shown.plain(mean) + ("" if math.isnan(std) else f" ± {shown.plain(std)}")


def _delta(frame: pd.DataFrame, group: dict, base: str | None, metric: str) -> str:
    if base is None:
        return ""
    where = {name: group[name] for name in ("dataset", "backbone")}
    differences = paired_differences(frame, base, group["row"], metric, where)
    if not len(differences) or math.isnan(differences.mean()):
        return ""
    mark = ""
    if metric == "opis" and "opis_floor" in frame:
        of_base = (frame["row"] == base) & (frame["dataset"] == group["dataset"])
        of_base &= frame["backbone"] == group["backbone"]
        if abs(differences.mean()) < frame.loc[of_base, "opis_floor"].mean():
            mark = f" {BELOW_FLOOR}"
    return scaled(metric)(differences.mean()) + mark
