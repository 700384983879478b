"""Embedding networks: a backbone by name, pooling, head, L2 normalisation.

model = models.build("glyph_cnn", 128, in_channels=1, image_size=32)
model = models.build("resnet50", 512, pooling="gem", layer_norm=True, pretrained=True)
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from models.backbone import build_backbone
from models.embedding_model import EmbeddingModel, InputSettings

__all__ = ["EmbeddingModel", "InputSettings", "build", "build_backbone"]


def build(
    backbone: str,
    embedding_dim: int,
    *,
    in_channels: int = 3,
    image_size: int = 224,
    pretrained: bool = False,
    weights: str | Path | None = None,
    pooling: str = "average",
    layer_norm: bool = False,
    normalise: bool = True,
    freeze_batch_norm: bool = False,
    freeze_patch_embedding: bool = False,
    **backbone_options: Any,
) -> EmbeddingModel:
    """Builds an embedding network.

    Args:
        backbone: ``glyph_cnn``, ``glyph_vit``, a name in :mod:`models.pinned`, or any timm name
            with its weight tag.
        embedding_dim: D of the embeddings, at least 1.
        in_channels, image_size: of the images (B, C, H, W) that it will see.
        pretrained: load published weights, from ``weights`` or from timm's hub cache.
        weights: a local file (.safetensors, .pth, .pt) with the backbone's weights; implies
            ``pretrained``.
        pooling: average, average_max, gem or token (transformers' class token).
        layer_norm: LayerNorm without affine parameters before the linear head.
        normalise: L2-normalise the embeddings.
        freeze_batch_norm: keep the running statistics, in training mode too; the affine
            parameters still train (as in the RS@K code).
        freeze_patch_embedding: do not train a transformer's patch embedding (as in HIER's code).
        backbone_options: passed to the backbone's own constructor, for instance ``width``.

    Raises:
        UserError: unknown backbone or option, weights that are missing or do not fit, pooling
            that the backbone cannot do.
    """
    network = build_backbone(
        backbone,
        in_channels=in_channels,
        image_size=image_size,
        pretrained=pretrained,
        weights=weights,
        **backbone_options,
    )
    return EmbeddingModel(
        network,
        embedding_dim,
        pooling=pooling,
        layer_norm=layer_norm,
        normalise=normalise,
        freeze_batch_norm=freeze_batch_norm,
        freeze_patch_embedding=freeze_patch_embedding,
    )
