"""Decodes image files of every kind that data sets really hold, always to RGB, 8 bits."""

from __future__ import annotations

import os
import struct
import zlib
from pathlib import Path
from typing import BinaryIO

import numpy as np
from PIL import Image, ImageOps

from common.errors import UserError

# What Pillow raises on damaged files, besides OSError: broken PNG chunks are a SyntaxError.
UNREADABLE = (
    OSError,
    SyntaxError,
    ValueError,
    EOFError,
    TypeError,
    IndexError,
    struct.error,
    zlib.error,
    Image.DecompressionBombError,
)


def read_image(
    path: str | Path | BinaryIO, decode_side: int | None = None, name: str | None = None
) -> Image.Image:
    """Opens and decodes one file, whatever its suffix says.

    - EXIF rotation is applied, CMYK and palette images are converted.
    - Of an animation, the first frame counts.
    - 16-bit grey is scaled from 0..65535 to 0..255, floating point from its own range.
    - Transparent pixels are laid over white.

    Args:
        path: the file, or a stream of it.
        decode_side: a JPEG may be decoded at a half, a quarter or an eighth of its size as long as
            both sides keep at least so many pixels. Much faster for large photographs; the image
            that comes out is smaller than the file's, and not by a fixed factor.
        name: what to call it in messages; by default the path.

    Returns:
        An image of mode RGB.

    Raises:
        UserError: the file is missing, empty or damaged; names it.
    """
    try:
        with Image.open(path) as image:
            if decode_side is not None:
                image.draft("RGB", (decode_side, decode_side))
            image.load()
            return _to_rgb(ImageOps.exif_transpose(image))
    except FileNotFoundError as error:
        raise UserError(f"{path} is missing; verify or prepare the data set") from error
    except UNREADABLE as error:
        reason = "the file is empty" if _is_empty(path) else _reason(error)
        raise UserError(
            f"{name or path} cannot be decoded ({reason}); fetch it anew, or skip broken images "
            "(--skip-broken; in training data.broken=skip)"
        ) from error


def format_of(path: str | Path) -> str:
    """The format that the content shows, e.g. ``JPEG``, without decoding; empty if unknown."""
    try:
        with Image.open(path) as image:
            return image.format or ""
    except UNREADABLE:
        return ""


def _to_rgb(image: Image.Image) -> Image.Image:
    if image.mode in ("I", "F") or image.mode.startswith("I;16"):
        image = _to_8_bits(image)
    if image.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in image.info:
        image = image.convert("RGBA")
        ground = Image.new("RGBA", image.size, "white")
        image = Image.alpha_composite(ground, image)
    return image if image.mode == "RGB" else image.convert("RGB")


def _to_8_bits(image: Image.Image) -> Image.Image:
    # Pillow's own conversion to 8 bits clips instead of scaling.
    values = np.asarray(image, dtype=np.float64)
    if image.mode == "F":
        low, high = float(np.nanmin(values)), float(np.nanmax(values))
    else:
        low, high = 0.0, 65535.0
    scaled = (values - low) * (255 / (high - low) if high > low else 0)
    return Image.fromarray(np.nan_to_num(scaled).round().clip(0, 255).astype(np.uint8))


def _is_empty(path: str | Path | BinaryIO) -> bool:
    return isinstance(path, str | Path) and os.path.isfile(path) and os.path.getsize(path) == 0


def _reason(error: BaseException) -> str:
    text = str(error).splitlines()[0] if str(error) else type(error).__name__
    # Pillow repeats the path, which the message names already.
    return "not an image" if text.startswith("cannot identify image file") else text
