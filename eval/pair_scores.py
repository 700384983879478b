"""Distances of listed pairs of images."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from eval.geometry import Geometry
from eval.prepared import Prepared, Side
from eval.scores import Scores


def listed_distances(embeddings: Any, pairs: np.ndarray, space: Geometry) -> np.ndarray:
    """(E,) float64 distances of pairs of rows (E, 2) of embeddings (N, D).

    Raises:
        UserError: an embedding outside of the Poincaré ball.
    """
    x = torch.as_tensor(embeddings, dtype=torch.float64, device="cpu")
    rows = np.arange(len(x))
    # Scores of pairs ask for no classes: all images are taken as of one.
    side = Side(x, rows, np.zeros_like(rows), np.array([0, len(x)]), np.zeros_like(rows))
    images = Prepared(side, side, np.array([""]), rows, np.ones(1))
    return space.to_distance(Scores(images, space).pairs(np.asarray(pairs)))
