"""Whether a results table is whole, untouched, and what its script would make today."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from common.errors import UserError
from reproduce.execute import code_modules
from reproduce.keys import Keys
from reproduce.runtime import Runtime
from reproduce.store import SCHEMA_VERSION, config_hash
from reproduce.table import Planned, Table, plan

# Data that every checkout has and that is read in a second.
EMBEDDED = ("glyphs",)


def require_current(
    frame: pd.DataFrame, table: Table, scale: str, path: Path, keys: Keys | None = None
) -> list[str]:
    """Every planned row and seed is there, and made by the configuration of today.

    More seeds than planned are welcome. Returns warnings: rows that other code made, which is no
    error, for a changed comment changes the code's hash too.

    Args:
        keys: hand over one for several tables, so that code and data are read once.

    Raises:
        UserError: a row is missing, strange or not its own: the configuration hash, the schema
            version, or a hash that does not fit the others; names the row.
    """
    again = f"rerun python -m reproduce.{table.name} --scale {scale}"
    found = {_key(row): row for row in frame.to_dict("records")}
    planned = plan(table, scale)
    columns = [run.key_columns(table.name) for run in planned]
    known = {_key(key)[:3] for key in columns}
    for key, row in found.items():
        if key[:3] not in known:
            raise UserError(f"{path}: {_name(row)} is not among the table's rows; {again}")
    made_by_others = []
    keys = keys or Keys(Runtime(device="cpu"))
    for run, key in zip(planned, columns, strict=True):
        row = found.get(_key(key))
        if row is None:
            raise UserError(f"{path}: {_name(key)} is missing; {again}")
        if row["config_hash"] != config_hash(run.config):
            raise UserError(
                f"{path}: {_name(row)} is stale, made with another configuration; {again}"
            )
        if row["schema_version"] != SCHEMA_VERSION:
            raise UserError(f"{path}: {_name(row)} has another schema version; {again}")
        if row["code_hash"] != keys.short_code(run.config):
            made_by_others.append(key)
        elif row["run_hash"] != _run_hash(row, run, keys):
            raise UserError(
                f"{path}: {_name(row)} has run hash {row['run_hash']}, which is not that of its "
                f"configuration, data and code; {again}"
            )
    _require_consistent(frame, planned, path, again)
    everything = len(made_by_others) == len(planned)
    return _warnings(made_by_others, everything, path, again)


def require_same_data(frames: Mapping[str, pd.DataFrame]) -> None:
    """A data set has one checksum in all tables.

    Raises:
        UserError: two rows of one data set were made from different data; names both.
    """
    first: dict[str, tuple[str, dict]] = {}
    for table, frame in frames.items():
        for row in frame.drop_duplicates(["dataset", "data_checksum"]).to_dict("records"):
            other, seen = first.setdefault(row["dataset"], (table, row))
            if seen["data_checksum"] != row["data_checksum"]:
                raise UserError(
                    f"{table}: {_name(row)} has data checksum {row['data_checksum']}, but "
                    f"{_name(seen)} of {other} has {seen['data_checksum']}: rerun one of them"
                )


def _run_hash(row: Mapping[str, Any], run: Planned, keys: Keys) -> str:
    """The hash that a row should have; its own where the data is not sure to be here."""
    if run.config.data.name not in EMBEDDED:
        return row["run_hash"]
    device = str(row["device"]).split(":")[0]
    return replace(keys.of(run.config), device_type=device).run_hash


def _require_consistent(frame: pd.DataFrame, planned: list[Planned], path: Path, again) -> None:
    """One clean commit has one code hash per data set and loss, and no two runs share a hash."""
    # Two rows of one configuration share their runs: the default cell of a grid, for instance.
    runs = frame.drop_duplicates(["run_hash", "config_hash"])
    repeated = runs[runs.duplicated("run_hash")]
    if len(repeated):
        row = repeated.iloc[0]
        raise UserError(f"{path}: {_name(row)} has another row's run hash; {again}")
    modules = {run.row.name: code_modules(run.config) for run in planned}
    clean = frame[(frame["dirty"].astype(str) == "False") & (frame["commit"] != "unknown")]
    groups = clean.groupby([clean["commit"], clean["row"].map(modules)])["code_hash"]
    for _, hashes in groups:
        if hashes.nunique() > 1:
            rarest = hashes.map(hashes.value_counts()).idxmin()
            row = frame.loc[rarest]
            raise UserError(
                f"{path}: {_name(row)} has code hash {row['code_hash']}, unlike the other runs of "
                f"its commit; {again}"
            )


def _warnings(keys: list[dict], everything: bool, path: Path, again: str) -> list[str]:
    if not keys:
        return []
    if everything:
        return [f"{path}: all rows were made by other code than today's ({again} to renew)"]
    seeds: dict[str, list[str]] = {}
    for key in keys:
        seeds.setdefault(f"{key['row']} on {key['dataset']} ({key['backbone']})", []).append(
            str(key["seed"])
        )
    rows = "; ".join(f"{name}, seed {', '.join(of)}" for name, of in seeds.items())
    return [f"{path}: rows made by other code than today's: {rows} ({again} to renew)"]


def _key(row: Mapping[str, Any]) -> tuple:
    return row["row"], row["dataset"], row["backbone"], row["seed"]


def _name(row: Mapping[str, Any]) -> str:
    return f"row {row['row']!r} on {row['dataset']} with seed {row['seed']}"
