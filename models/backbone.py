"""Backbones by name: our small ones for glyphs, and timm's."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

from torch import nn

from common.errors import UserError
from models.glyph_cnn import GlyphCNN
from models.timm_backbone import TimmBackbone

OURS = {"glyph_cnn": GlyphCNN}


def build_backbone(
    name: str,
    *,
    in_channels: int,
    image_size: int,
    pretrained: bool,
    weights: str | Path | None,
    **options: Any,
) -> nn.Module:
    """A backbone that gives feature maps or tokens; arguments as in :func:`models.build`."""
    if name not in OURS:
        return TimmBackbone(
            name,
            in_channels=in_channels,
            image_size=image_size,
            pretrained=pretrained or weights is not None,
            weights=weights,
            **options,
        )
    if pretrained or weights is not None:
        raise UserError(f"{name} is trained from scratch: there are no weights for it")
    known = inspect.signature(OURS[name]).parameters
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise UserError(f"{name} has no option {unknown[0]!r}; known: {', '.join(known)}")
    return OURS[name](in_channels=in_channels, **options)
