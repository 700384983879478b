"""Ctrl-C and SIGTERM for a whole table: what trains writes its checkpoint, then one sentence."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator

from reproduce.checkpoint import StoppedError

GOES_ON = "finished runs are kept, and the same command goes on from the checkpoints of the others"


@contextlib.contextmanager
def stop_on_signals() -> Iterator[None]:
    """Within it SIGTERM raises StoppedError in the main thread, and Ctrl-C acts like SIGTERM.

    The training loop has a handler of its own for SIGTERM, which writes a checkpoint after the
    step; through it Ctrl-C does the same. A second Ctrl-C interrupts at once. In other threads than
    the main one this does nothing, for signals never arrive there.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    asked = False

    def terminate(*_: object) -> None:
        raise StoppedError(f"stopped by {'Ctrl-C' if asked else 'SIGTERM'}; {GOES_ON}")

    def interrupt(*_: object) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True
        signal.raise_signal(signal.SIGTERM)

    before = {
        signal.SIGTERM: signal.signal(signal.SIGTERM, terminate),
        signal.SIGINT: signal.signal(signal.SIGINT, interrupt),
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
