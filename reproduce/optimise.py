"""Optimiser and learning-rate schedule of a run, from its configuration."""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.optim import lr_scheduler

from reproduce.config import ScheduleConfig, TrainConfig


def optimiser(model: nn.Module, loss: nn.Module, train: TrainConfig) -> torch.optim.Optimizer:
    """Three parameter groups, each with its learning rate: backbone, head, and the loss's proxies.

    Every trainable parameter of the loss (proxies, class centres) is in the third group, so that
    none is forgotten. Weight decay applies to all groups, as in the published Proxy-Anchor code.
    """
    groups = [
        ("backbone", model.backbone_parameters(), 1.0),
        ("head", model.head_parameters(), train.head_lr_scale),
        ("proxies", loss.parameters(), train.proxy_lr_scale),
    ]
    listed = [
        {"name": name, "params": parameters, "lr": train.learning_rate * scale}
        for name, group, scale in groups
        if (parameters := [parameter for parameter in group if parameter.requires_grad])
    ]
    common = {"lr": train.learning_rate, "weight_decay": train.weight_decay}
    if train.optimiser == "sgd":
        return torch.optim.SGD(listed, momentum=train.momentum, **common)
    kind = torch.optim.AdamW if train.optimiser == "adamw" else torch.optim.Adam
    return kind(listed, **common)


def scheduler(
    optimizer: torch.optim.Optimizer, schedule: ScheduleConfig, steps_per_epoch: int, epochs: int
) -> lr_scheduler.LRScheduler:
    """A schedule that is stepped after every training step; its epochs are counted in steps."""
    total = max(1, steps_per_epoch * epochs)
    if schedule.name == "one_cycle":
        peaks = [group["lr"] for group in optimizer.param_groups]
        return lr_scheduler.OneCycleLR(
            optimizer,
            max_lr=peaks,
            total_steps=total + 1,
            pct_start=schedule.warm_up_fraction,
            cycle_momentum=False,
        )
    if schedule.name == "multi_step":
        milestones = [epoch * steps_per_epoch for epoch in schedule.milestones]
        return lr_scheduler.MultiStepLR(optimizer, milestones, schedule.gamma)
    if schedule.name == "step":
        return lr_scheduler.StepLR(optimizer, schedule.step_size * steps_per_epoch, schedule.gamma)
    if schedule.name == "polynomial":
        return lr_scheduler.PolynomialLR(optimizer, total, schedule.power)
    if schedule.name == "cosine":
        return lr_scheduler.LambdaLR(
            optimizer, lambda step: 0.5 * (1 + math.cos(math.pi * min(step, total) / total))
        )
    return lr_scheduler.LambdaLR(optimizer, lambda step: 1.0)
