"""Step times: identical tensors on both sides, whole CSVs, and the claim that is judged on them."""

import pytest
import torch

from common.errors import run_cli
from reproduce import reference, time_complexity, time_results
from reproduce.judge import judge
from reproduce.verdict import NOT_RUN

CPU = torch.device("cpu")


@pytest.fixture
def one_row(monkeypatch):
    rows = {"demo": {"ProxyAnchor": time_complexity.ROWS["demo"]["ProxyAnchor"]}}
    monkeypatch.setattr(time_complexity, "ROWS", rows)


def test_both_sides_see_the_same_tensors_and_weights():
    steps = [
        time_complexity._step(time_complexity._config("demo", "RS@K", tcm), "demo", 16, CPU)
        for tcm in (False, True)
    ]
    plain, with_tcm = (step() for step in steps)
    assert "tcm" not in plain
    assert with_tcm["tcm"] > 0
    assert with_tcm["base"] == plain["base"] == plain["loss"]


def test_a_repeat_is_the_median_of_steps_that_alternate(monkeypatch):
    calls = []
    clock = {"a": 0.004, "b": 0.002}
    monkeypatch.setattr(
        time_complexity, "_timed", lambda step, device: calls.append(step) or clock[step]
    )
    found = list(time_complexity._in_turn(["a", "b"], repeats=2, steps=3, device=CPU))
    assert found == [(4.0, 2.0)] * 2
    measured = calls[4:]
    assert measured.count("a") == measured.count("b") == 6
    firsts = measured[::2]
    assert firsts.count("a") == 3


def judged_on_what_the_command_writes(folder):
    options = ["--results", str(folder), "--batches", "8", "--repeats", "2", "--steps", "1"]
    assert run_cli(time_complexity.main, options) == 0
    frame = time_results.read(folder / "demo" / "time_complexity.csv")
    assert len(frame) == 2
    assert (folder / "demo" / "figures" / "time_complexity.png").exists()
    claim = next(one for one in reference.claims().claims if one.id == 11)
    return judge(claim, {"time_complexity": frame}, 0.95)


def test_the_command_writes_what_claim_11_is_judged_on(one_row, tmp_path, monkeypatch):
    def here(scale, row, batch, tcm, device):
        config = time_complexity._config(scale, row, tcm == "tcm")
        return time_complexity._peak_here(config, scale, batch, device) + 1

    monkeypatch.setattr(time_complexity, "_peak", here)
    found = judged_on_what_the_command_writes(tmp_path)
    assert found.verdict != NOT_RUN
    assert found.findings[0].n == 2


@pytest.mark.soak
def test_peaks_are_measured_in_processes_of_their_own(one_row, tmp_path):
    assert judged_on_what_the_command_writes(tmp_path).verdict != NOT_RUN


def test_a_process_that_fails_is_named(one_row, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(time_complexity.sys, "executable", "false")
    options = ["--results", str(tmp_path), "--batches", "8", "--repeats", "2", "--steps", "1"]
    assert run_cli(time_complexity.main, options) == 2
    assert "ProxyAnchor at batch 8 failed" in capsys.readouterr().err


@pytest.mark.parametrize("options", [["--repeats", "1"], ["--batches", "10"], ["--steps", "0"]])
def test_impossible_options_are_refused(options, capsys):
    assert run_cli(time_complexity.main, options) == 2
    assert "at least 2 repeats" in capsys.readouterr().err


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_on_a_gpu_the_allocator_is_asked_for_the_peak(one_row, tmp_path):
    options = ["--results", str(tmp_path), "--batches", "64", "--repeats", "2", "--steps", "2"]
    assert run_cli(time_complexity.main, [*options, "--device", "cuda"]) == 0
    frame = time_results.read(tmp_path / "demo" / "time_complexity.csv")
    assert (frame["tcm_peak_mb"] >= frame["base_peak_mb"]).all()
