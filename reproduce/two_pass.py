"""Gradients of a batch that does not fit in memory, in two chunked passes over the network.

A loss on a whole batch needs all embeddings, but not the network's activations for all images at
once (RS@K's code does the same; so does Gao et al. 2021, "gradient caching"):

1. embed the batch in chunks, without graph;
2. the loss of all embeddings, and its gradient for each embedding and each loss parameter;
3. embed each chunk again, with graph, and push its rows of that gradient into the network.

By the chain rule the sum over chunks is the gradient of the whole batch, as long as an image's
embedding does not depend on the other images of its batch. Activation memory is that of one chunk.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from common.errors import UserError


def two_pass_backward(
    network: nn.Module,
    embed: Callable[[torch.Tensor], torch.Tensor],
    loss: Callable[[torch.Tensor], torch.Tensor],
    images: torch.Tensor,
    chunk_size: int,
    *,
    scale: Callable[[torch.Tensor], torch.Tensor] = lambda value: value,
    batch_statistics: bool = False,
) -> torch.Tensor:
    """Adds the gradients of ``loss(embed(images))`` to the parameters, and returns the loss.

    Both passes see the same random numbers, chunk by chunk, so that dropout drops the same units;
    afterwards the random state is where a single pass would have left it.

    Args:
        network: the module behind ``embed``; wrapped in DistributedDataParallel, its gradients are
            exchanged once, in the last chunk.
        embed: images (b, ...) to embeddings (b, D); the place for autocast.
        loss: embeddings (B, D) to a scalar; in several processes it gathers them itself.
        images: the batch (B, ...); uint8 will do, chunks are converted by ``embed``.
        chunk_size: images in a chunk, at least 1; the last chunk may be smaller.
        scale: multiplies the loss before the backward pass, a GradScaler's ``scale``.
        batch_statistics: accept BatchNorm in training mode. Each chunk then has statistics of its
            own, as on a GPU of its own without SyncBatchNorm, and the running ones see each chunk
            once.

    Returns:
        The loss, detached and not scaled.

    Raises:
        UserError: BatchNorm in training mode, unless ``batch_statistics``.
    """
    norms = training_batch_norms(network)
    if norms and not batch_statistics:
        raise UserError(
            f"train.chunk_size: {next(iter(norms))} is a BatchNorm layer in training mode, whose "
            "output depends on the chunk; set model.options.freeze_batch_norm=true (for glyph_cnn "
            "norm=group), or allow it by train.chunk_batch_statistics=true"
        )
    chunks = images.split(chunk_size)
    states, rows = [], []
    with torch.no_grad(), _kept_buffers(norms.values()):
        for chunk in chunks:
            states.append(_random_state(images.device))
            rows.append(embed(chunk))
    embeddings = torch.cat(rows).requires_grad_()
    value = loss(embeddings)
    scale(value).backward()
    if embeddings.grad is None:
        raise RuntimeError("the loss does not depend on the embeddings")
    after_loss = _random_state(images.device)
    gradients = embeddings.grad.split(chunk_size)
    for number, (chunk, gradient) in enumerate(zip(chunks, gradients, strict=True)):
        _set_random_state(states[number], images.device)
        last = number == len(chunks) - 1
        with contextlib.nullcontext() if last else _no_exchange(network):
            again = embed(chunk)
            again.backward(gradient.to(again.dtype))
    _set_random_state(after_loss, images.device)
    return value.detach()


def training_batch_norms(network: nn.Module) -> dict[str, nn.Module]:
    """Name -> BatchNorm layers (SyncBatchNorm included) that would use statistics of the batch."""
    return {
        name: module
        for name, module in network.named_modules()
        if isinstance(module, _BatchNorm) and (module.training or module.running_mean is None)
    }


@contextlib.contextmanager
def _kept_buffers(modules) -> Iterator[None]:
    """Running statistics as they were: the second pass will update them, once."""
    kept = [(buffer, buffer.clone()) for module in modules for buffer in module.buffers()]
    yield
    for buffer, value in kept:
        buffer.copy_(value)


def _no_exchange(network: nn.Module) -> contextlib.AbstractContextManager:
    no_sync = getattr(network, "no_sync", None)
    return contextlib.nullcontext() if no_sync is None else no_sync()


def _random_state(device: torch.device) -> tuple[torch.Tensor, torch.Tensor | None]:
    on_device = torch.cuda.get_rng_state(device) if device.type == "cuda" else None
    return torch.get_rng_state(), on_device


def _set_random_state(
    state: tuple[torch.Tensor, torch.Tensor | None], device: torch.device
) -> None:
    torch.set_rng_state(state[0])
    if state[1] is not None:
        torch.cuda.set_rng_state(state[1], device)
