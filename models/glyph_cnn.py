"""The demo's backbone: a small convolutional network for 32 x 32 grey glyphs, from scratch."""

from __future__ import annotations

import torch
from torch import nn

from models.embedding_model import InputSettings


class GlyphCNN(nn.Module):
    """Four 3 x 3 convolutions with BatchNorm and ReLU; strides 2, 2, 2, 1 keep it quick on a CPU.

    Args:
        in_channels: of the images.
        width: channels of the first layer; the others have 2, 4 and 8 times as many.
    """

    def __init__(self, in_channels: int = 1, width: int = 32) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        channels = in_channels
        for factor, stride in ((1, 2), (2, 2), (4, 2), (8, 1)):
            out = width * factor
            layers += [
                nn.Conv2d(channels, out, 3, stride=stride, padding=1, bias=False),
                nn.BatchNorm2d(out),
                nn.ReLU(inplace=True),
            ]
            channels = out
        self.layers = nn.Sequential(*layers)
        self.features = channels
        # There are no published weights; half and half centres pixels in [-1, 1].
        self.input = InputSettings((0.5,) * in_channels, (0.5,) * in_channels, "bilinear")

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Feature map (B, 8 width, 4, 4) of images (B, C, 32, 32)."""
        return self.layers(images)
