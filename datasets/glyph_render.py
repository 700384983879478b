"""Draws characters in a typeface as 32 x 32 pictures of 16 grey levels."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from fontTools.ttLib import TTFont
from PIL import Image, ImageFont

SIDE = 32  # pixels
MARGIN = 2  # pixels left free on each side
LEVELS = 16
_DRAWN_AT = 112  # pixels per em: large enough that hinting and rounding do not show at SIDE
_SHARED = 4  # at most so many characters of a font may have one picture
_FAINT = 0.12  # share of the full range; a picture without a brighter pixel is blank


def render(font: Path, face: int, characters: Iterable[str]) -> dict[str, np.ndarray]:
    """The characters that the font has, as uint8 levels 0..15 of shape (32, 32), ink bright.

    The ink is cropped, scaled until its longer side fills the picture up to the margin, and
    centred: position and size say nothing about the typeface, and nothing is clipped. Characters
    that the font maps to no glyph, to the fallback glyph or to a blank are left out; so are those
    whose picture more than four of the ``characters`` have: some fonts draw boxes under the names
    of characters that they lack.

    Raises:
        OSError: the file is not a font.
    """
    with TTFont(font, fontNumber=face, lazy=True) as tables:
        glyph_names = tables.getBestCmap() or {}
        fallback = tables.getGlyphOrder()[0]
    known = [c for c in characters if glyph_names.get(ord(c), fallback) != fallback]
    drawer = ImageFont.truetype(
        str(font), _DRAWN_AT, index=face, layout_engine=ImageFont.Layout.BASIC
    )
    pictures = {c: picture for c in known if (picture := _draw(drawer, c)) is not None}
    times: dict[bytes, int] = {}
    for picture in pictures.values():
        times[picture.tobytes()] = times.get(picture.tobytes(), 0) + 1
    return {c: picture for c, picture in pictures.items() if times[picture.tobytes()] <= _SHARED}


def _draw(drawer: ImageFont.FreeTypeFont, character: str) -> np.ndarray | None:
    mask = drawer.getmask(character, mode="L")
    if 0 in mask.size:
        return None
    ink = Image.frombytes("L", mask.size, bytes(mask))
    box = ink.getbbox()
    if box is None:
        return None
    ink = ink.crop(box)
    room = SIDE - 2 * MARGIN
    scale = room / max(ink.size)
    width, height = (max(1, round(side * scale)) for side in ink.size)
    filter_ = Image.Resampling.BOX if scale < 1 else Image.Resampling.BILINEAR
    ink = ink.resize((width, height), filter_)
    picture = Image.new("L", (SIDE, SIDE))
    picture.paste(ink, ((SIDE - width) // 2, (SIDE - height) // 2))
    levels = (np.asarray(picture, dtype=np.uint16) * (LEVELS - 1) + 127) // 255
    return levels.astype(np.uint8) if levels.max() > _FAINT * (LEVELS - 1) else None
