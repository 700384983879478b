"""What the run store holds, by the hashes of configuration and code: no data is needed to ask."""

from __future__ import annotations

import json
from pathlib import Path

from reproduce.keys import Keys
from reproduce.store import SCHEMA_VERSION, config_hash
from reproduce.table import Planned


class Stored:
    """The finished runs under ``runs``, and those that left a checkpoint.

    Records that cannot be read count as none: the run that one belongs to says so, once it is asked
    for.
    """

    def __init__(self, runs: Path) -> None:
        self._finished: set[tuple[str, str]] = set()
        for path in runs.glob("*/record.json"):
            try:
                record = json.loads(path.read_text(encoding="utf-8"))
                if record["schema_version"] == SCHEMA_VERSION:
                    self._finished.add((record["config_hash"], record["code_hash"]))
            except (OSError, ValueError, KeyError, TypeError):
                continue
        self.checkpoints = len(list(runs.glob("*/checkpoint.pt")))

    def has(self, run: Planned, keys: Keys) -> bool:
        """Whether the run was finished by today's configuration and code, on whatever device."""
        return (config_hash(run.config), keys.short_code(run.config)) in self._finished
