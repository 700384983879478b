"""Worker processes that train one run at a time, stop with a checkpoint, and never outlive us.

The pools of the standard library cannot say which run a dead worker was at, nor stop one run.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from common.errors import UserError

# Spawned, not forked: a forked child may hang on locks of the parent's thread pools.
_SPAWN = multiprocessing.get_context("spawn")


@dataclass
class _Worker:
    process: Any
    connection: Connection
    item: Any = None


class Workers:
    """Up to ``count`` processes that call ``function(item)``; use it in a ``with`` statement.

    Leaving it ends the processes: idle ones at once, a busy one by SIGTERM, after which it is
    waited for, because a training step and its checkpoint take a while. A worker whose parent was
    killed gets SIGTERM too, from itself.

    Args:
        function: a picklable function that returns a picklable outcome and raises nothing.
        count: processes, at least 1; each is started when there is something for it.
    """

    def __init__(self, function: Callable[[Any], Any], count: int) -> None:
        self._function, self._count = function, count
        self._workers: list[_Worker] = []

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            if worker.item is not None:
                worker.process.terminate()
            worker.connection.close()
        for worker in self._workers:
            worker.process.join()

    @property
    def busy(self) -> int:
        """Items that are being worked on."""
        return sum(worker.item is not None for worker in self._workers)

    @property
    def free(self) -> bool:
        """Whether :meth:`submit` may be called."""
        return self.busy < self._count

    def submit(self, item: Any) -> None:
        """Gives an item to an idle process."""
        idle = [worker for worker in self._workers if worker.item is None]
        worker = idle[0] if idle else self._start()
        worker.item = item
        worker.connection.send(item)

    def outcomes(self, timeout: float | None = None) -> list[tuple[Any, Any]]:
        """Waits until something is done, and returns all (item, outcome); [] after ``timeout`` s.

        The outcome of a process that died is a UserError which says how.
        """
        sources: dict[Any, _Worker] = {}
        for worker in self._workers:
            if worker.item is not None:
                sources |= {worker.connection: worker, worker.process.sentinel: worker}
        ready = {id(sources[found]): sources[found] for found in wait(list(sources), timeout)}
        return [self._collect(worker) for worker in ready.values()]

    def _collect(self, worker: _Worker) -> tuple[Any, Any]:
        item, worker.item = worker.item, None
        try:
            return item, worker.connection.recv()
        except (EOFError, OSError):
            worker.process.join()
            self._workers.remove(worker)
            return item, UserError(_death(worker.process.exitcode))

    def _start(self) -> _Worker:
        ours, theirs = _SPAWN.Pipe()
        process = _SPAWN.Process(target=_serve, args=(self._function, theirs))
        process.start()
        theirs.close()
        worker = _Worker(process, ours)
        self._workers.append(worker)
        return worker


def _death(code: int | None) -> str:
    if code == -signal.SIGKILL:
        return (
            "its process was killed, most often for want of memory: lower --jobs or --workers, and "
            "run the same command again"
        )
    how = f"by signal {-code}" if code is not None and code < 0 else f"with exit code {code}"
    return f"its process ended {how}; run the same command again"


def _serve(function: Callable[[Any], Any], connection: Connection) -> None:
    """Runs in the worker."""
    # Ctrl-C reaches every process of a terminal: the parent alone decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_stop_without_parent, daemon=True).start()
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            connection.send(function(connection.recv()))


def _stop_without_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
