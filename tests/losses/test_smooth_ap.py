"""Smooth-AP against a transcription with loops, the library where it is right, and known values."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pytorch_metric_learning.losses import SmoothAPLoss as LibrarySmoothAP

import losses
from common.errors import UserError


def transcription(x: torch.Tensor, labels: list[int], temperature: float) -> float:
    """The definition, one query, positive and other image at a time, in plain Python numbers."""
    x = (x / x.norm(dim=1, keepdim=True)).tolist()

    def similarity(a, b):
        return sum(p * q for p, q in zip(x[a], x[b], strict=True))

    def rank(query, item, among):
        total = 1.0
        for other in among:
            if other != item:
                gap = (similarity(query, other) - similarity(query, item)) / temperature
                total += 1 / (1 + math.exp(-gap))
        return total

    everyone = range(len(x))
    lost = []
    for query in everyone:
        mates = [i for i in everyone if labels[i] == labels[query]]
        if len(mates) > 1:
            ratios = [rank(query, i, mates) / rank(query, i, everyone) for i in mates]
            lost.append(1 - sum(ratios) / len(mates))
    return sum(lost) / len(lost) if lost else 0.0


@settings(max_examples=25, deadline=None)
@given(
    labels=st.lists(st.integers(0, 3), min_size=2, max_size=9),
    seed=st.integers(0, 1000),
    temperature=st.sampled_from([0.05, 0.3]),
)
def test_agrees_with_the_transcription(labels, seed, temperature):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(len(labels), 4, generator=generator, dtype=torch.float64)
    value = losses.build("smooth_ap", 4, 4, temperature=temperature)(x, torch.tensor(labels))
    assert float(value) == pytest.approx(transcription(x, labels, temperature), rel=1e-9, abs=1e-12)


def test_agrees_with_the_library_where_that_is_right():
    """The library takes the number of images of a class for that of classes: right if equal."""
    x = torch.randn(16, 8, generator=torch.Generator().manual_seed(1))
    labels = torch.arange(4).repeat_interleave(4)
    ours = losses.build("smooth_ap", 4, 8, temperature=0.1)(x, labels)
    torch.testing.assert_close(ours, LibrarySmoothAP(temperature=0.1)(x, labels))


def test_perfect_embeddings_cost_nothing_whatever_the_number_of_classes():
    x = torch.eye(6).repeat_interleave(2, dim=0)
    labels = torch.arange(6).repeat_interleave(2)
    assert float(losses.build("smooth_ap", 6, 6)(x, labels)) == pytest.approx(0, abs=1e-6)
    # Why the library's is not used.
    assert float(LibrarySmoothAP()(x, labels)) > 0.2


def test_the_order_of_the_batch_does_not_matter():
    generator = torch.Generator().manual_seed(2)
    x, labels = torch.randn(12, 5, generator=generator), torch.arange(4).repeat(3)
    order = torch.randperm(12, generator=generator)
    loss = losses.build("smooth_ap", 4, 5, temperature=0.1)
    torch.testing.assert_close(loss(x, labels), loss(x[order], labels[order]))


def test_gradient_against_finite_differences():
    x = torch.randn(7, 3, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    labels = torch.tensor([0, 1, 0, 2, 1, 1, 3])
    loss = losses.build("smooth_ap", 4, 3, temperature=0.2)
    assert torch.autograd.gradcheck(lambda y: loss(y, labels), x.requires_grad_())


def test_without_a_pair_it_is_zero_and_connected():
    x = torch.eye(3).requires_grad_()
    value = losses.build("smooth_ap", 3, 3)(x, torch.tensor([0, 1, 2]))
    value.backward()
    assert value.item() == 0
    assert torch.isfinite(x.grad).all()


def test_a_temperature_of_zero_is_an_error():
    with pytest.raises(UserError, match="temperature must be above 0"):
        losses.build("smooth_ap", 3, 3, temperature=0)
