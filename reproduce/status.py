"""Which rows of which table are there, stale or missing, in the results and in the run store.

    python -m reproduce status [--scale demo] [--rows]

Needs no data: what decides freshness are the hashes of configuration and code. Exit code 0 when all
rows are there and fresh, else 1.
"""

if not __package__:
    raise SystemExit("run this from the repository root as: python -m reproduce.status")

import argparse
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from common.errors import run_cli
from reproduce import results
from reproduce.keys import Keys
from reproduce.runtime import Runtime
from reproduce.store import RUNS, SCHEMA_VERSION, config_hash
from reproduce.stored import Stored
from reproduce.table import SCALES, Planned, Table, plan
from reproduce.tables import TABLES

FRESH, OTHER_CONFIG, OTHER_CODE = "there", "stale (configuration)", "stale (code)"
IN_STORE, MISSING = "finished, not yet in the CSV", "missing"


def main(argv: list[str]) -> int:
    """Prints a line for each table."""
    options = _parser().parse_args(argv)
    keys = Keys(Runtime(runs=options.runs))
    stored = Stored(options.runs)
    all_fresh = True
    for scale in [options.scale] if options.scale else SCALES:
        for table in TABLES.values():
            if scale in table.rows:
                states = of_table(table, scale, options.results, keys, stored)
                all_fresh &= {state for _, state in states} <= {FRESH}
                print(_line(table, scale, states))
                if options.rows:
                    print("".join(_rows(states)), end="")
    return 0 if all_fresh else 1


def of_table(
    table: Table, scale: str, root: Path, keys: Keys, stored: Stored
) -> list[tuple[Planned, str]]:
    """The state of each planned run.

    Raises:
        UserError: the results CSV is broken.
    """
    rows = _read(results.csv_path(table.name, scale, root))
    states = []
    for run in plan(table, scale):
        columns = run.key_columns(table.name)
        row = rows.get(tuple(columns[name] for name in results.KEY))
        state = MISSING if row is None else _freshness(row, run, keys)
        if state != FRESH and stored.has(run, keys):
            state = IN_STORE
        states.append((run, state))
    return states


def _read(path: Path) -> dict[tuple, Mapping[str, Any]]:
    if not path.exists():
        return {}
    rows = results.read(path).to_dict("records")
    return {tuple(row[name] for name in results.KEY): row for row in rows}


def _freshness(row: Mapping[str, Any], run: Planned, keys: Keys) -> str:
    same = row["config_hash"] == config_hash(run.config)
    if not same or row["schema_version"] != SCHEMA_VERSION:
        return OTHER_CONFIG
    return FRESH if row["code_hash"] == keys.short_code(run.config) else OTHER_CODE


def _line(table: Table, scale: str, states: list[tuple[Planned, str]]) -> str:
    counts = Counter(state for _, state in states)
    order = (FRESH, IN_STORE, OTHER_CONFIG, OTHER_CODE, MISSING)
    parts = ", ".join(f"{counts[state]} {state}" for state in order if counts[state])
    again = "" if set(counts) <= {FRESH} else f": python -m reproduce.{table.name} --scale {scale}"
    return f"{table.name} ({scale}), {len(states)} runs: {parts}{again}"


def _rows(states: list[tuple[Planned, str]]) -> list[str]:
    """A line for each state of a row, with its seeds."""
    seeds: dict[tuple[str, str], list[str]] = {}
    for run, state in states:
        name = f"{run.description.rpartition(', seed')[0]}, {run.config.model.backbone}"
        seeds.setdefault((name, state), []).append(str(run.config.seed))
    return [f"  {name}: {state}, seeds {' '.join(of)}\n" for (name, state), of in seeds.items()]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m reproduce.status", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--scale", choices=SCALES, help="default: both")
    parser.add_argument("--rows", action="store_true", help="name the rows and seeds")
    parser.add_argument("--results", type=Path, default=results.RESULTS)
    parser.add_argument("--runs", type=Path, default=RUNS, help="folder of the run store")
    return parser


if __name__ == "__main__":
    raise SystemExit(run_cli(main))
