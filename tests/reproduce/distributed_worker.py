"""What test_distributed.py runs in one process and, through torchrun, in two.

python -m torch.distributed.run --standalone --nproc-per-node 2 \
    -m tests.reproduce.distributed_worker FILE
"""

from __future__ import annotations

import sys

import numpy as np
import torch
from pytorch_metric_learning.losses import ArcFaceLoss, ContrastiveLoss, ProxyAnchorLoss
from torch import nn

from common.geometry import normalise
from datasets import ClassBalancedBatchSampler
from losses import CombinedLoss, RecallAtKLoss, TCMLoss
from reproduce import agreement, distributed, sharding
from reproduce.two_pass import two_pass_backward

CLASSES, IMAGES_PER_CLASS, DIM, STEPS = 8, 6, 5, 5
SHARD_ROWS = 37

# name: (loss, chunk size or None, whether the backbone rests in the first two steps)
CASES = {
    "pairs": (lambda: ContrastiveLoss(), None, False),
    "proxies": (lambda: ProxyAnchorLoss(CLASSES, DIM), None, False),
    "arcface": (lambda: ArcFaceLoss(CLASSES, DIM), None, False),
    "tcm": (lambda: CombinedLoss(ProxyAnchorLoss(CLASSES, DIM), TCMLoss()), None, False),
    "recall_at_k": (lambda: RecallAtKLoss(), None, False),
    "tcm in chunks": (lambda: CombinedLoss(ProxyAnchorLoss(CLASSES, DIM), TCMLoss()), 3, False),
    "resting parts": (lambda: ProxyAnchorLoss(CLASSES, DIM), None, True),
}


class Network(nn.Module):
    """Small, float64, without statistics of the batch."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(12, 16), nn.Tanh(), nn.LayerNorm(16))
        self.head = nn.Linear(16, DIM)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return normalise(self.head(self.backbone(rows)))


def run_case(name: str, processes: distributed.Processes) -> dict[str, torch.Tensor]:
    """Trains five steps; returns losses, last gradients and weights, all by name."""
    build_loss, chunk_size, rests = CASES[name]
    # Every process starts from other weights: those of rank 0 must win.
    torch.manual_seed(100 + processes.rank)
    network, loss = Network().double(), build_loss().double()
    distributed.broadcast(loss)
    wrapped = distributed.wrap(network, parts_rest=rests)
    optimizer = torch.optim.SGD(
        [*network.parameters(), *loss.parameters()], lr=0.05, momentum=0.9, weight_decay=1e-3
    )
    generator = torch.Generator().manual_seed(7)
    rows = torch.randn(CLASSES * IMAGES_PER_CLASS, 12, dtype=torch.float64, generator=generator)
    codes = np.repeat(np.arange(CLASSES), IMAGES_PER_CLASS)
    sampler = ClassBalancedBatchSampler(
        codes, 4, 4, batches=STEPS, rank=processes.rank, world_size=processes.world_size
    )
    out: dict[str, torch.Tensor] = {}
    for step, positions in enumerate(sampler):
        network.backbone.requires_grad_(not (rests and step < 2))
        labels = distributed.gather_labels(torch.from_numpy(codes[positions]))
        optimizer.zero_grad()

        def whole(embeddings: torch.Tensor, labels=labels) -> torch.Tensor:
            return loss(distributed.gather(embeddings), labels)

        if chunk_size is None:
            value = whole(wrapped(rows[positions]))
            value.backward()
        else:
            value = two_pass_backward(wrapped, wrapped, whole, rows[positions], chunk_size)
        distributed.average_gradients(loss)
        out[f"loss {step}"] = value.detach()
        if step == STEPS - 1:
            for part in (network, loss):
                for key, parameter in part.named_parameters():
                    out[f"gradient {type(part).__name__}.{key}"] = parameter.grad.clone()
        optimizer.step()
    for part in (network, loss):
        for key, parameter in part.named_parameters():
            out[f"weight {type(part).__name__}.{key}"] = parameter.detach().clone()
    return out


def evaluate_sharded(processes: distributed.Processes) -> dict[str, torch.Tensor]:
    """Rows embedded shard by shard and joined; a flag raised by the last process alone."""
    table = np.arange(SHARD_ROWS * 3, dtype=np.float32).reshape(SHARD_ROWS, 3)
    mine = sharding.shard(SHARD_ROWS, processes)
    cpu = torch.device("cpu")
    joined = sharding.join_shards(table[mine.start : mine.stop], SHARD_ROWS, cpu)
    none = sharding.shard(1, processes)
    single = sharding.join_shards(table[none.start : none.stop], 1, cpu)
    last = processes.rank == processes.world_size - 1
    return {
        "joined": torch.from_numpy(joined),
        "single": torch.from_numpy(single),
        "flags": torch.tensor(agreement.in_any_process([last, False], cpu)),
        "mine": torch.tensor(list(mine)),
    }


def main(path: str) -> None:
    """Runs all cases and writes what each rank got to ``path.<rank>``."""
    processes = distributed.start(torch.device("cpu"))
    out = {name: run_case(name, processes) for name in CASES}
    out["evaluation"] = evaluate_sharded(processes)
    torch.save(out, f"{path}.{processes.rank}")
    torch.distributed.barrier()
    distributed.stop()


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(sys.argv[1])
