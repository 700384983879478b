"""Runs a table's missing runs, one after the other or several processes at a time."""

from __future__ import annotations

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any

from tqdm import tqdm

from common.errors import UserError
from reproduce.code_hash import code_hash
from reproduce.execute import code_modules, execute, load_source, run_key
from reproduce.runtime import Runtime
from reproduce.store import RunFolder
from reproduce.table import Planned


def run_all(
    runs: list[Planned], runtime: Runtime, *, jobs: int = 1, force: bool = False
) -> list[dict[str, Any]]:
    """Returns the runs' records in the order of ``runs``; finished runs are reused and said so.

    A run that fails does not stop the others: what is finished stays in the run folder.

    Raises:
        UserError: at least one run failed; names each with its reason, once the others are done.
    """
    records = {} if force else _finished(runs, runtime)
    failures: list[str] = []

    def keep(number: int, outcome: Any) -> None:
        if isinstance(outcome, UserError):
            failures.append(f"{runs[number].description}: {outcome}")
        else:
            records[number] = outcome
            if runtime.progress:
                tqdm.write(_line(runs[number], outcome))

    for number, record in sorted(records.items()):
        keep(number, record)
    missing = {number: run for number, run in enumerate(runs) if number not in records}
    if jobs <= 1 or len(missing) <= 1:
        for number, run in missing.items():
            keep(number, _attempt(run, runtime, force))
    else:
        # Spawned, not forked: a forked child may hang on locks of the parent's thread pools.
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(jobs, mp_context=context) as pool:
            futures = {
                pool.submit(_attempt, run, runtime, force): number
                for number, run in missing.items()
            }
            for future in as_completed(futures):
                keep(futures[future], future.result())
    if failures:
        raise UserError(f"{len(failures)} of {len(runs)} runs failed: " + " | ".join(failures))
    return [records[number] for number in range(len(runs))]


def _finished(runs: list[Planned], runtime: Runtime) -> dict[int, dict[str, Any]]:
    """Records of the runs that are there already; data and code are read once for all of them."""
    sources: dict[str, Any] = {}
    codes: dict[tuple[str, ...], str] = {}
    records = {}
    for number, run in enumerate(runs):
        data, modules = run.config.data.model_dump_json(), code_modules(run.config)
        if data not in sources:
            sources[data] = load_source(run.config, runtime)
        if modules not in codes:
            codes[modules] = code_hash(modules)
        key = run_key(run.config, sources[data], runtime, codes[modules])
        record = RunFolder(key, runtime.runs).record()
        if record is not None:
            records[number] = {**record, "reused": True}
    return records


def default_jobs(runs: list[Planned]) -> int:
    """As many processes as the cores allow, where every run states its number of threads."""
    threads = [run.config.train.threads for run in runs]
    if not threads or None in threads:
        return 1
    return max(1, len(os.sched_getaffinity(0)) // max(threads))


def _attempt(run: Planned, runtime: Runtime, force: bool) -> dict[str, Any] | UserError:
    try:
        return execute(run.config, runtime, force=force, description=run.description)
    except UserError as error:
        return error


def _line(run: Planned, record: dict[str, Any]) -> str:
    scores = record["metrics"]
    how = "reused" if record["reused"] else f"{record['seconds']:.0f} s"
    return (
        f"{run.description}: R@1 {100 * scores['recall_at_1']:.2f} %, "
        f"OPIS {1e3 * scores['opis']:.3f}e-3 ({how})"
    )
