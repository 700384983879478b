"""The declared choices of an evaluation, checked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from common.errors import UserError


@dataclass(frozen=True)
class Options:
    """See :func:`eval.evaluate`.

    Raises:
        UserError: one that is out of range.
    """

    ks: Iterable[int]
    far_range: tuple[float, float]
    epsilon: float
    c: float
    distance: str
    curvature: float
    grid_points: int
    seed: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "ks", tuple(self.ks))
        object.__setattr__(self, "far_range", tuple(self.far_range))
        if not self.ks or min(self.ks) < 1:
            raise UserError(f"ks={list(self.ks)}: give values of K that are at least 1")
        if len(self.far_range) != 2 or not all(0 < f <= 1 for f in self.far_range):
            raise UserError(
                f"far_range={list(self.far_range)}: give two false-accept rates in (0, 1]"
            )
        if not 0 < self.epsilon <= 0.5:
            raise UserError(f"epsilon={self.epsilon}: it must lie in (0, 0.5]")
        if not self.c > 0:
            raise UserError(f"c={self.c}: it must be above 0")
        if self.grid_points < 1:
            raise UserError(f"grid_points={self.grid_points}: at least 1 is needed")

    def settings(self, pairs: str) -> dict[str, Any]:
        """For the result; ``pairs`` says which were looked at, and how."""
        chosen = {
            "ks": list(self.ks), "far_range": list(self.far_range), "epsilon": self.epsilon,
            "c": self.c, "distance": self.distance, "grid_points": self.grid_points,
            "seed": self.seed, "pairs": pairs,
        }  # fmt: skip
        return chosen | ({"curvature": self.curvature} if self.distance == "poincare" else {})
