"""Images a second from disk to batches, against torchvision's ImageFolder on the same files.

python -m reproduce.benchmark.loading [--data FOLDER] [--images N] [--workers W ...] [--repeats R]

Every loader applies the same training transform (random crop to 224, flip) and makes batches of 64.
Without ``--data``, photograph-like JPEGs of 800 x 600 pixels are generated, in 10 class folders.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset, Subset
from torchvision.datasets import ImageFolder

import datasets
from common.errors import UserError, run_cli
from datasets.resize import resize_folder

BATCH = 64
SIDE = 256
_SIZE = (800, 600)


def make_photographs(folder: Path, count: int) -> None:
    """``count`` JPEGs with the spectrum of photographs (amplitude falls as 1 / frequency)."""
    rng = np.random.default_rng(0)
    width, height = _SIZE
    y, x = np.meshgrid(np.fft.fftfreq(height), np.fft.rfftfreq(width), indexing="ij")
    fall = 1 / np.maximum(np.hypot(x, y), 1 / width)
    for number in range(count):
        planes = [
            np.fft.irfft2(
                fall * np.fft.rfft2(rng.standard_normal((height, width))), (height, width)
            )
            for _ in range(3)
        ]
        pixels = np.stack([(p - p.mean()) / p.std() * 50 + 128 for p in planes], axis=-1)
        place = folder / f"class{number % 10}"
        place.mkdir(parents=True, exist_ok=True)
        image = Image.fromarray(pixels.clip(0, 255).astype(np.uint8))
        image.save(place / f"{number}.jpg", quality=90)


def candidates(folder: Path, scratch: Path, images: int) -> dict[str, tuple[Dataset, Callable]]:
    """The loaders to compare: name -> (data set of ``images`` images, collate function)."""
    full = datasets.load(f"folder:{folder}")
    transform = datasets.transforms(full).train
    rows = np.random.default_rng(0).permutation(len(full.index))[:images]
    reduced = scratch / "reduced"
    resize_folder(folder, list(full.index.table["key"]), [], reduced, SIDE)
    ours = {
        "ours, full decoding": full,
        f"ours, decode_side={SIDE}": datasets.load(f"folder:{folder}", decode_side=SIDE),
        f"ours, copy of {SIDE} pixels": datasets.load(f"folder:{reduced}"),
    }
    made = {"torchvision ImageFolder": (Subset(ImageFolder(folder, transform), rows), None)}
    for name, source in ours.items():
        served = datasets.ImageDataset(source, source.index, transform)
        made[name] = (Subset(served, rows), datasets.collate)
    return made


def images_per_second(data: Dataset, collate: Callable | None, workers: int) -> float:
    """One pass over the data; making the workers is part of it, as at the start of an epoch."""
    loader = DataLoader(data, BATCH, num_workers=workers, collate_fn=collate)
    started = time.perf_counter()
    seen = sum(len(batch[1]) for batch in loader)
    return seen / (time.perf_counter() - started)


def main(arguments: list[str]) -> int:
    """Measures and prints a table; the median of the repeats, which take turns."""
    parser = argparse.ArgumentParser(prog="python -m reproduce.benchmark.loading")
    parser.add_argument("--data", type=Path, help="a folder with class folders")
    parser.add_argument("--images", type=int, default=400)
    parser.add_argument("--workers", type=int, nargs="+", default=[0, 2])
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args(arguments)
    if min(options.images, options.repeats) < 1:
        raise UserError("--images and --repeats must be 1 or more")
    torch.set_num_threads(1)
    scratch = Path(tempfile.mkdtemp())
    try:
        folder = options.data
        if folder is None:
            folder = scratch / "photographs"
            make_photographs(folder, options.images)
        loaders = candidates(folder, scratch, options.images)
        speeds = {(name, workers): [] for name in loaders for workers in options.workers}
        for _ in range(options.repeats):
            for name, workers in speeds:
                data, collate = loaders[name]
                speeds[name, workers].append(images_per_second(data, collate, workers))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    _print(list(loaders), options.workers, speeds)
    return 0


def _print(
    names: list[str], workers: list[int], speeds: dict[tuple[str, int], list[float]]
) -> None:
    print(
        "images/s (against ImageFolder)".ljust(34)
        + "".join(f"{w} workers".rjust(18) for w in workers)
    )
    for name in names:
        cells = []
        for count in workers:
            speed = statistics.median(speeds[name, count])
            base = statistics.median(speeds[names[0], count])
            cells.append(f"{speed:.0f} ({speed / base:.2f}x)".rjust(18))
        print(name.ljust(34) + "".join(cells))


if __name__ == "__main__":
    sys.exit(run_cli(main))
