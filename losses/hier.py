"""HIER: a hierarchy of proxies learned without labels of the hierarchy, on the Poincaré ball.

Kim, Jeong, Kwak, "HIER: Metric Learning Beyond Class Labels via Hierarchical Regularization",
CVPR 2023, as its released code (tjddus9597/HIER-CVPR23) computes it.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import nn

from common import poincare
from common.errors import UserError
from losses.ancestors import ancestor_loss, reciprocal_neighbours, sample_triplets
from losses.checks import prepare_points
from losses.hyperbolic_proxy_anchor import HyperbolicProxyAnchorLoss


class HIERRegulariser(nn.Module):
    """Pulls related points to a common ancestor among proxies, away from the ancestor of all three.

    Similarity of two images: exp(-distance), + 1 where they share the label; of two proxies:
    exp(-distance). Images, and then the proxies themselves, form triplets (i, j, k): j a reciprocal
    nearest neighbour of i, k not one (:func:`losses.ancestors.sample_triplets`). The sum of both
    mean losses (:func:`losses.ancestors.ancestor_loss`) is the result.

    Where the released code and the paper or our notes of it differ, the code is followed: a point
    counts among its own nearest neighbours, so that ``neighbours`` leaves room for one less; k may
    be i itself; proxies are among their own candidates, at distance zero; gradients of the proxies
    carry the inverse metric of the ball. Left out: the code's 1e-5 added to norms and denominators.

    Args:
        embedding_dim: D.
        proxies: their number.
        neighbours: nearest neighbours, the point itself included; at most the batch is used.
        triplets: drawn for each anchor, with replacement.
        temperature: tau of the straight-through Gumbel-softmax, above 0.
        margin: delta, a distance.
        curvature, clip_radius: of the ball, and of the proxies' tangent vectors.

    Raises:
        UserError: an option out of range; in the call: see :func:`losses.checks.prepare_points`.
    """

    def __init__(
        self,
        embedding_dim: int,
        proxies: int = 512,
        neighbours: int = 20,
        triplets: int = 50,
        temperature: float = 0.1,
        margin: float = 0.1,
        curvature: float = 0.1,
        clip_radius: float = 2.3,
    ) -> None:
        super().__init__()
        if proxies < 2 or neighbours < 1 or triplets < 1:
            raise UserError("HIER needs proxies >= 2, neighbours >= 1 and triplets >= 1")
        if temperature <= 0 or curvature <= 0:
            raise UserError("HIER needs temperature > 0 and curvature > 0")
        self.neighbours, self.triplets = neighbours, triplets
        self.temperature, self.margin = temperature, margin
        self.curvature, self.clip_radius = curvature, clip_radius
        start = torch.randn(proxies, embedding_dim) * (0.9 * clip_radius / math.sqrt(embedding_dim))
        self.proxies = nn.Parameter(start)

    def forward(self, embeddings: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """The regulariser of a batch: points of the ball (B, D), labels (B,) -> scalar."""
        x, labels = prepare_points(embeddings, labels, self.curvature)
        with torch.autocast(x.device.type, enabled=False):
            # Float64: see the note on small distances in common/poincare.py.
            points = x.double()
            proxies = poincare.to_ball(self.proxies.double(), self.curvature, self.clip_radius)
            among_images = torch.exp(-self._distances(points.detach(), points.detach()))
            among_images += labels[:, None] == labels[None, :]
            to_proxies = self._distances(points, proxies)
            between = self._distances(proxies, proxies)
            among_proxies = torch.exp(-between.detach())
            value = self._term(among_images, to_proxies.to(x.dtype))
            return value + self._term(among_proxies, between.to(x.dtype))

    def _term(self, similarity: torch.Tensor, to_proxies: torch.Tensor) -> torch.Tensor:
        triplets = sample_triplets(
            reciprocal_neighbours(similarity, self.neighbours), self.triplets
        )
        return ancestor_loss(to_proxies, triplets, self.temperature, self.margin)

    def _distances(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return poincare.distance_matrix(x, y, self.curvature)


class HIERLoss(nn.Module):
    """Hyperbolic ProxyAnchor + ``weight`` times the HIER regulariser, as published.

    Args:
        num_classes, embedding_dim, margin, alpha, similarity: see
            :class:`HyperbolicProxyAnchorLoss`.
        curvature, clip_radius: of both.
        weight: of the regulariser.
        proxies, neighbours, triplets, temperature: see :class:`HIERRegulariser`.
        hierarchy_margin: its margin.
    """

    def __init__(
        self,
        num_classes: int,
        embedding_dim: int,
        margin: float = 0.1,
        alpha: float = 32.0,
        similarity: Literal["distance", "cosine"] = "distance",
        curvature: float = 0.1,
        clip_radius: float = 2.3,
        weight: float = 0.5,
        proxies: int = 512,
        neighbours: int = 20,
        triplets: int = 50,
        temperature: float = 0.1,
        hierarchy_margin: float = 0.1,
    ) -> None:
        super().__init__()
        ball = {"curvature": curvature, "clip_radius": clip_radius}
        self.proxy_anchor = HyperbolicProxyAnchorLoss(
            num_classes, embedding_dim, margin, alpha, similarity=similarity, **ball
        )
        self.hierarchy = HIERRegulariser(
            embedding_dim, proxies, neighbours, triplets, temperature, hierarchy_margin, **ball
        )
        self.weight = weight
        self._terms: dict[str, torch.Tensor] = {}

    def forward(self, embeddings: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """The loss of a batch: points of the ball (B, D), labels (B,) -> scalar."""
        base = self.proxy_anchor(embeddings, labels)
        added = self.hierarchy(embeddings, labels)
        self._terms = {"proxy_anchor": base.detach(), "hierarchy": added.detach()}
        return base + self.weight * added

    def terms(self) -> dict[str, torch.Tensor]:
        """The last call's terms: ``proxy_anchor``, and ``hierarchy`` before its weight."""
        return self._terms

    def parameter_groups(self) -> dict[str, list[nn.Parameter]]:
        """Class proxies and hierarchical ones, which the released recipe trains at other rates."""
        return {"proxies": [self.proxy_anchor.proxies], "hierarchy": [self.hierarchy.proxies]}
