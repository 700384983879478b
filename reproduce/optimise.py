"""Optimiser and learning-rate schedule of a run, from its configuration."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.optim import lr_scheduler

from reproduce.sections import ScheduleConfig, TrainConfig


def optimiser(model: nn.Module, loss: nn.Module, train: TrainConfig) -> torch.optim.Optimizer:
    """Parameter groups, each with its learning rate: backbone, head, proxies, HIER's hierarchy.

    Every trainable parameter of the loss (proxies, class centres) is in a group of
    ``loss.parameter_groups()``, so that none is forgotten. Weight decay applies to all groups, as
    in the published Proxy-Anchor code; with ``decay_norms=false`` not to the norm layers and biases
    (parameters with one dimension) of the network.

    Raises:
        RuntimeError: the loss leaves a parameter out of its groups.
    """
    scales = {"proxies": train.proxy_lr_scale, "hierarchy": train.hierarchy_lr_scale}
    of_loss = loss.parameter_groups()
    grouped = {id(parameter) for group in of_loss.values() for parameter in group}
    if grouped != {id(parameter) for parameter in loss.parameters()}:
        raise RuntimeError("parameter_groups() of the loss does not hold each of its parameters")
    groups = [
        *_network_group("backbone", model.backbone_parameters(), 1.0, train),
        *_network_group("head", model.head_parameters(), train.head_lr_scale, train),
        *(_group(name, group, scales[name], train) for name, group in of_loss.items()),
    ]
    listed = [group for group in groups if group["params"]]
    if train.optimiser == "sgd":
        return torch.optim.SGD(listed, lr=train.learning_rate, momentum=train.momentum)
    kind = torch.optim.AdamW if train.optimiser == "adamw" else torch.optim.Adam
    return kind(listed, lr=train.learning_rate, eps=train.adam_epsilon)


def _network_group(name: str, parameters, scale: float, train: TrainConfig) -> list[dict[str, Any]]:
    if train.decay_norms:
        return [_group(name, parameters, scale, train)]
    without = _group(f"{name} without decay", [p for p in parameters if p.ndim < 2], scale, train)
    return [
        _group(name, [p for p in parameters if p.ndim >= 2], scale, train),
        without | {"weight_decay": 0.0},
    ]


def _group(name: str, parameters, scale: float, train: TrainConfig) -> dict[str, Any]:
    return {
        "name": name,
        "params": [parameter for parameter in parameters if parameter.requires_grad],
        "lr": train.learning_rate * scale,
        "weight_decay": train.weight_decay,
    }


def scheduler(
    optimizer: torch.optim.Optimizer, schedule: ScheduleConfig, steps_per_epoch: int, epochs: int
) -> lr_scheduler.LRScheduler:
    """A schedule that is stepped after every training step; its epochs are counted in steps.

    ``one_cycle`` rises from a 25th of the learning rate and falls to a 250,000th, both along a
    cosine, as PyTorch's OneCycleLR by default; with so few steps that nothing rises it only falls.
    """
    factor = _factor(schedule, steps_per_epoch, max(1, steps_per_epoch * epochs))
    rise = schedule.warm_up_steps
    return lr_scheduler.LambdaLR(
        optimizer, lambda step: factor(step) * min(1.0, (step + 1) / (rise + 1))
    )


def _factor(schedule: ScheduleConfig, steps_per_epoch: int, total: int) -> Callable[[int], float]:
    """What the learning rate of step 0, 1, ... is multiplied with."""
    if schedule.name == "multi_step":
        marks = [epoch * steps_per_epoch for epoch in schedule.milestones]
        return lambda step: schedule.gamma ** sum(mark <= step for mark in marks)
    if schedule.name == "step":
        return lambda step: schedule.gamma ** (step // (schedule.step_size * steps_per_epoch))
    if schedule.name == "polynomial":
        return lambda step: (1 - min(step, total) / total) ** schedule.power
    if schedule.name == "cosine":
        return lambda step: _cosine(1, 0, min(step, total) / total)
    if schedule.name == "one_cycle":
        top = schedule.warm_up_fraction * (total + 1) - 1
        return lambda step: (
            _cosine(1 / 25, 1, step / top)
            if step < top
            else _cosine(1, 1 / 250_000, min(1, (step - max(0, top)) / (total - max(0, top))))
        )
    return lambda step: 1.0


def _cosine(start: float, end: float, share: float) -> float:
    return end + (start - end) / 2 * (1 + math.cos(math.pi * share))
