"""Runs sent through submitit: to this machine, to a Slurm that is not one, and queued again."""

import os
import pickle
import signal

import pandas as pd
import pytest
from submitit.core.job_environment import JobEnvironment
from submitit.core.utils import DelayedSubmission, JobPaths
from submitit.local.local import LOCAL_REQUEUE_RETURN_CODE

from common.errors import run_cli
from reproduce import launcher
from reproduce.execute import execute
from reproduce.job import RunJob
from reproduce.runner import Task
from reproduce.runtime import Runtime
from reproduce.step import TrainingStep
from reproduce.table import Planned
from tests.reproduce import tiny

SBATCH = """#!/bin/sh
cp "$1" {folder}/submitted.sh
echo "Submitted batch job 4711"
"""


def test_local_jobs_train_what_is_missing_and_the_table_is_written(tmp_path, capsys):
    execute(tiny.config(), Runtime(runs=tmp_path / "runs", progress=False))
    options = [*tiny.arguments(tmp_path), "--launcher", "local", "--device", "cpu"]
    assert run_cli(tiny.main, options) == 0
    said = capsys.readouterr().out
    assert "(1 of 1): Base+TCM on glyphs/kana, seed 0" in said
    assert "0 runs trained, 2 reused" in said
    assert list(pd.read_csv(tmp_path / "results" / "demo" / "tiny.csv")["row"]) == [
        "Base",
        "Base+TCM",
    ]


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """A folder of programs by Slurm's names; sbatch keeps what it is given."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in {"sbatch": SBATCH.format(folder=tmp_path), "srun": "#!/bin/sh\n"}.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    return tmp_path / "submitted.sh"


def test_slurm_gets_one_array_with_the_missing_runs(tmp_path, slurm, capsys):
    options = [*tiny.arguments(tmp_path), "--launcher", "slurm", "--seeds", "2"]
    options += ["--gpus-per-run", "4", "--timeout-minutes", "90", "--workers", "3"]
    options += ["--slurm-partition", "long", "--slurm", "account=lab", "--slurm", "mem_gb=64"]
    assert run_cli(tiny.main, options) == 0
    assert "4 runs sent as jobs 4711_0 to 4711_3" in capsys.readouterr().out
    asked = slurm.read_text()
    for text in ("--array=0-3", "--gpus-per-node=4", "--ntasks-per-node=4", "--time=90"):
        assert text in asked
    for text in ("--partition=long", "--account=lab", "--mem=64GB", "--cpus-per-task=4"):
        assert text in asked
    assert "--signal=USR2@90" in asked
    jobs = sorted((tmp_path / "runs" / launcher.JOBS).glob("4711_*_submitted.pkl"))
    sent = [pickle.loads(path.read_bytes()).function.task for path in jobs]
    assert [task.run.description for task in sent] == [
        "Base on glyphs/kana, seed 0",
        "Base+TCM on glyphs/kana, seed 0",
        "Base on glyphs/kana, seed 1",
        "Base+TCM on glyphs/kana, seed 1",
    ]
    # This machine may have no GPU: the runs are those of a machine that has.
    assert {task.runtime.device for task in sent} == {"cuda"}
    assert {task.key.device_type for task in sent} == {"cuda"}
    assert all(task.runtime.runs.is_absolute() for task in sent)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--gpus-per-run", "-1"], "--gpus-per-run -1"),
        (["--gpus-per-run", "2", "--device", "cpu"], "--gpus-per-run 2"),
        (["--timeout-minutes", "0"], "--timeout-minutes 0"),
        (["--slurm", "account"], "write it as KEY=VALUE"),
        (["--slurm", "acount=lab"], "acount"),
    ],
)
def test_impossible_options_are_sentences(tmp_path, slurm, capsys, options, sentence):
    assert run_cli(tiny.main, [*tiny.arguments(tmp_path), "--launcher", "slurm", *options]) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert len(error.splitlines()) == 1


def test_without_slurm_it_says_so(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run_cli(tiny.main, [*tiny.arguments(tmp_path), "--launcher", "slurm"]) == 2
    assert "srun" in capsys.readouterr().err


def test_a_refusal_of_the_cluster_is_a_sentence(tmp_path, slurm, capsys):
    (tmp_path / "bin" / "sbatch").write_text("#!/bin/sh\necho invalid partition >&2\nexit 1\n")
    assert run_cli(tiny.main, [*tiny.arguments(tmp_path), "--launcher", "slurm"]) == 2
    assert "the cluster refuses" in capsys.readouterr().err


@pytest.fixture
def job(tmp_path, monkeypatch):
    """A job as submitit starts it, in this process, with submitit's own signal handlers."""
    run = Planned(tiny.ROWS[0], tiny.config())
    runtime = Runtime(runs=tmp_path / "runs", device="cpu", progress=False)
    monkeypatch.setenv("SUBMITIT_EXECUTOR", "local")
    monkeypatch.setenv("SUBMITIT_LOCAL_JOB_ID", "1")
    before = {name: signal.getsignal(name) for name in (signal.SIGTERM, signal.SIGCONT)}
    before[signal.SIGUSR2] = signal.getsignal(signal.SIGUSR2)
    delayed = DelayedSubmission(RunJob(Task(run, runtime, False, [0])))
    delayed.set_timeout(60, 3)
    paths = JobPaths(tmp_path / "jobs", job_id="1")
    paths.folder.mkdir()
    delayed.dump(paths.submitted_pickle)
    JobEnvironment()._handle_signals(paths, delayed)
    yield delayed, paths
    for name, handler in before.items():
        signal.signal(name, handler)


def signal_in_step(monkeypatch, step: int, number: int) -> None:
    whole, calls = TrainingStep.__call__, []

    def interrupted(self, images, labels):
        calls.append(1)
        if len(calls) == step:
            os.kill(os.getpid(), number)
        return whole(self, images, labels)

    monkeypatch.setattr(TrainingStep, "__call__", interrupted)


def test_a_pre_empted_job_is_queued_again_and_goes_on(tmp_path, job, monkeypatch):
    delayed, paths = job
    signal_in_step(monkeypatch, 4, signal.SIGUSR2)
    with pytest.raises(SystemExit) as left:
        delayed.result()
    assert left.value.code == LOCAL_REQUEUE_RETURN_CODE
    monkeypatch.undo()
    run = tiny.config()
    assert tiny.folder_of(run, tmp_path / "runs").checkpoint.exists()
    monkeypatch.setenv("SUBMITIT_EXECUTOR", "local")
    monkeypatch.setenv("SUBMITIT_LOCAL_JOB_ID", "1")
    again = DelayedSubmission.load(paths.submitted_pickle).result()
    undisturbed = execute(run, Runtime(runs=tmp_path / "other", progress=False))
    assert tiny.outcome(undisturbed) == tiny.outcome(again)


def test_a_cancelled_job_leaves_a_checkpoint_and_is_not_queued_again(tmp_path, job, monkeypatch):
    delayed, _ = job
    signal_in_step(monkeypatch, 4, signal.SIGTERM)
    assert "stopped by SIGTERM" in str(delayed.result())
    assert tiny.folder_of(tiny.config(), tmp_path / "runs").checkpoint.exists()
