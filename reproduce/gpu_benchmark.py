"""The short benchmark of ``gpu-check``: evaluation, losses and training steps on one device.

Each function returns plain numbers: seconds are medians, peak memory is the allocator's on CUDA and
None elsewhere. Sizes are arguments, so that the code can be tested where there is no GPU.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch

import losses
from eval import evaluate
from reproduce import optimise
from reproduce.benchmark.evaluation import unequal_classes
from reproduce.benchmark.loss_cases import step_of
from reproduce.build import build_loss, build_model, place
from reproduce.config import RunConfig, load
from reproduce.runtime import Runtime, prepare_process
from reproduce.step import TrainingStep

MIB = 2**20
NETWORKS = {
    "ResNet-50": "paper/inaturalist_proxy_anchor_resnet50",
    "ViT-B/16": "paper/inaturalist_proxy_anchor_vit_b16",
}
CLASSES = 1000


def evaluation(device: torch.device, images: int = 136_093, dimensions: int = 512) -> dict:
    """All metrics on a set of the size of iNaturalist's test images; the second of two calls."""
    embeddings, labels = unequal_classes(images, dimensions)
    embeddings = embeddings.to(device)
    seconds, peak = timed(lambda: evaluate(embeddings, labels), device, warm_up=1, repeats=1)
    return {"images": images, "dimensions": dimensions, "seconds": seconds, "peak_mib": peak}


def loss_steps(device: torch.device, count: int = 4000, dimensions: int = 512) -> dict[str, dict]:
    """Forward and backward of TCM and RS@K, 4 images of a class."""
    found = {}
    for name in ("tcm", "recall_at_k"):
        step = step_of(losses.build(name, 0, dimensions), count, dimensions, 4, str(device))
        seconds, peak = timed(step, device, warm_up=2, repeats=5)
        found[name] = {"batch": count, "ms": 1e3 * seconds, "peak_mib": peak}
    return found


def training_steps(
    device: torch.device, batch: int = 128, changes: dict[str, Any] | None = None
) -> dict[str, dict]:
    """Whole training steps of the paper's networks on generated images, random weights.

    Args:
        batch: a multiple of 4.
        changes: dotted settings replaced in both configurations.
    """
    found = {}
    for name, recipe in NETWORKS.items():
        plain = {"model.options.pretrained": "random", "train.chunk_size": None}
        plain |= {"train.head_only_epochs": 0, "train.deterministic": False}
        config = load(recipe).with_values(plain | (changes or {}))
        step, amp = _training_step(config, batch, device)
        seconds, peak = timed(step, device, warm_up=3, repeats=10)
        found[name] = {
            "batch": batch,
            "image_size": config.data.image_size,
            "amp": amp,
            "images_per_second": batch / seconds,
            "peak_mib": peak,
        }
    return found


def _training_step(
    config: RunConfig, batch: int, device: torch.device
) -> tuple[Callable[[], object], str]:
    prepare_process(config.seed, config.train.threads, deterministic=False)
    size = config.data.image_size
    images = torch.randint(256, (batch, 3, size, size), dtype=torch.uint8)
    labels = torch.arange(batch) // 4 % CLASSES
    pixels = SimpleNamespace(mean=(0.5,) * 3, std=(0.25,) * 3)
    runtime = Runtime(device=str(device))
    model = place(build_model(config, pixels, runtime), config.train, device)
    loss = build_loss(config, CLASSES).to(device)
    optimizer = optimise.optimiser(model, loss, config.train)
    schedule = optimise.scheduler(optimizer, config.train.schedule, 1000, config.train.epochs)
    step = TrainingStep(model, loss, optimizer, schedule, config.train, device, config.seed)
    step.start_epoch(0)
    amp = "off" if step.amp_dtype is None else str(step.amp_dtype).removeprefix("torch.")
    return lambda: step(images, labels), amp


def timed(
    function: Callable[[], object], device: torch.device, *, warm_up: int, repeats: int
) -> tuple[float, float | None]:
    """(median seconds, peak MiB allocated on a GPU) of ``repeats`` calls after ``warm_up``."""
    for _ in range(warm_up):
        function()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)
    taken = []
    for _ in range(repeats):
        started = time.perf_counter()
        function()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        taken.append(time.perf_counter() - started)
    peak = torch.cuda.max_memory_allocated(device) / MIB if device.type == "cuda" else None
    return statistics.median(taken), peak
