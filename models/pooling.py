"""From a feature map (B, F, H, W) or tokens (B, T, F) to one vector (B, F) for each image."""

from __future__ import annotations

import torch
from torch import nn

from common.errors import UserError


class AveragePooling(nn.Module):
    """Mean over positions; over all tokens but the class token for transformers."""

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return features.mean((2, 3)) if features.ndim == 4 else features[:, 1:].mean(1)


class AverageMaxPooling(nn.Module):
    """Mean plus maximum over positions, as in the Proxy-Anchor code (resnet.py)."""

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        _require_map(features, "average_max")
        return features.mean((2, 3)) + features.amax((2, 3))


class GeMPooling(nn.Module):
    """Generalised mean (mean of x^p)^(1/p) with a learnable p that starts at 3.

    Radenovic et al. 2018; in float32 outside autocast, since x^3 overflows in half precision.
    """

    def __init__(self, p: float = 3.0, epsilon: float = 1e-6) -> None:
        super().__init__()
        self.p = nn.Parameter(torch.tensor(p))
        self.epsilon = epsilon

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        _require_map(features, "gem")
        with torch.autocast(features.device.type, enabled=False):
            powers = features.float().clamp(min=self.epsilon).pow(self.p)
            return powers.mean((2, 3)).pow(1 / self.p)


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
    "token": TokenPooling,
}


def _require_map(features: torch.Tensor, name: str) -> None:
    if features.ndim != 4:
        raise UserError(f"pooling {name!r} needs a convolutional backbone; use token or average")
