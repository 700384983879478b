"""One run as a submitit job: it trains, and when the cluster wants its place it goes on later."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import submitit
from submitit.helpers import Checkpointable, DelayedSubmission, TorchDistributedEnvironment

from common.errors import UserError
from reproduce.checkpoint import StoppedError
from reproduce.runner import Task, attempt
from reproduce.stopping import stop_on_signals


@dataclass
class RunJob(Checkpointable):
    """Called on the node, in one process for each GPU.

    submitit announces the end of a time limit and pre-emption by a signal. The training loop writes
    its checkpoint, and the job asks to be queued again; it then goes on from there. A job that was
    cancelled gets SIGTERM: it writes its checkpoint and ends.
    """

    task: Task

    def __call__(self) -> dict[str, Any] | UserError:
        """The run's record, or why there is none."""
        environment = submitit.JobEnvironment()
        if environment.num_tasks > 1 and "RANK" not in os.environ:
            TorchDistributedEnvironment().export(set_cuda_visible_devices=False)
        with _announced_end(environment) as requeue, stop_on_signals():
            try:
                outcome = attempt(self.task)
            except UserError as error:
                outcome = error
        if isinstance(outcome, StoppedError):
            requeue()
        return outcome

    def checkpoint(self) -> DelayedSubmission:
        """For submitit: the same job again; where it was is in the run's folder."""
        return DelayedSubmission(self)


@contextlib.contextmanager
def _announced_end(environment: submitit.JobEnvironment) -> Iterator[Callable[[], None]]:
    """Turns submitit's signal into SIGTERM; yields what to call once the checkpoint is written.

    That hands the signal on to submitit's own handler, which queues the job again and exits; it
    does nothing if there was no such signal.
    """
    number = environment._usr_sig()
    announced = False

    def stop(*_: object) -> None:
        nonlocal announced
        announced = True
        signal.raise_signal(signal.SIGTERM)

    handler = signal.signal(number, stop)

    def requeue() -> None:
        if announced:
            signal.raise_signal(number)

    try:
        yield requeue
    finally:
        signal.signal(number, handler)
