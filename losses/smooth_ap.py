"""Smooth-AP, a differentiable average precision.

Brown, Xie, Kalogeiton, Zisserman, "Smooth-AP: Smoothing the Path Towards Large-Scale Image
Retrieval", ECCV 2020.
"""

from __future__ import annotations

import torch
from torch import nn

from common.errors import UserError
from common.geometry import normalise
from losses.checks import prepare


class SmoothAPLoss(nn.Module):
    """One minus a smooth average precision, averaged over the images of the batch as queries.

    With s the cosine similarities, P(q) the images of q's class and t the temperature::

        r_A(q, x) = 1 + sum over z in A, z not x, of sigmoid((s_qz - s_qx) / t)
        AP(q)     = mean over x in P(q) of r_P(q)(q, x) / r_batch(q, x)
        L         = mean over q of (1 - AP(q))

    As in the published code (Andrew-Brown1/Smooth_AP, src/Smooth_AP_loss.py), the query is among
    its own positives. pytorch-metric-learning's loss of this name (2.8.1) is not used: it cuts the
    batch into groups of (classes) images where the code has groups of (images per class), so that
    it is right only where both numbers are equal. Perfect embeddings of 6 classes with 2 images
    each give 0.27 there, 0 here.

    Memory is that of (B, K, B) numbers with K images of a class, not of (B, B, B).

    Corner cases: classes may differ in size. Queries whose class is alone in the batch are left
    out; if that leaves none, the loss is 0 and connected to the graph.

    Args:
        temperature: t, above 0.

    Raises:
        UserError: a temperature out of range; in the call: see :func:`losses.checks.prepare`.
    """

    def __init__(self, temperature: float = 0.01) -> None:
        super().__init__()
        if temperature <= 0:
            raise UserError("smooth_ap: temperature must be above 0")
        self.temperature = temperature

    def forward(self, embeddings: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """The loss of a batch: embeddings (B, D), labels (B,) -> scalar; float32 or float64."""
        x, labels = prepare(embeddings, labels)
        with torch.autocast(x.device.type, enabled=False):
            x = normalise(x)
            same = labels[:, None] == labels
            same &= (same.sum(1) > 1)[:, None]
            query, positive = same.nonzero(as_tuple=True)
            if len(query) == 0:
                return 0 * x.sum()
            s = x @ x.T
            # A row for each pair (q, x), a column for each z.
            above = torch.sigmoid((s[query] - s[query, positive][:, None]) / self.temperature)
            above = above.scatter(1, positive[:, None], 0.0)
            precision = (1 + (above * same[query]).sum(1)) / (1 + above.sum(1))
            # Mean over the positives of a query, then over queries.
            weights = same.sum(1)[query].to(x).reciprocal()
            return 1 - (precision * weights).sum() / same.any(1).sum()
