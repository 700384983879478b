"""Checks embeddings and labels, and sorts them by class: the form in which the passes read them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from common.errors import UserError

ROWS_SHOWN = 5
# Parts of each class, left out in turn, that tell how much chance is in its curve.
FOLDS = 4


@dataclass(frozen=True)
class Prepared:
    """N images sorted by class, ties in their old order.

    Attributes:
        embeddings: (N, D), float32 or float64, on the caller's device.
        order: (N,) where each sorted row came from.
        codes: (N,) class code of each sorted row, ascending.
        starts: (C + 1,) first row of each class, and N.
        classes: (C,) class names, sorted.
        folds: (N,) 0 to FOLDS - 1: random parts of each class, for the noise floor.
    """

    embeddings: torch.Tensor
    order: np.ndarray
    codes: np.ndarray
    starts: np.ndarray
    classes: np.ndarray
    folds: np.ndarray

    @property
    def sizes(self) -> np.ndarray:
        """(C,) images of each class."""
        return np.diff(self.starts)


def prepare(embeddings: object, labels: object, seed: int = 0) -> Prepared:
    """Checks and sorts.

    Args:
        embeddings: (N, D) floats, a torch tensor or anything that numpy takes; float16 is widened.
        labels: (N,) strings or integers, in any order.
        seed: of the random folds.

    Raises:
        UserError: wrong shapes or types, no images, NaN or infinite values, fewer than two classes
            with a pair; names the rows.
    """
    x = _floats(embeddings)
    names = _labels(labels)
    if len(names) != len(x):
        raise UserError(f"{len(x)} embeddings but {len(names)} labels: give one label for each row")
    classes, codes = np.unique(names, return_inverse=True)
    sizes = np.bincount(codes)
    if len(classes) < 2:
        raise UserError("all images have one label: negatives need at least two classes")
    if (sizes >= 2).sum() < 2:
        raise UserError(
            f"{(sizes >= 2).sum()} of {len(classes)} classes have two images or more: a variance "
            "over classes needs at least two such classes"
        )
    order = np.argsort(codes, kind="stable")
    folds = _random_folds(codes[order], sizes, np.random.default_rng(seed))
    starts = np.concatenate([[0], np.cumsum(sizes)])
    sorted_rows = x[torch.from_numpy(order).to(x.device)]
    return Prepared(sorted_rows, order, codes[order], starts, classes, folds)


def _floats(embeddings: object) -> torch.Tensor:
    if not torch.is_tensor(embeddings):
        array = np.asarray(embeddings)
        if array.dtype.kind not in "fiu":
            raise UserError(f"embeddings are of type {array.dtype}; they must be numbers")
        wide = np.float64 if array.dtype.itemsize > 4 or array.dtype.kind != "f" else np.float32
        embeddings = torch.from_numpy(np.array(array, dtype=wide))
    x = embeddings.detach()
    if x.dtype != torch.float64:
        x = x.float()
    if x.ndim != 2 or 0 in x.shape:
        raise UserError(f"embeddings have shape {tuple(x.shape)}; expected (images, dimensions)")
    bad = (~torch.isfinite(x).all(1)).nonzero()[:, 0].tolist()
    if bad:
        shown = ", ".join(map(str, bad[:ROWS_SHOWN])) + (", ..." if len(bad) > ROWS_SHOWN else "")
        raise UserError(f"embeddings hold NaN or infinite values in {len(bad)} rows: {shown}")
    return x


def _labels(labels: object) -> np.ndarray:
    names = labels.cpu().numpy() if torch.is_tensor(labels) else np.asarray(labels)
    if names.ndim != 1:
        raise UserError(f"labels have shape {names.shape}; expected one label for each image")
    if names.dtype.kind == "O":
        if any(name is None or name != name for name in names):
            row = next(i for i, name in enumerate(names) if name is None or name != name)
            raise UserError(f"the label of row {row} is missing")
        names = names.astype(str)
    if names.dtype.kind not in "iubUS":
        raise UserError(f"labels are of type {names.dtype}; they must be strings or integers")
    return names


def _random_folds(codes: np.ndarray, sizes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Each class's images are shuffled and dealt to the folds in turn."""
    shuffled = np.lexsort((rng.random(len(codes)), codes))
    within = np.arange(len(codes)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    folds = np.empty(len(codes), dtype=np.int32)
    folds[shuffled] = within % FOLDS
    return folds
