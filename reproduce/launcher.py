"""Sends a table's missing runs to a cluster, or one by one to this machine, through submitit."""

from __future__ import annotations

import argparse
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import submitit
import torch

from common.errors import UserError
from reproduce.job import RunJob
from reproduce.keys import Keys
from reproduce.runner import Task, distinct
from reproduce.stopping import stop_on_signals
from reproduce.table import Planned
from reproduce.weights_option import TableRuntime

LAUNCHERS = ("local", "slurm")
JOBS = "jobs"
# A run may be longer than the time limit: it is queued again as often as it takes.
MOST_TIMEOUTS = 1000


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of a launch."""
    group = parser.add_argument_group("sending runs elsewhere")
    group.add_argument(
        "--launcher",
        choices=LAUNCHERS,
        help="slurm: missing runs as a job array; local: one job after the other on this machine",
    )
    group.add_argument(
        "--gpus-per-run",
        type=int,
        help="processes, each with a GPU, for --dry-run as well (default: 1; 0 on CPUs)",
    )
    group.add_argument(
        "--timeout-minutes", type=int, default=24 * 60, help="of a job; it is then queued again"
    )
    group.add_argument("--slurm-partition", help="where the jobs go")
    group.add_argument(
        "--slurm",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="any other parameter of submitit's Slurm executor, e.g. account=lab, mem_gb=64",
    )


def launch(
    name: str, runs: list[Planned], runtime: TableRuntime, options: argparse.Namespace
) -> list[tuple[Planned, UserError]] | None:
    """Sends the runs that are not finished; ``local`` waits for each and returns what failed.

    Returns None for ``slurm``: the same command without ``--launcher`` collects the results later.

    Raises:
        UserError: an impossible option, no Slurm here, or the cluster refuses.
        StoppedError: Ctrl-C or SIGTERM, once the running job has written its checkpoint.
    """
    gpus = _gpus(options)
    runtime = replace(runtime.absolute(), device="cuda" if gpus else "cpu", progress=False)
    keys = Keys(runtime, device_type=runtime.device)
    tasks, found = distinct(runs, keys, force=options.force)
    failed = [(task.run, outcome) for task, outcome in found if isinstance(outcome, UserError)]
    if failed:
        raise UserError(str(failed[0][1]))
    if not tasks:
        print(f"{name}: all runs are finished, nothing to send")
        return []
    executor = _executor(options, runtime.runs / JOBS, gpus, name)
    if options.launcher == "local":
        return _one_by_one(executor, tasks)
    jobs = _submit(executor, tasks)
    print(
        f"{name}: {len(jobs)} runs sent as jobs {jobs[0].job_id} to {jobs[-1].job_id}, their "
        f"output in {runtime.runs / JOBS}; once they are finished, the same command without "
        "--launcher writes the table"
    )
    return None


def _one_by_one(executor: submitit.Executor, tasks: list[Task]) -> list[tuple[Planned, UserError]]:
    failures = []
    for number, task in enumerate(tasks, 1):
        job = _start(executor, task)
        print(f"job {job.job_id} ({number} of {len(tasks)}): {task.run.description}", flush=True)
        outcome = _wait(job)
        if isinstance(outcome, UserError):
            print(f"  failed, {outcome}")
            failures.append((task.run, outcome))
    return failures


def _start(executor: submitit.Executor, task: Task) -> submitit.Job:
    # Ctrl-C reaches every process of the terminal. What ignores it here is left to _wait, which
    # passes on SIGTERM: a controller that took it would kill its run before the checkpoint.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        return executor.submit(RunJob(task))
    finally:
        signal.signal(signal.SIGINT, before)


def _wait(job: submitit.Job) -> dict[str, Any] | UserError:
    try:
        with stop_on_signals():
            job.wait()
    except UserError:
        # The job's controller hands SIGTERM on, upon which the run writes its checkpoint.
        os.kill(int(job.job_id), signal.SIGTERM)
        job.wait()
        raise
    try:
        return job.results()[0]
    except Exception as error:  # whatever the job raised, or that it left nothing
        last = (str(error).strip() or type(error).__name__).splitlines()[-1]
        return UserError(f"its job failed ({last}): see {job.paths.stderr}")


def _submit(executor: submitit.Executor, tasks: list[Task]) -> list[submitit.Job]:
    try:
        with executor.batch():
            return [executor.submit(RunJob(task)) for task in tasks]
    except Exception as error:  # sbatch's refusals come in many kinds
        reason = (str(error).strip() or type(error).__name__).splitlines()[-1]
        raise UserError(f"--launcher slurm: the cluster refuses ({reason})") from None


def _executor(options: argparse.Namespace, folder: Path, gpus: int, name: str) -> submitit.Executor:
    try:
        executor = submitit.AutoExecutor(
            folder, cluster=options.launcher, slurm_max_num_timeout=MOST_TIMEOUTS
        )
        executor.update_parameters(**_parameters(options, gpus, name))
    except (RuntimeError, ValueError, NameError, TypeError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"--launcher {options.launcher}: {reason}") from None
    return executor


def _parameters(options: argparse.Namespace, gpus: int, name: str) -> dict[str, Any]:
    """For submitit: one task for each GPU of a run, all on one node."""
    parameters: dict[str, Any] = {
        "name": name.replace(" ", "_"),
        "timeout_min": options.timeout_minutes,
        "tasks_per_node": max(1, gpus),
        "gpus_per_node": gpus,
        "nodes": 1,
        "cpus_per_task": options.workers + 1,
    }
    if options.slurm_partition:
        parameters["slurm_partition"] = options.slurm_partition
    for text in options.slurm:
        key, separator, value = text.partition("=")
        if not separator or not key:
            raise UserError(f"--slurm {text}: write it as KEY=VALUE")
        number = int(value) if value.isdecimal() else value
        parameters[key if key in parameters else f"slurm_{key}"] = number
    return parameters


def _gpus(options: argparse.Namespace) -> int:
    gpus = options.gpus_per_run
    if gpus is None:
        cpu = options.device == "cpu" or (
            options.launcher == "local" and not torch.cuda.is_available()
        )
        gpus = 0 if cpu else 1
    if gpus < 0 or (gpus and options.device == "cpu"):
        raise UserError(f"--gpus-per-run {gpus}: at least 0, and 0 with --device cpu")
    if options.timeout_minutes < 1:
        raise UserError(f"--timeout-minutes {options.timeout_minutes}: at least 1")
    return gpus
