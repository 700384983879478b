"""A table of two rows whose runs take a second or two, for tests of what is around them."""

from __future__ import annotations

from pathlib import Path

from common.errors import run_cli
from reproduce import table_cli
from reproduce.config import RunConfig, load
from reproduce.execute import load_source, run_key
from reproduce.runtime import Runtime
from reproduce.store import RunFolder
from reproduce.table import Row, Table

VALUES = {
    "data.options": {"domain": "kana"},
    "model.options": {"width": 4},
    "model.embedding_dim": 16,
    "train.epochs": 2,
    "train.steps_per_epoch": 3,
    "train.classes_per_batch": 8,
    "train.checkpoint_minutes": 1e-9,
}


def table(**values) -> Table:
    """The table with some values replaced in both rows."""
    plain = VALUES | values
    rows = (
        Row("Base", "demo/kanji_proxy_anchor", plain),
        Row("Base+TCM", "demo/kanji_proxy_anchor", plain | {"loss.tcm": {}}, base="Base"),
    )
    return Table("tiny", "A tiny table", {"demo": rows}, {"demo": 1})


TABLE = table()
ROWS = TABLE.rows["demo"]


def config(**values) -> RunConfig:
    """Of the row without TCM, with some values replaced."""
    return load("demo/kanji_proxy_anchor").with_values(VALUES | values)


def folder_of(run: RunConfig, runs: Path) -> RunFolder:
    """Where the run's files lie."""
    runtime = Runtime(runs=runs)
    return RunFolder(run_key(run, load_source(run, runtime), runtime), runs)


def outcome(record: dict) -> dict:
    """What two runs of one configuration must have in common, to the last bit."""
    return {name: record[name] for name in ("run_hash", "metrics", "selected_epoch")}


def main(argv: list[str]) -> int:
    """The table's script; with ``--endless`` first, its runs take hours."""
    if argv[:1] == ["--endless"]:
        return table_cli.main(table(**{"train.epochs": 100_000}), argv[1:])
    return table_cli.main(TABLE, argv)


def arguments(folder: Path) -> list[str]:
    """Options that keep everything in ``folder``."""
    return ["--quiet", "--runs", str(folder / "runs"), "--results", str(folder / "results")]


if __name__ == "__main__":
    raise SystemExit(run_cli(main))
