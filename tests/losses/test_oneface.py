"""OneFace (our reading): the penalty against its definition, its state, and the whole loss."""

import math

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

import losses
from common.errors import UserError
from losses.threshold_consistency import ThresholdConsistencyPenalty

DIM = 6


def batch(seed, count=12, classes=4):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(classes, (count,), generator=generator)
    x = torch.randn(count, DIM, generator=generator, dtype=torch.float64)
    return x, labels


def filled(domains=3, far=0.1, batches=4, **options):
    """A penalty with some batches in its queue and moved prototypes."""
    torch.manual_seed(0)
    penalty = ThresholdConsistencyPenalty(DIM, domains, 40, far, **options).double()
    for seed in range(100, 100 + batches):
        penalty(*batch(seed))
    return penalty


def test_one_popular_prototype_does_not_take_all():
    torch.manual_seed(0)
    penalty = ThresholdConsistencyPenalty(DIM, domains=4).double()
    x = normalize(penalty.prototypes[:1] + 0.1 * torch.randn(400, DIM, dtype=torch.float64))
    nearest = (x @ penalty.prototypes.T).argmax(1)
    assert (nearest == 0).all()
    counts = torch.bincount(penalty.assign(x), minlength=4)
    assert counts.min() > 60
    assert counts.max() < 140


def by_hand(penalty, x, labels):
    """The definition, with loops over images, queue and domains."""
    unit = normalize(x)
    domain = penalty.assign(unit)
    stored, stored_labels = penalty.queue.in_order()
    stored = stored.clone()

    def threshold(rows):
        values = [
            unit[i] @ stored[q]
            for i in rows
            for q in range(len(stored))
            if labels[i] != stored_labels[q]
        ]
        values.sort(key=lambda value: -float(value.detach()))
        return values[max(1, math.floor(penalty.far * len(values))) - 1] if values else None

    calibration = threshold(range(len(x)))
    gaps = []
    for m in range(len(penalty.prototypes)):
        of_domain = threshold([i for i in range(len(x)) if domain[i] == m])
        if of_domain is not None:
            gaps.append((of_domain - calibration.detach()).abs())
    return sum(gaps) / len(gaps)


@pytest.mark.parametrize("far", [0.001, 0.1, 0.5])
@pytest.mark.parametrize("seed", range(3))
def test_the_penalty_and_its_gradient_are_the_definitions(far, seed):
    penalty = filled(far=far)
    x, labels = batch(seed)
    x.requires_grad_()
    expected = by_hand(penalty, x, labels)
    (expected_gradient,) = torch.autograd.grad(expected, x)
    value = penalty(x, labels)
    # The queue has changed meanwhile.
    (gradient,) = torch.autograd.grad(value, x)
    assert value > 0
    torch.testing.assert_close(value, expected, rtol=1e-10, atol=0)
    torch.testing.assert_close(gradient, expected_gradient, rtol=1e-9, atol=1e-12)


def test_the_gradient_is_that_of_finite_differences():
    penalty = filled()
    x, labels = batch(7)

    def value(x):
        # Detached from the calibration threshold: held where it stands at x.
        penalty(x, labels)
        return penalty.last_thresholds[1]

    penalty.eval()
    calibration = penalty(x, labels) * 0 + penalty.last_thresholds[0]
    base = value(x)
    leaf = x.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(penalty(leaf, labels), leaf)
    numeric = torch.zeros_like(x)
    for index in np.ndindex(*x.shape):
        moved = x.clone()
        moved[index] += 1e-6
        change = (value(moved) - calibration).abs() - (base - calibration).abs()
        numeric[index] = change.mean() / 1e-6
    torch.testing.assert_close(gradient, numeric, rtol=1e-4, atol=1e-6)
    assert gradient.abs().max() > 0


def test_one_domain_has_no_penalty():
    penalty = filled(domains=1)
    x, labels = batch(1)
    x.requires_grad_()
    value = penalty(x, labels)
    value.backward()
    assert value == 0
    assert (x.grad == 0).all()


def test_without_negatives_the_penalty_is_a_connected_zero():
    penalty = ThresholdConsistencyPenalty(DIM).double()
    x, labels = batch(2)
    same = torch.zeros_like(labels)
    x.requires_grad_()
    for _ in range(2):  # an empty queue, then one of the same class only
        value = penalty(x, same)
        (gradient,) = torch.autograd.grad(value, x)
        assert value == 0
        assert (gradient == 0).all()
    assert penalty(x, labels) > 0


def test_the_batch_itself_is_never_among_its_negatives():
    penalty = ThresholdConsistencyPenalty(DIM, domains=2, far=0.5).double()
    x, labels = batch(3)
    assert penalty(x, labels) == 0
    assert torch.isnan(penalty.last_thresholds[0])
    stored, stored_labels = penalty.queue.in_order()
    torch.testing.assert_close(stored, normalize(x))
    assert stored_labels.tolist() == labels.tolist()


def test_evaluation_mode_changes_nothing():
    penalty = filled().eval()
    before = {name: value.clone() for name, value in penalty.state_dict().items()}
    penalty(*batch(4))
    for name, value in penalty.state_dict().items():
        torch.testing.assert_close(value, before[name], rtol=0, atol=0)


def test_prototypes_follow_their_images_on_the_sphere():
    penalty = filled(momentum=0.9)
    x, labels = batch(5)
    unit = normalize(x)
    domain, before = penalty.assign(unit), penalty.prototypes.clone()
    penalty(x, labels)
    for m in range(3):
        expected = normalize(0.9 * before[m] + 0.1 * unit[domain == m].mean(0), dim=0)
        torch.testing.assert_close(penalty.prototypes[m], expected)


def test_resumed_from_its_state_it_goes_on_alike():
    options = {"domains": 3, "queue_size": 30, "far": 0.1}
    loss = losses.build("oneface", 4, DIM, **options)
    for seed in range(4):
        x, labels = batch(seed)
        loss(x.float(), labels)
    torch.manual_seed(99)
    resumed = losses.build("oneface", 4, DIM, **options)
    resumed.load_state_dict(loss.state_dict())
    for seed in range(4, 7):
        x, labels = batch(seed)
        torch.testing.assert_close(
            resumed(x.float(), labels), loss(x.float(), labels), rtol=0, atol=0
        )


def test_oneface_is_arcface_and_the_weighted_penalty():
    torch.manual_seed(0)
    loss = losses.build("oneface", 4, DIM, margin=0.3, scale=16.0, weight=2.0, far=0.2)
    x, labels = batch(8)
    x = x.float()
    loss(x, labels)
    value = loss(x, labels)
    terms = loss.terms()
    torch.testing.assert_close(value, terms["arcface"] + 2 * terms["threshold_penalty"])
    torch.manual_seed(0)
    arcface = losses.build("arcface", 4, DIM, margin=0.3, scale=16.0)
    torch.testing.assert_close(terms["arcface"], arcface(x, labels))
    assert terms["threshold_penalty"] > 0


@pytest.mark.parametrize(
    "options", [{"domains": 0}, {"queue_size": 0}, {"far": 0.0}, {"far": 1.0}, {"momentum": 1.0}]
)
def test_options_out_of_range_are_errors(options):
    with pytest.raises(UserError, match="the penalty needs"):
        losses.build("oneface", 4, DIM, **options)
