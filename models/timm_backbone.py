"""Any timm network as a backbone: no classifier, its own input settings, pinned weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import timm
import torch
from torch import nn

from common.errors import UserError
from models.embedding_model import InputSettings
from models.pinned import PINNED
from models.weights import load_weights


class TimmBackbone(nn.Module):
    """A timm network up to its features: a map (B, F, H, W) or tokens (B, T, F).

    Args:
        name: a short name in :mod:`models.pinned`, or a timm name, best with its weight tag.
        in_channels, image_size: of the images; a transformer's position embeddings are resampled.
        pretrained: load the weights of the tag, from ``weights`` or through timm.
        weights: a local file, see :func:`models.weights.load_weights`.
        options: timm's own, for instance ``drop_path_rate``.

    Raises:
        UserError: timm knows no such network or option; weights missing and not to be downloaded.
    """

    def __init__(
        self,
        name: str,
        *,
        in_channels: int = 3,
        image_size: int = 224,
        pretrained: bool = False,
        weights: str | Path | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        full_name = PINNED.get(name, name)
        if not timm.is_model(full_name):
            close = ", ".join(timm.list_models(f"*{name.split('.')[0][:12]}*")[:4])
            raise UserError(
                f"timm has no network {full_name!r}" + (f"; near: {close}" * bool(close))
            )
        if "patch" in full_name:
            options.setdefault("img_size", image_size)
        download = pretrained and weights is None
        try:
            self.network = timm.create_model(
                full_name, pretrained=download, num_classes=0, in_chans=in_channels, **options
            )
        except TypeError as error:
            raise UserError(f"{full_name}: option not known to timm ({error})") from None
        except Exception as error:  # the hub client raises many kinds without a network
            if not download:
                raise
            reason = str(error).splitlines()[0][:100]
            raise UserError(
                f"the weights of {full_name} could not be had ({reason}): fetch them elsewhere and "
                "pass --weights FILE, or set model.options.pretrained=false for random weights"
            ) from None
        if weights is not None:
            load_weights(self.network, weights)
        self.features: int = self.network.num_features
        config = self.network.pretrained_cfg
        self.input = InputSettings(
            tuple(config["mean"]), tuple(config["std"]), config.get("interpolation", "bilinear")
        )
        self.patch_embedding: nn.Module | None = getattr(self.network, "patch_embed", None)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Feature map (B, F, H, W), or tokens (B, T, F) with the class token first."""
        return self.network.forward_features(images)
