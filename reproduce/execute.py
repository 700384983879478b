"""One run from data to record: load, train, embed, evaluate, and leave everything in its folder."""

from __future__ import annotations

import re
import time
from typing import Any

import numpy as np
import pandas as pd
import torch
from filelock import FileLock
from safetensors.torch import save_file

import datasets
import losses
from common.atomic import atomic_path
from common.errors import UserError
from eval import evaluate
from reproduce import provenance
from reproduce.code_hash import code_hash
from reproduce.config import RunConfig
from reproduce.embed import embed_index
from reproduce.runtime import Runtime, prepare_process
from reproduce.selection import Selection
from reproduce.store import SCHEMA_VERSION, RunFolder, RunKey
from reproduce.train import train

TAR_AT = (1e-3,)


def load_source(config: RunConfig, runtime: Runtime) -> datasets.Source:
    """The run's data set, read and checked."""
    return datasets.load(config.data.name, runtime.data_root, **config.data.options)


def code_modules(config: RunConfig) -> tuple[str, ...]:
    """Where the code that decides the run begins: the loop, the data set's module, the loss's."""
    # ``merged/cub``, ``folder:PATH``: the registry knows the part before the mark.
    data_set = re.split("[/:]", config.data.name)[0]
    return (
        "reproduce.execute",
        datasets.REGISTRY[data_set].split(":")[0],
        losses.module_of(config.loss.name),
    )


def run_key(
    config: RunConfig, source: datasets.Source, runtime: Runtime, code: str | None = None
) -> RunKey:
    """What decides the run, hashed without training; ``code`` is its code hash, if known."""
    code = code or code_hash(code_modules(config))
    return RunKey(config, source.index.fingerprint, code, runtime.torch_device().type)


def execute(
    config: RunConfig, runtime: Runtime, *, force: bool = False, description: str = "run"
) -> dict[str, Any]:
    """Returns the run's record: from its folder if it is finished, else by training now.

    A second process that wants the same run waits for the first and takes its record.

    Raises:
        UserError: data, weights or a setting is missing or wrong, or the loss is not finite.
    """
    prepare_process(config.seed, config.train.threads, config.train.deterministic)
    source = load_source(config, runtime)
    folder = RunFolder(run_key(config, source, runtime), runtime.runs)
    folder.start()
    with FileLock(folder.lock):
        if force:
            folder.forget()
        record = folder.record()
        if record is None:
            record = _train_and_evaluate(config, source, folder, runtime, description)
            folder.finish(record)
            record = {**record, "reused": False}
        else:
            record = {**record, "reused": True}
    return record


def _train_and_evaluate(config, source, folder, runtime, description) -> dict[str, Any]:
    started = time.perf_counter()
    device, threads = runtime.torch_device(), torch.get_num_threads()
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    training, evaluated, validation = split(config, source.index)
    selection = _selection(config, source, evaluated, validation, runtime)
    trained = train(config, source, training, folder, runtime, selection, description)
    embeddings = embed_index(trained.model, source, evaluated, config, runtime)
    result = _evaluate(config, embeddings, evaluated, device, tar_at=TAR_AT)
    _save(folder, trained, embeddings, evaluated, result)
    commit, dirty = provenance.commit()
    return {
        "run_hash": folder.key.run_hash,
        "config_hash": folder.key.config_hash,
        "data_checksum": folder.key.data_checksum[:16],
        "code_hash": folder.key.code_hash[:16],
        "schema_version": SCHEMA_VERSION,
        "metrics": metrics(result),
        "evaluation_settings": result.settings,
        "notes": " ".join(source.index.notes),
        "selection": config.train.selection,
        "selected_epoch": selection.epoch or config.train.epochs,
        "training_images": len(training),
        "training_classes": len(training.classes),
        "seconds": round(time.perf_counter() - started, 2),
        "train_seconds": round(trained.seconds + trained.wait_seconds, 2),
        "data_wait_seconds": round(trained.wait_seconds, 2),
        "peak_memory_mb": round(provenance.peak_memory_mb(device), 1),
        "commit": commit,
        "dirty": dirty,
        "device": provenance.device_name(device),
        "threads": threads,
        "versions": provenance.versions(),
    }


def split(config: RunConfig, index: datasets.Index):
    """(training, evaluated, validation or None) images; validation classes are not trained on."""
    training = index.subset(split="train")
    validation = None
    if config.data.validation_fraction > 0:
        training, validation = index.split_classes(
            config.data.validation_fraction, config.data.validation_seed
        )
    if config.data.evaluate_on == "validation":
        return training, validation, validation
    return training, index.subset(split="test"), validation


def metrics(result) -> dict[str, float]:
    """The scalar columns of a results row: accuracies from 0 to 1, OPIS raw (not times 1e3)."""
    row = {f"recall_at_{k}": value for k, value in result.recall_at.items()}
    row |= {"map_at_r": result.map_at_r, "opis": result.opis, "epsilon_opis": result.epsilon_opis}
    row |= {"opis_floor": result.opis_floor, "opis_corrected": result.opis_corrected}
    row |= {"opis_far": result.opis_far, "d_min": result.d_min, "d_max": result.d_max}
    row |= {f"tar_at_far_{far:g}": tar.tar for far, tar in result.tar_at.items()}
    counts = ("n_images", "n_classes", "left_out_queries", "left_out_classes")
    row |= {name: getattr(result, name) for name in counts}
    return {name: value if isinstance(value, int) else float(value) for name, value in row.items()}


def _selection(config, source, evaluated, validation, runtime) -> Selection:
    rule = config.train.selection
    if rule == "last":
        return Selection()
    images = evaluated if rule == "oracle" else validation
    if images is None:
        raise UserError("train.selection=validation needs data.validation_fraction above 0")

    def score(model) -> float:
        embeddings = embed_index(model, source, images, config, runtime)
        return _evaluate(config, embeddings, images, runtime.torch_device()).recall_at[1]

    return Selection(score)


def _evaluate(config: RunConfig, embeddings: np.ndarray, index, device, tar_at=()):
    settings = config.evaluation
    return evaluate(
        torch.from_numpy(embeddings).to(device),
        index.table["label"].to_numpy(),
        ks=settings.ks,
        far_range=settings.far_range,
        epsilon=settings.epsilon,
        c=settings.c,
        distance=settings.distance,
        grid_points=settings.grid_points,
        tar_at=tar_at,
        threads=config.train.threads,
    )


def _save(folder: RunFolder, trained, embeddings, index, result) -> None:
    tensors = {f"model.{name}": value for name, value in trained.model.state_dict().items()}
    tensors |= {f"loss.{name}": value for name, value in trained.loss.state_dict().items()}
    with atomic_path(folder.weights) as temporary:
        save_file({k: v.detach().cpu().contiguous() for k, v in tensors.items()}, temporary)
    columns = {name: index.table[name].to_numpy(dtype=str) for name in ("label", "domain", "key")}
    with atomic_path(folder.embeddings) as temporary:
        np.savez(
            temporary,
            embeddings=embeddings,
            labels=columns["label"],
            domains=columns["domain"],
            keys=columns["key"],
        )
    with atomic_path(folder.curves) as temporary:
        np.savez(
            temporary,
            thresholds=result.thresholds,
            utility=result.utility.astype(np.float32),
            classes=np.asarray(result.classes, dtype=str),
        )
    with atomic_path(folder.history) as temporary:
        pd.DataFrame(trained.history).to_csv(temporary, index=False)
