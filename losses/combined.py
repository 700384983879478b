"""A base loss plus a regulariser, with the value of each term kept for the log."""

from __future__ import annotations

import torch
from torch import nn

from losses.simix import SiMix
from losses.tcm import TCMLoss


class CombinedLoss(nn.Module):
    """``base(embeddings, labels) + regulariser(embeddings, labels)``.

    Args:
        base: any loss of this call.
        regulariser: TCM, or None.
        simix_seed: mix virtual points into the base loss's batch (not into TCM's); None: do not.
    """

    def __init__(
        self,
        base: nn.Module,
        regulariser: TCMLoss | None = None,
        simix_seed: int | None = None,
    ) -> None:
        super().__init__()
        self.base = base
        self.regulariser = regulariser
        self.mix = None if simix_seed is None else SiMix(simix_seed)
        self._terms: dict[str, torch.Tensor] = {}

    def forward(self, embeddings: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Sum of the terms; the base loss, too, runs in float32 outside autocast."""
        with torch.autocast(embeddings.device.type, enabled=False):
            if embeddings.dtype != torch.float64:
                embeddings = embeddings.float()
            mixed = (embeddings, labels) if self.mix is None else self.mix(embeddings, labels)
            value = self.base(*mixed)
            self._terms = {"base": value.detach()}
            if self.regulariser is not None:
                added = self.regulariser(embeddings, labels)
                self._terms |= {"tcm": added.detach(), **self.regulariser.last_stats}
                value = value + added
        return value

    def terms(self) -> dict[str, torch.Tensor]:
        """The last call's terms: ``base``, and with TCM ``tcm`` and its active-pair statistics."""
        return self._terms
