"""All metrics of ``eval.evaluate`` against the bare matrix product and peers for one metric.

    python -m reproduce.benchmark.evaluation

About four minutes on 2 cores, of which iNaturalist's size takes most (``--skip-inaturalist``). What
is compared runs in one process on the same threads, in turn in every round; times are medians. The
bare product is N x N in blocks, its results dropped. Memory is what a fresh process needs at its
peak beyond the embeddings.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import faiss
import numpy as np
import torch
from pytorch_metric_learning.utils.accuracy_calculator import AccuracyCalculator

from common.errors import run_cli
from common.geometry import normalise
from eval import evaluate
from reproduce import peak
from reproduce.benchmark.bars import Bars

IMAGES, CLASSES, DIMENSIONS = 20_000, 363, 512
INATURALIST = 136_093, 2_452  # images and classes of the open-world test split
ROWS, COLUMNS = 1024, 4096  # blocks that suit the product by itself
SLICE = 8 * ROWS  # rows of the bare product that are timed at iNaturalist's size, and scaled
TAR_AT = (1e-3, 1e-4)


def main(argv: list[str]) -> int:
    """Prints a line for each thing measured, and writes JSON where asked."""
    parser = argparse.ArgumentParser(prog="python -m reproduce.benchmark.evaluation")
    parser.add_argument("--images", type=int, default=IMAGES)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="write the numbers to this file as well")
    parser.add_argument("--skip-peers", action="store_true")
    parser.add_argument("--skip-inaturalist", action="store_true")
    parser.add_argument("--peak-of", metavar="IMAGES:CLASSES", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.peak_of:
        seconds, peak_bytes = _evaluate_here(*map(int, options.peak_of.split(":")))
        print(seconds, peak_bytes)
        return 0
    found = Bars()
    classes = round(options.images * CLASSES / IMAGES)
    x, labels = unequal_classes(options.images, classes)
    things = {"bare product": lambda: bare_product(x, x), "all metrics": lambda: _all(x, labels)}
    if not options.skip_peers:
        faiss.omp_set_num_threads(torch.get_num_threads())
        things["faiss IndexFlatIP, k=2"] = lambda: nearest_by_faiss(x.numpy())
        things["pytorch-metric-learning, precision at 1"] = lambda: _precision_by_peer(x, labels)
    seconds = measure(things, options.rounds)
    for name, value in seconds.items():
        found.timed(f"{name}, {options.images:,} x {DIMENSIONS}", value)
    ours = seconds["all metrics"]
    found.bar("all metrics over the bare product", ours / seconds["bare product"], 1.2, "x")
    if not options.skip_peers:
        faiss_ratio = seconds["faiss IndexFlatIP, k=2"] / ours
        found.bar("faiss over all metrics", faiss_ratio, 2, "x", at_least=True)
        peer_ratio = seconds["pytorch-metric-learning, precision at 1"] / ours
        found.bar("pytorch-metric-learning over all metrics", peer_ratio, 1, "x", at_least=True)
    measure_growth(found, options.images, classes, options.rounds)
    if not options.skip_inaturalist:
        measure_inaturalist(found)
    found.write(options.json)
    return 0


def measure_growth(found: Bars, images: int, classes: int, rounds: int) -> None:
    """Twice as many images, in as many classes each of the same size."""
    sets = [unequal_classes(n * images, n * classes) for n in (1, 2)]
    names = [f"all metrics, {n * images:,} images" for n in (1, 2)]
    things = {name: (lambda one=one: _all(*one)) for name, one in zip(names, sets, strict=True)}
    small, large = measure(things, max(1, rounds // 2)).values()
    found.timed(names[1], large)
    found.bar("cost of twice the images", large / small, 4.2, "x")


def measure_inaturalist(found: Bars) -> None:
    """iNaturalist's test split's size: time in a fresh process, and memory."""
    images, classes = INATURALIST
    bare = _bare_by_slice(*unequal_classes(images, classes))
    command = [sys.executable, "-m", "reproduce.benchmark.evaluation"]
    done = subprocess.run(
        [*command, "--peak-of", f"{images}:{classes}"], capture_output=True, text=True, check=True
    )
    ours, needed = map(float, done.stdout.split()[-2:])
    found.timed(f"bare product, {images:,} x {DIMENSIONS}, from a slice", bare)
    found.timed(f"all metrics, {images:,} x {DIMENSIONS}, {classes:,} classes", ours)
    found.bar("all metrics over the bare product, iNaturalist", ours / bare, 1.5, "x")
    found.bar("memory above the embeddings, iNaturalist", needed / 1e9, 2, " GB")


def unequal_classes(images: int, classes: int) -> tuple[torch.Tensor, np.ndarray]:
    """Unit embeddings of classes of unequal size and spread, in random order; fixed seed."""
    rng = np.random.default_rng(0)
    labels = rng.integers(classes, size=images)
    centres = rng.normal(size=(classes, DIMENSIONS)).astype(np.float32)
    spread = (1.2 * (1 + rng.random(classes))).astype(np.float32)
    x = rng.standard_normal(size=(images, DIMENSIONS), dtype=np.float32)
    x *= spread[labels, None]
    x += centres[labels]
    return normalise(torch.from_numpy(x)), labels


def bare_product(queries: torch.Tensor, gallery: torch.Tensor) -> None:
    """All blocks of the product, into one buffer."""
    buffer = torch.empty(ROWS * COLUMNS)
    for rows in queries.split(ROWS):
        for columns in gallery.split(COLUMNS):
            out = buffer[: len(rows) * len(columns)].view(len(rows), len(columns))
            torch.mm(rows, columns.T, out=out)


def _bare_by_slice(x: torch.Tensor, _: np.ndarray) -> float:
    rows = x[:SLICE]
    return measure({"slice": lambda: bare_product(rows, x)}, 3)["slice"] * len(x) / SLICE


def nearest_by_faiss(x: np.ndarray) -> np.ndarray:
    """Two nearest by inner product, itself included, as R@1 needs."""
    index = faiss.IndexFlatIP(x.shape[1])
    index.add(x)
    return index.search(x, 2)[1]


def measure(things: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Median seconds of each; one untimed round first, for compilation and page faults."""
    taken: dict[str, list[float]] = {name: [] for name in things}
    for number in range(rounds + 1):
        for name, thing in things.items():
            started = time.perf_counter()
            thing()
            if number:
                taken[name].append(time.perf_counter() - started)
    return {name: statistics.median(values) for name, values in taken.items()}


def _all(x: torch.Tensor, labels: np.ndarray) -> object:
    return evaluate(x, labels, tar_at=TAR_AT, threads=torch.get_num_threads())


def _precision_by_peer(x: torch.Tensor, labels: np.ndarray) -> object:
    peer = AccuracyCalculator(include=("precision_at_1",), k=1, device=torch.device("cpu"))
    return peer.get_accuracy(x, torch.from_numpy(labels))


def _evaluate_here(images: int, classes: int) -> tuple[float, int]:
    """Seconds, and bytes at the peak beyond what was there before."""
    cpu = torch.device("cpu")
    _all(*unequal_classes(3_000, 60))  # compiled and loaded: not counted
    x, labels = unequal_classes(images, classes)
    before = peak.reset(cpu)
    started = time.perf_counter()
    _all(x, labels)
    return time.perf_counter() - started, max(0, peak.peak_bytes(cpu) - before)


if __name__ == "__main__":
    raise SystemExit(run_cli(main))
