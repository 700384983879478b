"""A base loss plus a regulariser, with the value of each term kept for the log."""

from __future__ import annotations

import torch
from torch import nn

from common.errors import UserError
from common.geometry import normalise
from losses.checks import prepare
from losses.recall_at_k import RecallAtKLoss
from losses.simix import SiMix
from losses.tcm import TCMLoss


class CombinedLoss(nn.Module):
    """``base(embeddings, labels) + regulariser(embeddings, labels)``.

    Args:
        base: any loss of this call. If it has a ``terms()`` of its own, they are logged too.
        regulariser: TCM, or None.
        simix_seed: mix virtual points into the batch of the base loss, which must be RS@K (not
            into TCM's); None: do not.

    Raises:
        UserError: SiMix with another base loss, which would put the virtual points back onto the
            sphere; in the call: see :func:`losses.checks.prepare`.
    """

    def __init__(
        self,
        base: nn.Module,
        regulariser: TCMLoss | None = None,
        simix_seed: int | None = None,
    ) -> None:
        super().__init__()
        if simix_seed is not None and not isinstance(base, RecallAtKLoss):
            raise UserError("loss.simix is defined for recall_at_k only; set loss.simix=false")
        self.base = base
        self.regulariser = regulariser
        self.mix = None if simix_seed is None else SiMix(simix_seed)
        self._terms: dict[str, torch.Tensor] = {}

    def forward(self, embeddings: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Sum of the terms: embeddings (B, D), labels (B,) -> scalar; float32 outside autocast."""
        embeddings, labels = prepare(embeddings, labels)
        with torch.autocast(embeddings.device.type, enabled=False):
            if self.mix is None:
                value = self.base(embeddings, labels)
            else:
                virtual = self.mix(normalise(embeddings), labels)
                value = self.base(*virtual, normalise=False)
            self._terms = {"base": value.detach()}
            if hasattr(self.base, "terms"):
                self._terms |= self.base.terms()
            if self.regulariser is not None:
                added = self.regulariser(embeddings, labels)
                self._terms |= {"tcm": added.detach(), **self.regulariser.last_stats}
                value = value + added
        return value

    def terms(self) -> dict[str, torch.Tensor]:
        """The last call's terms, detached scalars.

        ``base``, the base loss's own, and with TCM ``tcm`` and its active-pair statistics.
        """
        return self._terms

    def parameter_groups(self) -> dict[str, list[nn.Parameter]]:
        """The class vectors as ``proxies``; HIER's hierarchy apart, as ``hierarchy``."""
        if hasattr(self.base, "parameter_groups"):
            return self.base.parameter_groups()
        return {"proxies": [*self.parameters()]}
