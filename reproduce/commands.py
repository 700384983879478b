"""Every command of ``python -m reproduce``: the tables by themselves, the others as listed here.

Commands that say what they take from ``python -m reproduce all`` are run by it once the tables are
filled, in the order of this list.
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
        takes: options that ``all`` passes on to it; None where ``all`` does not run it.
        measures: it writes ``results/<scale>/<name>.csv``; ``all`` does not measure again what is
            there.
    """

    name: str
    help: str
    module: str
    takes: tuple[str, ...] | None = None
    measures: bool = False


_READS = ("scale", "results")

OTHERS = (
    Command("all", "what is missing of all tables, then figures, check, report", "reproduce.all"),
    Command("run", "one configuration by itself, or your own images", "reproduce.run"),
    Command("status", "which rows are there, stale or missing", "reproduce.status"),
    Command("doctor", "the page for a bug report: machine, data, weights", "reproduce.doctor"),
    Command(
        "gpu-check",
        "tests and a short benchmark on this machine's GPU",
        "reproduce.gpu_check",
    ),
    Command(
        "time_complexity",
        "training-step time and memory with and without TCM",
        "reproduce.time_complexity",
        takes=(*_READS, "device"),
        measures=True,
    ),
    Command(
        "pareto",
        "Fig. 3: every run of every table in one plane per data set",
        "reproduce.pareto",
        _READS,
    ),
    Command(
        "margins",
        "Fig. 6: R@1 and OPIS over TCM's margins and weight",
        "reproduce.margins",
        _READS,
    ),
    Command(
        "utility",
        "Figs. 1-2: utility curves of single classes, similarity histograms",
        "reproduce.utility",
        (*_READS, "runs"),
    ),
    Command(
        "check",
        "verdicts: the claims, and the numbers at paper scale",
        "reproduce.check",
        _READS,
    ),
    Command(
        "report",
        "REPORT.md: what held, what did not, by how much and at what cost",
        "reproduce.report",
        _READS,
    ),
    Command("latex", "the tables in LaTeX, booktabs style", "reproduce.latex", _READS),
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
