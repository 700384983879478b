"""From the pooled vector to the embedding: a linear layer, then perhaps onto the Poincaré ball."""

from __future__ import annotations

import torch
from torch import nn

from common.errors import UserError
from common.poincare import to_ball

KINDS = ("linear", "hyperbolic")
INITIALISATIONS = ("default", "kaiming", "orthogonal")


def build_head(
    kind: str,
    features: int,
    embedding_dim: int,
    *,
    init: str = "default",
    batch_norm: bool = False,
    curvature: float = 0.1,
    clip_radius: float = 2.3,
) -> nn.Sequential:
    """A head (B, features) -> (B, embedding_dim); arguments as in :func:`models.build`.

    Raises:
        UserError: unknown kind or initialisation, or a curvature or radius that is not positive.
    """
    if kind not in KINDS:
        raise UserError(f"head={kind!r} is unknown; choose from {', '.join(KINDS)}")
    linear = nn.Linear(features, embedding_dim)
    if init not in INITIALISATIONS:
        raise UserError(f"head_init={init!r} is unknown; choose from {', '.join(INITIALISATIONS)}")
    if init != "default":
        nn.init.zeros_(linear.bias)
        if init == "kaiming":
            nn.init.kaiming_normal_(linear.weight, mode="fan_out")
        else:
            nn.init.orthogonal_(linear.weight)
    head = nn.Sequential(linear)
    if batch_norm:
        norm = nn.BatchNorm1d(embedding_dim)
        # InsightFace holds the scale at 1 and trains the shift alone.
        norm.weight.requires_grad_(False)
        head.append(norm)
    if kind == "hyperbolic":
        head.append(ToPoincare(curvature, clip_radius))
    return head


class ToPoincare(nn.Module):
    """Vectors (B, D) onto the Poincaré ball of curvature c, as in HIER's code.

    Norms above ``clip_radius`` are clipped to it, then the exponential map at the origin; the
    gradient of the points is rescaled by the metric there (see :func:`common.poincare.to_ball`).
    At least float32 and outside autocast: near the boundary half precision has no digits left.
    """

    def __init__(self, curvature: float = 0.1, clip_radius: float = 2.3) -> None:
        super().__init__()
        if curvature <= 0 or clip_radius <= 0:
            raise UserError(
                f"curvature={curvature}, clip_radius={clip_radius}: both must be above 0"
            )
        self.curvature = curvature
        self.clip_radius = clip_radius

    def forward(self, tangent: torch.Tensor) -> torch.Tensor:
        """Points (B, D) with curvature * |x|^2 < 1."""
        with torch.autocast(tangent.device.type, enabled=False):
            wide = tangent.to(torch.promote_types(tangent.dtype, torch.float32))
            return to_ball(wide, self.curvature, self.clip_radius)

    def extra_repr(self) -> str:
        return f"curvature={self.curvature}, clip_radius={self.clip_radius}"
