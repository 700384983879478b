"""What a configuration builds: network, loss, sampler; and the network spread over processes."""

from __future__ import annotations

import torch
from torch import nn

import datasets
import losses
import models
from common.errors import UserError
from datasets.domain_sampler import DomainBatchSampler, batch_sampler
from reproduce import distributed
from reproduce.config import RunConfig
from reproduce.inputs import Normalised
from reproduce.runtime import Runtime
from reproduce.sections import TrainConfig


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


def place(model: nn.Module, settings: TrainConfig, device: torch.device) -> nn.Module:
    """The network on its device, in the memory format and with the BatchNorm that is asked for.

    Raises:
        UserError: BatchNorm over several processes without CUDA, which PyTorch does not have.
    """
    if settings.sync_batch_norm and distributed.world_size() > 1:
        if device.type != "cuda":
            raise UserError(
                "train.sync_batch_norm needs CUDA; on CPUs set model.options.freeze_batch_norm="
                "true, take norm=group, or run one process"
            )
        model = nn.SyncBatchNorm.convert_sync_batchnorm(model)
    if settings.channels_last:
        model = model.to(memory_format=torch.channels_last)
    return model.to(device)


def spread(model: nn.Module, settings: TrainConfig) -> nn.Module:
    """The same network as the training step calls it: in every process, compiled if asked for.

    Raises:
        UserError: BatchNorm that would see one process's slice, unless the settings accept it.
    """
    network = distributed.wrap(
        model,
        parts_rest=settings.head_only_epochs > 0,
        batch_statistics=settings.chunk_batch_statistics,
    )
    return torch.compile(network) if settings.compile else network


def build_loss(config: RunConfig, num_classes: int) -> losses.CombinedLoss:
    """The base loss of a configuration with TCM added where it says so."""
    base = losses.build(
        config.loss.name, num_classes, config.model.embedding_dim, **config.loss.options
    )
    regulariser = None
    if config.loss.tcm is not None:
        regulariser = losses.TCMLoss(**config.loss.tcm.model_dump())
    return losses.CombinedLoss(
        base, regulariser, simix_seed=config.seed if config.loss.simix else None
    )


def build_sampler(
    config: RunConfig, training: datasets.Index
) -> datasets.ClassBalancedBatchSampler | DomainBatchSampler:
    """The batches of this process; joined in rank order they are those of a single process."""
    settings, processes = config.train, distributed.current()
    return batch_sampler(
        training,
        config.data.batch_strategy,
        settings.classes_per_batch,
        settings.images_per_class,
        batches=settings.steps_per_epoch,
        seed=config.seed,
        small_classes=settings.small_classes,
        rank=processes.rank,
        world_size=processes.world_size,
    )
