"""The page that goes into a bug report: versions, machine, data, what holds back each table.

python -m reproduce doctor --root DATA

Opens no data set and asks no network. The home folder is shown as ~, and no variable of the
environment beyond those of threads and devices.
"""

if not __package__:
    raise SystemExit("run this from the repository root as: python -m reproduce.doctor")

import argparse
import shutil
import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from common.errors import UserError, run_cli
from datasets.catalogue import entries
from datasets.files import locate
from reproduce import data_state, machine, places, results, weights_option, weights_state
from reproduce.store import RUNS
from reproduce.table import Table, plan
from reproduce.tables import TABLES

GIB = 2**30
# PyTorch's loader workers hand over batches in shared memory; below this they may die.
SMALL_SHARED_MEMORY = 1 * GIB


def main(argv: list[str]) -> int:
    """Prints the page. Exit code 0: it is a description, not a verdict."""
    parser = argparse.ArgumentParser(
        prog="python -m reproduce.doctor", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--root", type=Path, help="folder of the real data sets")
    weights_option.add(parser)
    parser.add_argument("--runs", type=Path, default=RUNS, help="folder of the run store")
    parser.add_argument("--results", type=Path, default=results.RESULTS)
    options = parser.parse_args(argv)
    sections = {
        "software and machine": describe(machine.facts()),
        "disk": _disk(options),
        "data": _data(options.root),
        "weights": _weights(),
        "tables": _tables(options),
    }
    for title, lines in sections.items():
        print(f"{title}:")
        for line in lines:
            print(f"  {without_home(line)}")
    return 0


def without_home(text: str) -> str:
    """The text with the home folder as ~."""
    home = str(Path.home())
    return text if home == "/" else text.replace(home, "~")


def describe(facts: dict[str, Any]) -> Iterator[str]:
    """Lines for people from :func:`reproduce.machine.facts`, remarks on what may go wrong."""
    dirty = " with changes" if facts["dirty"] else ""
    yield f"commit {facts['commit']}{dirty}"
    yield facts["versions"]
    yield f"faiss: {facts['faiss']}"
    yield f"{facts['platform']}, {facts['processor']}"
    variables = "".join(f", {name}={value}" for name, value in facts["variables"].items())
    yield f"{facts['cores']} cores, torch uses {facts['torch_threads']} threads{variables}"
    memory = facts["memory"]
    limit = f", limited to {_gib(memory['limit'])}" if memory["limit"] else ""
    yield f"memory {_gib(memory['total'])}, {_gib(memory['available'])} available{limit}"
    shared = facts["shared_memory"]
    yield f"shared memory {_gib(shared)}"
    if shared is not None and shared < SMALL_SHARED_MEMORY:
        yield (
            "remark: little shared memory for loader workers: use --workers 0, or start the "
            "container with --shm-size 8g"
        )
    for number, gpu in enumerate(facts["gpus"]):
        half = "bfloat16" if gpu["bfloat16"] else "no bfloat16, amp=auto takes float16"
        yield (
            f"cuda:{number} {gpu['name']}, compute {gpu['capability']}, {_gib(gpu['total'])}, "
            f"{_gib(gpu['free'])} free, {half}"
        )
    if not facts["gpus"]:
        built = f"built for CUDA {facts['cuda']}" if facts["cuda"] else "built without CUDA"
        yield f"no CUDA device (torch is {built}): demo scale runs, paper scale needs one"


def _gib(size: int | None) -> str:
    return "unknown" if size is None else f"{size / GIB:.1f} GiB"


def _disk(options: argparse.Namespace) -> Iterator[str]:
    folders = {"--runs": options.runs, "--results": options.results, "--root": options.root}
    for option, folder in folders.items():
        if folder is not None:
            yield f"{option} {folder}: {_gib(places.free_bytes(folder))} free"
    temporary = Path(tempfile.gettempdir())
    yield f"temporary files: {_gib(shutil.disk_usage(temporary).free)} free"


def _data(root: Path | None) -> Iterator[str]:
    for name in entries():
        if name == "glyphs":
            yield "glyphs: comes with the code"
        elif name != "merged":
            yield f"{name}: {_place(name, root)}"


def _place(name: str, root: Path | None) -> str:
    try:
        return f"found at {locate(import_module(f'datasets.{name}').LAYOUT, root)}"
    except UserError as error:
        return f"no, {error}"


def _weights() -> Iterator[str]:
    runs = [run for table in TABLES.values() for scale in table.rows for run in plan(table, scale)]
    by_origin = {weights_state.origin(run.config): run.config for run in runs}
    for origin, config in by_origin.items():
        if origin != "random":
            lack = weights_state.problem(config, data_state.channels(config), None)
            yield f"{origin}: {'not here' if lack else 'there'}"


def _tables(options: argparse.Namespace) -> Iterator[str]:
    folders = {"--runs": options.runs, "--results": options.results}
    common = places.problems(folders, 0)
    for table in TABLES.values():
        for scale in table.rows:
            problems = [*common, *_problems(table, scale, options)]
            yield f"{table.name} ({scale}): {'held back by' if problems else 'ready'}"
            for problem in problems:
                yield f"  - {problem}"


def _problems(table: Table, scale: str, options: argparse.Namespace) -> list[str]:
    """Sentences, each once, in the order of the table's rows."""
    try:
        runs = plan(table, scale)
    except UserError as error:
        return [str(error)]
    default, chosen = weights_option.parse(
        options.weights, {run.config.model.backbone for run in runs}
    )
    models = {run.config.model.model_dump_json(): run.config for run in runs}
    data = {run.config.data.model_dump_json(): run.config for run in runs}
    said = [text for config in data.values() for text in data_state.absent(config, options.root)]
    for config in models.values():
        weights = chosen.get(config.model.backbone, default)
        lack = weights_state.problem(config, data_state.channels(config), weights)
        said += [lack] if lack else []
    if scale == "paper" and not torch.cuda.is_available():
        said.append("no CUDA device, which this scale needs")
    return list(dict.fromkeys(said))


if __name__ == "__main__":
    raise SystemExit(run_cli(main))
