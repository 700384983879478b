"""The real training loop in two gloo processes, started by torchrun, against one process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import load_file

from common.errors import run_cli
from reproduce.execute import load_source, run_key
from reproduce.runtime import Runtime
from reproduce.store import RunFolder
from tests.reproduce import small, small_table
from tests.reproduce import train_worker as worker

ROOT = Path(__file__).parents[2]
# On the ball, near its edge, distances magnify what the order of a sum leaves.
TOLERANCES = {"hier draws": 1e-7}


@pytest.fixture(scope="module")
def two(tmp_path_factory) -> tuple[Path, list[dict]]:
    """The folder of the runs, and what each of two processes saw."""
    folder = tmp_path_factory.mktemp("two")
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run(
        [sys.executable, *launcher, "-m", "tests.reproduce.train_worker", str(folder)],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return folder, [json.loads((folder / f"{rank}.json").read_text()) for rank in range(2)]


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    """Records of the same cases by this process alone, made when asked for."""
    small.register()
    folder, records = tmp_path_factory.mktemp("one"), {}

    def of(name: str) -> tuple[Path, dict]:
        if name not in records:
            records[name] = worker.run(name, folder)
        return folder, records[name]

    return of


def place(name: str, folder: Path) -> RunFolder:
    case, runtime = worker.config(name), Runtime(runs=folder)
    return RunFolder(run_key(case, load_source(case, runtime), runtime), folder)


def assert_same_run(name: str, mine: Path, theirs: Path) -> None:
    """Losses of all steps, weights and embeddings are those of the other folder."""
    expected, found = place(name, mine), place(name, theirs)
    rtol = TOLERANCES.get(name, 1e-9)
    rows, other = pd.read_csv(expected.history), pd.read_csv(found.history)
    assert rows.columns.tolist() == other.columns.tolist()
    terms = rows.columns.drop("images_per_second")
    np.testing.assert_allclose(other[terms], rows[terms], rtol=rtol, atol=1e-12)
    weights, others = load_file(expected.weights), load_file(found.weights)
    assert weights.keys() == others.keys()
    for key, value in weights.items():
        np.testing.assert_allclose(others[key], value, rtol=rtol, atol=1e-11, err_msg=key)
    with np.load(expected.embeddings) as a, np.load(found.embeddings) as b:
        assert a["keys"].tolist() == b["keys"].tolist()
        np.testing.assert_allclose(b["embeddings"], a["embeddings"], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", worker.CASES)
def test_two_processes_train_and_evaluate_like_one(two, one, name):
    folder, seen = two
    alone, record = one(name)
    assert record["processes"] == 1
    assert seen[0][name]["processes"] == 2
    assert seen[0][name] == seen[1][name]
    assert_same_run(name, alone, folder / "runs")
    for key in ("selection", "selected_epoch", "run_hash", "training_images", "notes"):
        assert seen[0][name][key] == record[key]
    assert record["metrics"].keys() == seen[0][name]["metrics"].keys()
    for key, value in record["metrics"].items():
        assert seen[0][name]["metrics"][key] == pytest.approx(value, rel=1e-3), key


def test_the_rule_that_chose_the_epoch_stands_in_the_record(two):
    seen = two[1][0]
    assert seen["ranks, simix, oracle"]["selection"] == "oracle"
    assert seen["validation"]["selection"] == "validation"
    assert "of each class" in seen["validation"]["notes"]


def test_a_finished_run_is_reused_by_all_processes(two):
    assert all(seen["again"]["reused"] for seen in two[1])


def test_a_signal_to_one_process_stops_all_after_the_same_step(two, one):
    folder, seen = two
    assert seen[0]["stopped"] == seen[1]["stopped"]
    assert seen[0]["stopped"].startswith("4 steps, stopped by SIGTERM; the same command goes on")
    name = "proxies, tcm, chunks"
    assert seen[0]["resumed"]["metrics"] == seen[0][name]["metrics"]
    a, b = (load_file(place(name, folder / part).weights) for part in ("stopped", "runs"))
    assert all(np.array_equal(a[key], b[key]) for key in a)


def test_what_one_process_meets_all_of_them_say(two):
    for seen in two[1]:
        assert seen["failing"] == "picture.jpg cannot be decoded"
        assert "another process trains it" in seen["locked"]


def test_batch_norm_over_slices_is_refused_unless_allowed(two):
    for seen in two[1]:
        assert "BatchNorm layer in training mode" in seen["norms"]
        assert "train.chunk_batch_statistics=true" in seen["norms"]


def test_a_table_under_torchrun_is_the_table_of_one_process(two, tmp_path, capsys):
    folder, seen = two
    assert [each["table"]["code"] for each in seen] == [0, 0]
    assert "2 runs trained, 0 reused" in seen[0]["table"]["out"]
    assert seen[1]["table"]["out"] == ""
    assert run_cli(small_table.main, worker.options(tmp_path)) == 0
    found, expected = (
        pd.read_csv(place / "results" / "demo" / "small_table.csv")
        for place in (folder / "table", tmp_path)
    )
    for column in ("row", "run_hash", "selection", "training_images"):
        assert found[column].tolist() == expected[column].tolist()
    for metric in ("recall_at_1", "map_at_r", "opis"):
        assert found[metric].tolist() == pytest.approx(expected[metric].tolist(), rel=1e-2)
    # What two processes left is what one would have made, and is reused.
    capsys.readouterr()
    assert run_cli(small_table.main, worker.options(folder / "table")) == 0
    assert "0 runs trained, 2 reused" in capsys.readouterr().out


def test_an_error_under_torchrun_is_a_sentence(two):
    for seen in two[1]:
        assert seen["wrong"]["code"] == 2
        assert "loss proxy_anchor has no option 'nothing'" in seen["wrong"]["err"]
