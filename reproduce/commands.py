"""Every command of ``python -m reproduce``: the tables by themselves, the others as listed here.

A command whose ``follows_tables`` is set is run by ``python -m reproduce all`` once the tables are
filled, in the order of this list, with ``--scale`` and ``--results``.
"""

from __future__ import annotations

from dataclasses import dataclass

from reproduce.tables import TABLES


@dataclass(frozen=True)
class Command:
    """One command.

    Attributes:
        name: as it is typed after ``python -m reproduce``.
        help: one line.
        module: its module, with ``main(argv) -> exit code``.
        follows_tables: see the module's docstring.
    """

    name: str
    help: str
    module: str
    follows_tables: bool = False


OTHERS = (
    Command("all", "what is missing of all tables, then figures, check, report", "reproduce.all"),
    Command("status", "which rows are there, stale or missing", "reproduce.status"),
    Command(
        "time_complexity",
        "training-step time and memory with and without TCM",
        "reproduce.time_complexity",
        follows_tables=True,
    ),
    Command(
        "check",
        "verdicts: the claims, and the numbers at paper scale",
        "reproduce.check",
        follows_tables=True,
    ),
    Command(
        "benchmark",
        "speed of evaluation and losses against their peers",
        "reproduce.benchmark.__main__",
    ),
)


def commands() -> dict[str, Command]:
    """All commands by name, the tables first."""
    tables = [
        Command(table.name, table.title, f"reproduce.{table.name}") for table in TABLES.values()
    ]
    return {command.name: command for command in (*tables, *OTHERS)}
