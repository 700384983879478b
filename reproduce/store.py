"""Runs on disk: ``runs/<hash>/`` holds what a finished run left, under a hash of what decided it.

The hash covers the resolved configuration, the data's checksum, the schema version and the code
that decides the outcome. A run is finished when its ``record.json`` is there, which is written
last; only such runs are reused, and committed results never are.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import filelock

from common.atomic import TEMPORARY_PREFIX, write_text
from common.errors import UserError
from reproduce.config import RunConfig, dump

SCHEMA_VERSION = 1
HASH_LENGTH = 16
RUNS = Path("runs")


@dataclass(frozen=True)
class RunKey:
    """The things that decide a run's outcome, and their hash.

    Attributes:
        weights_sha256: of the file given as ``--weights``; None without one.
    """

    config: RunConfig
    data_checksum: str
    code_hash: str
    device_type: str
    weights_sha256: str | None = None

    @property
    def config_hash(self) -> str:
        """Of the resolved configuration alone: the same for every version of the code."""
        return config_hash(self.config)

    @property
    def run_hash(self) -> str:
        """Of everything; names the run's folder."""
        return _hash({"config": self.config.model_dump(mode="json"), **self._others()})

    def identity(self) -> dict[str, Any]:
        """The hashes that a record carries; those of 64 digits cut to 16."""
        return {
            "run_hash": self.run_hash,
            "config_hash": self.config_hash,
            "data_checksum": self.data_checksum[:16],
            "code_hash": self.code_hash[:16],
            "schema_version": SCHEMA_VERSION,
        }

    def described(self) -> dict[str, Any]:
        """Everything that is hashed as one flat mapping, settings under their dotted keys."""
        return {**_flat(self.config.model_dump(mode="json")), **self._others()}

    def _others(self) -> dict[str, Any]:
        return {
            "data_checksum": self.data_checksum,
            "code_hash": self.code_hash,
            "device": self.device_type,
            "weights_sha256": self.weights_sha256,
            "schema_version": SCHEMA_VERSION,
        }


class RunFolder:
    """Paths and records of one run under ``runs/``."""

    def __init__(self, key: RunKey, root: Path = RUNS):
        self.key = key
        self.path = root / key.run_hash
        self.weights = self.path / "weights.safetensors"
        self.embeddings = self.path / "embeddings.npz"
        self.curves = self.path / "curves.npz"
        self.history = self.path / "history.csv"
        self.checkpoint = self.path / "checkpoint.pt"
        self.checkpoints = (self.checkpoint, self.path / "checkpoint.previous.pt")
        self.log = self.path / "log.txt"
        self.lock = self.path / "lock"
        self._record = self.path / "record.json"

    def record(self) -> dict[str, Any] | None:
        """The finished run's record, or None if it has not finished."""
        try:
            text = self._record.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        try:
            record = json.loads(text)
        except ValueError:
            record = None
        if not isinstance(record, dict) or record.get("run_hash") != self.key.run_hash:
            raise UserError(f"{self._record} is damaged: delete the folder {self.path} and rerun")
        return record

    def is_locked(self) -> bool:
        """Whether a living process is at this run; the lock of a dead one is none."""
        if not self.lock.exists():
            return False
        try:
            with filelock.FileLock(self.lock, timeout=0):
                return False
        except filelock.Timeout:
            return True

    def start(self) -> None:
        """Makes the folder and writes the resolved configuration into it."""
        write_text(self.path / "config.yaml", dump(self.key.config))

    def tidy(self) -> None:
        """Removes what a killed process left half-written; for the one that holds the lock."""
        for path in self.path.glob(f"{TEMPORARY_PREFIX}*"):
            path.unlink(missing_ok=True)

    def events(self, root: Path | None) -> Path | None:
        """Where this run's TensorBoard events go under ``root``; None without one."""
        return None if root is None else root / self.key.run_hash

    def finish(self, record: dict[str, Any]) -> None:
        """Marks the run as finished; the checkpoint is no longer needed."""
        text = json.dumps(record, indent=1)
        write_text(self._record, text + "\n")
        self._remove_checkpoints()

    def forget(self) -> None:
        """Takes back a finished or half-done run, so that it trains from the start (--force)."""
        self._record.unlink(missing_ok=True)
        self._remove_checkpoints()

    def _remove_checkpoints(self) -> None:
        for path in self.checkpoints:
            path.unlink(missing_ok=True)


def config_hash(config: RunConfig) -> str:
    """Hash of a resolved configuration, 16 hex digits."""
    return _hash(config.model_dump(mode="json"))


def _flat(tree: dict[str, Any], above: str = "") -> dict[str, Any]:
    flat = {}
    for name, value in tree.items():
        below = isinstance(value, dict) and value
        flat |= _flat(value, f"{above}{name}.") if below else {f"{above}{name}": value}
    return flat


def _hash(tree: Any) -> str:
    text = json.dumps(tree, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:HASH_LENGTH]
