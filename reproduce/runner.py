"""Runs what is missing, one run after the other or several processes at a time."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tqdm import tqdm

from common.errors import UserError
from reproduce import distributed
from reproduce.checkpoint import StoppedError
from reproduce.execute import LockedError, execute
from reproduce.keys import Keys
from reproduce.runtime import Runtime
from reproduce.stopping import stop_on_signals
from reproduce.store import RunFolder, RunKey
from reproduce.table import Planned
from reproduce.workers import Workers

LOCK_POLL_SECONDS = 1.0
SHOWN = 3


@dataclass
class Task:
    """One distinct run, and where in the list of runs its record belongs."""

    run: Planned
    runtime: Runtime
    force: bool
    numbers: list[int] = field(default_factory=list)
    key: RunKey | None = None


def run_all(
    runs: list[Planned], runtime: Runtime, *, jobs: int = 1, force: bool = False
) -> list[dict[str, Any]]:
    """Returns the runs' records in the order of ``runs``; finished runs are reused and said so.

    Runs that are the same (in two tables, say) are trained once. A run that another process is at
    comes last; a run that fails does not stop the others: what is finished stays in its folder.
    Under torchrun every process calls this with the same list.

    Raises:
        UserError: at least one run failed; names each with its reason, once the others are done.
        StoppedError: Ctrl-C or SIGTERM, once running runs have written their checkpoints.
    """
    outcomes: dict[int, Any] = {}
    tasks, found = distinct(runs, Keys(runtime), force=force)
    several = distributed.from_environment().world_size > 1
    main = distributed.from_environment().is_main

    def keep(task: Task, outcome: Any) -> None:
        for number in task.numbers:
            outcomes[number] = outcome
        if isinstance(outcome, StoppedError):
            raise outcome
        if runtime.progress and main:
            tqdm.write(f"{task.run.description}: {_line(outcome)}")

    for task, outcome in found:
        keep(task, outcome)
    with stop_on_signals():
        if several or jobs <= 1 or len(tasks) <= 1:
            _one_by_one(tasks, keep)
        else:
            _side_by_side(tasks, keep, jobs)
    failures = [
        (run, outcomes[n]) for n, run in enumerate(runs) if isinstance(outcomes[n], UserError)
    ]
    if failures:
        raise UserError(f"{len(failures)} of {len(runs)} runs failed: {reasons(failures)}")
    return [outcomes[number] for number in range(len(runs))]


def distinct(
    runs: list[Planned], keys: Keys, *, force: bool = False
) -> tuple[list[Task], list[tuple[Task, Any]]]:
    """(runs to be trained, what is known already: finished records and data that is not there).

    Under torchrun all are to be trained, for the processes must agree on what is finished:
    ``execute`` settles it run by run.
    """
    by_hash: dict[str, Task] = {}
    found: list[tuple[Task, Any]] = []
    for number, run in enumerate(runs):
        try:
            key = keys.of(run.config)
        except UserError as error:
            found.append((Task(run, keys.runtime, force, [number]), error))
            continue
        runtime = keys.runtime_of(run.config)
        task = by_hash.setdefault(key.run_hash, Task(run, runtime, force, key=key))
        task.numbers.append(number)
    tasks = []
    several = distributed.from_environment().world_size > 1
    for task in by_hash.values():
        record = None if force or several else RunFolder(task.key, task.runtime.runs).record()
        if record is None:
            tasks.append(task)
        else:
            found.append((task, {**record, "reused": True}))
    return tasks, found


def default_jobs(runs: list[Planned]) -> int:
    """As many processes as the cores allow, where every run states its number of threads."""
    threads = [run.config.train.threads for run in runs]
    if not threads or None in threads:
        return 1
    return max(1, len(os.sched_getaffinity(0)) // max(threads))


def attempt(task: Task) -> dict[str, Any] | UserError:
    """The run's record, or why there is none. A run that another process is at is not waited for.

    Raises:
        UserError: under torchrun, whose other processes cannot go on without this one.
    """
    try:
        return execute(
            task.run.config,
            task.runtime,
            force=task.force,
            description=task.run.description,
            wait=False,
        )
    except UserError as error:
        if distributed.from_environment().world_size > 1:
            raise
        return error


def _one_by_one(tasks: Iterable[Task], keep) -> None:
    queue = _Queue(tasks)
    while queue:
        task = queue.take()
        if task is None:
            time.sleep(LOCK_POLL_SECONDS)
            continue
        outcome = attempt(task)
        queue.again(task) if isinstance(outcome, LockedError) else keep(task, outcome)


def _side_by_side(tasks: list[Task], keep, jobs: int) -> None:
    queue = _Queue(tasks)
    with Workers(attempt, min(jobs, len(tasks))) as workers:
        while queue or workers.busy:
            task = queue.take() if workers.free else None
            if task is not None:
                workers.submit(task)
                continue
            for task, outcome in workers.outcomes(LOCK_POLL_SECONDS if queue else None):
                queue.again(task) if isinstance(outcome, LockedError) else keep(task, outcome)


class _Queue:
    """Tasks in order; those that another process is at come last, as soon as their lock is free."""

    def __init__(self, tasks: Iterable[Task]) -> None:
        self._free = deque(tasks)
        self._locked: list[Task] = []
        self._told: set[str] = set()

    def __len__(self) -> int:
        return len(self._free) + len(self._locked)

    def take(self) -> Task | None:
        """The next task; None where all that are left are locked."""
        if self._free:
            return self._free.popleft()
        for task in self._locked:
            if not RunFolder(task.key, task.runtime.runs).is_locked():
                self._locked.remove(task)
                return task
        return None

    def again(self, task: Task) -> None:
        """Puts back a task that another process is at."""
        if task.key.run_hash not in self._told and task.runtime.progress:
            tqdm.write(f"{task.run.description}: another process is at it, other runs come first")
        self._told.add(task.key.run_hash)
        self._locked.append(task)


def reasons(failures: list[tuple[Planned, UserError]]) -> str:
    """Each reason once, with the runs that it stopped."""
    by_reason: dict[str, list[str]] = {}
    for run, error in failures:
        by_reason.setdefault(str(error), []).append(run.description)
    return " | ".join(f"{_some(names)}: {reason}" for reason, names in by_reason.items())


def _some(names: list[str]) -> str:
    more = len(names) - SHOWN
    return "; ".join(names[:SHOWN]) + (f" and {more} more" if more > 0 else "")


def _line(outcome: dict[str, Any] | UserError) -> str:
    if isinstance(outcome, UserError):
        return f"failed, {outcome}"
    scores = outcome["metrics"]
    how = "reused" if outcome["reused"] else f"{outcome['seconds']:.0f} s"
    return f"R@1 {100 * scores['recall_at_1']:.2f} %, OPIS {1e3 * scores['opis']:.3f}e-3 ({how})"
