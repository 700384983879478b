"""A worker's function that ends its process; in a module that is imported quickly."""

from __future__ import annotations

import os
import signal


def die(how: str) -> str:
    """``killed``, ``exit``, or anything else, which is returned."""
    if how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "exit":
        os._exit(3)
    return how
