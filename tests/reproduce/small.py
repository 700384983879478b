"""A data set of a few hundred generated images, so that whole runs take a second."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

import datasets
from datasets.index import Index, table_digest

SIDE = 16
# Classes of each split and domain, and images of each class.
CLASSES = {("train", "dots"): 16, ("train", "lines"): 12, ("test", "dots"): 8, ("test", "lines"): 6}
IMAGES = {"dots": 8, "lines": 6}

# What a configuration of the demo needs to train on it.
VALUES = {
    "data.name": "small",
    "data.options": {},
    "data.image_size": SIDE,
    "model.options": {"width": 8, "norm": "group"},
    "model.embedding_dim": 8,
    "train.epochs": 2,
    "train.steps_per_epoch": 3,
    "train.classes_per_batch": 6,
    "train.checkpoint_minutes": 1e-9,
    "evaluation.grid_points": 51,
}


def register() -> None:
    """Makes it known to this process as ``small``."""
    datasets.REGISTRY["small"] = f"{__name__}:load"


def load(root: Path | None = None) -> datasets.ArraySource:
    """A pattern for each class, with noise on every image; the same for ever."""
    rng = np.random.default_rng(0)
    rows, images = [], []
    for (split, domain), classes in CLASSES.items():
        for number in range(classes):
            pattern = rng.random((SIDE, SIDE))
            for image in range(IMAGES[domain]):
                label = f"{domain}/{split}{number}"
                rows.append((f"{label}/{image}", label, domain, split))
                noisy = 0.6 * pattern + 0.4 * rng.random((SIDE, SIDE))
                images.append((255 * noisy).astype(np.uint8))
    table = pd.DataFrame(rows, columns=["key", "label", "domain", "split"], dtype=str)
    index = Index("small", table, table_digest(table))
    return datasets.ArraySource(index, np.stack(images), (0.5,), (0.25,))
