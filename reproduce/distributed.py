"""Several processes, one batch: started by torchrun, each with a slice of the images.

Rules that make W processes compute what one would:

- The sampler's slices, joined in rank order, are the batch of one process; :func:`gather` joins
  their embeddings in that order, with gradient, and every process computes the loss of all.
- Gradients flow back from that loss to each slice as the sum over the processes, which is W times
  the gradient of one loss; DistributedDataParallel divides by W. Nothing is to be scaled by hand.
- Parameters of the loss see the whole batch everywhere: their gradients are equal already, and
  averaged so that they stay equal to the last bit (:func:`average_gradients`).
- Evaluation is cut into shards, see :mod:`reproduce.sharding`; decisions that all must share are
  in :mod:`reproduce.agreement`.

All functions do nothing, or the plain thing, where there is one process.
"""

from __future__ import annotations

import atexit
import os
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.distributed.nn.functional as dist_functional
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from common.errors import UserError
from reproduce.two_pass import training_batch_norms

PATIENCE = timedelta(hours=3)


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


def start(device: torch.device) -> Processes:
    """Joins the process group: NCCL for CUDA (one GPU for each process), gloo for CPUs.

    Raises:
        UserError: as :func:`from_environment`, or more processes than GPUs on this machine.
    """
    processes = from_environment()
    if processes.world_size == 1 or dist.is_initialized():
        return processes
    if device.type == "cuda":
        if device.index is not None:
            raise UserError(f"--device {device}: torchrun gives each process its GPU; use cuda")
        if processes.local_rank >= torch.cuda.device_count():
            raise UserError(
                f"torchrun started process {processes.local_rank + 1} on a machine with "
                f"{torch.cuda.device_count()} GPUs; lower --nproc-per-node"
            )
        torch.cuda.set_device(processes.local_rank)
    # Rank 0 evaluates while the others wait: longer than the half hour of the default.
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo", timeout=PATIENCE)
    atexit.register(stop)
    return processes


def stop() -> None:
    """Leaves the process group, if there is one."""
    if dist.is_initialized():
        dist.destroy_process_group()


def world_size() -> int:
    """Processes in the group; 1 without one."""
    return dist.get_world_size() if dist.is_initialized() else 1


def current() -> Processes:
    """This process in the group that :func:`start` joined; alone without one."""
    return from_environment() if dist.is_initialized() else Processes()


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
