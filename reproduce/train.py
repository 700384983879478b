"""The one training loop, from the demo on a CPU core to many GPUs: batches, steps, checkpoints."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

import datasets
from common.errors import UserError
from reproduce import agreement, checkpoint, distributed, optimise, provenance
from reproduce.build import build_loss, build_model, build_sampler, place
from reproduce.config import RunConfig
from reproduce.inputs import Normalised, batches_of, loader, transforms
from reproduce.runtime import Runtime
from reproduce.selection import Selection
from reproduce.step import NotFiniteError, TrainingStep
from reproduce.store import RunFolder
from reproduce.watch import Watch


@dataclass
class Trained:
    """What training leaves: the network, the loss with its proxies, and the logged history."""

    model: Normalised
    loss: nn.Module
    history: list[dict[str, float]]
    seconds: float
    wait_seconds: float
    amp: str


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
    up where it stopped. Under torchrun every process calls this; rank 0 alone writes.

    Raises:
        UserError: a number that is not finite, with step, term and the images of the batch; a pair
            of settings that this network or machine cannot do; a checkpoint of another run.
    """
    settings, device = config.train, runtime.torch_device()
    processes = distributed.current()
    torch.manual_seed(config.seed)
    model = place(build_model(config, source, runtime), settings, device)
    torch.manual_seed(config.seed)
    loss = build_loss(config, len(training.classes)).to(device)
    distributed.broadcast(loss)
    sampler = build_sampler(config, training)
    dataset = datasets.ImageDataset(
        source, training, transforms(source, config.data, model).train, seed=config.seed
    )
    batches = loader(dataset, runtime, device, batch_sampler=sampler)
    optimizer = optimise.optimiser(model, loss, settings)
    schedule = optimise.scheduler(optimizer, settings.schedule, sampler.batches, settings.epochs)
    step = TrainingStep(model, loss, optimizer, schedule, settings, device, config.seed)
    parts = {"model": model, "loss": loss, "optimizer": optimizer, "schedule": schedule}
    parts |= {"scaler": step.scaler, "selection": selection}
    states = checkpoint.Checkpoint(folder.checkpoints, folder.key)
    progress = Progress(**(states.restore(parts) or {}))
    agreement.require_equal((progress.epoch, progress.batch), "the checkpoint's step")
    done = progress.epoch * sampler.batches + progress.batch
    stop = checkpoint.StopSignal()
    watch = Watch(
        progress.history,
        description,
        log=folder.log if processes.is_main else None,
        progress=runtime.progress and processes.is_main,
        tensorboard=folder.events(runtime.tensorboard) if processes.is_main else None,
        total=settings.epochs * sampler.batches,
        done=done,
    )
    last_save = time.monotonic()
    with stop, watch:
        for text in states.remarks:
            watch.say(text, aloud=True)
        watch.say(f"starts after step {done} of {watch.total}: {provenance.versions()}")
        while progress.epoch < settings.epochs:
            step.start_epoch(progress.epoch)
            dataset.set_epoch(progress.epoch)
            sampler.set_epoch(progress.epoch, start_batch=progress.batch)
            waiting = time.perf_counter()
            for images, labels, positions in agreement.together(batches_of(batches), device):
                started = time.perf_counter()
                progress.wait_seconds += started - waiting
                try:
                    terms = step(images, labels)
                except NotFiniteError as error:
                    raise UserError(_where(error, progress, training, positions)) from None
                progress.batch += 1
                waiting = time.perf_counter()
                progress.seconds += waiting - started
                images_per_second = len(labels) * processes.world_size / (waiting - started)
                number = progress.epoch * sampler.batches + progress.batch
                watch.after_step(number, terms, schedule.get_last_lr()[0], images_per_second)
                due = time.monotonic() - last_save > 60 * settings.checkpoint_minutes
                due, stopping = agreement.in_any_process([due, stop.requested], device)
                if due or stopping:
                    agreement.from_main(lambda: states.save(parts, progress.state_dict()))
                    last_save = time.monotonic()
                if stopping:
                    watch.say("stopped by SIGTERM")
                    raise checkpoint.StoppedError(
                        f"stopped by SIGTERM; the same command goes on from {folder.checkpoint}"
                    )
            progress.epoch, progress.batch = progress.epoch + 1, 0
            watch.after_epoch(progress.epoch)
            selection.after_epoch(progress.epoch, settings, model)
    selection.restore_best(model)
    amp = "off" if step.amp_dtype is None else str(step.amp_dtype).removeprefix("torch.")
    return Trained(model, loss, progress.history, progress.seconds, progress.wait_seconds, amp)


def _where(error: NotFiniteError, progress: Progress, training, positions) -> str:
    first = [training.table["key"].iloc[int(position)] for position in positions[:4]]
    return (
        f"training stopped, not finite at epoch {progress.epoch}, batch {progress.batch}: {error}; "
        f"the batch starts with {first}; lower train.learning_rate or set train.amp=off"
    )
