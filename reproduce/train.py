"""The one training loop, from the demo on a CPU core to many GPUs: batches, steps, checkpoints."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from tqdm import tqdm

import datasets
import losses
import models
from common.errors import UserError
from reproduce import checkpoint, optimise
from reproduce.config import RunConfig
from reproduce.inputs import Normalised, loader, transforms
from reproduce.runtime import Runtime
from reproduce.selection import Selection
from reproduce.step import TrainingStep
from reproduce.store import RunFolder

LOG_EVERY = 10


@dataclass
class Trained:
    """What training leaves: the network, the loss with its proxies, and the logged history."""

    model: nn.Module
    loss: nn.Module
    history: list[dict[str, float]]
    seconds: float
    wait_seconds: float


@dataclass
class Progress:
    """How far a run is; plain values, kept in the checkpoint."""

    epoch: int = 0
    batch: int = 0
    seconds: float = 0.0
    wait_seconds: float = 0.0
    history: list[dict[str, float]] = field(default_factory=list)

    def state_dict(self) -> dict[str, Any]:
        """Plain values for the checkpoint."""
        return vars(self)


def train(
    config: RunConfig,
    source: datasets.Source,
    training: datasets.Index,
    folder: RunFolder,
    runtime: Runtime,
    selection: Selection,
    description: str,
) -> Trained:
    """Trains on the classes of ``training`` and returns the network of the last epoch or selected.

    The initial weights, the loss's proxies and the order of batches depend on ``config.seed``
    alone, so two losses with the same seed are a matched pair. A checkpoint in ``folder`` is taken
    up where it stopped.

    Raises:
        UserError: a loss that is not finite, with step, term and the images of the batch.
    """
    settings, device = config.train, runtime.torch_device()
    torch.manual_seed(config.seed)
    model = build_model(config, source, runtime).to(device)
    torch.manual_seed(config.seed)
    loss = build_loss(config, len(training.classes)).to(device)
    sampler = datasets.ClassBalancedBatchSampler(
        training.label_codes,
        settings.classes_per_batch,
        settings.images_per_class,
        batches=settings.steps_per_epoch,
        seed=config.seed,
        small_classes=settings.small_classes,
    )
    dataset = datasets.ImageDataset(
        source, training, transforms(source, config.data, model).train, seed=config.seed
    )
    batches = loader(dataset, runtime, device, batch_sampler=sampler)
    optimizer = optimise.optimiser(model, loss, settings)
    schedule = optimise.scheduler(optimizer, settings.schedule, sampler.batches, settings.epochs)
    step = TrainingStep(model, loss, optimizer, schedule, settings, device)
    parts = {"model": model, "loss": loss, "optimizer": optimizer, "schedule": schedule}
    parts |= {"scaler": step.scaler, "selection": selection}
    progress = Progress()
    saved = checkpoint.restore(folder.checkpoint, folder.key.run_hash, parts)
    if saved is not None:
        progress = Progress(**saved)
    stop = checkpoint.StopSignal()
    total = settings.epochs * sampler.batches
    bar = tqdm(
        total=total,
        initial=progress.epoch * sampler.batches + progress.batch,
        desc=description,
        disable=not runtime.progress,
        mininterval=1,
        dynamic_ncols=True,
    )
    last_save = time.monotonic()
    with stop, bar:
        while progress.epoch < settings.epochs:
            step.start_epoch(progress.epoch)
            dataset.set_epoch(progress.epoch)
            sampler.set_epoch(progress.epoch, start_batch=progress.batch)
            waiting = time.perf_counter()
            for images, labels, positions in batches:
                started = time.perf_counter()
                progress.wait_seconds += started - waiting
                terms = step(images, labels)
                _check_finite(terms, progress, training, positions)
                progress.batch += 1
                waiting = time.perf_counter()
                progress.seconds += waiting - started
                bar.update()
                number = progress.epoch * sampler.batches + progress.batch
                if number % LOG_EVERY == 0 or number == total:
                    row = {"step": number, **terms, "learning_rate": schedule.get_last_lr()[0]}
                    row["images_per_second"] = len(labels) / (waiting - started)
                    progress.history.append(row)
                    bar.set_postfix(loss=f"{terms['loss']:.4f}", refresh=False)
                due = time.monotonic() - last_save > 60 * settings.checkpoint_minutes
                if due or stop.requested:
                    checkpoint.save(
                        folder.checkpoint, folder.key.run_hash, parts, progress.state_dict()
                    )
                    last_save = time.monotonic()
                    stop.raise_if_requested(folder.checkpoint)
            progress.epoch, progress.batch = progress.epoch + 1, 0
            selection.after_epoch(progress.epoch, settings, model)
    selection.restore_best(model)
    return Trained(model, loss, progress.history, progress.seconds, progress.wait_seconds)


def build_model(config: RunConfig, source: datasets.Source, runtime: Runtime) -> Normalised:
    """The network of a configuration, fed with the pixels of ``source``."""
    network = models.build(
        config.model.backbone,
        config.model.embedding_dim,
        image_size=config.data.image_size,
        in_channels=len(source.mean),
        weights=runtime.weights,
        **config.model.options,
    )
    return Normalised(network, source, config.data.mean_std)


def build_loss(config: RunConfig, num_classes: int) -> nn.Module:
    """The base loss of a configuration with TCM added where it says so."""
    base = losses.build(
        config.loss.name, num_classes, config.model.embedding_dim, **config.loss.options
    )
    regulariser = None
    if config.loss.tcm is not None:
        regulariser = losses.TCMLoss(**config.loss.tcm.model_dump())
    return losses.CombinedLoss(base, regulariser, simix_seed=_simix_seed(config))


def _simix_seed(config: RunConfig) -> int | None:
    return config.seed if config.loss.simix else None


def _check_finite(terms, progress: Progress, training, positions) -> None:
    if all(value == value and abs(value) != float("inf") for value in terms.values()):
        return
    culprits = ", ".join(f"{name}={value}" for name, value in terms.items())
    first = [training.table["key"].iloc[int(position)] for position in positions[:4]]
    raise UserError(
        f"training stopped: not finite at epoch {progress.epoch}, batch {progress.batch} "
        f"({culprits}); the batch starts with {first}; "
        "lower train.learning_rate or set train.amp=off"
    )
