"""The distances that the evaluation knows, each as a monotone function of a score.

The passes handle scores alone, larger is nearer: the inner product of a left and a right vector,
so that one matrix product serves every geometry. For unit vectors it is the cosine similarity.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from common.errors import UserError
from common.geometry import euclidean_from_similarity, normalise, similarity_from_euclidean


@dataclass(frozen=True)
class Geometry:
    """A distance: vectors for the score, and the maps between score and distance.

    Attributes:
        name: ``euclidean``, ``cosine`` or ``poincare``.
        vectors: embeddings (N, D) -> (left, right), each (N, D'); score_ij = left_i . right_j.
        to_distance, to_score: elementwise and monotone decreasing, for arrays.
        self_score: the score at distance 0, an upper bound of all scores.
    """

    name: str
    vectors: Callable[[torch.Tensor], tuple[torch.Tensor, torch.Tensor]]
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
        return Geometry(
            name, _unit_vectors, euclidean_from_similarity, similarity_from_euclidean, 1.0
        )
    if name == "cosine":
        return Geometry(name, _unit_vectors, lambda s: 1 - s, lambda d: 1 - d, 1.0)
    if name == "poincare":
        if curvature <= 0:
            raise UserError(f"curvature={curvature}: it must be above 0")
        root = curvature**0.5
        return Geometry(
            name,
            lambda x: _ball_vectors(x, curvature),
            lambda s: np.arccosh(1 + 2 * np.maximum(0, -s)) / root,
            lambda d: -(np.cosh(d * root) - 1) / 2,
            0.0,
        )
    raise UserError(f"distance {name!r} is unknown; choose euclidean, cosine or poincare")


def _unit_vectors(embeddings: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    unit = normalise(embeddings)
    return unit, unit


def _ball_vectors(x: torch.Tensor, c: float) -> tuple[torch.Tensor, torch.Tensor]:
    """-u as an inner product: (|x|^2 + |y|^2 - 2 x.y) is bilinear in (x, |x|^2, 1)."""
    square = (x * x).sum(1, keepdim=True)
    if bool((c * square >= 1).any()):
        row = int((c * square[:, 0] >= 1).nonzero()[0])
        raise UserError(f"row {row} lies outside the Poincaré ball of curvature {c}")
    factor = 1 / (1 - c * square)
    one = torch.ones_like(square)
    left = factor * torch.cat([2 * c * x, -c * square, -c * one], 1)
    right = factor * torch.cat([x, one, square], 1)
    return left, right
