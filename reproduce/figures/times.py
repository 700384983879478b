"""Step time and peak memory with and without TCM, over batch sizes."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import pandas as pd

from reproduce.figures import style


def draw(frame: pd.DataFrame, stem: Path) -> Path:
    """Draws step time, its ratio and peak memory from a CSV of step times; the PNG's path.

    Points are medians over repeats, error bars the range of the middle half of the repeats.
    """
    with mpl.rc_context(style.SETTINGS):
        figure = style.new_figure(12.6, 4.2)
        time, ratio, memory = figure.subplots(1, 3)
        for i, (row, group) in enumerate(frame.groupby("row", sort=False)):
            look = {"color": style.COLOURS[i], "marker": style.MARKERS[i], "capsize": 3, "lw": 1.2}
            for side, name, filled in (("base", row, True), ("tcm", f"{row}+TCM", False)):
                kind = {"ls": "-" if filled else "--", "mfc": None if filled else "white"}
                _line(time, group, group[f"{side}_ms"], name, **look, **kind)
                _line(memory, group, group[f"{side}_peak_mb"], name, **look, **kind)
            _line(ratio, group, group["tcm_ms"] / group["base_ms"], row, **look)
        ratio.axhline(1.05, color="#555555", ls=":", lw=1.2, label="limit of the claim, 1.05")
        ratio.axhline(1.0, color="#999999", lw=0.8)
        time.set_ylabel("step time, ms  (lower is better)")
        ratio.set_ylabel("step time with TCM over without  (lower is better)")
        memory.set_ylabel("peak memory, MiB  (lower is better)")
        batches = sorted(frame["batch_size"].unique())
        for axis in (time, ratio, memory):
            axis.set_xscale("log", base=2)
            axis.set_xticks(batches, [str(batch) for batch in batches])
            axis.minorticks_off()
            axis.set_xlabel("images in a batch")
            axis.legend(fontsize=8, loc="upper left")
        time.set_ylim(bottom=0)
        memory.set_ylim(bottom=0)
        low, high = ratio.get_ylim()
        ratio.set_ylim(min(low, 0.95), max(high, 1.1) + 0.03)
        device = frame["device"].iloc[0]
        figure.suptitle(f"What TCM costs, {frame['backbone'].iloc[0]} on {device}", fontsize=11)
        return style.save(figure, stem)


def _line(axis, group: pd.DataFrame, values: pd.Series, label: str, **look) -> None:
    by_batch = values.groupby(group["batch_size"])
    middle = by_batch.median()
    errors = [middle - by_batch.quantile(0.25), by_batch.quantile(0.75) - middle]
    axis.errorbar(middle.index, middle, yerr=errors, label=label, **look)
