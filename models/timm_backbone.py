"""Any timm network as a backbone: no classifier, its own input settings, pinned weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import timm
import torch
from torch import nn

from common.errors import UserError
from models.hub import check_hub, weights_missing
from models.input_settings import InputSettings
from models.pinned import PINNED
from models.weights import RANDOM, Origin, load_file_into
from models.wheel import load_wheel_into


class TimmBackbone(nn.Module):
    """A timm network up to its features: a map (B, F, H, W) or tokens (B, T, F).

    Args:
        name: a short name in :mod:`models.pinned`, or a timm name, best with its weight tag.
        in_channels, image_size: of the images; a transformer's position embeddings are resampled
            from downloaded weights, and must fit where the weights come from a file.
        pretrained: True (download), "wheel", or False or "random"; as in :func:`models.build`.
        weights: a local file, see :func:`models.weights.load_file_into`.
        options: timm's own, for instance ``drop_path_rate``.

    Raises:
        UserError: timm knows no such network or option; weights missing and not to be downloaded;
            neither weights nor ``pretrained`` given.
    """

    def __init__(
        self,
        name: str,
        *,
        in_channels: int = 3,
        image_size: int = 224,
        pretrained: bool | str | None = None,
        weights: str | Path | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        tag = PINNED[name].tag if name in PINNED else name
        config = _config(tag)
        if pretrained is None and weights is None:
            raise UserError(
                f"{name}: say where its weights come from: pretrained=true (download), "
                "pretrained=random, or --weights FILE"
            )
        if config.fixed_input_size:
            options.setdefault("img_size", image_size)
        options |= {"num_classes": 0, "in_chans": in_channels}
        download = pretrained is True and weights is None
        if download:
            check_hub(tag, config)
        self.network = _create(tag, options, download=download)
        if weights is not None:
            self.origin = load_file_into(self.network, weights)
        elif pretrained == "wheel":
            self.origin = load_wheel_into(self.network, tag)
        else:
            self.origin = Origin(tag) if pretrained is True else RANDOM
        self.features: int = self.network.num_features
        self.input = InputSettings(
            tuple(config.input_size), tuple(config.mean), tuple(config.std), config.interpolation
        )
        self.prefix_tokens: int | None = getattr(self.network, "num_prefix_tokens", None)
        # Swin and its kin put the channels last.
        self._channels_last = getattr(self.network, "output_fmt", "NCHW") == "NHWC"

    @property
    def patch_embedding(self) -> nn.Module | None:
        """A transformer's first layer. No attribute: its weights would be saved under two names."""
        return getattr(self.network, "patch_embed", None)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Feature map (B, F, H, W), or tokens (B, T, F) with the class token first."""
        features = self.network.forward_features(images)
        return features.permute(0, 3, 1, 2) if self._channels_last else features


def _config(tag: str) -> timm.models.PretrainedCfg:
    """What timm knows of a network and its weights: input size, mean, std."""
    try:
        config = timm.get_pretrained_cfg(tag)
    except RuntimeError as error:  # the network is known, the tag is not
        names = timm.list_pretrained(tag.split(".")[0] + ".*")
        known = ", ".join(name.split(".", 1)[1] for name in names)
        raise UserError(f"timm: {error} Known: {known}") from None
    if config is None or not timm.is_model(tag):
        close = ", ".join(timm.list_models(f"*{tag.split('.')[0][:12]}*")[:4])
        raise UserError(f"timm has no network {tag!r}" + (f"; near: {close}" * bool(close)))
    return config


def _create(tag: str, options: dict[str, Any], *, download: bool) -> nn.Module:
    """The network with random or downloaded weights."""
    try:
        return timm.create_model(tag, pretrained=download, **options)
    except TypeError as error:
        raise UserError(f"{tag}: option not known to timm ({error})") from None
    except AssertionError as error:
        raise UserError(f"{tag}: timm refuses these options ({error})") from None
    except Exception as error:  # the hub client raises many kinds without a network
        if not download:
            raise
        raise weights_missing(tag, error) from None
