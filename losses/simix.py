"""SiMix: virtual embeddings between two real ones of the same class.

Patel, Tolias, Matas, CVPR 2022 (RS@K), section on similarity mixup.
"""

from __future__ import annotations

import torch
from torch import nn


class SiMix(nn.Module):
    """Adds, for each pair of images of a class, one point between them: a x + (1 - a) y.

    a is uniform in [0, 1), one for each pair. Virtual points carry the class's label, act as
    queries and as candidates, and are not normalised again here. With 4 images of a class: 6.

    Args:
        seed: of the module's own generator, whose state is saved with the module.
    """

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.register_buffer("state", generator.get_state())

    def forward(
        self, embeddings: torch.Tensor, labels: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """(B, D) and (B,) -> (B + V, D) and (B + V,): the real ones first, then the virtual."""
        same = labels[:, None] == labels[None, :]
        i, j = torch.triu(same, diagonal=1).nonzero(as_tuple=True)
        generator = torch.Generator()
        generator.set_state(self.state.cpu())
        a = torch.rand(len(i), 1, generator=generator).to(embeddings)
        self.state.copy_(generator.get_state())
        virtual = a * embeddings[i] + (1 - a) * embeddings[j]
        return torch.cat([embeddings, virtual]), torch.cat([labels, labels[i]])
