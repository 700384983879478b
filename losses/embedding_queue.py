"""A first-in, first-out store of recent embeddings with their labels."""

from __future__ import annotations

import torch
from torch import nn

EMPTY = -1


class EmbeddingQueue(nn.Module):
    """Holds the last ``size`` embeddings pushed; its content is saved in the state dict.

    Places not yet filled have the label -1 and zero embeddings.

    Args:
        size: number of places.
        embedding_dim: D.
    """

    def __init__(self, size: int, embedding_dim: int) -> None:
        super().__init__()
        self.register_buffer("embeddings", torch.zeros(size, embedding_dim))
        self.register_buffer("labels", torch.full((size,), EMPTY))
        self.register_buffer("position", torch.zeros((), dtype=torch.int64))

    @torch.no_grad()
    def push(self, embeddings: torch.Tensor, labels: torch.Tensor) -> None:
        """Adds rows in order, (B, D) and (B,); the oldest make room, of a longer batch the last
        rows stay."""
        size = len(self.labels)
        embeddings, labels = embeddings[-size:], labels[-size:]
        places = (self.position + torch.arange(len(labels), device=self.labels.device)) % size
        self.embeddings[places] = embeddings.to(self.embeddings)
        self.labels[places] = labels.to(self.labels)
        self.position.copy_((self.position + len(labels)) % size)

    def in_order(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The filled places, oldest first: (F, D) and (F,)."""
        order = torch.arange(len(self.labels), device=self.labels.device) + self.position
        order = order % len(self.labels)
        order = order[self.labels[order] != EMPTY]
        return self.embeddings[order], self.labels[order]
