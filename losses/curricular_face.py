"""CurricularFace, ArcFace whose hard negatives weigh more as training goes on.

Huang et al., "CurricularFace: Adaptive Curriculum Learning Loss for Deep Face Recognition",
CVPR 2020; details as in its released code (HuangYG123/CurricularFace).
"""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional

from common.geometry import normalise
from losses.checks import prepare


class CurricularFaceLoss(nn.Module):
    """Cross entropy over ``scale`` times modulated cosines to the class vectors.

    For an image of class y with cosines cos_j and theta the angle to its own class vector: the
    logit of y is cos(theta + margin), or cos(theta) - margin sin(margin) where theta + margin
    exceeds pi; a negative with cos_j > cos(theta + margin) is hard and gets cos_j (t + cos_j).
    Before that, in training mode, t becomes 0.99 t + 0.01 mean cos(theta); it starts at 0 and is
    saved with the module.

    Args:
        num_classes, embedding_dim: C and D; labels run from 0 to C - 1.
        margin: in radians.
        scale: of the logits.

    Raises:
        UserError: in the call, see :func:`losses.checks.prepare`.
    """

    def __init__(
        self, num_classes: int, embedding_dim: int, margin: float = 0.5, scale: float = 64.0
    ) -> None:
        super().__init__()
        self.margin, self.scale = margin, scale
        self.centres = nn.Parameter(0.01 * torch.randn(num_classes, embedding_dim))
        self.register_buffer("t", torch.zeros(()))

    def forward(self, embeddings: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """The loss of a batch: embeddings (B, D), labels (B,) -> scalar."""
        x, labels = prepare(embeddings, labels, len(self.centres))
        with torch.autocast(x.device.type, enabled=False):
            # The root below has an infinite slope at cosines of 1.
            limit = 1 - torch.finfo(x.dtype).eps
            cosine = (normalise(x) @ normalise(self.centres.to(x)).T).clamp(-limit, limit)
            own = cosine.gather(1, labels[:, None])
            if self.training:
                with torch.no_grad():
                    self.t.lerp_(own.mean().to(self.t), 0.01)
            sine = (1 - own.square()).sqrt()
            with_margin = own * math.cos(self.margin) - sine * math.sin(self.margin)
            beyond = own - self.margin * math.sin(self.margin)
            target = torch.where(own > math.cos(math.pi - self.margin), with_margin, beyond)
            hard = cosine > with_margin
            logits = torch.where(hard, cosine * (self.t.to(x) + cosine), cosine)
            logits = logits.scatter(1, labels[:, None], target)
            return functional.cross_entropy(self.scale * logits, labels)
