"""A training run's whole state in one file, written whole: any interruption can be resumed.

The last good state stays beside the new one (``checkpoint.previous.pt``): a file that a disk
damaged later is noticed by its checksum, said, and the previous one is taken up.
"""

from __future__ import annotations

import hashlib
import io
import os
import random
import signal
import threading
from pathlib import Path
from typing import Any

import numpy as np
import torch

from common.atomic import atomic_path
from common.errors import UserError
from reproduce.store import RunKey

_DIGEST_BYTES = hashlib.sha256().digest_size
_SHOWN = 12


class Checkpoint:
    """The state of one run on disk.

    Args:
        paths: of the newest state and of the one before it.
        key: of the run; states of others are refused.

    Attributes:
        remarks: sentences about damaged files that :meth:`restore` passed over.
    """

    def __init__(self, paths: tuple[Path, Path], key: RunKey) -> None:
        self.path, self.previous = paths
        self.key = key
        self.remarks: list[str] = []

    def save(self, parts: dict[str, Any], progress: dict[str, Any]) -> None:
        """Writes the state of ``parts`` (objects with ``state_dict``), random states and progress.

        Args:
            progress: plain numbers and lists, for instance the next step and the history so far.
        """
        state = {
            "key": self.key.described(),
            "parts": {name: part.state_dict() for name, part in parts.items()},
            "random": _random_states(),
            "progress": progress,
        }
        with atomic_path(self.path) as temporary:
            torch.save(state, temporary)
            with open(temporary, "rb+") as file:
                digest = hashlib.file_digest(file, "sha256").digest()
                file.write(digest)
                # On disk before the renames, which then follow each other at once.
                file.flush()
                os.fsync(file)
            if self.path.exists():
                os.replace(self.path, self.previous)

    def restore(self, parts: dict[str, Any]) -> dict[str, Any] | None:
        """Loads the newest good state into ``parts`` and returns its progress; None without one.

        Code in the file is never executed (``weights_only``).

        Raises:
            UserError: every file that is there is damaged, or the state belongs to another run.
        """
        found = [path for path in (self.path, self.previous) if path.exists()]
        self.remarks = []
        for path in found:
            try:
                state = _read(path)
            except _DamagedError as error:
                self.remarks.append(f"{path} is damaged ({error})")
                continue
            self._check_owner(state["key"], path)
            for name, part in parts.items():
                part.load_state_dict(state["parts"][name])
            _set_random_states(state["random"])
            if self.remarks:
                self.remarks[-1] += f": going on from {path}"
            return state["progress"]
        if found:
            raise UserError(
                f"{'; '.join(self.remarks)}: delete {self.path.parent} and the run starts from "
                "the beginning"
            )
        return None

    def _check_owner(self, theirs: dict[str, Any], path: Path) -> None:
        ours = self.key.described()
        names = [name for name in {**theirs, **ours} if theirs.get(name) != ours.get(name)]
        if names:
            shown = [f"{n} ({theirs.get(n)} there, {ours.get(n)} here)" for n in names[:_SHOWN]]
            more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
            raise UserError(
                f"{path} belongs to another run, which differs in {', '.join(shown)}{more}: "
                "delete or move it"
            )


class _DamagedError(Exception):
    """A file that is no whole checkpoint; the message says why."""


def _read(path: Path) -> dict[str, Any]:
    content = path.read_bytes()
    body, digest = content[:-_DIGEST_BYTES], content[-_DIGEST_BYTES:]
    if hashlib.sha256(body).digest() != digest:
        raise _DamagedError("its checksum is wrong")
    try:
        return torch.load(io.BytesIO(body), map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises many kinds, e.g. for another version's format
        raise _DamagedError((str(error) or type(error).__name__).splitlines()[0][:120]) from None


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
    # Another number of GPUs than before has no state to take; each step seeds them anew anyway.
    if len(states["cuda"]) == (torch.cuda.device_count() if torch.cuda.is_available() else 0):
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

    def _request(self, *_: object) -> None:
        self.requested = True
