"""The two-pass scheme against one pass: gradients, random numbers, statistics, memory."""

from __future__ import annotations

import pytest
import torch
from pytorch_metric_learning.losses import ContrastiveLoss, ProxyAnchorLoss
from torch import nn

from common.errors import UserError
from reproduce.two_pass import two_pass_backward

LABELS = torch.arange(6).repeat_interleave(4)


def network(dropout: float = 0.0, norm: type[nn.Module] | None = None) -> nn.Module:
    torch.manual_seed(0)
    middle = [nn.GroupNorm(2, 8)] if norm is None else [norm(8)]
    layers = [nn.Conv2d(3, 8, 3, stride=2), *middle, nn.ReLU(), nn.Dropout(dropout), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(72, 5)).double()


def batch(size: int = 24) -> torch.Tensor:
    return torch.randn(size, 3, 8, 8, dtype=torch.float64, generator=_generator(1))


def gradients(*modules: nn.Module) -> list[torch.Tensor]:
    return [p.grad.clone() for module in modules for p in module.parameters()]


def assert_same(left: list[torch.Tensor], right: list[torch.Tensor]) -> None:
    assert len(left) == len(right) > 0
    for a, b in zip(left, right, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("chunk_size", [1, 5, 8, 24, 100])
@pytest.mark.parametrize("kind", ["pairs", "proxies"])
def test_gradients_equal_those_of_one_pass(chunk_size: int, kind: str) -> None:
    torch.manual_seed(3)
    loss = ContrastiveLoss() if kind == "pairs" else ProxyAnchorLoss(6, 5).double()
    one, two, images = network(), network(), batch()
    whole = loss(one(images), LABELS)
    whole.backward()
    expected = gradients(one, loss)
    loss.zero_grad()
    value = two_pass_backward(two, two, lambda e: loss(e, LABELS), images, chunk_size)
    torch.testing.assert_close(value, whole.detach(), rtol=1e-12, atol=0)
    assert not value.requires_grad
    assert_same(gradients(two, loss), expected)


def test_scale_reaches_the_gradients_but_not_the_value() -> None:
    loss = ContrastiveLoss()
    one, two, images = network(), network(), batch()
    a = two_pass_backward(one, one, lambda e: loss(e, LABELS), images, 7)
    b = two_pass_backward(two, two, lambda e: loss(e, LABELS), images, 7, scale=lambda v: 8 * v)
    assert a == b
    assert_same([8 * g for g in gradients(one)], gradients(two))


def test_dropout_drops_the_same_units_in_both_passes() -> None:
    # One pass over the same chunks, with the graph of all chunks kept, draws the same numbers.
    loss = ContrastiveLoss()
    one, two, images = network(0.5), network(0.5), batch()
    torch.manual_seed(11)
    whole = loss(torch.cat([one(chunk) for chunk in images.split(7)]), LABELS)
    noise = torch.rand(3)
    whole.backward()
    torch.manual_seed(11)
    value = two_pass_backward(two, two, lambda e: loss(e, LABELS), images, 7)
    torch.testing.assert_close(value, whole.detach())
    assert_same(gradients(two), gradients(one))
    # The generator goes on from where one pass would have left it.
    assert torch.equal(torch.rand(3), noise)


def test_random_numbers_of_the_loss_are_not_drawn_again() -> None:
    model, images = network(0.5), batch()
    seen = []

    def noisy(embeddings: torch.Tensor) -> torch.Tensor:
        seen.append(torch.rand(1))
        return (embeddings * seen[-1]).square().sum()

    torch.manual_seed(5)
    two_pass_backward(model, model, noisy, images, 7)
    after = torch.rand(3)
    two_pass_backward(model, model, noisy, images, 7)
    assert seen[0] != seen[1]
    # The generator stands where one pass over the same chunks and the loss would have left it.
    torch.manual_seed(5)
    noisy(torch.cat([model(chunk) for chunk in images.split(7)]))
    assert seen[2] == seen[0]
    assert torch.equal(torch.rand(3), after)


def test_training_batch_norm_is_refused_with_its_name() -> None:
    model, images = network(norm=nn.BatchNorm2d), batch()
    with pytest.raises(UserError, match=r"1 is a BatchNorm layer.*chunk_batch_statistics"):
        two_pass_backward(model, model, torch.sum, images, 8)
    assert all(p.grad is None for p in model.parameters())


def test_frozen_batch_norm_is_welcome_and_exact() -> None:
    one, two = network(norm=nn.BatchNorm2d), network(norm=nn.BatchNorm2d)
    for model in (one, two):
        model[1].running_mean.fill_(0.1)
        model[1].eval()
    loss, images = ContrastiveLoss(), batch()
    loss(one(images), LABELS).backward()
    two_pass_backward(two, two, lambda e: loss(e, LABELS), images, 8)
    assert_same(gradients(two), gradients(one))


def test_allowed_batch_norm_equals_chunks_with_their_own_statistics() -> None:
    one, two = network(norm=nn.BatchNorm2d), network(norm=nn.BatchNorm2d)
    loss, images = ContrastiveLoss(), batch()
    loss(torch.cat([one(chunk) for chunk in images.split(8)]), LABELS).backward()
    two_pass_backward(two, two, lambda e: loss(e, LABELS), images, 8, batch_statistics=True)
    assert_same(gradients(two), gradients(one))
    for name, buffer in one.named_buffers():
        torch.testing.assert_close(dict(two.named_buffers())[name], buffer, rtol=1e-12, atol=0)
    assert two[1].num_batches_tracked == 3


def test_activation_memory_stays_flat_as_the_batch_grows() -> None:
    peaks = {size: _peak_activations(size, chunk_size=64) for size in (256, 4096)}
    whole = _peak_activations(1024, chunk_size=1024)
    assert peaks[4096] == peaks[256] > 0
    assert whole == 16 * peaks[256]


def _peak_activations(size: int, chunk_size: int) -> int:
    """Most bytes that the graph of the network holds at any moment of the scheme."""
    images = torch.randint(0, 256, (size, 3, 8, 8), dtype=torch.uint8)
    model = network().float()
    held = {"now": 0, "peak": 0}
    parameters = {p.data_ptr() for p in model.parameters()}

    class Kept:
        def __init__(self, tensor: torch.Tensor) -> None:
            own = tensor.data_ptr() in parameters
            self.tensor, self.bytes = tensor, 0 if own else tensor.nbytes
            held["now"] += self.bytes
            held["peak"] = max(held["peak"], held["now"])

        def __del__(self) -> None:
            held["now"] -= self.bytes

    def embed(chunk: torch.Tensor) -> torch.Tensor:
        with torch.autograd.graph.saved_tensors_hooks(Kept, lambda kept: kept.tensor):
            return model(chunk.float() / 255)

    two_pass_backward(model, embed, lambda e: e.square().mean(), images, chunk_size)
    assert held["now"] == 0
    return held["peak"]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_gpu_memory_and_dropout() -> None:
    peaks = {}
    for size in (256, 4096):
        model = network(0.5).float().cuda()
        images = torch.randint(0, 256, (size, 3, 8, 8), dtype=torch.uint8, device="cuda")
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        seen: list[torch.Tensor] = []

        def embed(chunk, model=model, seen=seen):
            out = model(chunk.float() / 255)
            seen.append(out.detach())
            return out

        two_pass_backward(model, embed, lambda e: e.square().mean(), images, 64)
        half = len(seen) // 2
        assert torch.equal(torch.cat(seen[:half]), torch.cat(seen[half:]))
        peaks[size] = torch.cuda.max_memory_allocated() - before
    # Embeddings and their gradients grow: 5 floats an image, a few copies; activations do not.
    assert peaks[4096] - peaks[256] < 3840 * 5 * 4 * 8


def _generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)
