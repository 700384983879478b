"""Losses by name, the library's wrapper, and the sum with TCM."""

import math

import pytest
import torch
from pytorch_metric_learning import losses as library

import losses
from common.errors import UserError

CLASSES, DIM = 6, 8
WITH_PROXIES = [name for name, (_, _, has_classes) in losses.LOSSES.items() if has_classes]


def batch(seed=0, per_class=4, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(CLASSES).repeat_interleave(per_class)
    labels = labels[torch.randperm(len(labels), generator=generator)]
    # Short enough to be points of the Poincaré ball, for the losses that live there.
    x = 0.5 * torch.randn(len(labels), DIM, generator=generator, dtype=dtype)
    return x.requires_grad_(), labels


@pytest.mark.parametrize("name", losses.LOSSES)
def test_every_loss_gives_a_scalar_with_a_gradient_in_float32_under_autocast(name):
    loss = losses.build(name, CLASSES, DIM)
    x, labels = batch()
    plain = loss(x, labels)
    x.grad = None
    half = x.detach().to(torch.bfloat16).requires_grad_()
    torch.manual_seed(0)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        value = loss(half, labels)
    assert plain.shape == value.shape == ()
    assert value.dtype == torch.float32
    value.backward()
    assert torch.isfinite(value)
    assert torch.isfinite(half.grad).all()
    assert half.grad.abs().max() > 0


@pytest.mark.parametrize("name", [name for name in losses.LOSSES if name != "tcm"])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_every_loss_says_what_is_wrong_with_its_batch(name, value):
    loss = losses.build(name, CLASSES, DIM)
    x, labels = batch()
    broken = x.detach().clone()
    broken[2, 1] = value
    with pytest.raises(UserError, match="NaN or infinite"):
        loss(broken, labels)
    with pytest.raises(UserError, match=r"embeddings \(B, D\) and labels \(B,\)"):
        loss(x, labels[:-1])
    with pytest.raises(UserError, match="integers"):
        loss(x, labels.double())


@pytest.mark.parametrize("name", WITH_PROXIES)
def test_class_vectors_move_are_saved_and_labels_beyond_them_are_an_error(name):
    loss = losses.build(name, CLASSES, DIM)
    before = {key: value.clone() for key, value in loss.state_dict().items()}
    x, labels = batch()
    optimizer = torch.optim.SGD(loss.parameters(), lr=0.1)
    loss(x, labels).backward()
    optimizer.step()
    moved = [
        key
        for key, _ in loss.named_parameters()
        if not torch.equal(before[key], dict(loss.named_parameters())[key])
    ]
    assert moved
    assert moved == [key for key, _ in loss.named_parameters()]
    other = losses.build(name, CLASSES, DIM)
    other.load_state_dict(loss.state_dict())
    torch.manual_seed(1)
    expected = loss(x, labels)
    torch.manual_seed(1)
    assert other(x, labels) == expected
    with pytest.raises(UserError, match="built for classes 0 to 5"):
        loss(x, labels + 1)


def test_the_library_is_called_as_it_stands():
    x, labels = batch(1)
    torch.manual_seed(0)
    ours = losses.build("proxy_anchor", CLASSES, DIM, margin=0.2, alpha=16)
    torch.manual_seed(0)
    theirs = library.ProxyAnchorLoss(CLASSES, DIM, margin=0.2, alpha=16)
    assert ours(x, labels) == theirs(x, labels)
    expected = library.ContrastiveLoss(pos_margin=0.1)(x, labels)
    assert losses.build("contrastive", CLASSES, DIM, pos_margin=0.1)(x, labels) == expected


def test_arcface_margins_are_radians():
    """From the definition: cross entropy of s cos(theta + m) at the label, s cos elsewhere."""
    x, labels = batch(2, dtype=torch.float64)
    torch.manual_seed(0)
    loss = losses.build("arcface", CLASSES, DIM, margin=0.3, scale=10.0)
    (centres,) = loss.parameters()
    centres = centres.detach().double()
    if centres.shape[0] != CLASSES:
        centres = centres.T
    value = loss(x, labels)
    cosine = torch.nn.functional.cosine_similarity(x[:, None], centres[None], dim=-1)
    theta = cosine.acos()
    assert (theta < math.pi - 0.3).all()
    logits = cosine.clone()
    rows = torch.arange(len(x))
    logits[rows, labels] = (theta[rows, labels] + 0.3).cos()
    expected = torch.nn.functional.cross_entropy(10 * logits, labels)
    torch.testing.assert_close(value, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["contrastive", "triplet", "multi_similarity"])
def test_without_pairs_library_losses_are_connected_too(name):
    x = torch.eye(3, DIM).requires_grad_()
    value = losses.build(name, CLASSES, DIM)(x, torch.tensor([0, 1, 2]))
    value.backward()
    assert torch.isfinite(value)
    assert torch.isfinite(x.grad).all()


def test_unknown_names_and_options_are_errors_that_list_the_known_ones():
    with pytest.raises(UserError, match=r"no loss 'proxy'; choose from arcface, .*tcm"):
        losses.build("proxy", CLASSES, DIM)
    with pytest.raises(UserError, match=r"arcface has no option 'scales'; known: .*margin.*scale"):
        losses.build("arcface", CLASSES, DIM, scales=3)
    with pytest.raises(UserError, match=r"recall_at_k has no option 'k'; known: .*ks"):
        losses.build("recall_at_k", CLASSES, DIM, k=3)
    with pytest.raises(UserError, match="loss arcface"):
        losses.build("arcface", CLASSES, DIM, margin="wide")
    with pytest.raises(UserError, match="loss tcm"):
        losses.build("tcm", CLASSES, DIM, lambda_plus=-1.0)
    # num_classes is an argument of build, not an option.
    with pytest.raises(TypeError):
        losses.build("arcface", CLASSES, DIM, num_classes=3)


def test_modules_of_names():
    assert losses.module_of("arcface") == "losses.library"
    assert losses.module_of("recall_at_k") == "losses.recall_at_k"
    with pytest.raises(UserError, match="no loss"):
        losses.module_of("arc")


def test_the_sum_with_tcm_and_its_terms():
    x, labels = batch(4)
    base = losses.build("proxy_anchor", CLASSES, DIM)
    tcm = losses.TCMLoss(margin_minus=0.1)
    loss = losses.CombinedLoss(base, tcm)
    value = loss(x, labels)
    torch.testing.assert_close(value, base(x, labels) + tcm(x, labels))
    terms = loss.terms()
    assert {"base", "tcm", "positive_active", "negative_active"} <= set(terms)
    assert not any(term.requires_grad for term in terms.values())
    torch.testing.assert_close(terms["base"] + terms["tcm"], value.detach())
    assert [*loss.parameters()] == [*base.parameters()]
    alone = losses.CombinedLoss(base)
    assert alone(x, labels) == base(x, labels)
    assert set(alone.terms()) == {"base"}


def test_simix_feeds_the_base_loss_and_not_tcm():
    x, labels = batch(5)
    base, tcm = losses.build("recall_at_k", CLASSES, DIM), losses.TCMLoss()
    value = losses.CombinedLoss(base, tcm, simix_seed=2)(x, labels)
    unit = torch.nn.functional.normalize(x)
    mixed = losses.SiMix(2)(unit, labels)
    expected = base(*mixed, normalise=False) + tcm(x, labels)
    torch.testing.assert_close(value, expected)
    # The virtual points keep their length: on the sphere again they would give another value.
    assert (base(*mixed, normalise=False) - base(*mixed)).abs() > 1e-6
    with pytest.raises(UserError, match="recall_at_k only"):
        losses.CombinedLoss(losses.build("arcface", CLASSES, DIM), simix_seed=2)
