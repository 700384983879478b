"""One training step: what it draws, what it refuses, precision."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from common.errors import UserError
from reproduce.optimise import scheduler
from reproduce.sections import ScheduleConfig, TrainConfig
from reproduce.step import LEAST_SCALE, NotFiniteError, TrainingStep, amp_dtype

SETTINGS = {"epochs": 1, "classes_per_batch": 2, "images_per_class": 2, "learning_rate": 0.1}
CPU = torch.device("cpu")
IMAGES = torch.arange(12.0).view(4, 3)
LABELS = torch.tensor([0, 0, 1, 1])


class Network(nn.Module):
    """Drops units, and keeps what it saw."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.dropout = nn.Linear(3, 50), nn.Dropout(0.5)
        self.dropped: list[torch.Tensor] = []

    def backbone_parameters(self):
        return list(self.layer.parameters())

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        out = self.dropout(self.layer(images))
        self.dropped.append(out.detach() == 0)
        return out


class DrawingLoss(nn.Module):
    """A loss with a random weight, as HIER's; it keeps what it drew."""

    def __init__(self) -> None:
        super().__init__()
        self.drawn: list[float] = []

    def forward(self, embeddings: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        self.drawn.append(torch.rand(()).item())
        return (embeddings * self.drawn[-1]).square().mean()

    def terms(self) -> dict[str, torch.Tensor]:
        return {}


def step_of(seed: int = 0, **settings) -> TrainingStep:
    torch.manual_seed(0)
    model, loss = Network(), DrawingLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    schedule = scheduler(optimizer, ScheduleConfig(), 10, 1)
    made = TrainConfig(**SETTINGS | settings)
    return TrainingStep(model, loss, optimizer, schedule, made, CPU, seed)


def draws(step: TrainingStep, steps: int) -> tuple[list[torch.Tensor], list[float]]:
    for _ in range(steps):
        torch.rand(7)  # whatever else draws in between
        step(IMAGES, LABELS)
    return step.model.dropped, step.loss.drawn


def test_draws_depend_on_seed_and_step_alone():
    dropped, drawn = draws(step_of(), 4)
    again, again_drawn = draws(step_of(), 4)
    assert drawn == again_drawn
    assert len(set(drawn)) == 4
    assert all(torch.equal(a, b) for a, b in zip(dropped, again, strict=True))
    assert not torch.equal(dropped[0], dropped[1])
    assert draws(step_of(seed=1), 4)[1] != drawn


def test_draws_of_the_loss_are_not_those_of_the_rank(monkeypatch):
    dropped, drawn = draws(step_of(), 2)
    # As in another process: its rank, but nobody to exchange anything with.
    other = step_of()
    monkeypatch.setattr("reproduce.step.distributed.current", lambda: type("P", (), {"rank": 1})())
    other_dropped, other_drawn = draws(other, 2)
    assert other_drawn == drawn
    assert not torch.equal(other_dropped[0], dropped[0])


def test_chunks_draw_the_same_units_in_both_passes():
    step = step_of(chunk_size=2)
    step(IMAGES, LABELS)
    first, second, *again = step.model.dropped
    assert torch.equal(first, again[0])
    assert torch.equal(second, again[1])
    assert len(step.loss.drawn) == 1


def test_a_float16_step_that_the_scaler_leaves_out_is_no_error():
    step = step_of()

    class Scaler:
        scale = 1024.0

        def is_enabled(self):
            return True

        def get_scale(self):
            return self.scale

    step.scaler = Scaler()
    step._require_finite({"loss": 1.0, "gradient_norm": math.inf})
    with pytest.raises(NotFiniteError, match=r"^loss is nan, gradient_norm is inf$"):
        step._require_finite({"loss": math.nan, "gradient_norm": math.inf})
    step.scaler.scale = LEAST_SCALE / 2
    with pytest.raises(NotFiniteError, match="gradient_norm is inf"):
        step._require_finite({"loss": 1.0, "gradient_norm": math.inf})


def test_without_a_scaler_infinite_gradients_stop_the_run():
    with pytest.raises(NotFiniteError, match="gradient_norm is nan"):
        step_of()._require_finite({"loss": 1.0, "gradient_norm": math.nan})


def test_precision_by_name():
    assert amp_dtype("off", CPU) is None
    assert amp_dtype("auto", CPU) is None
    assert amp_dtype("bf16", CPU) is torch.bfloat16
    assert amp_dtype("fp16", torch.device("cuda")) is torch.float16
    with pytest.raises(UserError, match="needs a CUDA device"):
        amp_dtype("fp16", CPU)
