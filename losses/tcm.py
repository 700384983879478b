"""The Threshold-Consistent Margin loss (TCM). This file needs only torch: copy it where you like.

Zhang et al., "Threshold-Consistent Margin Loss for Open-World Deep Metric Learning", ICLR 2024,
arXiv 2307.04047, Eq. 5. TCM is a regulariser: add it to a base metric-learning loss.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional


class TCMLoss(nn.Module):
    """Pulls hard positive pairs above one margin, pushes hard negative pairs below another.

    With s the cosine similarities of all unordered pairs in the batch, no image with itself::

        L = lambda_plus  * sum over positives (margin_plus - s)  1[s <= margin_plus]
                         / sum over positives  1[s <= margin_plus]
          + lambda_minus * sum over negatives (s - margin_minus) 1[s >= margin_minus]
                         / sum over negatives  1[s >= margin_minus]

    Both indicators select hard pairs; the counts in the denominators carry no gradient.

    Corner cases:

    - A term without an active pair (none hard, one class only, no class twice) is 0 and stays
      connected to the graph: its gradient is 0, not missing.
    - ``indicator=False`` is the paper's TCM' (App. A.2.3): the means run over all pairs and nothing
      is clamped, so the value may be negative and the gradient does not depend on the margins.
    - A zero lambda drops its term altogether.
    - Half-precision embeddings are computed in float32, outside autocast; float64 stays float64.
    - A zero embedding has similarity 0 to all others. Margins outside [-1, 1] are allowed: then a
      term is always or never active.

    Args:
        lambda_plus, lambda_minus: weights of the two terms, at least 0.
        margin_plus, margin_minus: cosine similarities; the paper's are 0.9 and 0.5.
        indicator: select hard pairs.

    Raises:
        ValueError: negative weights; in the call: shapes that do not fit, NaN or infinite values.
    """

    def __init__(
        self,
        lambda_plus: float = 1.0,
        lambda_minus: float = 1.0,
        margin_plus: float = 0.9,
        margin_minus: float = 0.5,
        indicator: bool = True,
    ) -> None:
        super().__init__()
        if lambda_plus < 0 or lambda_minus < 0:
            raise ValueError(f"weights are at least 0, got {lambda_plus} and {lambda_minus}")
        self.lambda_plus, self.lambda_minus = lambda_plus, lambda_minus
        self.margin_plus, self.margin_minus = margin_plus, margin_minus
        self.indicator = indicator
        # Shares of positive and negative pairs that were active in the last call, and the mean
        # violation of each margin over them; tensors, so that reading them is the caller's choice.
        self.last_stats: dict[str, torch.Tensor] = {}

    def forward(self, embeddings: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """The loss of a batch: embeddings (B, D), labels (B,) -> scalar."""
        if embeddings.ndim != 2 or labels.shape != embeddings.shape[:1]:
            raise ValueError(
                f"expected embeddings (B, D) and labels (B,), got {tuple(embeddings.shape)} "
                f"and {tuple(labels.shape)}"
            )
        with torch.autocast(embeddings.device.type, enabled=False):
            if embeddings.dtype != torch.float64:
                embeddings = embeddings.float()
            value, stats = _MaskedTerms.apply(
                functional.normalize(embeddings),
                labels.to(embeddings.device),
                self.lambda_plus,
                self.lambda_minus,
                self.margin_plus,
                self.margin_minus,
                self.indicator,
            )
        names = ("positive_active", "negative_active", "positive_violation", "negative_violation")
        self.last_stats = dict(zip(names, stats.unbind(), strict=True))
        return value


class _MaskedTerms(torch.autograd.Function):
    """Both terms from tiles of the similarity matrix's upper half, with the gradient by hand.

    The gradient with respect to s is one constant on the active positives and one on the active
    negatives, so that one bit of information a pair is all that backward needs. Autograd would keep
    half a dozen matrices of the batch's square, and the paper's losses run at batches of 4,000.
    Sorted by class, the batch has its positives near the diagonal: the other tiles, most of them,
    hold negatives only. Tiles are small enough for a CPU's cache.
    """

    @staticmethod
    def forward(ctx, x, labels, lambda_plus, lambda_minus, margin_plus, margin_minus, indicator):
        # Infinite embeddings are caught as well: normalising turns them into NaN.
        if not torch.isfinite(x).all():
            raise ValueError("embeddings contain NaN or infinite values; lower the learning rate")
        order = labels.argsort()
        x, labels = x[order], labels[order]
        tiles = _tiles(labels, 512 if x.device.type == "cpu" else 4096)
        # Rows: positives, negatives; columns: pairs, active pairs, sum of their violations.
        sums = torch.zeros(2, 3, dtype=torch.float64, device=x.device)
        masks = []
        for rows, columns, mixed in tiles:
            s = x[rows] @ x[columns].T
            if mixed:
                positive = labels[rows, None] == labels[None, columns]
                negative = ~positive
                if rows == columns:
                    positive, negative = positive.triu_(1), negative.triu_(1)
                sums[0, 0] += positive.sum()
                if indicator:
                    positive &= s <= margin_plus
                    negative &= s >= margin_minus
                sums[0, 1] += positive.sum()
                sums[0, 2] += (margin_plus - s).mul_(positive).sum()
                violation = s.sub_(margin_minus).mul_(negative)
            else:
                positive = None
                negative = s >= (margin_minus if indicator else -torch.inf)
                violation = s.sub_(margin_minus)
                violation = violation.clamp_(min=0) if indicator else violation
            sums[1, 1] += negative.sum()
            sums[1, 2] += violation.sum()
            masks.append((positive, negative))
        n = len(x)
        sums[1, 0] = n * (n - 1) / 2 - sums[0, 0]
        counts = sums[:, 1].clamp(min=1)
        weights = torch.tensor([lambda_plus, lambda_minus], dtype=torch.float64, device=x.device)
        value = (weights * sums[:, 2] / counts).sum()
        stats = torch.cat([sums[:, 1] / sums[:, 0].clamp(min=1), sums[:, 2] / counts])
        ctx.mark_non_differentiable(stats)
        ctx.save_for_backward(x, order, weights / counts, *(m for pair in masks for m in pair))
        ctx.tiles = tiles
        return value.to(x.dtype), stats

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_value, _):
        x, order, per_pair, *masks = ctx.saved_tensors
        plus, minus = (grad_value * per_pair).to(x.dtype)
        gradient = torch.zeros_like(x)
        for (rows, columns, _), positive, negative in zip(
            ctx.tiles, masks[::2], masks[1::2], strict=True
        ):
            weight = negative.to(x.dtype).mul_(minus)
            if positive is not None:
                weight -= positive.to(x.dtype).mul_(plus)
            gradient[rows].addmm_(weight, x[columns])
            gradient[columns].addmm_(weight.T, x[rows])
        return torch.empty_like(x).index_copy_(0, order, gradient), *[None] * 6


def _tiles(labels: torch.Tensor, size: int) -> list[tuple[slice, slice, bool]]:
    """Tiles of the upper half of the matrix of pairs, and whether they may hold positives.

    ``labels`` (B,) are sorted: two different ranges share a class only where they touch or where
    one class fills all between them.
    """
    ranges = [slice(a, min(a + size, len(labels))) for a in range(0, len(labels), size)]
    first = labels[::size].tolist()
    last = labels[[r.stop - 1 for r in ranges]].tolist()
    return [
        (rows, columns, i == j or last[i] == first[j])
        for i, rows in enumerate(ranges)
        for j, columns in enumerate(ranges[i:], start=i)
    ]
