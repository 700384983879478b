"""A backbone with pooling, optional LayerNorm, a linear head and L2 normalisation."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from common.errors import UserError
from common.geometry import normalise as l2_normalise
from models.pooling import POOLINGS


class InputSettings(NamedTuple):
    """What a backbone's weights expect; mean and std per channel in units of pixel / 255."""

    mean: tuple[float, ...]
    std: tuple[float, ...]
    interpolation: str


class EmbeddingModel(nn.Module):
    """Maps float images (B, C, H, W) to embeddings (B, embedding_dim).

    Args:
        backbone: a module with ``features`` (channels of its feature map), ``input``
            (:class:`InputSettings`), and optionally ``patch_embedding`` (a module); its forward
            gives a feature map (B, F, H', W') or tokens (B, T, F) with the class token first.
        embedding_dim, pooling, layer_norm, normalise, freeze_batch_norm, freeze_patch_embedding:
            see :func:`models.build`.
    """

    def __init__(
        self,
        backbone: nn.Module,
        embedding_dim: int,
        *,
        pooling: str = "average",
        layer_norm: bool = False,
        normalise: bool = True,
        freeze_batch_norm: bool = False,
        freeze_patch_embedding: bool = False,
    ) -> None:
        super().__init__()
        if pooling not in POOLINGS:
            raise UserError(f"pooling {pooling!r} is unknown; choose from {', '.join(POOLINGS)}")
        self.backbone = backbone
        self.pooling = POOLINGS[pooling]()
        self.layer_norm = (
            nn.LayerNorm(backbone.features, elementwise_affine=False)
            if layer_norm
            else nn.Identity()
        )
        self.head = nn.Linear(backbone.features, embedding_dim)
        self.normalise = normalise
        self.freeze_batch_norm = freeze_batch_norm
        self.input: InputSettings = backbone.input
        if freeze_patch_embedding:
            patches = getattr(backbone, "patch_embedding", None)
            if patches is None:
                raise UserError("freeze_patch_embedding: this backbone has no patch embedding")
            patches.requires_grad_(False)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Embeddings (B, embedding_dim), of length 1 if ``normalise``."""
        embeddings = self.head(self.layer_norm(self.pooling(self.backbone(images))))
        return l2_normalise(embeddings) if self.normalise else embeddings

    def train(self, mode: bool = True) -> EmbeddingModel:
        """Like ``nn.Module.train``, but frozen BatchNorm layers stay in evaluation mode."""
        super().train(mode)
        if self.freeze_batch_norm:
            for module in self.modules():
                if isinstance(module, _BatchNorm):
                    module.eval()
        return self

    def backbone_parameters(self) -> list[nn.Parameter]:
        """Trainable parameters of the backbone."""
        return [p for p in self.backbone.parameters() if p.requires_grad]

    def head_parameters(self) -> list[nn.Parameter]:
        """Trainable parameters of pooling and linear head."""
        return [*self.pooling.parameters(), *self.head.parameters()]
