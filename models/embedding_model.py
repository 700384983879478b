"""A backbone with pooling, optional LayerNorm, a head and L2 normalisation."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from common.errors import UserError
from common.geometry import normalise as l2_normalise
from models.head import build_head
from models.input_settings import InputSettings
from models.pooling import build_pooling
from models.weights import Origin


class EmbeddingModel(nn.Module):
    """Maps float images (B, C, H, W) to embeddings (B, embedding_dim).

    Args:
        backbone: a module with ``features`` (channels of its feature map), ``input``
            (:class:`InputSettings`), ``origin`` (:class:`Origin`) and where they apply
            ``map_size``, ``prefix_tokens``, ``patch_embedding`` (a module); its forward gives a
            feature map (B, F, H', W'), or tokens (B, T, F) with the ``prefix_tokens`` first.
        embedding_dim and all others: see :func:`models.build`.

    Attributes:
        input: the backbone's input settings.
        origin: where the backbone's initial weights come from.
    """

    def __init__(
        self,
        backbone: nn.Module,
        embedding_dim: int,
        *,
        pooling: str = "average",
        layer_norm: bool = False,
        layer_norm_affine: bool = True,
        head: str = "linear",
        head_init: str = "default",
        head_batch_norm: bool = False,
        normalise: bool | None = None,
        curvature: float = 0.1,
        clip_radius: float = 2.3,
        freeze_batch_norm: bool = False,
        freeze_batch_norm_affine: bool = False,
        freeze_patch_embedding: bool = False,
    ) -> None:
        super().__init__()
        if head == "hyperbolic" and normalise:
            raise UserError("normalise: points of the Poincaré ball cannot be L2-normalised")
        self.backbone = backbone
        self.pooling, features = build_pooling(pooling, backbone)
        self.layer_norm = (
            nn.LayerNorm(features, elementwise_affine=layer_norm_affine)
            if layer_norm
            else nn.Identity()
        )
        self.head = build_head(
            head,
            features,
            embedding_dim,
            init=head_init,
            batch_norm=head_batch_norm,
            curvature=curvature,
            clip_radius=clip_radius,
        )
        self.normalise = head == "linear" if normalise is None else normalise
        self.freeze_batch_norm = freeze_batch_norm
        self.input: InputSettings = backbone.input
        self.origin: Origin = backbone.origin
        if freeze_batch_norm_affine:
            if not freeze_batch_norm:
                raise UserError("freeze_batch_norm_affine needs freeze_batch_norm=true")
            for module in self._frozen_norms():
                module.requires_grad_(False)
        if freeze_patch_embedding:
            patches = getattr(backbone, "patch_embedding", None)
            if patches is None:
                raise UserError("freeze_patch_embedding: this backbone has no patch embedding")
            patches.requires_grad_(False)
        self.train(self.training)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Embeddings (B, embedding_dim), of length 1 if ``normalise``."""
        embeddings = self.head(self.layer_norm(self.pooling(self.backbone(images))))
        return l2_normalise(embeddings) if self.normalise else embeddings

    def train(self, mode: bool = True) -> EmbeddingModel:
        """Like ``nn.Module.train``, but frozen BatchNorm layers stay in evaluation mode."""
        super().train(mode)
        if self.freeze_batch_norm:
            for module in self._frozen_norms():
                module.eval()
        return self

    def backbone_parameters(self) -> list[nn.Parameter]:
        """Trainable parameters of the backbone."""
        return [p for p in self.backbone.parameters() if p.requires_grad]

    def head_parameters(self) -> list[nn.Parameter]:
        """Trainable parameters of pooling, LayerNorm and head."""
        parts = (self.pooling, self.layer_norm, self.head)
        return [p for part in parts for p in part.parameters() if p.requires_grad]

    def _frozen_norms(self) -> list[nn.Module]:
        return [module for module in self.backbone.modules() if isinstance(module, _BatchNorm)]
