"""HIER's triplets and their loss (Kim, Jeong, Kwak, CVPR 2023, Eqs. 3 to 6 as released in code)."""

from __future__ import annotations

from typing import NamedTuple

import torch


class Triplets(NamedTuple):
    """Row numbers of (T,) triplets: anchor i, its neighbour j, and k which is not a neighbour."""

    i: torch.Tensor
    j: torch.Tensor
    k: torch.Tensor


def reciprocal_neighbours(similarity: torch.Tensor, count: int) -> torch.Tensor:
    """Whether j is among i's ``count`` most similar and i among j's: (N, N) -> (N, N) bool.

    A point is most similar to itself and takes one place among its own; the diagonal is then False.
    """
    nearest = similarity.topk(min(count, len(similarity)), dim=1).indices
    near = torch.zeros_like(similarity, dtype=torch.bool).scatter_(1, nearest, True)
    return (near & near.T).fill_diagonal_(False)


def sample_triplets(
    neighbours: torch.Tensor, count: int, draws: torch.Tensor | None = None
) -> Triplets:
    """``count`` triplets for every anchor with two neighbours or more, drawn with replacement.

    Args:
        neighbours: (N, N) bool, False on the diagonal. j is drawn among the True of row i, k among
            the False, i itself included.
        draws: numbers in [0, 1), shape (2, N, count), for j and k; default: from torch's generator.
    """
    n = len(neighbours)
    if draws is None:
        draws = torch.rand(2, n, count, device=neighbours.device)
    # Each row lists its neighbours first, then the others.
    order = neighbours.to(torch.uint8).argsort(dim=1, descending=True, stable=True)
    number = neighbours.sum(1, keepdim=True)
    j = order.gather(1, (draws[0] * number).long().clamp(max=n - 1))
    k = order.gather(1, (number + (draws[1] * (n - number)).long()).clamp(max=n - 1))
    anchors = (number[:, 0] >= 2).nonzero()[:, 0]
    i = anchors[:, None].expand(-1, count)
    return Triplets(i.flatten(), j[anchors].flatten(), k[anchors].flatten())


def ancestor_loss(
    distances: torch.Tensor,
    triplets: Triplets,
    temperature: float,
    margin: float,
    noise: torch.Tensor | None = None,
) -> torch.Tensor:
    """Mean triplet loss over ancestors drawn among the proxies, a scalar.

    With d the distances of points to proxies (N, P), the ancestor of i and j is drawn by a
    straight-through Gumbel-softmax of -max(d_i, d_j) / temperature, the ancestor of all three of
    -max(d_i, d_j, d_k) / temperature. A triplet whose two ancestors a_ij and a_ijk differ costs::

        [d(i, a_ij) - d(i, a_ijk) + margin]+ + [d(j, a_ij) - d(j, a_ijk) + margin]+
                                             + [d(k, a_ijk) - d(k, a_ij) + margin]+

    others cost 0 and count in the mean. Without triplets: 0, connected to the graph.

    Args:
        noise: Gumbel noise (2, T, P) for the two draws; default: from torch's generator.
    """
    return _AncestorLoss.apply(distances, *triplets, temperature, margin, noise)


class _AncestorLoss(torch.autograd.Function):
    """Value and gradient together, a chunk of triplets at a time.

    Autograd would keep some ten (T, P) tensors, with 512 proxies and 50 triplets for each of them
    half a gigabyte; a chunk stays in the cache. The straight-through estimator: the value takes the
    drawn ancestor as a one-hot vector, the gradient flows to the logits as through the softmax.
    """

    ELEMENTS = 2**18

    @staticmethod
    def forward(ctx, distances, i, j, k, temperature, margin, noise):
        gradient = torch.zeros_like(distances)
        value = distances.new_zeros(())
        total = max(len(i), 1)
        size = max(1, _AncestorLoss.ELEMENTS // max(distances.shape[1], 1))
        if distances.device.type != "cpu":
            size *= 32
        for start in range(0, len(i), size):
            rows = [index[start : start + size] for index in (i, j, k)]
            chunk_noise = (None, None) if noise is None else noise[:, start : start + size]
            cost, slopes = _chunk(
                *(distances[row] for row in rows), temperature, margin, chunk_noise
            )
            value += cost / total
            for row, slope in zip(rows, slopes, strict=True):
                gradient.index_add_(0, row, slope)
        ctx.save_for_backward(gradient.div_(total))
        return value

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_value):
        (gradient,) = ctx.saved_tensors
        return grad_value * gradient, *[None] * 6


def _chunk(d_i, d_j, d_k, temperature, margin, noise):
    """Cost of a chunk of triplets and its slopes with respect to d_i, d_j and d_k, each (t, P)."""
    of_pair = torch.maximum(d_i, d_j)
    of_triple = torch.maximum(of_pair, d_k)
    soft_pair, pair = _draw(of_pair, temperature, noise[0])
    soft_triple, triple = _draw(of_triple, temperature, noise[1])
    # Slopes of the cost with respect to the one-hot vector of the pair's ancestor; those of the
    # triple's are the same with the other sign.
    cost, by_one_hot, weights = 0, torch.zeros_like(d_i), []
    for d, sign in ((d_i, 1), (d_j, 1), (d_k, -1)):
        violation = sign * (d.gather(1, pair) - d.gather(1, triple)) + margin
        active = (violation > 0) & (pair != triple)
        cost = cost + (violation * active).sum()
        weights.append((sign * active).to(d.dtype))
        by_one_hot.addcmul_(d, weights[-1])
    by_pair = _through_softmax(soft_pair, by_one_hot, -1 / temperature)
    by_triple = _through_softmax(soft_triple, by_one_hot, 1 / temperature)
    # A maximum passes its slope to the larger.
    to_k = by_triple * (d_k > of_pair)
    to_pair = by_pair.add_(by_triple).sub_(to_k)
    to_i = to_pair * (d_i >= d_j)
    slopes = to_i, to_pair.sub_(to_i), to_k
    for slope, weight in zip(slopes, weights, strict=True):
        slope.scatter_add_(1, pair, weight).scatter_add_(1, triple, -weight)
    return cost, slopes


def _draw(distances, temperature, noise):
    """Gumbel-softmax of -distances / temperature: the soft vectors (t, P), the ancestors (t, 1)."""
    if noise is None:
        # -log(-log(u)); torch's own exponential numbers take seven times as long on a CPU.
        noise = torch.rand_like(distances).log_().neg_().log_().neg_()
    logits = torch.sub(noise, distances, alpha=1 / temperature)
    soft = logits.softmax(1)
    return soft, soft.argmax(1, keepdim=True)


def _through_softmax(soft, slope, scale):
    """Slopes with respect to the softmax's input, times ``scale``."""
    mean = (soft * slope).sum(1, keepdim=True)
    return (slope - mean).mul_(soft).mul_(scale)
