"""What test_train_distributed.py runs in one process and, through torchrun, in two.

python -m torch.distributed.run --standalone --nproc-per-node 2 \
    -m tests.reproduce.train_worker FOLDER
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock

import datasets
from common.errors import UserError, run_cli
from reproduce import distributed
from reproduce import train as loop
from reproduce.checkpoint import StoppedError
from reproduce.config import RunConfig, load
from reproduce.execute import LockedError, execute, load_source, run_key
from reproduce.runtime import Runtime
from reproduce.step import TrainingStep
from reproduce.store import RunFolder
from tests.reproduce import small, small_table

PROXIES, RANKS = "demo/kanji_proxy_anchor", "demo/kanji_recall_at_k"
HIER = {
    "loss": {"name": "hier", "options": {"proxies": 16, "neighbours": 6, "triplets": 5}},
    "model.options": {"width": 8, "norm": "group", "head": "hyperbolic"},
    "evaluation.distance": "poincare",
    "train.hierarchy_lr_scale": 50.0,
    "train.learning_rate": 1e-4,
}

# name: (configuration file, values on top of small.VALUES)
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "proxies, tcm, chunks": (PROXIES, {"loss.tcm": {}, "train.chunk_size": 5}),
    "ranks, simix, oracle": (RANKS, {"loss.simix": True, "train.selection": "oracle"}),
    "resting backbone": ("demo/kanji_arcface", {"train.head_only_epochs": 1}),
    "hier draws": (PROXIES, HIER),
    "validation": (
        PROXIES,
        {
            "data.batch_strategy": "round_robin",
            "data.validation_fraction": 0.3,
            "data.evaluate_on": "validation",
            "train.selection": "validation",
            "evaluation.equalise_domains": True,
        },
    ),
}


def config(name: str) -> RunConfig:
    """The configuration of a case."""
    file, values = CASES[name]
    return load(file).with_values(small.VALUES | values)


def run(name: str, folder: Path, **changes: Any) -> dict[str, Any]:
    """The record of a case, trained in float64 so that orders of summation hardly matter."""
    makers = {name: getattr(loop, name) for name in ("build_model", "build_loss")}

    def in_float64(make):
        return lambda *arguments: make(*arguments).double()

    try:
        for function, make in makers.items():
            setattr(loop, function, in_float64(make))
        case = config(name).with_values(changes)
        return execute(case, Runtime(runs=folder, progress=False))
    finally:
        for function, make in makers.items():
            setattr(loop, function, make)


def stopped_in_one_process(folder: Path, rank: int) -> str:
    """The last process alone gets SIGTERM in its fourth step; what the run then said."""
    whole, calls = TrainingStep.__call__, []

    def signalled(self, images, labels):
        calls.append(1)
        if len(calls) == 4 and rank == 1:
            os.kill(os.getpid(), signal.SIGTERM)
        return whole(self, images, labels)

    TrainingStep.__call__ = signalled
    try:
        run("proxies, tcm, chunks", folder)
    except StoppedError as error:
        return f"{len(calls)} steps, {error}"
    finally:
        TrainingStep.__call__ = whole
    return "not stopped"


def failing_in_one_process(folder: Path, rank: int) -> str:
    """The last process alone cannot read an image; what every process says."""
    whole = datasets.ImageDataset.batch

    def broken(self, positions):
        if rank == 1 and self.epoch == 1:
            raise UserError("picture.jpg cannot be decoded")
        return whole(self, positions)

    datasets.ImageDataset.batch = broken
    try:
        run("proxies, tcm, chunks", folder)
    except UserError as error:
        return str(error)
    finally:
        datasets.ImageDataset.batch = whole
    return "no error"


def locked(folder: Path, rank: int) -> str:
    """Rank 0 finds the run's folder in use; what every process says."""
    case, runtime = config("resting backbone"), Runtime(runs=folder, progress=False)
    place = RunFolder(run_key(case, load_source(case, runtime), runtime), folder)
    place.path.mkdir(parents=True, exist_ok=True)
    held = FileLock(place.lock)
    if rank == 0:
        held.acquire()
    torch.distributed.barrier()
    try:
        run("resting backbone", folder)
    except LockedError as error:
        return str(error)
    finally:
        held.release()
    return "not locked"


def options(folder: Path) -> list[str]:
    """Of the table script, with everything it writes in one folder."""
    places = ["--runs", str(folder / "runs"), "--results", str(folder / "results")]
    return ["--quiet", "--jobs", "1", *places]


def table(folder: Path, *arguments: str) -> dict[str, Any]:
    """What the table script of :mod:`tests.reproduce.small_table` printed here, and its code."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run_cli(small_table.main, [*options(folder), *arguments])
    return {"code": code, "out": out.getvalue(), "err": err.getvalue()}


def main(folder: Path) -> None:
    """Runs everything and writes what this rank saw to ``folder/<rank>.json``."""
    small.register()
    rank = distributed.start(torch.device("cpu")).rank
    out: dict[str, Any] = {"failing": failing_in_one_process(folder / "failing", rank)}
    out["locked"] = locked(folder / "locked", rank)
    out["stopped"] = stopped_in_one_process(folder / "stopped", rank)
    out["resumed"] = run("proxies, tcm, chunks", folder / "stopped")
    for name in CASES:
        out[name] = run(name, folder / "runs")
    out["table"] = table(folder / "table")
    out["wrong"] = table(folder / "table", "--set", "loss.options={nothing: 1}")
    out["again"] = run("validation", folder / "runs")
    try:
        run("resting backbone", folder / "norms", **{"model.options": {"width": 4}})
    except UserError as error:
        out["norms"] = str(error)
    (folder / f"{rank}.json").write_text(json.dumps(out))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
