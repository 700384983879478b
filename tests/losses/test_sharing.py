"""Batches, queue and prototypes of two processes, over gloo."""

import socket

import numpy as np
import torch
from torch import distributed, multiprocessing

from losses.sharing import gather_batches
from losses.threshold_consistency import ThresholdConsistencyPenalty
from tests.losses.test_oneface import DIM, batch


def rank_batch(rank, shared):
    """12 images in process 0 and 9 in process 1, or the same 12 in both."""
    return batch(50) if shared else batch(50 + rank, count=12 - 3 * rank)


def small_penalty():
    torch.manual_seed(0)
    return ThresholdConsistencyPenalty(DIM, domains=2, queue_size=20, far=0.1).double()


def process(rank, port, results):
    distributed.init_process_group(
        "gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2
    )
    for shared in (False, True):
        penalty = small_penalty()
        x, labels = rank_batch(rank, shared)
        penalty(x, labels)
        everyone, _, own = gather_batches(x, labels)
        state = {name: value.numpy() for name, value in penalty.state_dict().items()}
        results.put(((shared, rank), state, everyone.numpy(), (own.start, own.stop)))
    distributed.barrier()
    distributed.destroy_process_group()


def test_processes_share_queue_and_prototypes():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    children = [context.Process(target=process, args=(rank, port, results)) for rank in (0, 1)]
    for child in children:
        child.start()
    found = {key: rest for key, *rest in (results.get(timeout=120) for _ in range(4))}
    for child in children:
        child.join(60)
        assert child.exitcode == 0
    for shared, starts in ((False, [(0, 12), (12, 21)]), (True, [(0, 12), (0, 12)])):
        # What one process does with the whole batch.
        parts = [rank_batch(rank, shared) for rank in ((0,) if shared else (0, 1))]
        x, labels = (torch.cat(part) for part in zip(*parts, strict=True))
        alone = small_penalty()
        alone(x, labels)
        for rank in (0, 1):
            state, everyone, own = found[shared, rank]
            assert own == starts[rank]
            np.testing.assert_array_equal(everyone, x.numpy())
            for name, value in alone.state_dict().items():
                np.testing.assert_allclose(state[name], value.numpy(), rtol=1e-12)
