"""What a backbone wants to be fed with."""

from __future__ import annotations

from typing import NamedTuple


class InputSettings(NamedTuple):
    """What a backbone's weights were trained with.

    Attributes:
        size: (channels, height, width) of that training; other sizes may do, see the backbone.
        mean, std: per channel, in units of pixel / 255.
        interpolation: bilinear or bicubic, for resizing.
    """

    size: tuple[int, int, int]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    interpolation: str


def centred(in_channels: int, image_size: int) -> InputSettings:
    """For networks from scratch: mean and std one half, so that pixels are in [-1, 1]."""
    half = (0.5,) * in_channels
    return InputSettings((in_channels, image_size, image_size), half, half, "bilinear")
