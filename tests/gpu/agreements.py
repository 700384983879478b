"""What must hold on every device, as functions of the device: GPUs are judged against the CPU."""

from __future__ import annotations

import copy
import os
import signal
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import torch
from torch import nn

import losses
from eval import evaluate
from reproduce.checkpoint import StoppedError
from reproduce.execute import execute
from reproduce.runtime import Runtime, prepare_process
from reproduce.step import TrainingStep
from reproduce.two_pass import two_pass_backward
from tests.reproduce import tiny

CPU = torch.device("cpu")
CLASSES, DIM = 16, 32
# Losses that draw at random are left out: generators of devices differ.
LOSSES = (
    "proxy_anchor",
    "arcface",
    "cosface",
    "soft_triple",
    "smooth_ap",
    "contrastive",
    "triplet",
    "multi_similarity",
    "recall_at_k",
    "tcm",
    "curricular_face",
)


def clustered(count: int, dim: int, per_class: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Embeddings (count, dim) around class centres and their labels, always the same."""
    generator = torch.Generator().manual_seed(3)
    labels = torch.arange(count) // per_class
    centres = torch.randn(int(labels[-1]) + 1, dim, generator=generator)
    return centres[labels] + torch.randn(count, dim, generator=generator), labels


def evaluation_agrees(device: torch.device, images: int, dim: int) -> None:
    """Metrics of embeddings on the device against those on the CPU."""
    embeddings, labels = clustered(images, dim, 10)
    here = evaluate(embeddings, labels.numpy())
    there = evaluate(embeddings.to(device), labels.numpy())
    # Rounding may swap two neighbours at nearly the same distance.
    for k, value in here.recall_at.items():
        assert there.recall_at[k] == pytest.approx(value, abs=3 / images)
    assert there.map_at_r == pytest.approx(here.map_at_r, abs=1e-4)
    assert there.opis == pytest.approx(here.opis, rel=2e-3)
    assert there.d_min == pytest.approx(here.d_min, abs=1e-4)
    assert there.d_max == pytest.approx(here.d_max, abs=1e-4)


def loss_agrees(name: str, device: torch.device) -> None:
    """Value and gradients of a loss in float32 against the CPU in float64."""
    embeddings, labels = clustered(4 * CLASSES, DIM, 4)
    torch.manual_seed(0)
    loss = losses.build(name, CLASSES, DIM)
    exact, wanted = _value_and_gradient(copy.deepcopy(loss).double(), embeddings.double(), labels)
    value, gradient = _value_and_gradient(loss.to(device), embeddings.to(device), labels.to(device))
    assert value == pytest.approx(exact, rel=1e-4, abs=1e-6)
    largest = float(wanted.abs().max())
    np.testing.assert_allclose(gradient.cpu(), wanted, rtol=1e-3, atol=1e-4 * largest)


def loss_is_float32_under_autocast(name: str, device: torch.device) -> None:
    """In an autocast region a loss computes what it does in float32 outside of it."""
    embeddings, labels = clustered(4 * CLASSES, DIM, 4)
    rounded = embeddings.bfloat16().to(device)
    labels = labels.to(device)
    torch.manual_seed(0)
    loss = losses.CombinedLoss(losses.build(name, CLASSES, DIM), losses.TCMLoss()).to(device)
    outside = copy.deepcopy(loss)(rounded.float(), labels)
    with torch.autocast(device.type, dtype=torch.bfloat16):
        inside = loss(rounded, labels)
    assert inside.dtype == torch.float32
    assert float(inside.detach()) == pytest.approx(float(outside.detach()), rel=1e-5)


def _value_and_gradient(loss: nn.Module, embeddings: torch.Tensor, labels: torch.Tensor):
    embeddings = embeddings.clone().requires_grad_()
    value = loss(embeddings, labels)
    value.backward()
    return float(value.detach()), embeddings.grad.double()


def two_passes_give_the_gradients_of_one(device: torch.device, batch: int) -> None:
    """Chunked gradients against those of a single pass, in float64."""
    prepare_process(0, None, deterministic=True)
    torch.manual_seed(0)
    network = nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=2), nn.GELU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()
    )
    network.append(nn.Linear(8, DIM))
    network = network.double().to(device)
    images = torch.randn(batch, 3, 16, 16, dtype=torch.float64).to(device)
    labels = (torch.arange(batch) // 4).to(device)
    loss = losses.CombinedLoss(losses.build("recall_at_k", 0, DIM), losses.TCMLoss())
    whole = loss(network(images), labels)
    whole.backward()
    wanted = [parameter.grad.clone() for parameter in network.parameters()]
    network.zero_grad()
    value = two_pass_backward(network, network, lambda x: loss(x, labels), images, 5)
    assert float(value) == pytest.approx(float(whole.detach()), rel=1e-12)
    for parameter, gradient in zip(network.parameters(), wanted, strict=True):
        torch.testing.assert_close(parameter.grad, gradient, rtol=1e-9, atol=1e-12)


def a_resumed_run_ends_like_an_undisturbed_one(device: torch.device, folder: Path) -> None:
    """A run that SIGTERM stopped in its fourth step, and that then went on, to the last bit."""
    config = tiny.config(**{"loss.tcm": {}})

    def runtime(name: str) -> Runtime:
        return Runtime(runs=folder / name, device=str(device), progress=False)

    undisturbed = execute(config, runtime("undisturbed"))
    whole, calls = TrainingStep.__call__, []

    def stop_in_the_fourth(self, images, labels):
        calls.append(1)
        if len(calls) == 4:
            os.kill(os.getpid(), signal.SIGTERM)
        return whole(self, images, labels)

    with (
        mock.patch.object(TrainingStep, "__call__", stop_in_the_fourth),
        pytest.raises(StoppedError),
    ):
        execute(config, runtime("stopped"))
    resumed = execute(config, runtime("stopped"))
    assert tiny.outcome(undisturbed) == tiny.outcome(resumed)
