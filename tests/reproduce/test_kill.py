"""Runs that are killed outright, again and again, and end as if nobody had touched them."""

from __future__ import annotations

import json
import multiprocessing
import random
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from reproduce.config import RunConfig, load
from reproduce.execute import execute
from reproduce.runtime import Runtime
from tests.reproduce import small

# Forked from a process that has everything imported and no thread: a start costs little.
SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(["tests.reproduce.test_kill", "pytorch_metric_learning.losses"])

# A regulariser, a generator of its own (SiMix), a rule that keeps weights, BatchNorm, momentum.
VALUES = {
    "loss.tcm": {},
    "loss.simix": True,
    "model.options": {"width": 8},
    "train.epochs": 4,
    "train.steps_per_epoch": 8,
    "train.selection": "oracle",
    "train.threads": 1,
}


def config() -> RunConfig:
    return load("demo/kanji_recall_at_k").with_values(small.VALUES | VALUES)


def train(runs: Path) -> None:
    """In a process of its own: goes on with the run until it is finished."""
    small.register()
    execute(config(), Runtime(runs=runs, progress=False))


def started(runs: Path):
    process = SERVER.Process(target=train, args=(runs,))
    process.start()
    return process


def finished(runs: Path) -> dict:
    """Ends the run and returns what must not depend on interruptions."""
    process = started(runs)
    process.join(120)
    assert process.exitcode == 0
    (folder,) = runs.iterdir()
    left = {path.name for path in folder.iterdir()}
    assert not {name for name in left if name.startswith((".tmp-", "checkpoint"))}
    record = json.loads((folder / "record.json").read_text())
    weights = load_file(folder / "weights.safetensors")
    with np.load(folder / "embeddings.npz") as saved:
        embeddings = saved["embeddings"]
    return {
        "metrics": record["metrics"],
        "epoch": record["selected_epoch"],
        "bytes": {name: value.tobytes() for name, value in weights.items()},
        "embeddings": embeddings.tobytes(),
    }


def kill(process) -> bool:
    """Whether it was still alive."""
    process.kill()
    process.join(30)
    return process.exitcode == -signal.SIGKILL


def checkpoint_time(runs: Path) -> int:
    for path in runs.glob("*/checkpoint.pt"):
        try:
            return path.stat().st_mtime_ns
        except FileNotFoundError:  # between the two renames
            return 0
    return 0


def wait_for_checkpoints(process, runs: Path, count: int) -> None:
    """Until the state on disk has changed so often (every step changes it)."""
    last, deadline = checkpoint_time(runs), time.monotonic() + 60
    while count and process.is_alive() and time.monotonic() < deadline:
        now = checkpoint_time(runs)
        if now != last:
            last, count = now, count - 1
        time.sleep(0.0005)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> dict:
    return finished(tmp_path_factory.mktemp("undisturbed"))


def test_a_run_killed_three_times_ends_to_the_last_bit_like_one_that_was_not(tmp_path, undisturbed):
    draw = random.Random(0)
    for _ in range(3):
        process = started(tmp_path)
        wait_for_checkpoints(process, tmp_path, draw.randint(1, 5))
        time.sleep(draw.uniform(0, 0.02))
        assert kill(process)
    assert finished(tmp_path) == undisturbed


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(15))
def test_kills_at_any_time_whatever_the_run_is_doing(tmp_path, undisturbed, seed):
    draw = random.Random(seed)
    clock = time.monotonic()
    finished(tmp_path / "measured")
    length = time.monotonic() - clock
    kills = 0
    for _ in range(4):
        process = started(tmp_path / "runs")
        time.sleep(draw.uniform(0, length))
        kills += kill(process)
    assert kills
    assert finished(tmp_path / "runs") == undisturbed


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(5))
def test_a_damaged_checkpoint_after_a_kill_costs_steps_but_no_bit(tmp_path, undisturbed, seed):
    draw = random.Random(seed)
    found: list[Path] = []
    while not found:  # a kill between the two renames leaves the state before alone
        process = started(tmp_path)
        wait_for_checkpoints(process, tmp_path, 3)
        assert kill(process)
        found = list(tmp_path.glob("*/checkpoint.pt"))
    (path,) = found
    content = bytearray(path.read_bytes())
    content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    path.write_bytes(content[: draw.choice([len(content), draw.randrange(len(content))])])
    assert finished(tmp_path) == undisturbed
