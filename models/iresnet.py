"""iResNet-50, the face recognition network of ArcFace's code, for 112 x 112 images."""

from __future__ import annotations

import torch
from torch import nn

from models.input_settings import centred

STAGES = ((64, 3), (128, 4), (256, 14), (512, 3))


class IResNet(nn.Module):
    """Blocks BN, 3 x 3, BN, PReLU, 3 x 3, BN; full-size stem, four stages that halve the image.

    Facts from InsightFace, recognition/arcface_torch/backbones/iresnet.py. Its head is
    ``pooling="flatten", head_batch_norm=True`` of :func:`models.build`.

    Args:
        in_channels, image_size: of the images (B, C, H, W); the size is a multiple of 16.
        blocks: of the four stages.
        width: channels of the first stage, doubled by each later one.

    Raises:
        ValueError: the image size is no multiple of 16, or ``blocks`` has not four numbers.
    """

    def __init__(
        self,
        in_channels: int = 3,
        image_size: int = 112,
        blocks: tuple[int, ...] = tuple(count for _, count in STAGES),
        width: int = 64,
    ) -> None:
        super().__init__()
        if image_size % 16 or len(blocks) != len(STAGES):
            raise ValueError("image_size must be a multiple of 16, and blocks four numbers")
        self.stem = nn.Sequential(
            nn.Conv2d(in_channels, width, 3, padding=1, bias=False),
            nn.BatchNorm2d(width),
            nn.PReLU(width),
        )
        layers: list[nn.Module] = []
        channels = width
        for (factor, _), count in zip(STAGES, blocks, strict=True):
            out = width * factor // STAGES[0][0]
            for number in range(count):
                layers.append(_Block(channels, out, stride=2 if number == 0 else 1))
                channels = out
        self.stages = nn.Sequential(*layers)
        self.norm = nn.BatchNorm2d(channels)
        self.features = channels
        self.map_size = image_size // 16
        self.input = centred(in_channels, image_size)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.normal_(module.weight, 0, 0.1)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Feature map (B, 512, 7, 7) of images (B, C, 112, 112)."""
        return self.norm(self.stages(self.stem(images)))


class _Block(nn.Module):
    def __init__(self, channels: int, out: int, stride: int) -> None:
        super().__init__()
        self.residual = nn.Sequential(
            nn.BatchNorm2d(channels),
            nn.Conv2d(channels, out, 3, padding=1, bias=False),
            nn.BatchNorm2d(out),
            nn.PReLU(out),
            nn.Conv2d(out, out, 3, stride=stride, padding=1, bias=False),
            nn.BatchNorm2d(out),
        )
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or channels != out:
            self.shortcut = nn.Sequential(
                nn.Conv2d(channels, out, 1, stride=stride, bias=False), nn.BatchNorm2d(out)
            )

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return self.residual(features) + self.shortcut(features)
