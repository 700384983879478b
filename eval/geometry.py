"""The distances that the evaluation knows, each as a monotone function of a score.

The passes handle scores alone; larger is nearer. Every geometry writes its score as

    score(x, y) = f(x) f(y) (a x.y + g(x) + g(y)),

so that one matrix product serves them all. For unit vectors it is the cosine similarity.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from common.errors import UserError
from common.geometry import NORM_EPSILON, euclidean_from_similarity, similarity_from_euclidean


@dataclass(frozen=True)
class Geometry:
    """A distance: the terms of its score, and the maps between score and distance.

    Attributes:
        name: ``euclidean``, ``cosine`` or ``poincare``.
        slope: a.
        terms: float64 embeddings (N, D) -> f (N,) and g (N,).
        spherical: g is 0, and the score is the inner product of unit vectors.
        to_distance, to_score: elementwise and monotone decreasing, for arrays.
        self_score: the score at distance 0, an upper bound of all scores.
    """

    name: str
    slope: float
    terms: Callable[[torch.Tensor], tuple[torch.Tensor, torch.Tensor]]
    spherical: bool
    to_distance: Callable[[np.ndarray], np.ndarray]
    to_score: Callable[[np.ndarray], np.ndarray]
    self_score: float


def geometry(name: str, curvature: float = 0.1) -> Geometry:
    """The geometry of that name.

    - ``euclidean``: d = sqrt(2 - 2 s) between L2-normalised embeddings, s their inner product.
    - ``cosine``: d = 1 - s.
    - ``poincare``: geodesic distance in the ball of curvature -c, of embeddings as they are:
      d = arccosh(1 + 2 u) / sqrt(c), u = c |x - y|^2 / ((1 - c |x|^2) (1 - c |y|^2)); score -u.

    Raises:
        UserError: another name, or a curvature that is not positive.
    """
    if name == "euclidean":
        to_distance, to_score = euclidean_from_similarity, similarity_from_euclidean
        return Geometry(name, 1.0, _unit_terms, True, to_distance, to_score, 1.0)
    if name == "cosine":
        return Geometry(name, 1.0, _unit_terms, True, lambda s: 1 - s, lambda d: 1 - d, 1.0)
    if name == "poincare":
        if not curvature > 0:
            raise UserError(f"curvature={curvature}: it must be above 0")
        root = curvature**0.5
        return Geometry(
            name,
            2 * curvature,
            lambda x: _ball_terms(x, curvature),
            False,
            lambda s: np.arccosh(1 + 2 * np.maximum(0, -s)) / root,
            lambda d: -(np.cosh(d * root) - 1) / 2,
            0.0,
        )
    raise UserError(f"distance {name!r} is unknown; choose euclidean, cosine or poincare")


def _unit_terms(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """f = 1 / |x|. A zero vector has score 0 with all others."""
    norm = x.norm(dim=1)
    return 1 / norm.clamp(min=NORM_EPSILON), torch.zeros_like(norm)


def _ball_terms(x: torch.Tensor, c: float) -> tuple[torch.Tensor, torch.Tensor]:
    """f = 1 / (1 - c |x|^2), g = -c |x|^2: c |x - y|^2 is 2 c x.y + g(x) + g(y), negated.

    Outside of the ball f is not positive: the caller, who knows the rows' numbers, refuses that.
    """
    square = c * (x * x).sum(1)
    return 1 / (1 - square), -square
