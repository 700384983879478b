"""TCM against the paper's worked value, pytorch-metric-learning, and a loop over pairs."""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pytorch_metric_learning.losses import ThresholdConsistentMarginLoss
from torch.nn.functional import normalize

from losses.tcm import TCMLoss


def batch(seed, count=24, dim=6, classes=5, spread=0.6, dtype=torch.float64):
    """Clustered embeddings, not normalised, with unsorted labels."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(classes, (count,), generator=generator)
    centres = torch.randn(classes, dim, generator=generator, dtype=dtype)
    noise = torch.randn(count, dim, generator=generator, dtype=dtype)
    return (centres[labels] + spread * noise).requires_grad_(), labels


def value_and_gradient(loss, embeddings, labels):
    value = loss(embeddings, labels)
    (gradient,) = torch.autograd.grad(value, embeddings)
    return value.detach(), gradient


def by_loop(x, labels, lambda_plus, lambda_minus, margin_plus, margin_minus, indicator):
    """Eq. 5, pair by pair, for autograd to differentiate."""
    x = normalize(x)
    positive, negative = [], []
    for i, j in itertools.combinations(range(len(x)), 2):
        s = x[i] @ x[j]
        if labels[i] == labels[j] and (not indicator or s <= margin_plus):
            positive.append(margin_plus - s)
        elif labels[i] != labels[j] and (not indicator or s >= margin_minus):
            negative.append(s - margin_minus)
    terms = [
        weight * torch.stack(part).mean()
        for weight, part in ((lambda_plus, positive), (lambda_minus, negative))
        if part
    ]
    return sum(terms) + 0 * x.sum()


def test_the_worked_value_of_the_paper():
    x = torch.tensor([[0, 1], [0.43, 0.9], [1, 0], [0.5, 0.5]], dtype=torch.float64)
    labels = torch.tensor([0, 0, 1, 1])
    assert float(TCMLoss(lambda_minus=0)(x, labels)) == pytest.approx(0.19289, abs=1e-5)
    assert float(TCMLoss(lambda_plus=0)(x, labels)) == pytest.approx(0.32498, abs=1e-5)
    assert float(TCMLoss()(x, labels)) == pytest.approx(0.51788, abs=1e-5)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    count=st.integers(2, 40),
    classes=st.integers(1, 12),
    spread=st.floats(0, 2),
    margin_plus=st.floats(-0.9, 0.99),
    margin_minus=st.floats(-0.9, 0.99),
    lambda_plus=st.floats(0, 3),
    lambda_minus=st.floats(0, 3),
)
def test_value_and_gradient_are_pytorch_metric_learnings(
    seed, count, classes, spread, margin_plus, margin_minus, lambda_plus, lambda_minus
):
    x, labels = batch(seed, count, classes=classes, spread=spread)
    options = {
        "lambda_plus": lambda_plus,
        "lambda_minus": lambda_minus,
        "margin_plus": margin_plus,
        "margin_minus": margin_minus,
    }
    value, gradient = value_and_gradient(TCMLoss(**options), x, labels)
    # The library returns a plain number, without a graph, where no pair is active.
    expected = ThresholdConsistentMarginLoss(**options)(x, labels) + 0 * x.sum()
    (expected_gradient,) = torch.autograd.grad(expected, x)
    torch.testing.assert_close(value, expected.detach(), rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(gradient, expected_gradient, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("indicator", [True, False])
@pytest.mark.parametrize("weights", [(1.0, 1.0), (0.7, 0.0), (0.0, 2.0)])
def test_value_and_gradient_are_the_loops(indicator, weights):
    x, labels = batch(1)
    value, gradient = value_and_gradient(TCMLoss(*weights, 0.8, 0.4, indicator), x, labels)
    expected = by_loop(x, labels, *weights, 0.8, 0.4, indicator)
    (expected_gradient,) = torch.autograd.grad(expected, x)
    torch.testing.assert_close(value, expected.detach(), rtol=1e-12, atol=0)
    torch.testing.assert_close(gradient, expected_gradient, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("classes", [2, 3, 40, 1200])
def test_several_tiles_give_what_one_matrix_gives(classes):
    """More images than a tile holds; classes that fill tiles, classes that cross their edges."""
    x, labels = batch(2, count=1200, dim=8, classes=classes)
    value, gradient = value_and_gradient(TCMLoss(), x, labels)
    s = normalize(x) @ normalize(x).T
    upper = torch.ones_like(s, dtype=torch.bool).triu(1)
    same = labels[:, None] == labels[None, :]
    positive, negative = s[upper & same & (s <= 0.9)], s[upper & ~same & (s >= 0.5)]
    expected = (0.9 - positive).mean() + (negative - 0.5).mean()
    (expected_gradient,) = torch.autograd.grad(expected, x)
    torch.testing.assert_close(value, expected.detach(), rtol=1e-12, atol=0)
    torch.testing.assert_close(gradient, expected_gradient, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("indicator", [True, False])
def test_gradcheck(indicator):
    x, labels = batch(3, count=7, dim=3)
    assert torch.autograd.gradcheck(lambda x: TCMLoss(indicator=indicator)(x, labels), x)


def test_without_indicators_the_gradient_ignores_the_margins_and_the_value_may_be_negative():
    x, labels = batch(4)
    value, gradient = value_and_gradient(TCMLoss(1, 1, -0.9, 0.9, indicator=False), x, labels)
    _, other = value_and_gradient(TCMLoss(1, 1, 0.9, 0.1, indicator=False), x, labels)
    assert value < 0
    torch.testing.assert_close(gradient, other, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("vectors", "labels"),
    [
        ([[1, 0], [1, 0], [0, 1], [0, 1]], [0, 0, 1, 1]),  # neither side has a hard pair
        ([[1, 0]], [0]),
        ([[1, 0], [0, 1]], [0, 1]),  # no class twice
        ([[1, 0], [1, 0], [1, 0]], [5, 5, 5]),  # one class, all duplicates
    ],
)
def test_without_an_active_pair_the_loss_is_a_connected_zero(vectors, labels):
    x = torch.tensor(vectors, dtype=torch.float64, requires_grad=True)
    value, gradient = value_and_gradient(TCMLoss(), x, torch.tensor(labels))
    assert value == 0
    assert (gradient == 0).all()


def test_one_class_only_has_a_positive_term_only():
    x, _ = batch(5)
    labels = torch.zeros(len(x), dtype=torch.int64)
    value = TCMLoss()(x, labels)
    assert value > 0
    assert value == TCMLoss(lambda_minus=0)(x, labels)


def test_no_class_twice_has_a_negative_term_only():
    x = torch.tensor([[1.0, 0], [0.8, 0.6], [0, 1]], dtype=torch.float64, requires_grad=True)
    # Similarities 0.8, 0.6 and 0: two of three pairs lie above 0.5, by 0.3 and 0.1.
    loss = TCMLoss(lambda_minus=3)
    value, gradient = value_and_gradient(loss, x, torch.tensor([4, 2, 9]))
    assert float(value) == pytest.approx(3 * (0.3 + 0.1) / 2)
    assert gradient.abs().max() > 0
    stats = {name: float(number) for name, number in loss.last_stats.items()}
    assert stats == pytest.approx(
        {
            "positive_active": 0,
            "negative_active": 2 / 3,
            "positive_violation": 0,
            "negative_violation": 0.2,
        }
    )


def test_duplicates_across_classes_are_pushed_at_full_strength():
    x = torch.ones(4, 3, dtype=torch.float64, requires_grad=True)
    loss = TCMLoss()
    value, gradient = value_and_gradient(loss, x, torch.tensor([0, 0, 1, 1]))
    assert float(value) == pytest.approx(0.5)
    assert torch.isfinite(gradient).all()
    assert float(loss.last_stats["positive_active"]) == 0
    assert float(loss.last_stats["negative_active"]) == 1
    assert float(loss.last_stats["negative_violation"]) == pytest.approx(0.5)


def test_statistics_are_shares_and_means_of_the_active_pairs():
    x, labels = batch(6)
    loss = TCMLoss()
    loss(x, labels)
    s = (normalize(x) @ normalize(x).T).detach()
    pairs = [
        (float(s[i, j]), bool(labels[i] == labels[j]))
        for i, j in itertools.combinations(range(len(x)), 2)
    ]
    positive = [0.9 - value for value, same in pairs if same]
    negative = [value - 0.5 for value, same in pairs if not same]
    for kind, gaps in (("positive", positive), ("negative", negative)):
        active = [gap for gap in gaps if gap >= 0]
        assert float(loss.last_stats[f"{kind}_active"]) == pytest.approx(len(active) / len(gaps))
        mean = sum(active) / len(active)
        assert float(loss.last_stats[f"{kind}_violation"]) == pytest.approx(mean)
        assert not loss.last_stats[f"{kind}_violation"].requires_grad


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_computed_in_float32(dtype):
    x, labels = batch(7, dtype=torch.float32)
    half = x.detach().to(dtype).requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        value, gradient = value_and_gradient(TCMLoss(), half, labels)
    expected, expected_gradient = value_and_gradient(
        TCMLoss(), half.detach().float().requires_grad_(), labels
    )
    assert value.dtype == torch.float32
    assert gradient.dtype == dtype
    assert value == expected
    torch.testing.assert_close(gradient, expected_gradient.to(dtype), rtol=0, atol=0)


def test_label_kinds_and_order_do_not_matter():
    x, labels = batch(8)
    expected = TCMLoss()(x, labels)
    shuffle = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(TCMLoss()(x[shuffle], labels[shuffle]), expected)
    torch.testing.assert_close(TCMLoss()(x, (labels * 1000 - 7).to(torch.int32)), expected)


def test_errors_are_clear():
    x, labels = batch(9)
    with pytest.raises(ValueError, match=r"expected embeddings \(B, D\) and labels \(B,\)"):
        TCMLoss()(x, labels[:-1])
    with pytest.raises(ValueError, match=r"expected embeddings \(B, D\)"):
        TCMLoss()(x[0], labels)
    for value in (float("nan"), float("inf")):
        broken = x.detach().clone()
        broken[3, 2] = value
        with pytest.raises(ValueError, match="NaN or infinite"):
            TCMLoss()(broken, labels)
    with pytest.raises(ValueError, match="at least 0"):
        TCMLoss(lambda_plus=-1)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_cuda_and_cpu_agree():
    x, labels = batch(10, count=600, dtype=torch.float32)
    expected, expected_gradient = value_and_gradient(TCMLoss(), x, labels)
    on_gpu = x.detach().cuda().requires_grad_()
    value, gradient = value_and_gradient(TCMLoss(), on_gpu, labels.cuda())
    torch.testing.assert_close(value.cpu(), expected, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(gradient.cpu(), expected_gradient, rtol=1e-3, atol=1e-6)
