"""The command line that every table script shares: run what is missing, write CSV, page, figure."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from common.errors import UserError
from reproduce import distributed, dry_run, launcher, output, results, weights_option
from reproduce.runner import default_jobs, reasons, run_all
from reproduce.runtime import Runtime
from reproduce.table import SCALES, Planned, Table, plan
from reproduce.weights_option import TableRuntime

Records = list[dict[str, Any]]


def main(table: Table, argv: list[str]) -> int:
    """Runs one table. Raises UserError for anything that the user can mend."""
    options = parser(table).parse_args(argv)
    runs = plan(table, options.scale, seeds=options.seeds, overrides=options.set)

    def write(records: Records) -> int:
        print(output.write(table, options.scale, runs, records, options.results, options.latex))
        return 0

    return fill(table.name, runs, options, write)


def fill(
    name: str,
    runs: list[Planned],
    options: argparse.Namespace,
    write: Callable[[Records], int],
) -> int:
    """Says what the runs need (--dry-run), sends them elsewhere (--launcher), or trains them.

    Args:
        name: of the table, or what the runs are together.
        options: of :func:`add_run_options`.
        write: called with all records once they are there, in the main process; its result is
            returned.

    Raises:
        UserError: an impossible option, or a run failed.
    """
    runtime = _runtime(runs, options)
    if options.dry_run:
        return dry_run.report(name, runs, runtime, options)
    if options.launcher:
        failures = launcher.launch(name, runs, runtime, options)
        if failures is None:
            return 0
        if failures:
            raise UserError(f"{len(failures)} of the runs failed: {reasons(failures)}")
        # What was sent is finished: it is only to be collected.
        options.force = False
    records = _run(name, runs, runtime, options)
    return write(records) if distributed.from_environment().is_main else 0


def _run(name: str, runs: list[Planned], runtime: Runtime, options: argparse.Namespace) -> Records:
    if options.jobs is not None and options.jobs < 1:
        raise UserError(f"--jobs {options.jobs}: at least 1")
    jobs = options.jobs or (default_jobs(runs) if runtime.torch_device().type == "cpu" else 1)
    talks = distributed.from_environment().is_main
    if talks:
        for text in options.set:
            print(f"setting {text} (from the command line, for every run)")
        print(f"{name} at {options.scale} scale: {len(runs)} runs, {jobs} at a time")
    records = run_all(runs, runtime, jobs=jobs, force=options.force)
    if talks:
        reused = sum(record["reused"] for record in records)
        print(f"{len(records) - reused} runs trained, {reused} reused from {options.runs}/")
    return records


def _runtime(runs: list[Planned], options: argparse.Namespace) -> TableRuntime:
    """Where and how the runs execute."""
    backbones = {run.config.model.backbone for run in runs}
    weights, weights_of = weights_option.parse(options.weights, backbones)
    return TableRuntime(
        data_root=options.root,
        runs=options.runs,
        device=options.device,
        workers=options.workers,
        progress=not options.quiet,
        weights=weights,
        weights_of=weights_of,
        tensorboard=options.tensorboard,
    )


def parser(table: Table) -> argparse.ArgumentParser:
    """The options of a table script."""
    made = argparse.ArgumentParser(
        prog=f"python -m reproduce.{table.name}", description=table.title
    )
    made.add_argument("--seeds", type=int, help="number of seeds instead of the table's")
    add_run_options(made)
    return made


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """The options that decide which runs, where and how; ``all`` has them as well."""
    parser.add_argument("--scale", choices=SCALES, default="demo", help="demo: CPU, embedded data")
    parser.add_argument("--root", type=Path, help="folder of the real data sets")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="e.g. train.epochs=5"
    )
    parser.add_argument("--force", action="store_true", help="train again although runs are there")
    parser.add_argument("--jobs", type=int, help="runs at a time (CPU; default: by cores)")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:1 ...")
    parser.add_argument("--workers", type=int, default=0, help="loader processes per run")
    weights_option.add(parser)
    parser.add_argument("--tensorboard", type=Path, metavar="DIR", help="events of each run there")
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="folder of the run store")
    parser.add_argument("--results", type=Path, default=results.RESULTS)
    parser.add_argument("--latex", action="store_true", help="write the table as .tex as well")
    parser.add_argument("--dry-run", action="store_true", help="say what is missing; train nothing")
    parser.add_argument("--tflops", type=float, help="dry run: sustained 1e12 operations a second")
    parser.add_argument("--quiet", action="store_true", help="no progress bars")
    launcher.add_options(parser)
