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

from common.atomic import write_text
from common.errors import UserError
from reproduce.config import RunConfig, dump

SCHEMA_VERSION = 1
HASH_LENGTH = 16
RUNS = Path("runs")


@dataclass(frozen=True)
class RunKey:
    """The four things that decide a run's outcome, and their hash."""

    config: RunConfig
    data_checksum: str
    code_hash: str
    device_type: str

    @property
    def config_hash(self) -> str:
        """Of the resolved configuration alone: the same for every version of the code."""
        return config_hash(self.config)

    @property
    def run_hash(self) -> str:
        """Of everything; names the run's folder."""
        return _hash(
            {
                "config": self.config.model_dump(mode="json"),
                "data_checksum": self.data_checksum,
                "code_hash": self.code_hash,
                "device": self.device_type,
                "schema_version": SCHEMA_VERSION,
            }
        )


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

    def start(self) -> None:
        """Makes the folder and writes the resolved configuration into it."""
        write_text(self.path / "config.yaml", dump(self.key.config))

    def finish(self, record: dict[str, Any]) -> None:
        """Marks the run as finished; the checkpoint is no longer needed."""
        text = json.dumps(record, indent=1)
        write_text(self._record, text + "\n")
        self.checkpoint.unlink(missing_ok=True)

    def forget(self) -> None:
        """Takes back a finished or half-done run, so that it trains from the start (--force)."""
        self._record.unlink(missing_ok=True)
        self.checkpoint.unlink(missing_ok=True)


def config_hash(config: RunConfig) -> str:
    """Hash of a resolved configuration, 16 hex digits."""
    return _hash(config.model_dump(mode="json"))


def _hash(tree: Any) -> str:
    text = json.dumps(tree, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:HASH_LENGTH]
