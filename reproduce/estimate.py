"""What a run will need, before it is paid for: operations, hours, memory. Never a measurement.

Operations and activations of the network are counted, not measured: the real network is run on fake
tensors of two and three images, which cost neither time nor memory, and the difference is what one
image takes. Everything beyond that is assumed, and said in :data:`BASIS`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import SimpleNamespace

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.flop_counter import FlopCounterMode

from reproduce.build import build_loss, build_model
from reproduce.config import RunConfig
from reproduce.runtime import Runtime
from reproduce.two_pass import training_batch_norms

GIB = 2**30
# Sustained and assumed, in 1e12 operations a second: see outlook_text for where.
TFLOPS = {"amp": 60.0, "float32": 12.0, "cpu": 0.03}
LOSS_MATRICES = 8
OVERHEAD_BYTES = 1.5 * GIB
FLOAT = 4

BASIS = (
    "Basis: operations (a multiply-add is two) and saved activations of one image counted on fake "
    "tensors, forward and backward, one forward pass more where the batch is cut into chunks; "
    "sustained TFLOP/s are assumed ({assumed}; --tflops changes that), loaders that keep up, and "
    "no time for loss and communication. Memory: weights, gradients and the optimiser's state "
    f"in float32, the activations of one chunk, {LOSS_MATRICES} float32 matrices of batch x batch "
    "and batch x proxies for the loss, and 1.5 GiB for CUDA and its libraries. Nothing of this was "
    "measured."
)


@dataclass(frozen=True)
class NetworkCost:
    """Of one image, but for the parameters.

    Attributes:
        forward, backward: floating-point operations.
        activations: bytes kept for the backward pass.
        parameters: of the network.
        batch_norms: names of BatchNorm layers that use the statistics of the batch.
    """

    forward: int
    backward: int
    activations: int
    parameters: int
    batch_norms: tuple[str, ...]


@dataclass(frozen=True)
class RunCost:
    """Of one run.

    Attributes:
        steps: in all epochs.
        operations: in all steps, and for embedding the test images.
        gpu_bytes: peak on each GPU.
        disk_bytes: of what a finished run leaves.
    """

    steps: int
    operations: float
    gpu_bytes: float
    disk_bytes: float


def network_cost(config: RunConfig, channels: int) -> NetworkCost:
    """Counts on the network of a configuration, with random weights.

    Raises:
        UserError: the model section names a network or option that does not exist.
    """
    options = {**config.model.options}
    if "pretrained" in options:
        options["pretrained"] = "random"
    plain = config.with_values({"model.options": options, "data.mean_std": "source"})
    source = SimpleNamespace(mean=(0.5,) * channels, std=(0.5,) * channels)
    model = build_model(plain, source, Runtime()).train()
    shape = (channels, config.data.image_size, config.data.image_size)
    half = config.train.amp != "off"
    two, three = (_count(model, (images, *shape), half) for images in (2, 3))
    forward, backward, activations = (b - a for a, b in zip(two, three, strict=True))
    parameters = sum(parameter.numel() for parameter in model.parameters())
    norms = tuple(training_batch_norms(model))
    return NetworkCost(forward, backward, activations, parameters, norms)


def _count(model: nn.Module, shape: tuple[int, ...], half: bool) -> tuple[int, int, int]:
    """(operations forward, backward, bytes of saved activations) on fake tensors."""
    weights = {parameter.untyped_storage()._cdata for parameter in model.parameters()}
    saved: dict[int, torch.Tensor] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        place = tensor.untyped_storage()._cdata
        if place not in weights:
            saved[place] = tensor
        return tensor

    with FakeTensorMode(allow_non_fake_inputs=True):
        images = torch.empty(shape, dtype=torch.uint8)
        with (
            FlopCounterMode(display=False) as forward,
            torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor),
            torch.autocast("cpu", dtype=torch.bfloat16, enabled=half),
        ):
            embeddings = model(images)
        bytes_saved = sum(tensor.untyped_storage().nbytes() for tensor in saved.values())
        with FlopCounterMode(display=False) as backward:
            embeddings.sum().backward()
    model.zero_grad()
    return forward.get_total_flops(), backward.get_total_flops(), bytes_saved


def run_cost(
    config: RunConfig,
    network: NetworkCost,
    steps: int,
    classes: int,
    test_images: int,
    gpus: int,
) -> RunCost:
    """What one run needs on ``gpus`` GPUs.

    Args:
        steps: of all epochs.
        classes: to train on, for the proxies.
        test_images: embedded once, or at each look where a selection rule looks at scores.
    """
    train = config.train
    batch = train.classes_per_batch * train.images_per_class
    share = math.ceil(batch / gpus)
    chunk = min(share, train.chunk_size or share)
    passes = 2 if train.chunk_size is not None else 1
    looks = 1 if train.selection == "last" else 1 + math.ceil(train.epochs / train.evaluate_every)
    operations = steps * batch * (passes * network.forward + network.backward)
    operations += looks * test_images * network.forward
    loss = build_loss(config, classes)
    proxies = list(loss.parameters())
    of_loss = sum(parameter.numel() for parameter in proxies)
    copies = 3 if train.optimiser == "sgd" else 4
    weights = copies * FLOAT * (network.parameters + of_loss)
    rows = sum(len(parameter) for parameter in proxies if parameter.ndim == 2)
    matrices = LOSS_MATRICES * FLOAT * batch * (batch + rows)
    memory = weights + chunk * network.activations + matrices + OVERHEAD_BYTES
    embeddings = test_images * config.model.embedding_dim
    return RunCost(steps, operations, memory, FLOAT * (network.parameters + of_loss + embeddings))


def hours(operations: float, tflops: float) -> float:
    """Hours of one device at that many 1e12 operations a second."""
    return operations / (tflops * 1e12) / 3600
