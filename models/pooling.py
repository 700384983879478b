"""From a feature map (B, F, H, W) or tokens (B, T, F) to one vector (B, F) for each image."""

from __future__ import annotations

import torch
from torch import nn

from common.errors import UserError


class AveragePooling(nn.Module):
    """Mean over positions; for transformers over all tokens but the first ``prefix_tokens``."""

    def __init__(self, prefix_tokens: int = 1) -> None:
        super().__init__()
        self.prefix_tokens = prefix_tokens

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        if features.ndim == 4:
            return features.mean((2, 3))
        return features[:, self.prefix_tokens :].mean(1)


class AverageMaxPooling(nn.Module):
    """Mean plus maximum over positions, as in the Proxy-Anchor code (resnet.py)."""

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        _require_map(features, "average_max")
        return features.mean((2, 3)) + features.amax((2, 3))


class GeMPooling(nn.Module):
    """Generalised mean (mean of x^p)^(1/p) with a learnable p that starts at 3.

    Radenovic et al. 2018, with values below ``epsilon`` raised to it. At least float32 and outside
    autocast, since x^3 overflows in half precision.
    """

    def __init__(self, p: float = 3.0, epsilon: float = 1e-6) -> None:
        super().__init__()
        self.p = nn.Parameter(torch.tensor(p))
        self.epsilon = epsilon

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        _require_map(features, "gem")
        with torch.autocast(features.device.type, enabled=False):
            wide = features.to(torch.promote_types(features.dtype, torch.float32))
            powers = wide.clamp(min=self.epsilon).pow(self.p)
            return powers.mean((2, 3)).pow(1 / self.p)


class FlattenPooling(nn.Module):
    """All positions of the map one after the other, (B, F H W), as in ArcFace's iResNet."""

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        _require_map(features, "flatten")
        return features.flatten(1)


class TokenPooling(nn.Module):
    """The class token of a transformer."""

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        if features.ndim != 3:
            raise UserError("pooling 'token' needs a transformer; use average, average_max or gem")
        return features[:, 0]


POOLINGS = {
    "average": AveragePooling,
    "average_max": AverageMaxPooling,
    "gem": GeMPooling,
    "flatten": FlattenPooling,
    "token": TokenPooling,
}


def build_pooling(name: str, backbone: nn.Module) -> tuple[nn.Module, int]:
    """A pooling for ``backbone`` and the width of what it gives.

    Raises:
        UserError: unknown name, or a pooling that this backbone cannot do.
    """
    if name not in POOLINGS:
        raise UserError(f"pooling {name!r} is unknown; choose from {', '.join(POOLINGS)}")
    prefix_tokens = getattr(backbone, "prefix_tokens", None)
    if prefix_tokens is None and name == "token":
        raise UserError("pooling 'token' needs a transformer; use average, average_max or gem")
    if prefix_tokens is not None and name not in ("token", "average"):
        raise UserError(f"pooling {name!r} needs a convolutional backbone; use token or average")
    if name == "token" and prefix_tokens == 0:
        raise UserError("pooling 'token': this transformer has no class token; use average")
    if name == "average":
        return AveragePooling(prefix_tokens or 0), backbone.features
    if name == "flatten":
        side = getattr(backbone, "map_size", None)
        if side is None:
            raise UserError("pooling 'flatten' needs iresnet50 or glyph_cnn; use average or gem")
        return FlattenPooling(), backbone.features * side * side
    return POOLINGS[name](), backbone.features


def _require_map(features: torch.Tensor, name: str) -> None:
    if features.ndim != 4:
        raise UserError(f"pooling {name!r} needs a convolutional backbone; use token or average")
