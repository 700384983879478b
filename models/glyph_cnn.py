"""The demo's backbone: a small convolutional network for 32 x 32 grey glyphs, from scratch."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from models.input_settings import centred


class GlyphCNN(nn.Module):
    """3 x 3 convolutions, each with a normalisation and ReLU; strides keep it quick on a CPU.

    Args:
        in_channels, image_size: of the images (B, C, H, W).
        width: channels of the first layer, at least 1.
        multipliers: channels of each layer as multiples of ``width``.
        strides: of each layer.
        norm: ``batch``, or ``group`` (8 groups), whose output does not depend on the other images
            of a batch, so that large batches can be embedded in chunks.

    Raises:
        ValueError: multipliers and strides differ in length, widths that groups do not divide, or
            an unknown norm.
    """

    def __init__(
        self,
        in_channels: int = 1,
        image_size: int = 32,
        width: int = 32,
        multipliers: Sequence[int] = (1, 2, 4, 8),
        strides: Sequence[int] = (2, 2, 2, 1),
        norm: str = "batch",
    ) -> None:
        super().__init__()
        if len(multipliers) != len(strides):
            raise ValueError("multipliers and strides need one value for each layer")
        layers: list[nn.Module] = []
        channels, side = in_channels, image_size
        for multiplier, stride in zip(multipliers, strides, strict=True):
            out = width * multiplier
            convolution = nn.Conv2d(channels, out, 3, stride=stride, padding=1, bias=False)
            layers += [convolution, _norm(norm, out), nn.ReLU(inplace=True)]
            channels, side = out, -(-side // stride)
        self.layers = nn.Sequential(*layers)
        self.features = channels
        self.map_size = side
        self.input = centred(in_channels, image_size)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Feature map (B, features, map_size, map_size) of images (B, C, H, W)."""
        return self.layers(images)


def _norm(name: str, channels: int) -> nn.Module:
    if name == "batch":
        return nn.BatchNorm2d(channels)
    if name == "group":
        return nn.GroupNorm(8, channels)
    raise ValueError(f"norm={name!r} is unknown; choose batch or group")
