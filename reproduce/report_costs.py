"""The report's costs: seconds, memory and machines, and what was easy and what was hard."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from reproduce import time_results
from reproduce.judge import Judged
from reproduce.markdown import table
from reproduce.pool import pool
from reproduce.report_claims import spread_of_pairs

# Further behind the best of its data set than this, a row is no longer in the regime of the claims.
FAR_BEHIND = 0.10


def cost_table(frames: Mapping[str, pd.DataFrame]) -> list[str]:
    """A line per table, and one for all runs, each counted once."""
    rows = [["table", "rows", "runs", "seeds", "hours", "median s per run", "peak MiB", "machine"]]
    tables = _training_tables(frames)
    for name, frame in tables.items():
        rows.append([name, *_costs(frame)])
    if len(tables) > 1:
        rows.append(["all, shared runs once", *_costs(pool(tables))])
    return table(rows)


def easy_and_hard(frames: Mapping[str, pd.DataFrame], judged: list[Judged]) -> list[str]:
    """Bullets, each a measured fact."""
    tables = _training_tables(frames)
    if not tables:
        return ["- No table of training runs is there yet."]
    runs = pool(tables)
    return [
        *_seeds(judged),
        *_accuracy(runs),
        *_time(runs),
        *_kept(runs),
        *_steps(frames),
    ]


def _training_tables(frames: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    return {name: frame for name, frame in frames.items() if name != time_results.NAME}


def _costs(frame: pd.DataFrame) -> list[str]:
    seeds = frame.groupby(["row", "dataset", "backbone"])["seed"].nunique()
    span = dict.fromkeys((int(seeds.min()), int(seeds.max())))
    return [
        str(len(seeds)),
        str(len(frame)),
        " to ".join(str(number) for number in span),
        f"{frame['seconds'].sum() / 3600:.2f}",
        f"{frame['seconds'].median():.0f}",
        f"{frame['peak_memory_mb'].max():.0f}",
        "; ".join(sorted(set(frame["device"].astype(str)))),
    ]


def _seeds(judged: list[Judged]) -> list[str]:
    """The surest and the least sure comparison."""
    ranked = spread_of_pairs(judged)
    if not ranked:
        return []
    lines = []
    for word, (finding, ratio) in (("Easiest", ranked[0]), ("Hardest", ranked[-1])):
        lines.append(
            f"- {word} to tell from chance: {finding.what}; the half width of its interval is "
            f"{ratio:.2g} times its mean, with n = {finding.n}."
        )
    return lines if len(ranked) > 1 else lines[:1]


def _accuracy(runs: pd.DataFrame) -> list[str]:
    means = runs.groupby(["dataset", "row"], sort=False)["recall_at_1"].mean()
    lines = []
    for dataset, rows in means.groupby("dataset", sort=False):
        rows = rows.droplevel("dataset")
        lines.append(
            f"- {dataset}: R@1 from {100 * rows.min():.2f} % ({rows.idxmin()}) to "
            f"{100 * rows.max():.2f} % ({rows.idxmax()})."
        )
        behind = rows[rows < rows.max() - FAR_BEHIND]
        if len(behind):
            lines[-1] += (
                f" More than {100 * FAR_BEHIND:g} points behind the best, and so outside the "
                f"high-accuracy regime: {', '.join(behind.index)}."
            )
    return lines


def _time(runs: pd.DataFrame) -> list[str]:
    slow, quick = (runs.loc[getattr(runs["seconds"], pick)()] for pick in ("idxmax", "idxmin"))
    waited = runs["data_wait_seconds"].sum() / runs["train_seconds"].sum()
    return [
        f"- Quickest run: {quick['row']} on {quick['dataset']}, {quick['seconds']:.0f} s; slowest: "
        f"{slow['row']} on {slow['dataset']}, {slow['seconds']:.0f} s.",
        f"- {100 * waited:.1f} % of all training time was spent waiting for images.",
    ]


def _kept(runs: pd.DataFrame) -> list[str]:
    oracle = sorted(set(runs.loc[runs["selection"] == "oracle", "row"]))
    noted = sorted(set(runs["notes"].dropna().astype(str)) - {""})
    lines = [f"- Notes of the data sets: {'; '.join(noted)}."] if noted else []
    if oracle:
        lines.append(f"- The epoch was chosen on the test classes in: {', '.join(oracle)}.")
    return lines


def _steps(frames: Mapping[str, pd.DataFrame]) -> list[str]:
    times = frames.get(time_results.NAME)
    if times is None:
        return []
    ratios = (times["tcm_ms"] / times["base_ms"]).groupby([times["row"], times["batch_size"]])
    worst = ratios.median().idxmax()
    more = (times["tcm_peak_mb"] - times["base_peak_mb"]).max()
    return [
        f"- TCM's dearest step: {worst[0]} at batch {worst[1]}, "
        f"{100 * (ratios.median().max() - 1):.1f} % more time than without; at most "
        f"{more:.0f} MiB more memory at any batch size."
    ]
