"""What the commands of ``python -m eval`` do. Heavy libraries load once the files are read."""

from __future__ import annotations

import argparse
import contextlib
import csv
import dataclasses
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from common.atomic import atomic_path
from common.errors import UserError
from eval.readers import EmbeddingSet, read_embedding_set
from eval.spreadsheet import spreadsheet_safe

if TYPE_CHECKING:
    from eval.neighbours import Neighbours

MAX_GRID_POINTS = 100_001


def report(arguments: argparse.Namespace) -> None:
    """Writes the folder and prints its main lines."""
    data, settings = (
        read_embedding_set(arguments.embeddings, arguments.labels),
        _settings(arguments),
    )
    _prepare_folder(arguments.out)
    from eval.report import write_report

    if arguments.title:
        data = dataclasses.replace(data, name=arguments.title)
    target, factor = arguments.target_far, arguments.factor
    written = write_report(data, arguments.out, target_far=target, factor=factor, **settings)
    _print(written.summary)


def compare(arguments: argparse.Namespace) -> None:
    """Evaluates each model, writes the folder and prints the table."""
    if len(arguments.embeddings) < 2:
        raise UserError("compare needs two files or more; for one model there is report")
    models = [read_embedding_set(path, arguments.labels) for path in arguments.embeddings]
    settings = _settings(arguments)
    _prepare_folder(arguments.out)
    from eval.compare import write_comparison

    names = _distinct_names(arguments.embeddings)
    named = dict(zip(names, models, strict=True))
    _print(write_comparison(named, arguments.out, **settings))


def sensitivity(arguments: argparse.Namespace) -> None:
    """Evaluates under other settings, writes the folder and prints the table."""
    data, settings = (
        read_embedding_set(arguments.embeddings, arguments.labels),
        _settings(arguments),
    )
    _prepare_folder(arguments.out)
    from eval.sensitivity import write_sensitivity

    _print(write_sensitivity(data, arguments.out, **settings))


def neighbours(arguments: argparse.Namespace) -> None:
    """Writes the table to a file or to standard output, and says on stderr what searched."""
    data = read_embedding_set(arguments.embeddings, arguments.labels, labels_needed=False)
    queries = _draw_queries(len(data.embeddings), arguments.queries, arguments.seed)
    from eval.neighbours import nearest_neighbours

    found = nearest_neighbours(
        data.embeddings,
        arguments.k,
        queries=queries,
        approximate=arguments.approximate,
        progress=sys.stderr.isatty(),
    )
    if arguments.out is None:
        with _printing():
            _write_neighbours(sys.stdout, data, found)
    else:
        with (
            atomic_path(arguments.out) as path,
            open(path, "w", encoding="utf-8", newline="") as file,
        ):
            _write_neighbours(file, data, found)
    lines = [f"searched by {found.backend}"]
    if arguments.approximate:
        lines.append(f"{found.agreement:.2%} of the exact neighbours found (sample of queries)")
    print("; ".join(lines), file=sys.stderr)


def verify(arguments: argparse.Namespace) -> None:
    """Verifies all pairs, or those of a list, writes the folder and prints the table."""
    pairs, path = arguments.pairs, arguments.embeddings
    if pairs is not None and arguments.calibration_share is not None:
        raise UserError("--calibration-share is of all pairs' identities; leave it or --pairs out")
    resources = _resources(arguments)
    data = read_embedding_set(path, arguments.labels, labels_needed=pairs is None)
    listed = None
    if pairs is not None:
        from eval.pair_lists import read_keys, read_pair_list

        count = len(data.embeddings)
        keys = read_keys(path, arguments.labels, count)
        listed = read_pair_list(pairs, count, keys, data.labels)
    _prepare_folder(arguments.out)
    from eval import verification
    from eval.verification_files import summary_text, write_verification

    chosen = {name: getattr(arguments, name) for name in ("fars", "distance", "curvature")}
    if listed is not None:
        chosen |= {"labels": data.labels, "seed": arguments.seed}
        found = verification.verify_pairs(data.embeddings, listed.pairs, listed.same, **chosen)
    else:
        chosen |= {"calibration_share": arguments.calibration_share, **resources}
        found = verification.verify(data.embeddings, data.labels, domains=data.domains, **chosen)
    write_verification(data.name, found, arguments.out)
    _print(summary_text(data.name, found, arguments.out))


@contextlib.contextmanager
def _printing() -> Iterator[None]:
    """Around what writes to standard output: a reader that stops early, as ``head``, is no error.

    Raises:
        UserError: standard output is a file on a full disk, or the like.
    """
    try:
        yield
        sys.stdout.flush()
    except OSError as error:
        # Python flushes once more when it ends, and would fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            raise UserError(
                f"cannot write to standard output ({error.strerror or error}); make room for it"
            ) from error


def _print(text: str) -> None:
    with _printing():
        print(text)


def _settings(arguments: argparse.Namespace) -> dict[str, Any]:
    """Keyword arguments of ``evaluate``; what it would take for a huge grid is refused here."""
    if arguments.grid_points > MAX_GRID_POINTS:
        raise UserError(f"--grid-points is {arguments.grid_points}; at most {MAX_GRID_POINTS}")
    names = ("far_range", "epsilon", "c", "distance", "grid_points", "sample_queries")
    chosen = {name: getattr(arguments, name) for name in names}
    _require_positive("c", arguments.c)
    chosen |= {"ks": sorted({1, *arguments.ks}), **_resources(arguments)}
    return chosen | _gallery(arguments)


def _resources(arguments: argparse.Namespace) -> dict[str, Any]:
    """Keyword arguments of ``evaluate`` that change how it computes: the seed too."""
    if arguments.threads is not None and arguments.threads < 1:
        raise UserError(f"--threads is {arguments.threads}; give at least 1")
    _require_positive("memory-mb", arguments.memory_mb)
    if arguments.seed < 0:
        raise UserError(f"--seed is {arguments.seed}; give 0 or more")
    chosen = {name: getattr(arguments, name) for name in ("threads", "memory_mb", "seed", "device")}
    return chosen | {"progress": sys.stderr.isatty()}


def _require_positive(option: str, value: float) -> None:
    if not 0 < value < float("inf"):
        raise UserError(f"--{option} is {value:g}; give a number above 0")


def _gallery(arguments: argparse.Namespace) -> dict[str, Any]:
    """The images to search, where they are others than the queries."""
    path, labels = getattr(arguments, "gallery", None), getattr(arguments, "gallery_labels", None)
    if path is None:
        if labels is not None:
            raise UserError("--gallery-labels goes with --gallery; give both or neither")
        return {}
    data = read_embedding_set(path, labels)
    return {"gallery": data.embeddings, "gallery_labels": data.labels}


def _prepare_folder(out: Path) -> None:
    """Fails before the work, not after it, where nothing can be written."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise UserError(f"cannot make the folder {out} ({error}); choose another --out") from error


def _distinct_names(paths: list[Path]) -> list[str]:
    """File names without ending; with as many folders as it takes to tell them apart."""
    for depth in range(1, 1 + max(len(path.parts) for path in paths)):
        names = ["/".join(path.with_suffix("").parts[-depth:]) for path in paths]
        if len(set(names)) == len(names):
            return names
    raise UserError(f"{paths[0]} is given twice; compare different files")


def _draw_queries(count: int, wanted: int | None, seed: int) -> np.ndarray | None:
    if wanted is None:
        return None
    if not 1 <= wanted <= count:
        raise UserError(f"--queries is {wanted}; with {count} embeddings give 1 to {count}")
    return np.sort(np.random.default_rng(seed).choice(count, size=wanted, replace=False))


def _write_neighbours(file: TextIO, data: EmbeddingSet, found: Neighbours) -> None:
    writer = csv.writer(file, lineterminator="\n")
    columns = ["query", "rank", "neighbour", "similarity"]
    labels = data.labels
    if labels is not None:
        columns += ["query_label", "neighbour_label", "same"]
    writer.writerow(columns)
    for query, indices, similarities in zip(
        found.queries, found.indices, found.similarities, strict=True
    ):
        for rank, (index, similarity) in enumerate(zip(indices, similarities, strict=True), 1):
            row = [query, rank, index, f"{similarity:.6f}"]
            if labels is not None:
                pair = (labels[query], labels[index])
                row += [*map(spreadsheet_safe, pair), int(pair[0] == pair[1])]
            writer.writerow(row)
