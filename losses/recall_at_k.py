"""The Recall@k surrogate loss, RS@K.

Patel, Tolias, Matas, "Recall@k Surrogate Loss with Large Batches and Similarity Mixup", CVPR 2022.
"""

from __future__ import annotations

import torch
from torch import nn

from common.errors import UserError
from common.geometry import normalise as l2_normalise
from losses.checks import prepare


class RecallAtKLoss(nn.Module):
    """One minus a smooth Recall@k, averaged over the values of k and over queries.

    Every image of the batch is a query q against all others; P(q) are those of its class. With s
    the cosine similarities, t2 the rank temperature and t1 the temperature of the k-step::

        r(q, x) = 1 + sum over z not in {q, x} of sigmoid((s_qz - s_qx) / t2)       x in P(q)
        R_k(q)  = min(k, sum over x in P(q) of sigmoid((k - r(q, x)) / t1)) / min(k, |P(q)|)
        L       = mean over q of (1 - mean over k of R_k(q))

    Exact: no sampling of pairs. Memory is bounded by ``block_elements``, not by the cube of the
    batch; the gradient is computed block by block together with the value. The published code lets
    the query itself count in r; the paper's sum, followed here, runs over the other images.

    Corner cases: queries whose class is alone in the batch are left out; if that leaves none, the
    loss is 0 and connected to the graph. Classes may differ in size.

    Args:
        ks: values of k, at least 1.
        rank_temperature: t2, above 0.
        k_temperature: t1, above 0.
        block_elements: largest number of (query, positive, other) triples at a time.

    Raises:
        UserError: an option out of range; in the call: see :func:`losses.checks.prepare`.
    """

    def __init__(
        self,
        ks: tuple[int, ...] = (1, 2, 4, 8, 16),
        rank_temperature: float = 0.01,
        k_temperature: float = 1.0,
        block_elements: int = 2**21,
    ) -> None:
        super().__init__()
        if not ks or min(ks) < 1:
            raise UserError(f"ks={ks}: give values of k that are at least 1")
        if rank_temperature <= 0 or k_temperature <= 0:
            raise UserError("rank_temperature and k_temperature must be above 0")
        self.ks = tuple(ks)
        self.rank_temperature = rank_temperature
        self.k_temperature = k_temperature
        self.block_elements = block_elements

    def forward(
        self, embeddings: torch.Tensor, labels: torch.Tensor, normalise: bool = True
    ) -> torch.Tensor:
        """The loss of a batch: embeddings (B, D), labels (B,) -> scalar; float32 or float64.

        ``normalise=False`` takes the dot products of the embeddings as they are: SiMix's virtual
        points lie inside the unit sphere.
        """
        x, labels = prepare(embeddings, labels)
        with torch.autocast(x.device.type, enabled=False):
            return _SurrogateRecall.apply(
                l2_normalise(x) if normalise else x,
                labels,
                x.new_tensor(self.ks),
                self.rank_temperature,
                self.k_temperature,
                self.block_elements,
            )


class _SurrogateRecall(torch.autograd.Function):
    """Value and gradient with respect to the unit embeddings, a block of queries at a time."""

    @staticmethod
    def forward(ctx, x, labels, ks, rank_temperature, k_temperature, block_elements):
        n = len(x)
        same = labels[:, None] == labels[None, :]
        same.fill_diagonal_(False)
        positives = same.sum(1)
        queries = int((positives > 0).sum())
        value, gradient = x.new_zeros(()), torch.zeros_like(x)
        for start, stop in _blocks(positives, n, block_elements):
            i, j = same[start:stop].nonzero(as_tuple=True)
            s = x[start:stop] @ x.T
            # The query itself is no candidate: sigmoid(-inf) = 0, in value and gradient.
            s.diagonal(start).fill_(-torch.inf)
            above = torch.sigmoid((s[i] - s[i, j][:, None]) / rank_temperature)
            # The sum holds x itself as sigmoid(0) = 1/2.
            rank = 0.5 + above.sum(1)
            step = torch.sigmoid((ks - rank[:, None]) / k_temperature)
            count = x.new_zeros(stop - start, len(ks)).index_add_(0, i, step)
            norm = torch.minimum(ks, positives[start:stop, None].clamp(min=1).to(x.dtype))
            has_positive = positives[start:stop] > 0
            recall = torch.minimum(count, ks) / norm
            value += (1 - recall.mean(1))[has_positive].sum() / queries

            # dL/dr, then dL/ds: r grows with s_qz, and falls with s_qx by the sum of the same.
            uncapped = (count < ks).to(x.dtype) / norm
            by_rank = (uncapped[i] * step * (1 - step)).sum(1)
            by_rank /= k_temperature * len(ks) * queries
            slopes = above.mul_(1 - above).mul_(by_rank[:, None] / rank_temperature)
            by_s = torch.zeros_like(s).index_add_(0, i, slopes)
            by_s.index_put_((i, j), -slopes.sum(1), accumulate=True)
            gradient[start:stop] += by_s @ x
            gradient += by_s.T @ x[start:stop]
        ctx.save_for_backward(gradient)
        return value

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_value):
        (gradient,) = ctx.saved_tensors
        return grad_value * gradient, None, None, None, None, None


def _blocks(positives: torch.Tensor, n: int, block_elements: int):
    """Ranges of queries with positives whose pairs times n stay below ``block_elements``."""
    ends = positives.cumsum(0).tolist()
    start, before = 0, 0
    while start < n:
        stop = start + 1
        while stop < n and (ends[stop] - before) * n <= block_elements:
            stop += 1
        if ends[stop - 1] > before:
            yield start, stop
        start, before = stop, ends[stop - 1]
