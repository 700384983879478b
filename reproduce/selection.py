"""Which epoch's weights a run keeps: the last, unless a rule that is named in every row chose."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from reproduce.sections import TrainConfig


class Selection:
    """Keeps the weights of the best epoch under ``score``, or of the last epoch without one.

    Args:
        score: maps the network to the number to be maximised (R@1 on validation classes, or on
            the test classes under the rule that is then called ``oracle``); None keeps the last.
    """

    def __init__(self, score: Callable[[nn.Module], float] | None = None):
        self._score = score
        self._best: float | None = None
        self._weights: dict[str, torch.Tensor] = {}
        self.epoch: int | None = None

    def after_epoch(self, epoch: int, settings: TrainConfig, model: nn.Module) -> None:
        """Scores the network where the rule looks at scores; ``epoch`` counts from 1."""
        looks = epoch % settings.evaluate_every == 0 or epoch == settings.epochs
        if self._score is None or not looks:
            return
        score = self._score(model)
        if self._best is None or score > self._best:
            self._best, self.epoch = score, epoch
            state = model.state_dict()
            self._weights = {name: value.detach().cpu().clone() for name, value in state.items()}

    def restore_best(self, model: nn.Module) -> None:
        """Puts the best epoch's weights back; nothing to do when the last epoch is kept."""
        if self._weights:
            model.load_state_dict(self._weights)

    def state_dict(self) -> dict[str, Any]:
        """For the checkpoint."""
        return {"best": self._best, "epoch": self.epoch, "weights": self._weights}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """From the checkpoint."""
        self._best, self.epoch, self._weights = state["best"], state["epoch"], state["weights"]
