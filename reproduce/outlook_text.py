"""The lines of a dry run: per row steps, batch layout, memory, hours; the sum; the basis."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence

from reproduce.config import RunConfig
from reproduce.estimate import BASIS, GIB, TFLOPS, hours
from reproduce.foresight import Outlook
from reproduce.table import dataset_name

WIDTH = 100
HEAD = ("row", "data", "backbone", "seeds", "steps", "batch", "GiB/GPU", "GPU h/run")


def lines(
    outlooks: Sequence[Outlook], gpus: int, *, on_cpu: bool, tflops: float | None
) -> list[str]:
    """For runs that are to be trained, one line a row; seeds of a row are alike.

    Args:
        on_cpu: hours and memory are those of CPU cores.
        tflops: sustained, instead of what is assumed.
    """
    rows: dict[tuple, list[Outlook]] = {}
    for outlook in outlooks:
        config = outlook.run.config
        key = (outlook.run.row.name, dataset_name(config), config.model.backbone)
        rows.setdefault(key, []).append(outlook)
    if not rows:
        return []
    cells, total, unknown = [], 0.0, 0
    rates: dict[str, float] = {}
    for key, of_row in rows.items():
        first, cost = of_row[0], of_row[0].cost
        kind = _kind(first.run.config, on_cpu)
        rates[kind] = tflops or TFLOPS[kind]
        layout = batch_layout(first.run.config, gpus)
        if cost is None:
            unknown += len(of_row)
            cells.append((*key, str(len(of_row)), "?", layout, "?", "?"))
            continue
        each = hours(cost.operations, rates[kind])
        total += each * len(of_row)
        memory = f"{cost.gpu_bytes / GIB:.1f}"
        cells.append((*key, str(len(of_row)), f"{cost.steps:,}", layout, memory, f"{each:.2g}"))
    head = [text.replace("GPU", "core" if text.endswith("run") else "process") for text in HEAD]
    said = _columns([tuple(head) if on_cpu else HEAD, *cells])
    device = "core" if on_cpu else "GPU"
    more = f", and {unknown} runs on data of unknown size" if unknown else ""
    said.append(
        f"in all about {_rounded(total)} {device} hours"
        + (f", {_rounded(total / gpus)} hours on {gpus} GPUs side by side" if gpus > 1 else "")
        + more
    )
    assumed = " and ".join(f"{rate:g} for {_NAMES[kind]}" for kind, rate in rates.items())
    said += textwrap.wrap(BASIS.format(assumed=assumed), WIDTH)
    return said


_NAMES = {
    "amp": "bfloat16 or float16 on an A100-class GPU, a fifth of its peak",
    "float32": "float32 on an A100-class GPU, 60 % of its peak",
    "cpu": "one CPU core",
}


def batch_layout(config: RunConfig, gpus: int) -> str:
    """``4,000 = 1000 x 4: 8 GPUs x 500 in 5 chunks``."""
    train = config.train
    batch = train.classes_per_batch * train.images_per_class
    share = math.ceil(batch / gpus)
    text = f"{batch:,} = {train.classes_per_batch} x {train.images_per_class}"
    if gpus > 1:
        text += f": {gpus} GPUs x {share}"
    if train.chunk_size is not None and train.chunk_size < share:
        text += f" in {math.ceil(share / train.chunk_size)} chunks of {train.chunk_size}"
    return text


def _rounded(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}"


def _kind(config: RunConfig, on_cpu: bool) -> str:
    if on_cpu:
        return "cpu"
    return "float32" if config.train.amp == "off" else "amp"


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
