"""HIER and hyperbolic ProxyAnchor against slow transcriptions, in float64 under the same draws.

The transcriptions loop over anchors, triplets and proxies, use geoopt's distances, and leave the
gradient to autograd.
"""

import pytest
import torch

import losses
from common import poincare
from common.errors import UserError
from losses import ancestors
from losses.ancestors import ancestor_loss, reciprocal_neighbours, sample_triplets
from losses.hier import HIERLoss, HIERRegulariser
from losses.hyperbolic_proxy_anchor import HyperbolicProxyAnchorLoss
from tests.losses.slow_hier import (
    BALL,
    CLIP,
    CURVATURE,
    batch,
    gumbel,
    slow_ancestor_loss,
    slow_hier,
    slow_neighbours,
    slow_to_ball,
    slow_triplets,
)


@pytest.mark.parametrize("count", [1, 2, 4, 9, 14, 50])
def test_reciprocal_neighbours_and_triplets_are_the_transcriptions(count):
    x, labels = batch(1)
    similarity = torch.exp(-poincare.distance_matrix(x, x, CURVATURE)).detach()
    similarity += labels[:, None] == labels[None, :]
    near = reciprocal_neighbours(similarity, count)
    expected = slow_neighbours(similarity, count)
    assert [row.nonzero()[:, 0].tolist() for row in near] == expected
    draws = torch.rand(2, len(x), 7, generator=torch.Generator().manual_seed(2))
    triplets = sample_triplets(near, 7, draws)
    found = list(zip(*(index.tolist() for index in triplets), strict=True))
    assert found == slow_triplets(similarity, count, 7, draws)


def test_triplets_are_drawn_uniformly():
    near = torch.zeros(6, 6, dtype=torch.bool)
    near[0, [1, 3, 4]] = True
    near[2, 5] = True  # a single neighbour: no anchor
    torch.manual_seed(0)
    i, j, k = sample_triplets(near, 6000)
    assert (i == 0).all()
    assert len(i) == 6000
    # 6000 draws: the standard deviation of a third is 37.
    assert torch.bincount(j, minlength=6).tolist() == pytest.approx(
        [0, 2000, 0, 2000, 2000, 0], abs=150
    )
    assert torch.bincount(k, minlength=6).tolist() == pytest.approx(
        [2000, 0, 2000, 0, 0, 2000], abs=150
    )


@pytest.mark.parametrize("seed", range(4))
def test_the_ancestor_loss_and_its_gradient_are_the_transcriptions(seed):
    torch.manual_seed(seed)
    distances = (3 * torch.rand(7, 9, dtype=torch.float64)).requires_grad_()
    i, j, k = torch.randint(7, (3, 40))
    keep = i != j
    triplets = [index[keep] for index in (i, j, k)]
    noise = torch.stack([gumbel((len(triplets[0]), 9)), gumbel((len(triplets[0]), 9))])
    value = ancestor_loss(distances, ancestors.Triplets(*triplets), 0.5, 0.4, noise)
    (gradient,) = torch.autograd.grad(value, distances)
    rows = list(zip(*(index.tolist() for index in triplets), strict=True))
    expected = slow_ancestor_loss(distances, rows, 0.5, 0.4, noise)
    (expected_gradient,) = torch.autograd.grad(expected, distances)
    assert value > 0
    torch.testing.assert_close(value, expected, rtol=1e-12, atol=0)
    torch.testing.assert_close(gradient, expected_gradient, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("elements", [1, 50, 2**18])
def test_chunks_do_not_change_the_result(elements, monkeypatch):
    torch.manual_seed(0)
    distances = torch.rand(6, 8, dtype=torch.float64, requires_grad=True)
    i, j, k = torch.randint(6, (3, 30))
    noise = torch.stack([gumbel((30, 8)), gumbel((30, 8))])
    triplets = ancestors.Triplets(i, j, k)
    results = []
    for size in (2**18, elements):
        monkeypatch.setattr(ancestors._AncestorLoss, "ELEMENTS", size)
        value = ancestor_loss(distances, triplets, 0.1, 0.1, noise)
        results += [value, *torch.autograd.grad(value, distances)]
    torch.testing.assert_close(results[2], results[0])
    torch.testing.assert_close(results[3], results[1])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("neighbours", "temperature"), [(6, 0.1), (20, 1.0)])
def test_the_regulariser_and_its_gradients_are_the_transcriptions(seed, neighbours, temperature):
    x, labels = batch(seed)
    torch.manual_seed(seed)
    loss = HIERRegulariser(6, 8, neighbours, 5, temperature, 0.1, CURVATURE, CLIP).double()
    torch.manual_seed(10 + seed)
    value = loss(x, labels)
    gradients = torch.autograd.grad(value, [x, loss.proxies])
    torch.manual_seed(10 + seed)
    expected = slow_hier(x, labels, loss.proxies, neighbours, 5, temperature, 0.1)
    expected_gradients = torch.autograd.grad(expected, [x, loss.proxies])
    assert value > 0
    torch.testing.assert_close(value, expected, rtol=1e-7, atol=0)
    for ours, theirs in zip(gradients, expected_gradients, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("similarity", ["distance", "cosine"])
def test_hyperbolic_proxy_anchor_and_its_gradients_are_the_transcriptions(similarity):
    x, labels = batch(3, classes=4)
    torch.manual_seed(0)
    # Seven classes, of which three have no image in the batch.
    loss = HyperbolicProxyAnchorLoss(7, 6, 0.2, 4.0, CURVATURE, CLIP, similarity).double()
    value = loss(x, labels)
    gradients = torch.autograd.grad(value, [x, loss.proxies])
    if similarity == "distance":
        s = -BALL.dist(x[:, None], slow_to_ball(loss.proxies)[None, :])
    else:
        s = torch.nn.functional.cosine_similarity(x[:, None], loss.proxies[None], dim=-1)
    pull, push = [], []
    for p in range(7):
        own = [i for i in range(len(x)) if labels[i] == p]
        rest = [i for i in range(len(x)) if labels[i] != p]
        if own:
            pull.append(torch.log1p(sum(torch.exp(-4.0 * (s[i, p] - 0.2)) for i in own)))
        push.append(torch.log1p(sum(torch.exp(4.0 * (s[i, p] + 0.2)) for i in rest)))
    expected = sum(pull) / len(pull) + sum(push) / 7
    expected_gradients = torch.autograd.grad(expected, [x, loss.proxies])
    torch.testing.assert_close(value, expected, rtol=1e-7, atol=0)
    for ours, theirs in zip(gradients, expected_gradients, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-9)


def test_far_points_do_not_overflow():
    x, labels = batch(4, dtype=torch.float32)
    loss = HyperbolicProxyAnchorLoss(5, 6, alpha=1000.0)
    value = loss(x, labels)
    value.backward()
    assert torch.isfinite(value)
    assert torch.isfinite(loss.proxies.grad).all()


def test_the_whole_loss_is_the_weighted_sum_with_its_groups():
    x, labels = batch(5)
    loss = HIERLoss(5, 6, weight=0.5, proxies=8, neighbours=6, triplets=4)
    torch.manual_seed(1)
    value = loss(x, labels)
    terms = loss.terms()
    torch.testing.assert_close(value, terms["proxy_anchor"] + 0.5 * terms["hierarchy"])
    torch.testing.assert_close(terms["proxy_anchor"], loss.proxy_anchor(x, labels))
    combined = losses.CombinedLoss(loss, losses.TCMLoss())
    combined(x, labels)
    assert {"base", "proxy_anchor", "hierarchy", "tcm"} <= set(combined.terms())
    grouped = combined.parameter_groups()
    assert set(grouped) == {"proxies", "hierarchy"}
    listed = [parameter for group in grouped.values() for parameter in group]
    assert {id(p) for p in listed} == {id(p) for p in combined.parameters()}


def test_without_an_anchor_the_regulariser_is_a_connected_zero():
    x, labels = batch(6)
    loss = HIERRegulariser(6, proxies=4, neighbours=2)
    value = loss(x, labels)
    value.backward()
    assert value == 0
    assert (x.grad == 0).all()
    assert (loss.proxies.grad == 0).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_stays_finite_over_200_steps(dtype):
    """A linear hyperbolic head, trained with the recipe's learning-rate ratios."""
    torch.manual_seed(0)
    labels = torch.arange(8).repeat_interleave(2)
    images = torch.randn(8, 12).repeat_interleave(2, 0) + 0.3 * torch.randn(16, 12)
    head = torch.nn.Linear(12, 6)
    loss = losses.CombinedLoss(HIERLoss(8, 6, proxies=16, neighbours=6, triplets=5))
    groups = loss.parameter_groups()
    optimizer = torch.optim.AdamW(
        [
            {"params": head.parameters(), "lr": 1e-3},
            {"params": groups["proxies"], "lr": 1e-1},
            {"params": groups["hierarchy"], "lr": 5e-2},
        ]
    )
    first = None
    for _ in range(200):
        with torch.autocast("cpu", dtype=dtype):
            points = poincare.to_ball(head(images), CURVATURE, CLIP)
            value = loss(points, labels)
        assert torch.isfinite(value)
        first = value.detach() if first is None else first
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
    assert all(torch.isfinite(p).all() for p in [*head.parameters(), *loss.parameters()])
    assert value < 0.7 * first


def test_errors_are_clear():
    x, labels = batch(7)
    with pytest.raises(UserError, match="hyperbolic head"):
        HIERLoss(5, 6)(4 * x, labels)
    with pytest.raises(UserError, match="similarity 'angle' is unknown"):
        losses.build("hier", 5, 6, similarity="angle")
    with pytest.raises(UserError, match="proxies >= 2"):
        losses.build("hier", 5, 6, proxies=1)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_cuda_and_cpu_agree_on_the_same_draws():
    torch.manual_seed(0)
    distances = torch.rand(40, 64, dtype=torch.float64, requires_grad=True)
    i, j, k = torch.randint(40, (3, 500))
    noise = torch.stack([gumbel((500, 64)), gumbel((500, 64))])
    results = []
    for device in ("cpu", "cuda"):
        triplets = ancestors.Triplets(i.to(device), j.to(device), k.to(device))
        d = distances.detach().to(device).requires_grad_()
        value = ancestor_loss(d, triplets, 0.1, 0.1, noise.to(device))
        results.append((value.cpu(), torch.autograd.grad(value, d)[0].cpu()))
    torch.testing.assert_close(results[0], results[1])
