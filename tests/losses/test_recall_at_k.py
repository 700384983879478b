"""RS@K against a direct transcription of its formula with loops, and SiMix."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import normalize

from common.errors import UserError
from losses.recall_at_k import RecallAtKLoss
from losses.simix import SiMix


def batch(seed, count=14, dim=4, classes=5):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(classes, (count,), generator=generator)
    x = torch.randn(count, dim, generator=generator, dtype=torch.float64)
    return x.requires_grad_(), labels


def by_loop(x, labels, ks, rank_temperature, k_temperature):
    """Patel et al., one query, positive and other at a time; dot products of x as it is."""
    total, queries = 0 * x.sum(), 0
    n = len(x)
    for q in range(n):
        positives = [p for p in range(n) if p != q and labels[p] == labels[q]]
        if not positives:
            continue
        queries += 1
        for k in ks:
            hits = 0
            for p in positives:
                rank = 1
                for z in range(n):
                    if z not in (q, p):
                        gap = x[q] @ x[z] - x[q] @ x[p]
                        rank = rank + torch.sigmoid(gap / rank_temperature)
                hits = hits + torch.sigmoid((k - rank) / k_temperature)
            recall = torch.clamp(hits, max=k) / min(k, len(positives))
            total = total + (1 - recall) / len(ks)
    return total / max(queries, 1)


@pytest.mark.parametrize(
    ("ks", "rank_temperature", "k_temperature"),
    [((1, 2, 4, 8, 16), 0.01, 1.0), ((1, 3), 0.3, 0.1), ((2,), 1.0, 0.01)],
)
@pytest.mark.parametrize(("classes", "block_elements"), [(1, 100), (3, 1), (9, 2**21)])
def test_value_and_gradient_are_the_loops(
    ks, rank_temperature, k_temperature, classes, block_elements
):
    x, labels = batch(classes, count=12, classes=classes)
    loss = RecallAtKLoss(ks, rank_temperature, k_temperature, block_elements)
    value = loss(x, labels)
    (gradient,) = torch.autograd.grad(value, x)
    expected = by_loop(normalize(x), labels, ks, rank_temperature, k_temperature)
    (expected_gradient,) = torch.autograd.grad(expected, x)
    torch.testing.assert_close(value, expected, rtol=1e-12, atol=1e-14)
    torch.testing.assert_close(gradient, expected_gradient, rtol=1e-9, atol=1e-12)


def test_gradcheck_at_soft_temperatures():
    x, labels = batch(3, count=8, dim=3)
    loss = RecallAtKLoss((1, 2), rank_temperature=0.5, k_temperature=1.0)
    assert torch.autograd.gradcheck(lambda x: loss(x, labels), x)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), count=st.integers(2, 40), classes=st.integers(1, 10))
def test_the_loss_lies_between_0_and_1_and_does_not_know_the_order(seed, count, classes):
    x, labels = batch(seed, count=count, classes=classes)
    value = RecallAtKLoss()(x, labels)
    assert 0 <= float(value.detach()) <= 1
    order = torch.randperm(count, generator=torch.Generator().manual_seed(seed))
    torch.testing.assert_close(RecallAtKLoss()(x[order], labels[order]), value)


def test_the_published_shape_of_a_perfect_ranking():
    """4 images of each class, ranks 1, 2, 3: recall@1 is sigmoid(0) + sigmoid(-1) + sigmoid(-2)."""
    # A class is a fan of angles 0, 1, 4, 6 (no two differences equal) in a plane of its own.
    angles = 0.1 * torch.tensor([0.0, 1.0, 4.0, 6.0], dtype=torch.float64)
    x = torch.block_diag(*[torch.stack([angles.cos(), angles.sin()], 1)] * 3)
    labels = torch.arange(3).repeat_interleave(4)
    value = RecallAtKLoss(ks=(1,), rank_temperature=1e-6)(x, labels)
    step = torch.sigmoid(torch.tensor([0.0, -1.0, -2.0], dtype=torch.float64))
    torch.testing.assert_close(value, 1 - step.sum())


def test_without_a_pair_the_loss_is_a_connected_zero():
    x = torch.randn(3, 4, requires_grad=True)
    value = RecallAtKLoss()(x, torch.tensor([0, 1, 2]))
    value.backward()
    assert value == 0
    assert (x.grad == 0).all()


def test_duplicates_have_a_finite_gradient():
    x = torch.ones(6, 3, requires_grad=True)
    value = RecallAtKLoss()(x, torch.tensor([0, 0, 0, 1, 1, 1]))
    value.backward()
    assert torch.isfinite(x.grad).all()


def test_half_precision_is_computed_in_float32():
    x, labels = batch(4)
    half = x.detach().to(torch.bfloat16)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        value = RecallAtKLoss()(half, labels)
    assert value.dtype == torch.float32
    assert value == RecallAtKLoss()(half.float(), labels)


def test_options_out_of_range_are_errors():
    with pytest.raises(UserError, match="at least 1"):
        RecallAtKLoss(ks=(0, 1))
    with pytest.raises(UserError, match="temperature"):
        RecallAtKLoss(rank_temperature=0)


def test_simix_puts_one_point_between_each_pair_of_a_class():
    generator = torch.Generator().manual_seed(0)
    x = normalize(torch.randn(9, 5, generator=generator, dtype=torch.float64))
    labels = torch.tensor([7, 7, 2, 7, 2, 7, 3, 2, 9])
    mixed, mixed_labels = SiMix(seed=1)(x, labels)
    # Pairs: 6 in class 7, 3 in class 2.
    assert mixed.shape == (18, 5)
    torch.testing.assert_close(mixed[:9], x, rtol=0, atol=0)
    assert sorted(mixed_labels[9:].tolist()) == [2] * 3 + [7] * 6
    seen = set()
    for point, label in zip(mixed[9:], mixed_labels[9:], strict=True):
        ends = [i for i in range(9) if labels[i] == label]
        pairs = [(i, j) for i in ends for j in ends if i < j]
        on = [
            (i, j)
            for i, j in pairs
            if torch.allclose((point - x[i]).norm() + (point - x[j]).norm(), (x[i] - x[j]).norm())
        ]
        assert len(on) == 1
        seen.update(on)
        assert point.norm() < 1
    assert len(seen) == 9


def test_simix_draws_anew_and_resumes():
    x, labels = batch(5)
    mix = SiMix(seed=3)
    first, _ = mix(x, labels)
    saved = {name: value.clone() for name, value in mix.state_dict().items()}
    second, _ = mix(x, labels)
    assert not torch.equal(first, second)
    resumed = SiMix(seed=0)
    resumed.load_state_dict(saved)
    torch.testing.assert_close(resumed(x, labels)[0], second, rtol=0, atol=0)
    torch.testing.assert_close(SiMix(seed=3)(x, labels)[0], first, rtol=0, atol=0)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_cuda_and_cpu_agree():
    x, labels = batch(6, count=300, dim=32, classes=40)
    loss = RecallAtKLoss()
    (expected,) = torch.autograd.grad(loss(x, labels), x)
    on_gpu = x.detach().cuda().requires_grad_()
    (gradient,) = torch.autograd.grad(loss(on_gpu, labels.cuda()), on_gpu)
    torch.testing.assert_close(gradient.cpu(), expected, rtol=1e-8, atol=1e-12)
