"""Everything that is missing of all tables, each distinct run once; then figures, check, report.

python -m reproduce all --scale demo
"""

if not __package__:
    raise SystemExit("run this from the repository root as: python -m reproduce.all")

import argparse
import importlib

from common.errors import UserError, run_cli
from reproduce import output, results, table_cli
from reproduce.commands import OTHERS
from reproduce.table import plan
from reproduce.tables import TABLES


def main(argv: list[str]) -> int:
    """Fills all tables, then runs the commands that follow them."""
    options = parser().parse_args(argv)
    tables = [table for table in TABLES.values() if options.scale in table.rows]
    planned = {table.name: plan(table, options.scale, overrides=options.set) for table in tables}
    runs = [run for of_table in planned.values() for run in of_table]

    def write(records: table_cli.Records) -> int:
        left = iter(records)
        for table in tables:
            own = [next(left) for _ in planned[table.name]]
            print(
                output.write(
                    table, options.scale, planned[table.name], own, options.results, options.latex
                )
            )
        return _follow(options)

    return table_cli.fill("all tables", runs, options, write)


def _follow(options: argparse.Namespace) -> int:
    """Runs the commands that follow the tables; one that fails does not stop the others.

    Raises:
        UserError: some failed; names each with its reason.
    """
    worst, failures = 0, []
    for command in OTHERS:
        if command.takes is None:
            continue
        there = results.csv_path(command.name, options.scale, options.results)
        if command.measures and there.exists() and not options.force:
            print(f"\n== {command.name}: {there} is there")
            continue
        print(f"\n== {command.name}: {command.help}", flush=True)
        arguments = [f"--{name}={getattr(options, name)}" for name in command.takes]
        try:
            worst = max(worst, importlib.import_module(command.module).main(arguments) or 0)
        except UserError as error:
            print(f"error: {error}")
            failures.append(f"{command.name} ({error})")
    if failures:
        raise UserError(f"{len(failures)} of the commands failed: {'; '.join(failures)}")
    return worst


def parser() -> argparse.ArgumentParser:
    """The options of a table script, but for the number of seeds, which is each table's."""
    made = argparse.ArgumentParser(
        prog="python -m reproduce.all", description=__doc__.split("\n")[0]
    )
    table_cli.add_run_options(made)
    return made


if __name__ == "__main__":
    raise SystemExit(run_cli(main))
