"""The parts of OneFace (our reading): quantile, Sinkhorn plan, queue."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import normalize

from losses.embedding_queue import EMPTY, EmbeddingQueue
from losses.sinkhorn import sinkhorn_plan
from losses.threshold_consistency import false_accept_pair

DIM = 6


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    rows=st.integers(1, 8),
    columns=st.integers(1, 30),
    share=st.floats(0, 1),
    far=st.sampled_from([1e-4, 0.01, 0.1, 0.29, 0.5, 0.999]),
    ties=st.booleans(),
)
def test_the_quantile_is_the_kth_largest_of_the_negatives(seed, rows, columns, share, far, ties):
    rng = np.random.default_rng(seed)
    s = rng.normal(size=(rows, columns))
    s = np.round(s) if ties else s
    negative = rng.random((rows, columns)) < share
    masked = torch.from_numpy(np.where(negative, s, -np.inf))
    pair = false_accept_pair(masked, far)
    ordered = sorted(s[negative].tolist(), reverse=True)
    if not ordered:
        assert pair is None
        return
    # far is the decimal number that it is written as.
    k = max(1, math.floor(round(far * len(ordered), 6)))
    assert negative[pair]
    assert s[pair] == ordered[k - 1]


@pytest.mark.parametrize("temperature", [0.05, 0.5, 5.0])
@pytest.mark.parametrize(("count", "prototypes"), [(64, 8), (10, 3), (5, 5), (4, 1)])
def test_the_sinkhorn_plan_is_balanced(temperature, count, prototypes):
    generator = torch.Generator().manual_seed(0)
    x = normalize(torch.randn(count, DIM, generator=generator, dtype=torch.float64))
    y = normalize(torch.randn(prototypes, DIM, generator=generator, dtype=torch.float64))
    plan = sinkhorn_plan(x @ y.T, temperature)
    assert (plan >= 0).all()
    ones = torch.ones(max(count, prototypes), dtype=torch.float64)
    torch.testing.assert_close(plan.sum(0), ones[:prototypes] / prototypes)
    torch.testing.assert_close(plan.sum(1), ones[:count] / count, rtol=1e-2, atol=0)


def test_a_plan_by_hand():
    """Scaling [[2, 1], [1, 2]] keeps its shape: every row and column sums to 3 alike."""
    scores = torch.tensor([[2.0, 1.0], [1.0, 2.0]], dtype=torch.float64).log()
    expected = torch.tensor([[2.0, 1.0], [1.0, 2.0]], dtype=torch.float64) / 6
    torch.testing.assert_close(sinkhorn_plan(scores, 1.0), expected)


def test_the_queue_is_first_in_first_out_and_wraps_around():
    queue = EmbeddingQueue(5, 1)
    pushed = []
    for count in (2, 2, 3, 1, 5, 8, 1):
        rows = torch.arange(len(pushed), len(pushed) + count)
        pushed += rows.tolist()
        queue.push(rows[:, None].float(), rows)
        embeddings, labels = queue.in_order()
        assert labels.tolist() == pushed[-5:]
        assert embeddings[:, 0].tolist() == pushed[-5:]


def test_empty_places_count_for_nothing():
    queue = EmbeddingQueue(5, 2)
    assert len(queue.in_order()[1]) == 0
    queue.push(torch.ones(2, 2), torch.tensor([3, 4]))
    assert (queue.labels == EMPTY).sum() == 3
    assert queue.in_order()[1].tolist() == [3, 4]
