"""Whole runs at a tiny size: reuse, bit-equal repetition, resuming, what a run leaves behind."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import load_file

from common.errors import UserError, run_cli
from eval import evaluate
from reproduce import table2
from reproduce.config import load
from reproduce.execute import execute, load_source, run_key
from reproduce.runtime import Runtime
from reproduce.store import RunFolder

ROOT = Path(__file__).resolve().parents[2]
TINY = {
    "data.options": {"domain": "kana"},
    "model.options": {"width": 4},
    "model.embedding_dim": 16,
    "train.epochs": 2,
    "train.steps_per_epoch": 3,
    "train.classes_per_batch": 8,
    "train.checkpoint_minutes": 1e-9,
}
# What may differ between two runs of the same configuration.
TIMINGS = {"seconds", "train_seconds", "data_wait_seconds", "peak_memory_mb"}
VARYING = TIMINGS | {"reused", "commit", "dirty"}


def config(name: str = "demo/kanji_proxy_anchor", **values):
    return load(name).with_values(TINY | values)


def runtime(folder: Path) -> Runtime:
    return Runtime(runs=folder, progress=False)


def folder_of(run, where: Runtime) -> RunFolder:
    return RunFolder(run_key(run, load_source(run, where), where), where.runs)


def same_outcome(one: dict, two: dict) -> bool:
    def kept(record):
        return {name: value for name, value in record.items() if name not in VARYING}

    return kept(one) == kept(two)


def same_weights(one: RunFolder, two: RunFolder) -> bool:
    a, b = load_file(one.weights), load_file(two.weights)
    return a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    where = runtime(tmp_path_factory.mktemp("runs"))
    run = config()
    return run, where, execute(run, where)


def test_a_finished_run_is_reused_and_says_so(finished):
    run, where, record = finished
    assert not record["reused"]
    again = execute(run, where)
    assert again["reused"]
    assert same_outcome(record, again)


def test_a_run_repeated_elsewhere_is_the_same_to_the_last_bit(finished, tmp_path):
    run, where, record = finished
    elsewhere = runtime(tmp_path)
    assert same_outcome(record, execute(run, elsewhere))
    assert same_weights(folder_of(run, where), folder_of(run, elsewhere))


def test_force_trains_again(finished):
    run, where, record = finished
    again = execute(run, where, force=True)
    assert not again["reused"]
    assert same_outcome(record, again)


def test_the_record_is_what_the_saved_embeddings_give(finished):
    run, where, record = finished
    with np.load(folder_of(run, where).embeddings) as saved:
        result = evaluate(saved["embeddings"], saved["labels"])
    assert result.opis == pytest.approx(record["metrics"]["opis"], rel=1e-9)
    assert result.recall_at[1] == record["metrics"]["recall_at_1"]


def test_proxies_move_and_are_saved(finished, tmp_path):
    run, where, _ = finished
    untrained = runtime(tmp_path)
    none = run.with_values({"train.epochs": 0})
    execute(none, untrained)
    before = load_file(folder_of(none, untrained).weights)
    after = load_file(folder_of(run, where).weights)
    proxies = [name for name in after if name.startswith("loss.")]
    assert proxies
    assert all(not np.array_equal(before[name], after[name]) for name in proxies)


def test_pairs_share_initial_weights_and_batches(finished, tmp_path):
    run, *_ = finished
    start = run.with_values({"train.epochs": 0})
    with_tcm = start.with_values({"loss.tcm": {}})
    for each in (start, with_tcm):
        execute(each, runtime(tmp_path))
    assert same_weights(folder_of(start, runtime(tmp_path)), folder_of(with_tcm, runtime(tmp_path)))


@pytest.mark.parametrize("name", ["demo/kanji_arcface", "demo/kanji_recall_at_k"])
def test_a_run_stopped_and_resumed_ends_as_if_undisturbed(name, tmp_path, monkeypatch):
    run = config(name, **{"loss.tcm": {}})
    undisturbed = execute(run, runtime(tmp_path / "a"))
    where = runtime(tmp_path / "b")

    from reproduce.step import TrainingStep

    whole, calls = TrainingStep.__call__, []

    def stop_in_the_fifth(self, images, labels):
        calls.append(1)
        if len(calls) == 5:
            os.kill(os.getpid(), signal.SIGTERM)
        return whole(self, images, labels)

    monkeypatch.setattr(TrainingStep, "__call__", stop_in_the_fifth)
    with pytest.raises(UserError, match="stopped by SIGTERM"):
        execute(run, where)
    monkeypatch.undo()
    assert folder_of(run, where).checkpoint.exists()
    assert same_outcome(undisturbed, execute(run, where))
    assert same_weights(folder_of(run, runtime(tmp_path / "a")), folder_of(run, where))
    assert not folder_of(run, where).checkpoint.exists()


def test_chunks_with_batch_norm_are_refused_by_name(tmp_path):
    with pytest.raises(UserError, match=r"train\.chunk_size"):
        execute(config(**{"train.chunk_size": 8}), runtime(tmp_path))


def test_chunks_give_the_same_training_as_one_pass(tmp_path):
    options = {"model.options": {"width": 8, "norm": "group"}}
    whole = execute(config(**options), runtime(tmp_path))
    chunked = execute(config(**options, **{"train.chunk_size": 8}), runtime(tmp_path))
    assert chunked["metrics"]["opis"] == pytest.approx(whole["metrics"]["opis"], rel=1e-3)


def test_a_loss_that_is_not_finite_stops_the_run_by_name(tmp_path):
    run = config(**{"train.learning_rate": 1e30, "train.schedule": {"name": "constant"}})
    with pytest.raises(UserError, match=r"(not finite|NaN)"):
        execute(run, runtime(tmp_path))


def test_validation_classes_are_cut_from_training_and_test_is_not_touched(tmp_path):
    run = config(**{"data.validation_fraction": 0.25, "data.evaluate_on": "validation"})
    record = execute(run, runtime(tmp_path))
    source = load_source(run, runtime(tmp_path))
    training = source.index.subset(split="train")
    assert record["training_classes"] + record["metrics"]["n_classes"] == len(training.classes)


TINY_OPTIONS = [f"--set={key}={json.dumps(value)}" for key, value in TINY.items()]


def test_the_table_script_trains_writes_and_reuses(tmp_path, capsys):
    options = ["--quiet", "--seeds", "1", "--jobs", "1", *TINY_OPTIONS]
    options += ["--runs", str(tmp_path / "runs"), "--results", str(tmp_path / "results")]
    assert run_cli(table2.main, options) == 0
    first = capsys.readouterr().out
    assert "8 runs trained, 0 reused" in first
    assert "setting train.epochs=2" in first
    folder = tmp_path / "results" / "demo"
    csv = (folder / "table2.csv").read_bytes()
    frame = pd.read_csv(folder / "table2.csv")
    assert list(frame["row"]) == [
        "ProxyAnchor", "ProxyAnchor+TCM", "ArcFace", "ArcFace+TCM", "RS@K", "RS@K+TCM",
        "Smooth-AP", "Smooth-AP+TCM",
    ]  # fmt: skip
    assert frame["run_hash"].is_unique
    svg = (folder / "figures" / "table2_pareto.svg").read_bytes()
    assert run_cli(table2.main, options) == 0
    assert "0 runs trained, 8 reused" in capsys.readouterr().out
    assert (folder / "table2.csv").read_bytes() == csv
    assert (folder / "figures" / "table2_pareto.svg").read_bytes() == svg
    assert not list(tmp_path.rglob(".tmp-*"))


def test_paper_scale_says_what_it_needs(tmp_path, capsys):
    options = ["--scale", "paper", "--seeds", "1", "--root", str(tmp_path), "--quiet"]
    assert run_cli(table2.main, [*options, "--runs", str(tmp_path / "runs")]) == 2
    assert "inaturalist" in capsys.readouterr().err


def test_a_killed_table_keeps_its_finished_runs(tmp_path):
    command = [sys.executable, "-m", "reproduce.table2", "--seeds", "1", "--jobs", "1"]
    command += [*TINY_OPTIONS, "--runs", str(tmp_path / "runs"), "--results", str(tmp_path / "r")]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 120
    while not list((tmp_path / "runs").glob("*/record.json")):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.kill()
    process.wait()
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    trained = int(done.stdout.split(" runs trained")[0].split()[-1])
    assert trained < 8
