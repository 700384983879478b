"""pytorch-metric-learning's losses under this package's call and checks."""

from __future__ import annotations

import torch
from torch import nn

from losses.checks import prepare


class LibraryLoss(nn.Module):
    """``loss(embeddings, labels) -> scalar`` around a loss of pytorch-metric-learning.

    It adds what all losses here keep to: float32 outside autocast, clear errors for NaN and for
    labels beyond the classes, and a zero that is connected to the graph where the batch holds no
    pair (the library returns one as well, but not for every loss).

    Args:
        loss: the library's loss; its class vectors are this module's parameters.
        num_classes: given where the loss holds class vectors, to check labels.
    """

    def __init__(self, loss: nn.Module, num_classes: int | None = None) -> None:
        super().__init__()
        self.loss = loss
        self.num_classes = num_classes

    def forward(self, embeddings: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """The loss of a batch: embeddings (B, D), labels (B,) -> scalar.

        Raises:
            UserError: see :func:`losses.checks.prepare`.
        """
        embeddings, labels = prepare(embeddings, labels, self.num_classes)
        with torch.autocast(embeddings.device.type, enabled=False):
            value = self.loss(embeddings, labels)
        # Connected even where the library leaves embeddings out; 0 times finite numbers is 0.
        return value + 0 * embeddings.sum()
