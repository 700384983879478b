"""Every command of ``python -m reproduce``: the tables by themselves, the others as listed here.

A command whose ``follows_tables`` is set is run by ``python -m reproduce all`` once the tables are
filled, in the order of this list, with ``--scale`` and ``--results``; one that ``reads_runs`` gets
``--runs`` as well.
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
        follows_tables, reads_runs: see the module's docstring.
    """

    name: str
    help: str
    module: str
    follows_tables: bool = False
    reads_runs: bool = False


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
        "pareto",
        "Fig. 3: every run of every table in one plane per data set",
        "reproduce.pareto",
        follows_tables=True,
    ),
    Command(
        "margins",
        "Fig. 6: R@1 and OPIS over TCM's margins and weight",
        "reproduce.margins",
        follows_tables=True,
    ),
    Command(
        "utility",
        "Figs. 1-2: utility curves of single classes, similarity histograms",
        "reproduce.utility",
        follows_tables=True,
        reads_runs=True,
    ),
    Command(
        "check",
        "verdicts: the claims, and the numbers at paper scale",
        "reproduce.check",
        follows_tables=True,
    ),
    Command(
        "report",
        "REPORT.md: what held, what did not, by how much and at what cost",
        "reproduce.report",
        follows_tables=True,
    ),
    Command("latex", "the tables in LaTeX, booktabs style", "reproduce.latex"),
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
