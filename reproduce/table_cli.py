"""The command line that every table script shares: run what is missing, write CSV, page, figure."""

from __future__ import annotations

import argparse
from pathlib import Path

from reproduce import markdown, results
from reproduce.figures import pareto
from reproduce.runner import default_jobs, run_all
from reproduce.runtime import Runtime
from reproduce.table import SCALES, Table, plan


def main(table: Table, argv: list[str]) -> int:
    """Runs one table. Raises UserError for anything that the user can mend."""
    options = parser(table).parse_args(argv)
    runs = plan(table, options.scale, seeds=options.seeds, overrides=options.set)
    for text in options.set:
        print(f"setting {text} (from the command line, for every run of this table)")
    runtime = Runtime(
        data_root=options.root,
        runs=options.runs,
        device=options.device,
        workers=options.workers,
        progress=not options.quiet,
        weights=options.weights,
    )
    jobs = options.jobs or (default_jobs(runs) if runtime.torch_device().type == "cpu" else 1)
    print(f"{table.name} at {options.scale} scale: {len(runs)} runs, {jobs} at a time")
    records = run_all(runs, runtime, jobs=jobs, force=options.force)
    reused = sum(record["reused"] for record in records)
    print(f"{len(records) - reused} runs trained, {reused} reused from {options.runs}/")

    keyed = [
        (run.key_columns(table.name), record) for run, record in zip(runs, records, strict=True)
    ]
    frame = results.to_frame(keyed)
    path = results.csv_path(table.name, options.scale, options.results)
    results.write(frame, path)
    bases = {row.name: row.base for row in table.rows[options.scale]}
    page = markdown.write(frame, bases, table.title, path.with_suffix(".md"))
    figure = pareto.draw(
        frame, bases, table.title, path.parent / "figures" / f"{table.name}_pareto"
    )
    print(page)
    print(f"wrote {path}, {path.with_suffix('.md')} and {figure}")
    return 0


def parser(table: Table) -> argparse.ArgumentParser:
    """The options of a table script."""
    made = argparse.ArgumentParser(
        prog=f"python -m reproduce.{table.name}", description=table.title
    )
    made.add_argument("--scale", choices=SCALES, default="demo", help="demo: CPU, embedded data")
    made.add_argument("--root", type=Path, help="folder of the real data sets")
    made.add_argument("--seeds", type=int, help="number of seeds instead of the table's")
    made.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="e.g. train.epochs=5"
    )
    made.add_argument("--force", action="store_true", help="train again although runs are there")
    made.add_argument("--jobs", type=int, help="runs at a time (CPU; default: by cores)")
    made.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:1 ...")
    made.add_argument("--workers", type=int, default=0, help="loader processes per run")
    made.add_argument("--weights", type=Path, help="file with the backbone's pretrained weights")
    made.add_argument("--runs", type=Path, default=Path("runs"), help="folder of the run store")
    made.add_argument("--results", type=Path, default=results.RESULTS)
    made.add_argument("--quiet", action="store_true", help="no progress bars")
    return made
