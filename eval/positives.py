"""Same-class pairs: few, so they are computed one class at a time, in float64."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eval.exact_pass import RESOLUTION
from eval.geometry import Geometry
from eval.prepare import Prepared


@dataclass(frozen=True)
class ClassPositives:
    """All ordered same-class pairs, query by query, the most similar first, ties by index.

    Attributes:
        scores: (P,) float64, rounded to 12 decimals.
        query, other: (P,) sorted rows.
        start: (N + 1,) where each query's pairs begin, and P.
    """

    scores: np.ndarray
    query: np.ndarray
    other: np.ndarray
    start: np.ndarray

    @property
    def place(self) -> np.ndarray:
        """(P,) place among the query's positives, from 1."""
        return np.arange(len(self.scores)) - self.start[self.query] + 1


def class_positives(images: Prepared, geometry: Geometry) -> ClassPositives:
    """Computes them; memory is that of the result and one class's square."""
    scores, others = [], []
    for first, stop in zip(images.starts[:-1], images.starts[1:], strict=True):
        left, right = geometry.vectors(images.embeddings[first:stop].double())
        square = np.round((left @ right.T).cpu().numpy(), RESOLUTION)
        np.fill_diagonal(square, -np.inf)
        # Rows of a class stand in the order in which they came: stable means ties by index.
        order = np.argsort(-square, axis=1, kind="stable")[:, :-1]
        scores.append(np.take_along_axis(square, order, 1).ravel())
        others.append((order + first).ravel())
    per_query = np.repeat(images.sizes - 1, images.sizes)
    start = np.concatenate([[0], np.cumsum(per_query)])
    query = np.repeat(np.arange(len(images.codes)), per_query)
    return ClassPositives(np.concatenate(scores), query, np.concatenate(others), start)
