"""Results tables for the tests: complete and believable, from a given function of row and seed."""

from __future__ import annotations

import functools

import pandas as pd

from reproduce import results
from reproduce.keys import Keys
from reproduce.runtime import Runtime
from reproduce.store import SCHEMA_VERSION, config_hash
from reproduce.table import Planned, Table, plan


@functools.cache
def todays_keys() -> Keys:
    """Keys that read code and data once for all tests, which do not change them."""
    return Keys(Runtime(device="cpu"))


def record(run: Planned, **metrics: float) -> dict:
    """A run's record with the given metrics and plain provenance."""
    scores = {"recall_at_1": 0.9, "opis": 2e-4, "opis_floor": 1e-5} | metrics
    columns = dict.fromkeys(results.PROVENANCE, 1) | {
        "config_hash": config_hash(run.config),
        "run_hash": f"{run.row.name}-{run.config.model.backbone}-{run.config.seed}",
        "schema_version": SCHEMA_VERSION,
        "selection": "last",
        "commit": "0123456789abcdef",
        "dirty": False,
        "device": "cpu: test",
        "notes": "",
        "versions": "torch==0",
    }
    return columns | {"metrics": scores, "reused": False}


def frame(table: Table, scale: str, metrics) -> pd.DataFrame:
    """A whole results table; ``metrics(row name, seed)`` gives each run's numbers."""
    return results.to_frame(
        [
            (run.key_columns(table.name), record(run, **metrics(run.row.name, run.config.seed)))
            for run in plan(table, scale)
        ]
    )
