"""Two gloo processes, started by torchrun, against one: losses, gradients, weights, evaluation."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from common.errors import UserError
from reproduce import distributed, sharding
from reproduce.distributed import Processes
from tests.reproduce import distributed_worker as worker

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def two(tmp_path_factory) -> list[dict]:
    """What each of two processes got."""
    path = tmp_path_factory.mktemp("ranks") / "out"
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command = [sys.executable, *launcher, "-m", "tests.reproduce.distributed_worker", str(path)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return [torch.load(f"{path}.{rank}", weights_only=True) for rank in range(2)]


@pytest.mark.parametrize("name", worker.CASES)
def test_two_processes_train_like_one(two, name: str) -> None:
    one = worker.run_case(name, Processes())
    kinds = {key.split()[0] for key in one}
    assert kinds == {"loss", "gradient", "weight"}
    losses = [one[f"loss {step}"] for step in range(worker.STEPS)]
    assert all(value > 0 for value in losses)
    assert len(set(losses)) == worker.STEPS
    for rank in range(2):
        assert two[rank][name].keys() == one.keys()
        for key, value in one.items():
            found = two[rank][name][key]
            # Gradients whose exact value is 0 have no relative error; their scale is that of 1.
            torch.testing.assert_close(found, value, rtol=1e-9, atol=1e-13, msg=f"{key}")


@pytest.mark.parametrize("name", worker.CASES)
def test_processes_stay_equal_to_the_last_bit(two, name: str) -> None:
    for key, value in two[0][name].items():
        assert torch.equal(value, two[1][name][key]), key


def test_every_row_is_evaluated_once(two) -> None:
    expected = torch.arange(worker.SHARD_ROWS * 3, dtype=torch.float32).view(-1, 3)
    for rank in range(2):
        out = two[rank]["evaluation"]
        assert torch.equal(out["joined"], expected)
        assert torch.equal(out["single"], expected[:1])
        assert out["flags"].tolist() == [True, False]
    mine = [two[rank]["evaluation"]["mine"].tolist() for rank in range(2)]
    assert mine[0] + mine[1] == list(range(worker.SHARD_ROWS))
    assert abs(len(mine[0]) - len(mine[1])) <= 1


@pytest.mark.parametrize("rows", [0, 1, 5, 64])
@pytest.mark.parametrize("world_size", [1, 3, 8])
def test_shards_partition_the_rows(rows: int, world_size: int) -> None:
    shards = [sharding.shard(rows, Processes(rank, world_size)) for rank in range(world_size)]
    assert [row for part in shards for row in part] == list(range(rows))
    sizes = [len(part) for part in shards]
    assert max(sizes) - min(sizes) <= 1


def test_one_process_passes_everything_through() -> None:
    rows, module = torch.ones(3, 2, requires_grad=True), nn.Linear(2, 2)
    assert distributed.gather(rows) is rows
    assert distributed.wrap(module) is module
    block = np.ones((3, 2))
    assert sharding.join_shards(block, 3, torch.device("cpu")) is block
    with pytest.raises(RuntimeError, match="3 rows were gathered, 4 expected"):
        sharding.join_shards(block, 4, torch.device("cpu"))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, Processes()),
        ({"RANK": "1", "WORLD_SIZE": "4", "LOCAL_RANK": "1"}, Processes(1, 4, 1)),
        ({"RANK": "1", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}, None),
        ({"RANK": "0"}, None),
        ({"RANK": "zero", "WORLD_SIZE": "2", "LOCAL_RANK": "0"}, None),
        ({"RANK": "0", "WORLD_SIZE": "2"}, None),
    ],
)
def test_environment_of_torchrun(monkeypatch, values: dict, expected: Processes | None) -> None:
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    if expected is None:
        with pytest.raises(UserError, match="torchrun"):
            distributed.from_environment()
    else:
        assert distributed.from_environment() == expected


def test_batch_norm_over_slices_is_refused(monkeypatch) -> None:
    monkeypatch.setattr(distributed, "world_size", lambda: 2)
    network = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4))
    with pytest.raises(UserError, match="1 is a BatchNorm layer in training mode"):
        distributed.wrap(network)
    network.eval().requires_grad_(False)
    assert distributed.wrap(network) is network
