"""A batch as all processes of a distributed run see it."""

from __future__ import annotations

import torch
from torch import distributed


def gather_batches(
    embeddings: torch.Tensor, labels: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, slice]:
    """The batches of all processes in rank order, without gradient, and where the own one lies.

    Embeddings (B, D) and labels (B,) -> (B_all, D), (B_all,), slice; batches may differ in size.
    In a single process: the batch itself. If every process already holds the same batch (a trainer
    that gathers before the loss), it is returned once.
    """
    embeddings = embeddings.detach()
    everything = slice(0, len(embeddings))
    if not distributed.is_available() or not distributed.is_initialized():
        return embeddings, labels, everything
    world, rank = distributed.get_world_size(), distributed.get_rank()
    if world == 1:
        return embeddings, labels, everything
    sizes = [torch.zeros_like(labels[:1]) for _ in range(world)]
    distributed.all_gather(sizes, torch.full_like(labels[:1], len(labels)))
    lengths = [int(size) for size in sizes]
    all_embeddings = _gather_padded(embeddings, lengths)
    all_labels = _gather_padded(labels, lengths)
    if all(torch.equal(other, all_embeddings[0]) for other in all_embeddings[1:]):
        return embeddings, labels, everything
    start = sum(lengths[:rank])
    own = slice(start, start + lengths[rank])
    return torch.cat(all_embeddings), torch.cat(all_labels), own


def _gather_padded(values: torch.Tensor, lengths: list[int]) -> list[torch.Tensor]:
    padded = values.new_zeros(max(lengths), *values.shape[1:])
    padded[: len(values)] = values
    gathered = [torch.empty_like(padded) for _ in lengths]
    distributed.all_gather(gathered, padded)
    return [part[:length] for part, length in zip(gathered, lengths, strict=True)]
