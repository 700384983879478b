"""A training run's whole state in one file, written whole: any interruption can be resumed."""

from __future__ import annotations

import random
import signal
import threading
from pathlib import Path
from typing import Any

import numpy as np
import torch

from common.atomic import atomic_path
from common.errors import UserError


def save(path: Path, run_hash: str, parts: dict[str, Any], progress: dict[str, Any]) -> None:
    """Writes the state of ``parts`` (objects with ``state_dict``), the random states and progress.

    Args:
        progress: plain numbers and lists, for instance the next step and the history so far.
    """
    state = {
        "run_hash": run_hash,
        "parts": {name: part.state_dict() for name, part in parts.items()},
        "random": _random_states(),
        "progress": progress,
    }
    with atomic_path(path) as temporary:
        torch.save(state, temporary)


def restore(path: Path, run_hash: str, parts: dict[str, Any]) -> dict[str, Any] | None:
    """Loads what :func:`save` wrote into ``parts`` and returns ``progress``; None without a file.

    Code in the file is never executed (``weights_only``).

    Raises:
        UserError: the file is damaged or belongs to another run.
    """
    if not path.exists():
        return None
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
        owner = state["run_hash"]
    except Exception as error:  # torch raises many kinds for a damaged file
        first_line = str(error).splitlines()[0][:120] if str(error) else type(error).__name__
        raise UserError(
            f"{path} is damaged ({first_line}): delete it and the run starts from the beginning"
        ) from None
    if owner != run_hash:
        raise UserError(f"{path} belongs to run {owner}, not to {run_hash}: delete or move it")
    for name, part in parts.items():
        part.load_state_dict(state["parts"][name])
    _set_random_states(state["random"])
    return state["progress"]


def _random_states() -> dict[str, Any]:
    version, numbers, gauss = random.getstate()
    name, keys, position, has_gauss, cached = np.random.get_state()
    return {
        "python": [version, list(numbers), gauss],
        "numpy": [name, torch.from_numpy(keys.astype(np.int64)), position, has_gauss, cached],
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
    }


def _set_random_states(states: dict[str, Any]) -> None:
    version, numbers, gauss = states["python"]
    random.setstate((version, tuple(numbers), gauss))
    name, keys, position, has_gauss, cached = states["numpy"]
    np.random.set_state((name, keys.numpy().astype(np.uint32), position, has_gauss, cached))
    torch.set_rng_state(states["torch"])
    if states["cuda"] and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(states["cuda"])


class StoppedError(UserError):
    """The run was asked to stop by a signal and left a checkpoint."""


class StopSignal:
    """Within ``with``, SIGTERM asks for a checkpoint after the step instead of killing at once."""

    def __init__(self) -> None:
        self.requested = False
        self._previous: Any = None

    def __enter__(self) -> StopSignal:
        if threading.current_thread() is threading.main_thread():
            self._previous = signal.signal(signal.SIGTERM, self._request)
        return self

    def __exit__(self, *_: object) -> None:
        if self._previous is not None:
            signal.signal(signal.SIGTERM, self._previous)

    def raise_if_requested(self, path: Path) -> None:
        """Ends the run once its state is on disk."""
        if self.requested:
            raise StoppedError(f"stopped by SIGTERM; the same command goes on from {path}")

    def _request(self, *_: object) -> None:
        self.requested = True
