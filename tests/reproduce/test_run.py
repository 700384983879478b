"""Whole runs at a tiny size: reuse, bit-equal repetition, resuming, what a run leaves behind."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd

from common.errors import run_cli
from reproduce import table2
from tests.reproduce import tiny

ROOT = Path(__file__).resolve().parents[2]
TINY_OPTIONS = [f"--set={key}={json.dumps(value)}" for key, value in tiny.VALUES.items()]


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
