"""The report's last part: where our choices could matter, the noise floor and the form of OPIS."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from reproduce import time_results
from reproduce.aggregate import paired_differences
from reproduce.markdown import table
from reproduce.metrics import scaled

FORMS = ("opis", "opis_far", "epsilon_opis", "opis_corrected")


@dataclass(frozen=True)
class Change:
    """What TCM changes in one row on one data set: means of paired differences, by metric."""

    table: str
    row: str
    base: str
    dataset: str
    backbone: str
    means: dict[str, float]
    floor: float


def changes(
    frames: Mapping[str, pd.DataFrame], bases: Mapping[str, Mapping[str, str | None]]
) -> list[Change]:
    """Every row beside its base, on every data set and backbone, of every table.

    Args:
        bases: by table and row, the row that it is compared with.
    """
    found = []
    for name, frame in frames.items():
        if name == time_results.NAME:
            continue
        metrics = ["recall_at_1", *(form for form in FORMS if form in frame)]
        for (row, dataset, backbone), _ in frame.groupby(
            ["row", "dataset", "backbone"], sort=False
        ):
            base = bases[name].get(row)
            where = {"dataset": dataset, "backbone": backbone}
            means = {}
            if base is not None:
                for metric in metrics:
                    differences = paired_differences(frame, base, row, metric, where)
                    if len(differences):
                        means[metric] = float(differences.mean())
            if means:
                place = (frame["dataset"] == dataset) & (frame["backbone"] == backbone)
                floor = float(frame.loc[place & (frame["row"] == base), "opis_floor"].mean())
                found.append(Change(name, row, base, dataset, backbone, means, floor))
    return found


def floor_lines(found: list[Change], frames: Mapping[str, pd.DataFrame]) -> list[str]:
    """How large OPIS and its changes are beside the noise floor."""
    lines = []
    runs = [frame for name, frame in frames.items() if name != time_results.NAME]
    for dataset, group in pd.concat(runs).groupby("dataset", sort=False):
        opis, floor = group["opis"].mean(), group["opis_floor"].mean()
        shown = scaled("opis")
        lines.append(
            f"- {dataset}: OPIS is {shown.plain(opis)}{shown.unit} on average, its noise floor "
            f"{shown.plain(floor)}{shown.unit}: classes that do not differ at all would give "
            f"{100 * floor / opis:.0f} % of it."
        )
    below = [one for one in found if abs(one.means["opis"]) < one.floor]
    if found:
        lines.append(
            f"- {len(below)} of {len(found)} changes of OPIS are smaller than the floor of their "
            "base. A floor that is common to both rows takes part in neither's change, but it "
            "shows how much of OPIS the size of the classes makes."
        )
    return lines


def form_lines(found: list[Change]) -> list[str]:
    """Whether other forms of OPIS say the same of each row as OPIS does."""
    rows = [["row", "data", *(f"Δ {scaled(form).heading}" for form in FORMS)]]
    for one in found:
        values = [one.means.get(form, np.nan) for form in FORMS]
        signs = {np.sign(value) for value in values if value == value}
        cells = [scaled(f)(v) if v == v else "" for f, v in zip(FORMS, values, strict=True)]
        if len(signs) > 1:
            rows.append([f"{one.row} against {one.base} ({one.table})", one.dataset, *cells])
    if not found:
        return ["No row stands beside its base yet."]
    summary = (
        f"The sign of the change depends on the form of OPIS in {len(rows) - 1} of {len(found)} "
        "comparisons: averaged over distances (as judged), over log FAR, as the gap between the "
        "best and the worst tenth of the classes, with the noise floor subtracted."
    )
    return [summary, "", *table(rows, left=2)] if len(rows) > 1 else [summary]


def choice_lines(choices: pd.DataFrame) -> list[str]:
    """OPIS of runs with TCM over that of their base, under other choices than the declared ones.

    Args:
        choices: as ``python -m reproduce.utility`` leaves them, base and TCM by turns.
    """
    if choices.empty:
        return [
            "How OPIS moves with the calibration range, the distance and the weight c was not "
            "measured here: run python -m reproduce.utility."
        ]
    label = choices["choice"] + choices["value"].fillna("").map(lambda v: f", {v}" if v else "")
    runs = list(dict.fromkeys(choices["run_hash"]))
    kinds = list(dict.fromkeys(label))
    rows = [["row, data", *kinds]]
    turned = 0
    for base, other in zip(runs[::2], runs[1::2], strict=True):
        sides = [
            choices[choices["run_hash"] == run].assign(label=label).set_index("label")["opis"]
            for run in (base, other)
        ]
        ratio = sides[1] / sides[0]
        first = choices[choices["run_hash"] == other].iloc[0]
        # A floor that is subtracted may leave nothing, or less, to divide by.
        sound = [kind in ratio and sides[0][kind] > 0 < sides[1][kind] for kind in kinds]
        cells = [f"{ratio[k]:.2f}" if ok else "" for k, ok in zip(kinds, sound, strict=True)]
        rows.append([f"{first['row']}, {first['dataset']}", *cells])
        below = {ratio[kind] < 1 for kind, ok in zip(kinds, sound, strict=True) if ok}
        turned += len(below) > 1
    summary = (
        "OPIS with TCM over OPIS without, of single runs of one seed, under one other choice at a "
        f"time (below 1: TCM is better). In {turned} of {len(rows) - 1} the answer turns with a "
        "choice."
    )
    return [summary, "", *table(rows)]
