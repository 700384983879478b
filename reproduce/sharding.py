"""Evaluation in several processes: rows in shards, none padded, none seen twice."""

from __future__ import annotations

import numpy as np
import torch
import torch.distributed as dist

from reproduce import distributed
from reproduce.distributed import Processes


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
    if distributed.world_size() > 1:
        # A collective wants equal shapes: filled up for the way, cut to size on arrival.
        world = distributed.world_size()
        counts = [len(shard(rows, Processes(rank, world))) for rank in range(world)]
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
