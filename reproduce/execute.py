"""One run from data to record: load, train, embed, evaluate, and leave everything in its folder."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator
from typing import Any

import filelock
import torch

import datasets
import losses
from common.errors import UserError
from reproduce import agreement, distributed, peak, provenance
from reproduce.assess import evaluate_images, metrics, require_pairs, split
from reproduce.code_hash import code_hash
from reproduce.config import RunConfig
from reproduce.embed import embed_index
from reproduce.outcome import save_outcome
from reproduce.runtime import Runtime, prepare_process
from reproduce.selection import Selection
from reproduce.store import RunFolder, RunKey
from reproduce.train import train


class LockedError(UserError):
    """Another process is at this run just now."""


def load_source(config: RunConfig, runtime: Runtime) -> datasets.Source:
    """The run's data set, read and checked.

    Raises:
        UserError: it is missing or broken, or is to skip broken images and has no image files.
    """
    options = dict(config.data.options)
    if config.data.broken == "skip":
        if _registered_name(config) == "glyphs":
            raise UserError("glyphs has no image files to skip: set data.broken=error")
        options["broken"] = "skip"
    return datasets.load(config.data.name, runtime.data_root, **options)


def _registered_name(config: RunConfig) -> str:
    # ``merged/cub``, ``folder:PATH``: the registry knows the part before the mark.
    return re.split("[/:]", config.data.name)[0]


def code_modules(config: RunConfig) -> tuple[str, ...]:
    """Where the code that decides the run begins: the loop, the data set's module, the loss's."""
    return (
        "reproduce.execute",
        datasets.REGISTRY[_registered_name(config)].split(":")[0],
        losses.module_of(config.loss.name),
    )


def run_key(
    config: RunConfig, source: datasets.Source, runtime: Runtime, code: str | None = None
) -> RunKey:
    """What decides the run, hashed without training; ``code`` is its code hash, if known."""
    code = code or code_hash(code_modules(config))
    device_type = runtime.torch_device().type
    return RunKey(config, source.index.fingerprint, code, device_type, runtime.weights_sha256)


def execute(
    config: RunConfig,
    runtime: Runtime,
    *,
    force: bool = False,
    description: str = "run",
    wait: bool = True,
) -> dict[str, Any]:
    """Returns the run's record: from its folder if it is finished, else by training now.

    Under torchrun all processes call this, train together and get the same record; rank 0 alone
    writes.

    Args:
        force: train although the run is finished.
        description: for the progress bar.
        wait: where another invocation is at the same run, wait for it and take its record.

    Raises:
        LockedError: another invocation is at it; without ``wait``, and under torchrun in any case.
        UserError: data, weights or a setting is missing or wrong, or the loss is not finite.
    """
    settings = config.train
    distributed.start(runtime.torch_device())
    prepare_process(config.seed, settings.threads, settings.deterministic, settings.tf32)
    source = load_source(config, runtime)
    folder = RunFolder(run_key(config, source, runtime), runtime.runs)
    agreement.require_equal(folder.key.run_hash, "the run's hash")
    with _locked(folder, wait):
        record = agreement.from_main(lambda: _finished(folder, force))
        reused = record is not None
        if not reused:
            record = _train_and_evaluate(config, source, folder, runtime, description)
            agreement.from_main(lambda: folder.finish(record))
    return {**record, "reused": reused}


@contextlib.contextmanager
def _locked(folder: RunFolder, wait: bool) -> Iterator[None]:
    """The run's folder for this invocation alone; of several processes rank 0 holds the lock."""
    lock = filelock.FileLock(folder.lock)
    # Processes that wait in a collective give up after a while, so a group does not queue.
    patience = -1 if wait and distributed.world_size() == 1 else 0

    def acquire() -> None:
        folder.start()
        try:
            lock.acquire(timeout=patience)
        except filelock.Timeout:
            raise LockedError(f"{folder.path} is in use: another process trains it") from None
        folder.tidy()

    agreement.from_main(acquire)
    try:
        yield
    finally:
        lock.release()


def _finished(folder: RunFolder, force: bool) -> dict[str, Any] | None:
    if force:
        folder.forget()
    return folder.record()


def _train_and_evaluate(config, source, folder, runtime, description) -> dict[str, Any]:
    started = time.perf_counter()
    device, threads = runtime.torch_device(), torch.get_num_threads()
    peak.reset(device)
    training, evaluated, validation = split(config, source.index)
    require_pairs(config, evaluated)
    selection = _selection(config, source, evaluated, validation, runtime)
    trained = train(config, source, training, folder, runtime, selection, description)
    embeddings = embed_index(trained.model, source, evaluated, config, runtime)

    def finish() -> dict[str, Any]:
        result = evaluate_images(config, embeddings, evaluated, device, config.evaluation.tar_at)
        save_outcome(folder, trained, embeddings, evaluated, result)
        return {
            **folder.key.identity(),
            "metrics": metrics(result),
            "evaluation_settings": result.settings,
            "notes": "; ".join(evaluated.notes),
            "selection": config.train.selection,
            "selected_epoch": selection.epoch or config.train.epochs,
            "training_images": len(training),
            "training_classes": len(training.classes),
            "seconds": round(time.perf_counter() - started, 2),
            "train_seconds": round(trained.seconds + trained.wait_seconds, 2),
            "data_wait_seconds": round(trained.wait_seconds, 2),
            "amp": trained.amp,
            "tf32": config.train.tf32 and device.type == "cuda",
            "processes": distributed.world_size(),
            "initial_weights": trained.model.network.origin._asdict(),
            **provenance.of_process(device, threads),
        }

    return agreement.from_main(finish)


def _selection(config, source, evaluated, validation, runtime) -> Selection:
    rule = config.train.selection
    if rule == "last":
        return Selection()
    images = evaluated if rule == "oracle" else validation

    def score(model) -> float:
        embeddings = embed_index(model, source, images, config, runtime)

        def recall() -> float:
            return evaluate_images(config, embeddings, images, runtime.torch_device()).recall_at[1]

        return agreement.from_main(recall)

    return Selection(score)
