"""All metrics of ``eval.evaluate`` against the bare matrix product and peers for one metric.

    python -m reproduce.benchmark.evaluation [--images 20000] [--no-peers]

Everything runs in this process, on the same threads, each thing in turn in every round; medians and
ratios are printed. The bare product is N x N in blocks, its results dropped.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import faiss
import numpy as np
import torch
from pytorch_metric_learning.utils.accuracy_calculator import AccuracyCalculator

from common.errors import run_cli
from common.geometry import normalise
from eval import evaluate

CLASSES_PER_IMAGE = 363 / 20_000
ROWS, COLUMNS = 1024, 4096  # blocks that suit the product by itself


def main(argv: list[str]) -> int:
    """Prints one line for each thing measured."""
    parser = argparse.ArgumentParser(prog="python -m reproduce.benchmark.evaluation")
    parser.add_argument("--images", type=int, default=20_000)
    parser.add_argument("--dimensions", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--peers", action=argparse.BooleanOptionalAction, default=True)
    options = parser.parse_args(argv)
    torch.set_num_threads(options.threads)
    faiss.omp_set_num_threads(options.threads)
    embeddings, labels = unequal_classes(options.images, options.dimensions)
    print(
        f"{options.images:,} x {options.dimensions}, {len(np.unique(labels))} classes, "
        f"{options.threads} threads, medians of {options.rounds}"
    )
    seconds = measure(cases(embeddings, labels, options), options.rounds)
    bare = seconds["bare N x N product"]
    for name, value in seconds.items():
        print(f"  {name:<46} {value:8.2f} s   {value / bare:6.2f} x the bare product")
    return 0


def unequal_classes(images: int, dimensions: int) -> tuple[torch.Tensor, np.ndarray]:
    """Unit embeddings of classes of unequal size and spread, in random order; fixed seed."""
    rng = np.random.default_rng(0)
    classes = max(2, round(images * CLASSES_PER_IMAGE))
    labels = rng.integers(classes, size=images)
    centres = rng.normal(size=(classes, dimensions))
    spread = 1.2 * (1 + rng.random(classes))[labels][:, None]
    x = centres[labels] + spread * rng.normal(size=(images, dimensions))
    return normalise(torch.from_numpy(x.astype(np.float32))), labels


def cases(embeddings, labels, options) -> dict[str, Callable[[], object]]:
    """What is measured, by name."""
    made = {
        "bare N x N product": lambda: bare_product(embeddings),
        "evaluate: every metric": lambda: evaluate(
            embeddings, labels, tar_at=(1e-3, 1e-4), threads=options.threads
        ),
    }
    if options.peers:
        made["faiss IndexFlatIP, k=2 alone"] = lambda: nearest_by_faiss(embeddings.numpy())
        made["pytorch-metric-learning precision_at_1 alone"] = lambda: AccuracyCalculator(
            include=("precision_at_1",), k=1, device=torch.device("cpu")
        ).get_accuracy(embeddings, torch.from_numpy(labels))
    return made


def bare_product(x: torch.Tensor) -> None:
    """All blocks of x x^T, into one buffer."""
    buffer = torch.empty(ROWS * COLUMNS)
    for rows in x.split(ROWS):
        for columns in x.split(COLUMNS):
            out = buffer[: len(rows) * len(columns)].view(len(rows), len(columns))
            torch.mm(rows, columns.T, out=out)


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


if __name__ == "__main__":
    raise SystemExit(run_cli(main))
