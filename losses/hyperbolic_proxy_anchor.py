"""ProxyAnchor on the Poincaré ball, the base loss of HIER.

Kim, Kim, Cho, Kwak, "Proxy Anchor Loss for Deep Metric Learning", CVPR 2020, with the similarity of
Kim, Jeong, Kwak, "HIER: Metric Learning Beyond Class Labels via Hierarchical Regularization",
CVPR 2023.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import nn

from common import poincare
from common.errors import UserError
from common.geometry import normalise
from losses.checks import prepare, prepare_points


class HyperbolicProxyAnchorLoss(nn.Module):
    """Proxies and embeddings on the ball, s = -geodesic distance::

        L = mean over proxies p with images in the batch of
                log(1 + sum over their images x of exp(-alpha (s(x, p) - margin)))
          + mean over all proxies p of
                log(1 + sum over the other images x of exp(alpha (s(x, p) + margin)))

    The paper of HIER ranks by the distance, and so does this loss by default. Its released code
    takes the cosine of the points instead (``similarity="cosine"``): the ball's radius then has no
    part in this loss.

    Args:
        num_classes, embedding_dim: C and D; labels run from 0 to C - 1.
        margin, alpha: in units of s, and of 1/s.
        curvature: c > 0 of the ball.
        clip_radius: length at which the proxies' tangent vectors are clipped.
        similarity: distance or cosine.

    Raises:
        UserError: an unknown similarity; in the call: see :func:`losses.checks.prepare_points`.
    """

    def __init__(
        self,
        num_classes: int,
        embedding_dim: int,
        margin: float = 0.1,
        alpha: float = 32.0,
        curvature: float = 0.1,
        clip_radius: float = 2.3,
        similarity: Literal["distance", "cosine"] = "distance",
    ) -> None:
        super().__init__()
        if similarity not in ("distance", "cosine"):
            raise UserError(f"similarity {similarity!r} is unknown; choose distance or cosine")
        self.margin, self.alpha = margin, alpha
        self.curvature, self.clip_radius = curvature, clip_radius
        self.similarity = similarity
        # Vectors of the tangent space at the origin, drawn as the published ProxyAnchor does.
        self.proxies = nn.Parameter(torch.empty(num_classes, embedding_dim))
        nn.init.kaiming_normal_(self.proxies, mode="fan_out")

    def forward(self, embeddings: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """The loss of a batch: points of the ball (B, D), labels (B,) -> scalar."""
        num_classes = len(self.proxies)
        if self.similarity == "cosine":
            x, labels = prepare(embeddings, labels, num_classes)
        else:
            x, labels = prepare_points(embeddings, labels, self.curvature, num_classes)
        with torch.autocast(x.device.type, enabled=False):
            s = self._similarities(x)
            own = labels[:, None] == torch.arange(num_classes, device=x.device)
            pull = _log_one_plus_sum(-self.alpha * (s - self.margin), own)
            push = _log_one_plus_sum(self.alpha * (s + self.margin), ~own)
            return pull.sum() / own.any(0).sum() + push.mean()

    def _similarities(self, x: torch.Tensor) -> torch.Tensor:
        """(B, D) -> (B, C), in the precision of ``x``."""
        if self.similarity == "cosine":
            return normalise(x) @ normalise(self.proxies.to(x)).T
        # Float64: see the note on small distances in common/poincare.py.
        proxies = poincare.to_ball(self.proxies.double(), self.curvature, self.clip_radius)
        return -poincare.distance_matrix(x.double(), proxies, self.curvature).to(x.dtype)


def _log_one_plus_sum(exponents: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """log(1 + sum over masked rows of exp), (B, C) -> (C,), without overflow; 0 where none."""
    one = exponents.new_zeros(1, exponents.shape[1])
    return torch.cat([one, exponents.masked_fill(~mask, -torch.inf)]).logsumexp(0)
