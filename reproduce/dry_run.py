"""``--dry-run``: all that can be known of a table before a GPU is paid for. Trains nothing."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

from common.errors import UserError
from reproduce import data_state, distributed, outlook_text, places
from reproduce.foresight import Foresight
from reproduce.runtime import Runtime
from reproduce.store import config_hash
from reproduce.stored import Stored
from reproduce.table import Planned

# What a run needs beside its results while it trains: two checkpoints of weights and their
# optimiser's two moments, and the one being written.
CHECKPOINT_COPIES = 9


def report(name: str, runs: list[Planned], runtime: Runtime, options: argparse.Namespace) -> int:
    """Prints what is known; returns 0 if everything is there, else 1.

    Args:
        options: of the command line: gpus_per_run, tflops, results, runs, scale.

    Raises:
        UserError: a configuration or an option is wrong.
    """
    gpus = options.gpus_per_run
    if gpus is None:
        gpus = distributed.from_environment().world_size
    if gpus < 1 or (options.tflops is not None and options.tflops <= 0):
        raise UserError("a dry run needs --gpus-per-run and --tflops above 0")
    foresight = Foresight(runtime, gpus)
    stored = Stored(options.runs)
    first = {config_hash(run.config): run for run in reversed(runs)}
    todo = {key: run for key, run in first.items() if not stored.has(run, foresight.keys)}
    print(
        f"{name} at {options.scale} scale, dry run: {len(runs)} runs, {len(first)} of them "
        f"distinct, {len(first) - len(todo)} finished, {len(todo)} to be trained, "
        f"{stored.checkpoints} checkpoints in {options.runs}/"
    )
    outlooks = [foresight.look(run) for run in reversed(todo.values())]
    on_cpu = runtime.device == "cpu" or options.scale == "demo"
    for line in outlook_text.lines(outlooks, gpus, on_cpu=on_cpu, tflops=options.tflops):
        print(line)
    needed = sum(
        outlook.cost.disk_bytes + CHECKPOINT_COPIES * 4 * outlook.network.parameters / len(outlooks)
        for outlook in outlooks
        if outlook.cost
    )
    problems = _unique(text for outlook in outlooks for text in outlook.problems)
    folders: dict[str, Path] = {"--runs": options.runs, "--results": options.results}
    problems += places.problems(folders, needed)
    print(f"ok       {len(first)} configurations are valid")
    for text in problems:
        print(f"missing  {text}")
    for text in _unique(
        text
        for outlook in outlooks
        if outlook.data.problem
        for text in data_state.what_prepare_would_do(outlook.run.config, options.root)
    ):
        print(f"         {text}")
    print(
        f"disk     {places.free_bytes(options.runs) / 2**30:.1f} GiB free at {options.runs}, "
        f"about {needed / 2**30:.1f} GiB needed"
    )
    print("not ready: see the lines above" if problems else "ready")
    return 1 if problems else 0


def _unique(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))
