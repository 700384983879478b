"""A small vision transformer for glyphs, from scratch: timm's, with patches of 4 x 4 pixels."""

from __future__ import annotations

import torch
from timm.models.vision_transformer import VisionTransformer
from torch import nn

from models.input_settings import centred


class GlyphViT(nn.Module):
    """Class token and (image_size / patch_size)^2 patch tokens through pre-norm blocks.

    Args:
        in_channels, image_size: of the images (B, C, H, W).
        width: of the tokens; a multiple of ``heads``.
        depth, heads, patch_size, drop_path: as in timm.

    Raises:
        ValueError: ``heads`` does not divide ``width``, or ``patch_size`` the image size.
    """

    prefix_tokens = 1

    def __init__(
        self,
        in_channels: int = 1,
        image_size: int = 32,
        width: int = 96,
        depth: int = 4,
        heads: int = 3,
        patch_size: int = 4,
        drop_path: float = 0.0,
    ) -> None:
        super().__init__()
        if width % heads or image_size % patch_size:
            raise ValueError("heads must divide width, and patch_size the image size")
        self.network = VisionTransformer(
            img_size=image_size,
            patch_size=patch_size,
            in_chans=in_channels,
            num_classes=0,
            embed_dim=width,
            depth=depth,
            num_heads=heads,
            drop_path_rate=drop_path,
        )
        self.features = width
        self.input = centred(in_channels, image_size)

    @property
    def patch_embedding(self) -> nn.Module:
        """The first layer. No attribute: its weights would be saved under two names."""
        return self.network.patch_embed

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Tokens (B, 1 + patches, width) after the last LayerNorm, the class token first."""
        return self.network.forward_features(images)
