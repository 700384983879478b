"""OneFace, in our reading: ArcFace plus the threshold consistency penalty.

Liu et al., "OneFace: One Threshold for All", ECCV 2022; what is known of it and what we guessed
stands in :mod:`losses.threshold_consistency`.
"""

from __future__ import annotations

import torch
from torch import nn

from losses.registry import build
from losses.threshold_consistency import ThresholdConsistencyPenalty


class OneFaceLoss(nn.Module):
    """``ArcFace + weight * penalty``; name its rows "OneFace (our reading)".

    Args:
        num_classes, embedding_dim: C and D; labels run from 0 to C - 1.
        margin, scale: ArcFace's, the margin in radians.
        weight: of the penalty.
        domains, queue_size, far, momentum, temperature: see
            :class:`losses.threshold_consistency.ThresholdConsistencyPenalty`.
    """

    def __init__(
        self,
        num_classes: int,
        embedding_dim: int,
        margin: float = 0.5,
        scale: float = 64.0,
        weight: float = 1.0,
        domains: int = 8,
        queue_size: int = 8192,
        far: float = 1e-4,
        momentum: float = 0.99,
        temperature: float = 0.05,
    ) -> None:
        super().__init__()
        self.arcface = build("arcface", num_classes, embedding_dim, margin=margin, scale=scale)
        self.penalty = ThresholdConsistencyPenalty(
            embedding_dim, domains, queue_size, far, momentum, temperature
        )
        self.weight = weight
        self._terms: dict[str, torch.Tensor] = {}

    def forward(self, embeddings: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """The loss of a batch: embeddings (B, D), labels (B,) -> scalar.

        Raises:
            UserError: see :func:`losses.checks.prepare`.
        """
        base = self.arcface(embeddings, labels)
        added = self.penalty(embeddings, labels)
        self._terms = {"arcface": base.detach(), "threshold_penalty": added.detach()}
        return base + self.weight * added

    def terms(self) -> dict[str, torch.Tensor]:
        """The last call's terms: ``arcface``, and ``threshold_penalty`` before its weight."""
        return self._terms
