"""Distances between embeddings, as functions of the cosine similarity s of unit vectors."""

from __future__ import annotations

import torch
from torch.nn import functional

NORM_EPSILON = 1e-12


def normalise(embeddings: torch.Tensor) -> torch.Tensor:
    """L2-normalises rows, (N, D) -> (N, D). A zero row stays zero: its s to all others is 0."""
    return functional.normalize(embeddings, dim=-1, eps=NORM_EPSILON)


def euclidean_from_similarity(s):
    """d = sqrt(2 - 2 s), in [0, 2]; tensors or arrays. Rounding above s = 1 gives d = 0."""
    return (2 - 2 * s).clip(min=0) ** 0.5


def similarity_from_euclidean(d):
    """s = 1 - d^2 / 2, the inverse of :func:`euclidean_from_similarity`."""
    return 1 - d**2 / 2
