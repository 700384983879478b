"""Train and test transforms: torchvision's for image files, batched ones for glyphs in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch.nn import functional
from torchvision.transforms import InterpolationMode, v2

from datasets.dataset import GatheringSource, Source
from datasets.randomness import uniform


class Transforms(NamedTuple):
    """What :class:`datasets.ImageDataset` applies in training and in testing."""

    train: Callable
    test: Callable


@dataclass(frozen=True)
class GlyphAugmentation:
    """Small random changes to a batch of grey images, each image with its own numbers.

    Called with images (B, 1, H, W) uint8, dark background 0, and sample keys (B,) uint64 from
    :func:`datasets.randomness.sample_keys`; returns a new uint8 tensor of the same shape. What
    becomes of an image depends on the image and its key alone. Zero switches a change off.

    Args:
        rotation: largest angle, degrees, either way.
        scale: largest relative change of size; 0.1 draws factors from [1/1.1, 1.1].
        shear: largest horizontal shear, as the tangent of the slant.
        shift: largest displacement along each axis, as a share of the side.
        stroke: largest share by which strokes are blended with their thickened (or, to the other
            side, thinned) version, in [0, 1].
        contrast: largest relative loss of brightness, in [0, 1).
        noise: largest amplitude of uniform noise, in units of the full range.
    """

    rotation: float = 10.0
    scale: float = 0.1
    shear: float = 0.1
    shift: float = 0.06
    stroke: float = 0.0
    contrast: float = 0.0
    noise: float = 0.0

    def __call__(self, images: torch.Tensor, keys: np.ndarray) -> torch.Tensor:
        draws = 2 * uniform(keys, 8) - 1
        pixels = images.float()
        if self.stroke:
            pixels = _thicken(pixels, _column(self.stroke * draws[:, 0]))
        pixels = functional.grid_sample(
            pixels, self._grid(draws[:, 1:6], images.shape[-2:]), align_corners=False
        )
        if self.contrast:
            pixels = pixels * _column(1 - self.contrast * (draws[:, 6] + 1) / 2)
        if self.noise:
            amplitude = 255 * self.noise * (draws[:, 7] + 1) / 2
            # Counters 1 to 8 of each key made the draws above; the noise takes the next ones.
            noise = 2 * uniform(keys, 8 + pixels[0].numel())[:, 8:] - 1
            pixels = pixels + torch.from_numpy(amplitude[:, None] * noise).view_as(pixels).float()
        return pixels.add_(0.5).clamp_(0, 255).to(torch.uint8)

    def _grid(self, draws: np.ndarray, size: tuple[int, int]) -> torch.Tensor:
        """Where to sample, shape (B, H, W, 2), in grid_sample's coordinates [-1, 1]."""
        angle = np.deg2rad(self.rotation * draws[:, 0])
        zoom = (1 + self.scale) ** draws[:, 1]
        slant = self.shear * draws[:, 2]
        cos, sin = np.cos(angle) / zoom, np.sin(angle) / zoom
        # Rows of the inverse map: rotation and zoom after a shear along x.
        x_x, x_y, x_0 = cos, slant * cos - sin, 2 * self.shift * draws[:, 3]
        y_x, y_y, y_0 = sin, slant * sin + cos, 2 * self.shift * draws[:, 4]
        y, x = (
            torch.from_numpy((2 * np.arange(n) + 1) / n - 1).float().view(shape)
            for n, shape in zip(size, ((1, -1, 1), (1, 1, -1)), strict=True)
        )
        # Written out instead of affine_grid: a matrix product may round differently in a batch of
        # another size, and then an image would depend on its neighbours.
        x_x, x_y, x_0, y_x, y_y, y_0 = (
            torch.from_numpy(a).float().view(-1, 1, 1) for a in (x_x, x_y, x_0, y_x, y_y, y_0)
        )
        grid = torch.empty(len(draws), *size, 2)
        torch.add(x_x * x, x_y * y + x_0, out=grid[..., 0])
        torch.add(y_x * x, y_y * y + y_0, out=grid[..., 1])
        return grid


def keep_batch(images: torch.Tensor, keys: np.ndarray) -> torch.Tensor:
    """The test transform of images in memory: none."""
    return images


def transforms(
    source: Source,
    *,
    size: int = 224,
    resize: int = 256,
    crop_scale: tuple[float, float] = (0.08, 1.0),
    flip: float = 0.5,
    bicubic: bool = False,
    glyphs: GlyphAugmentation | None = None,
) -> Transforms:
    """Train and test transforms that suit ``source``; both give uint8.

    Image files: RandomResizedCrop(size, crop_scale) and a horizontal flip in training;
    Resize(resize) of the shorter side and CenterCrop(size) in testing. These are the defaults of
    the RS@K and Proxy-Anchor repositories (crop_scale there is torchvision's default, too).
    Images in memory: ``glyphs``, by default :class:`GlyphAugmentation` with its own defaults (no
    flip: a mirrored character is another character); no change in testing. The other arguments
    have no effect then.

    Args:
        size: side of the square that the network sees, pixels.
        resize: shorter side before the centre crop, pixels, at least ``size``.
        crop_scale: least and largest share of the area that a training crop covers.
        flip: probability of the mirror image.
        bicubic: bicubic instead of bilinear interpolation (HIER tests so).
        glyphs: the batched augmentation for images in memory.
    """
    if isinstance(source, GatheringSource):
        return Transforms(train=glyphs or GlyphAugmentation(), test=keep_batch)
    mode = InterpolationMode.BICUBIC if bicubic else InterpolationMode.BILINEAR
    # Resizing happens on the PIL image: fast for JPEG sizes, and the same with every backend.
    train = v2.Compose(
        [
            v2.RGB(),
            v2.RandomResizedCrop(size, scale=crop_scale, interpolation=mode, antialias=True),
            v2.RandomHorizontalFlip(flip),
            v2.PILToTensor(),
        ]
    )
    test = v2.Compose(
        [
            v2.RGB(),
            v2.Resize(resize, interpolation=mode, antialias=True),
            v2.CenterCrop(size),
            v2.PILToTensor(),
        ]
    )
    return Transforms(train, test)


def _thicken(pixels: torch.Tensor, amount: torch.Tensor) -> torch.Tensor:
    """Blends towards the 3 x 3 maximum (amount > 0) or minimum (amount < 0)."""
    # A minimum is the maximum of the negative picture. Beyond the edge is 0, the least value.
    thin = amount < 0
    signed = torch.where(thin, 255 - pixels, pixels)
    rows = functional.pad(signed, (1, 1, 1, 1))
    columns = torch.maximum(torch.maximum(rows[:, :, :-2], rows[:, :, 2:]), rows[:, :, 1:-1])
    most = torch.maximum(torch.maximum(columns[..., :-2], columns[..., 2:]), columns[..., 1:-1])
    return torch.lerp(pixels, torch.where(thin, 255 - most, most), amount.abs())


def _column(values: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(values).float().view(-1, 1, 1, 1)
