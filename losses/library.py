"""pytorch-metric-learning's losses under this package's call and checks."""

from __future__ import annotations

import torch
from torch import nn

from common.errors import UserError
from losses.checks import prepare


class LibraryLoss(nn.Module):
    """``loss(embeddings, labels) -> scalar`` around a loss of pytorch-metric-learning.

    It adds what all losses here keep to: float32 outside autocast, clear errors for NaN and for
    labels beyond the classes, and a zero that is connected to the graph where the batch holds no
    pair (the library returns one as well, but not for every loss).

    Args:
        loss: the library's loss; its class vectors are this module's parameters.
        num_classes: given where the loss holds class vectors, to check labels.
        balanced: the loss wants the batch grouped by class, with as many images of each (SmoothAP):
            it is sorted here, and an uneven batch is an error.
    """

    def __init__(
        self, loss: nn.Module, num_classes: int | None = None, balanced: bool = False
    ) -> None:
        super().__init__()
        self.loss = loss
        self.num_classes = num_classes
        self.balanced = balanced

    def forward(self, embeddings: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """The loss of a batch: embeddings (B, D), labels (B,) -> scalar.

        Raises:
            UserError: see :func:`losses.checks.prepare`; an uneven batch where ``balanced``.
        """
        embeddings, labels = prepare(embeddings, labels, self.num_classes)
        if self.balanced:
            embeddings, labels = _grouped(embeddings, labels)
        with torch.autocast(embeddings.device.type, enabled=False):
            value = self.loss(embeddings, labels)
        # Connected even where the library leaves embeddings out; 0 times finite numbers is 0.
        return value + 0 * embeddings.sum()


def _grouped(embeddings: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    counts = labels.unique(return_counts=True)[1]
    smallest, largest = int(counts.min()), int(counts.max())
    if smallest != largest:
        raise UserError(
            f"smooth_ap needs as many images of each class in a batch, this one has {smallest} to "
            f"{largest}; use the class-balanced sampler with small_classes: repeat or drop"
        )
    order = labels.argsort(stable=True)
    return embeddings[order], labels[order]
