"""From images to the network's input: loaders of uint8 batches, normalised on the device."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import nn

import datasets
from common.errors import UserError
from reproduce.runtime import Runtime
from reproduce.sections import DataConfig


class Normalised(nn.Module):
    """A network behind the map from uint8 pixels to (pixel / 255 - mean) / std, per channel.

    Args:
        network: an embedding model, from float images (B, C, H, W) to embeddings (B, D).
        source: its mean and std are taken where ``mean_std`` is ``source``; where it is ``model``
            those that the backbone's weights were trained with.
    """

    def __init__(self, network: nn.Module, source: datasets.Source, mean_std: str):
        super().__init__()
        self.network = network
        mean, std = source.mean, source.std
        if mean_std == "model":
            mean, std = network.input.mean, network.input.std
        shape = (1, -1, 1, 1)
        # Not saved: they follow from the data set or the weights, which the configuration names.
        self.register_buffer("mean", torch.tensor(mean).view(shape) * 255, persistent=False)
        self.register_buffer("std", torch.tensor(std).view(shape) * 255, persistent=False)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Embeddings (B, D) of uint8 images (B, C, H, W)."""
        return self.network((images - self.mean) / self.std)

    def backbone_parameters(self) -> list[nn.Parameter]:
        """See ``models.EmbeddingModel``."""
        return list(self.network.backbone_parameters())

    def head_parameters(self) -> list[nn.Parameter]:
        """See ``models.EmbeddingModel``."""
        return list(self.network.head_parameters())


def transforms(source: datasets.Source, data: DataConfig, model: Normalised) -> datasets.Transforms:
    """The train and test transforms that a configuration asks for."""
    return datasets.transforms(
        source,
        size=data.image_size,
        resize=data.resize or round(data.image_size * 256 / 224),
        crop_scale=data.crop_scale,
        bicubic=model.network.input.interpolation == "bicubic",
    )


def loader(
    dataset: datasets.ImageDataset, runtime: Runtime, device: torch.device, **batching
) -> torch.utils.data.DataLoader:
    """A loader of whole uint8 batches; ``batching`` is a batch_size or a batch_sampler."""
    return torch.utils.data.DataLoader(
        dataset,
        num_workers=runtime.workers,
        pin_memory=device.type == "cuda",
        collate_fn=datasets.collate,
        **batching,
    )


def batches_of(loader: torch.utils.data.DataLoader) -> Iterator[datasets.Batch]:
    """One pass over a loader, in which an error of a worker is the one sentence it was there.

    Raises:
        UserError: as the data set raised it, without the worker's traceback that torch adds.
    """
    try:
        yield from loader
    except UserError as error:
        raise UserError(str(error).rpartition(f"{UserError.__name__}: ")[2].strip()) from None
