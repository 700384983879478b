"""Learning-rate schedules against PyTorch's own, and the groups of the optimiser."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.optim import lr_scheduler

import losses
from reproduce.optimise import optimiser, scheduler
from reproduce.sections import ScheduleConfig, TrainConfig

STEPS, EPOCHS = 5, 8
TOTAL = STEPS * EPOCHS
SETTINGS = {"epochs": 1, "classes_per_batch": 2, "images_per_class": 2, "learning_rate": 0.1}


class Network(nn.Module):
    """A backbone with a norm layer, and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4))
        self.head = nn.Linear(4, 2)

    def backbone_parameters(self):
        return list(self.backbone.parameters())

    def head_parameters(self):
        return list(self.head.parameters())


def rates(make) -> list[float]:
    """Learning rates of the steps of a run, and of one after it."""
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.4)
    schedule = make(optimizer)
    found = []
    for _ in range(TOTAL):
        found.append(schedule.get_last_lr()[0])
        optimizer.step()
        schedule.step()
    return [*found, schedule.get_last_lr()[0]]


ORACLES = {
    "constant": ({}, lambda o: lr_scheduler.ConstantLR(o, 1)),
    "cosine": ({}, lambda o: lr_scheduler.CosineAnnealingLR(o, TOTAL)),
    "polynomial": ({"power": 2.0}, lambda o: lr_scheduler.PolynomialLR(o, TOTAL, 2.0)),
    "step": (
        {"step_size": 3, "gamma": 0.25},
        lambda o: lr_scheduler.StepLR(o, 3 * STEPS, 0.25),
    ),
    "multi_step": (
        {"milestones": (2, 5), "gamma": 0.3},
        lambda o: lr_scheduler.MultiStepLR(o, [2 * STEPS, 5 * STEPS], 0.3),
    ),
    "one_cycle": (
        {"warm_up_fraction": 0.2},
        lambda o: lr_scheduler.OneCycleLR(o, 0.4, total_steps=TOTAL + 1, pct_start=0.2),
    ),
}


@pytest.mark.parametrize("name", ORACLES)
def test_schedules_are_those_of_pytorch(name):
    options, oracle = ORACLES[name]
    settings = ScheduleConfig(name=name, **options)
    found = rates(lambda optimizer: scheduler(optimizer, settings, STEPS, EPOCHS))
    assert found == pytest.approx(rates(oracle), rel=1e-9, abs=1e-15)


def test_a_warm_up_rises_in_a_line_to_the_schedule_itself():
    settings = ScheduleConfig(name="step", step_size=3, warm_up_steps=4)
    found = rates(lambda optimizer: scheduler(optimizer, settings, STEPS, EPOCHS))
    assert found[:5] == pytest.approx([0.08, 0.16, 0.24, 0.32, 0.4])
    without = ScheduleConfig(name="step", step_size=3)
    assert found[4:] == rates(lambda o: scheduler(o, without, STEPS, EPOCHS))[4:]


@pytest.mark.parametrize("steps", range(1, 8))
def test_one_cycle_does_with_few_steps(steps):
    settings = ScheduleConfig(name="one_cycle", warm_up_fraction=0.2)
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.4)
    schedule = scheduler(optimizer, settings, steps, 1)
    for _ in range(steps):
        assert 0 < schedule.get_last_lr()[0] <= 0.4
        optimizer.step()
        schedule.step()
    assert schedule.get_last_lr()[0] == pytest.approx(0.4 / 250_000)


def groups_of(loss: nn.Module, **settings) -> dict[str, dict]:
    made = optimiser(Network(), loss, TrainConfig(**SETTINGS | settings))
    return {group["name"]: group for group in made.param_groups}


def test_each_part_has_its_learning_rate():
    loss = losses.CombinedLoss(losses.build("hier", 3, 2, proxies=5, neighbours=2, triplets=2))
    scales = {"head_lr_scale": 2.0, "proxy_lr_scale": 1e4, "hierarchy_lr_scale": 50.0}
    groups = groups_of(loss, weight_decay=0.5, **scales)
    expected = {"backbone": 0.1, "head": 0.2, "proxies": 1000.0, "hierarchy": 5.0}
    assert {name: group["lr"] for name, group in groups.items()} == pytest.approx(expected)
    assert [len(p) for p in groups["hierarchy"]["params"]] == [5]
    assert {group["weight_decay"] for group in groups.values()} == {0.5}


def test_norm_layers_and_biases_can_be_spared_the_decay():
    loss = losses.CombinedLoss(losses.build("proxy_anchor", 3, 2))
    groups = groups_of(loss, weight_decay=0.5, decay_norms=False)
    without = {name for name, group in groups.items() if group["weight_decay"] == 0}
    assert without == {"backbone without decay", "head without decay"}
    for name, group in groups.items():
        assert all((p.ndim < 2) == (name in without) for p in group["params"])
    assert sum(len(group["params"]) for group in groups.values()) == 6 + 1


@pytest.mark.parametrize(
    ("name", "kind"),
    [("adam", torch.optim.Adam), ("adamw", torch.optim.AdamW), ("sgd", torch.optim.SGD)],
)
def test_optimisers_by_name(name, kind):
    loss = losses.CombinedLoss(losses.build("contrastive", 3, 2))
    settings = TrainConfig(**SETTINGS, optimiser=name, adam_epsilon=1e-4, momentum=0.8)
    made = optimiser(Network(), loss, settings)
    assert type(made) is kind
    option, value = ("momentum", 0.8) if name == "sgd" else ("eps", 1e-4)
    assert {group[option] for group in made.param_groups} == {value}


def test_a_forgotten_parameter_of_a_loss_is_an_error():
    loss = losses.CombinedLoss(losses.build("proxy_anchor", 3, 2))
    loss.parameter_groups = lambda: {"proxies": []}
    with pytest.raises(RuntimeError, match="each of its parameters"):
        groups_of(loss)
