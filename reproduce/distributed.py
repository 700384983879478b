"""Several processes, one batch: started by torchrun, each with a slice of the images.

Rules that make W processes compute what one would:

- The sampler's slices, joined in rank order, are the batch of one process; :func:`gather` joins
  their embeddings in that order, with gradient, and every process computes the loss of all.
- Gradients flow back from that loss to each slice as the sum over the processes, which is W times
  the gradient of one loss; DistributedDataParallel divides by W. Nothing is to be scaled by hand.
- Parameters of the loss see the whole batch everywhere: their gradients are equal already, and
  averaged so that they stay equal to the last bit (:func:`average_gradients`).
- Evaluation is cut into shards that differ by one row at most; no row is padded or seen twice.

All functions do nothing, or the plain thing, where there is one process.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
import torch
import torch.distributed as dist
import torch.distributed.nn.functional as dist_functional
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from common.errors import UserError
from reproduce.two_pass import training_batch_norms


@dataclass(frozen=True)
class Processes:
    """This process among those that torchrun started; one process is rank 0 of 1."""

    rank: int = 0
    world_size: int = 1
    local_rank: int = 0

    @property
    def is_main(self) -> bool:
        """True in the process that logs and writes files."""
        return self.rank == 0


def from_environment() -> Processes:
    """Reads torchrun's RANK, WORLD_SIZE and LOCAL_RANK; without them this is the only process.

    Raises:
        UserError: some of them are set and others not, or they are not numbers that fit.
    """
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK")
    values = [os.environ.get(name) for name in names]
    if values[:2] == [None, None]:
        return Processes()
    try:
        rank, world_size, local_rank = (int(value) for value in values)
        fits = 0 <= rank < world_size and local_rank >= 0
    except (TypeError, ValueError):
        fits = False
    if not fits:
        found = ", ".join(f"{name}={value}" for name, value in zip(names, values, strict=True))
        raise UserError(f"{found}: these belong to torchrun; start with it, or unset them")
    return Processes(rank, world_size, local_rank)


def start(device_type: str) -> Processes:
    """Joins the process group: NCCL for ``cuda`` (one GPU for each process), gloo for ``cpu``.

    Raises:
        UserError: as :func:`from_environment`, or more processes than GPUs on this machine.
    """
    processes = from_environment()
    if processes.world_size == 1 or dist.is_initialized():
        return processes
    if device_type == "cuda":
        if processes.local_rank >= torch.cuda.device_count():
            raise UserError(
                f"torchrun started process {processes.local_rank + 1} on a machine with "
                f"{torch.cuda.device_count()} GPUs; lower --nproc-per-node"
            )
        torch.cuda.set_device(processes.local_rank)
    dist.init_process_group("nccl" if device_type == "cuda" else "gloo")
    return processes


def stop() -> None:
    """Leaves the process group, if there is one."""
    if dist.is_initialized():
        dist.destroy_process_group()


def world_size() -> int:
    """Processes in the group; 1 without one."""
    return dist.get_world_size() if dist.is_initialized() else 1


def wrap(network: nn.Module, *, parts_rest: bool = False, batch_statistics: bool = False):
    """The network in DistributedDataParallel, its weights those of rank 0; or itself, if alone.

    Args:
        network: on the device of this process.
        parts_rest: some parameters may be frozen for a while (head-only epochs), which needs a
            search for them in each step.
        batch_statistics: accept BatchNorm in training mode that is not SyncBatchNorm.

    Raises:
        UserError: such BatchNorm, unless accepted: each process would normalise by its own slice.
    """
    if world_size() == 1:
        return network
    alone = [
        name
        for name, module in training_batch_norms(network).items()
        if not isinstance(module, nn.SyncBatchNorm)
    ]
    if alone and not batch_statistics:
        raise UserError(
            f"several processes: {alone[0]} is a BatchNorm layer in training mode and would see "
            "its own slice of the batch; set model.options.freeze_batch_norm=true, or "
            "train.sync_batch_norm=true on GPUs, or allow it by train.chunk_batch_statistics=true"
        )
    if not any(parameter.requires_grad for parameter in network.parameters()):
        return network
    return DistributedDataParallel(
        network, broadcast_buffers=False, find_unused_parameters=parts_rest
    )


def gather(embeddings: torch.Tensor) -> torch.Tensor:
    """Embeddings (b, D) of every process -> (W b, D) in rank order, with gradient.

    All processes must bring the same number of rows, as the sampler's slices do. The gradient of
    a slice is the sum of what the losses of all processes give.
    """
    if world_size() == 1:
        return embeddings
    return torch.cat(dist_functional.all_gather(embeddings.contiguous()))


def gather_labels(labels: torch.Tensor) -> torch.Tensor:
    """Labels (b,) of every process -> (W b,) in rank order."""
    if world_size() == 1:
        return labels
    slices = [torch.empty_like(labels) for _ in range(world_size())]
    dist.all_gather(slices, labels.contiguous())
    return torch.cat(slices)


def broadcast(module: nn.Module) -> None:
    """Parameters and buffers of rank 0 for all, e.g. a loss's proxies before the first step."""
    if world_size() > 1:
        for tensor in (*module.parameters(), *module.buffers()):
            dist.broadcast(tensor.detach(), src=0)


def average_gradients(module: nn.Module) -> None:
    """Averages the gradients of a module that is not wrapped, e.g. of the loss."""
    if world_size() > 1:
        for parameter in module.parameters():
            if parameter.grad is not None:
                dist.all_reduce(parameter.grad)
                parameter.grad /= world_size()


def any_process(flag: bool, device: torch.device) -> bool:
    """True everywhere if it is true anywhere: a signal to stop, a loss that is not finite."""
    if world_size() == 1:
        return flag
    value = torch.tensor(float(flag), device=device)
    dist.all_reduce(value, dist.ReduceOp.MAX)
    return bool(value.item())


def barrier() -> None:
    """Waits for all processes, e.g. until rank 0 has written a file that all will read."""
    if world_size() > 1:
        dist.barrier()


def shard(rows: int, processes: Processes) -> range:
    """The rows of 0 .. ``rows`` - 1 that this process embeds: a block, with no row in two blocks.

    Sizes differ by one at most; with fewer rows than processes some are empty.
    """
    bounds = [rows * rank // processes.world_size for rank in range(processes.world_size + 1)]
    return range(bounds[processes.rank], bounds[processes.rank + 1])


def join_shards(block: np.ndarray, rows: int, device: torch.device) -> np.ndarray:
    """The whole array (rows, ...) in every process, from each one's block of :func:`shard`.

    Args:
        block: (size of this process's shard, ...), of one dtype and row shape everywhere.
        rows: of all shards together.
        device: of this process; the exchange needs one block of memory for each process there.

    Raises:
        RuntimeError: the blocks do not add up to ``rows``.
    """
    joined = block
    if world_size() > 1:
        # A collective wants equal shapes: filled up for the way, cut to size on arrival.
        counts = [len(shard(rows, Processes(rank, world_size()))) for rank in range(world_size())]
        padded = torch.zeros((max(counts), *block.shape[1:]), device=device)
        padded = padded.to(torch.from_numpy(block[:0]).dtype)
        padded[: len(block)] = torch.from_numpy(block).to(device)
        slices = [torch.empty_like(padded) for _ in counts]
        dist.all_gather(slices, padded)
        joined = np.concatenate(
            [part[:count].cpu().numpy() for part, count in zip(slices, counts, strict=True)]
        )
    if len(joined) != rows:
        raise RuntimeError(f"{len(joined)} rows were gathered, {rows} expected")
    return joined
