"""Checks embeddings and labels, and sorts them by class: the form in which the passes read them."""

from __future__ import annotations

import numpy as np
import torch

from common.errors import UserError
from eval.prepared import FOLDS, Prepared, Side

ROWS_SHOWN = 5


def prepare(
    embeddings: object,
    labels: object,
    gallery: object = None,
    gallery_labels: object = None,
    *,
    seed: int = 0,
    device: str | None = None,
) -> Prepared:
    """Checks and sorts.

    Args:
        embeddings: (N, D) floats, a torch tensor or anything that numpy takes; float16 is widened.
        labels: (N,) strings or integers, in any order.
        gallery, gallery_labels: the same for a gallery of other images, or None.
        seed: of the random folds.
        device: where the embeddings are brought; None leaves them where they are.

    Raises:
        UserError: a device that is not there, wrong shapes or types, no images, NaN or infinite
            values, fewer than two classes with a pair; names the rows.
    """
    rng = np.random.default_rng(seed)
    if (gallery is None) != (gallery_labels is None):
        raise UserError("give gallery and gallery_labels together, or neither")
    x, names = _floats(embeddings, "embeddings"), _labels(labels, "labels")
    if device is not None:
        x = _moved(x, device)
    _check_lengths(x, names, "embeddings", "labels")
    if gallery is None:
        classes, codes = np.unique(names, return_inverse=True)
        one = _side(x, codes, len(classes), rng)
        found = Prepared(one, one, classes, np.arange(len(codes)), np.ones(len(classes)))
    else:
        y = _floats(gallery, "gallery").to(x.device)
        others = _labels(gallery_labels, "gallery_labels")
        _check_lengths(y, others, "gallery embeddings", "gallery_labels")
        _check_match(x, y, names, others)
        classes, codes = np.unique(np.concatenate([names, others]), return_inverse=True)
        queries = _side(x, codes[: len(x)], len(classes), rng)
        images = _side(y, codes[len(x) :], len(classes), rng)
        own = np.full(len(x), -1)
        found = Prepared(queries, images, classes, own, np.ones(len(classes)))
    if len(classes) < 2:
        raise UserError("all images have one label: negatives need at least two classes")
    if found.kept.sum() < 2:
        what = "a query and a gallery image" if found.separate else "two images or more"
        raise UserError(
            f"{found.kept.sum()} of {len(classes)} classes have {what}: a variance over classes "
            "needs at least two such classes"
        )
    return found


def _side(x: torch.Tensor, codes: np.ndarray, classes: int, rng: np.random.Generator) -> Side:
    order = np.argsort(codes, kind="stable")
    sizes = np.bincount(codes, minlength=classes)
    folds = _random_folds(codes[order], sizes, rng)
    return Side(x, order, codes[order], np.concatenate([[0], np.cumsum(sizes)]), folds)


def _floats(embeddings: object, name: str) -> torch.Tensor:
    if not torch.is_tensor(embeddings):
        array = np.asarray(embeddings)
        if array.dtype.kind not in "fiu":
            raise UserError(f"{name} are of type {array.dtype}; they must be numbers")
        wide = np.float64 if array.dtype.itemsize > 4 or array.dtype.kind != "f" else np.float32
        array = np.ascontiguousarray(array, dtype=wide)
        embeddings = torch.from_numpy(array if array.flags.writeable else array.copy())
    x = embeddings.detach()
    if x.is_complex() or x.dtype == torch.bool:
        raise UserError(f"{name} are of type {x.dtype}; they must be real numbers")
    if x.device.type not in ("cpu", "cuda"):
        x = x.cpu()  # float64 is needed, which other devices lack
    x = (x if x.dtype == torch.float64 else x.float()).contiguous()
    if x.ndim != 2 or 0 in x.shape:
        raise UserError(f"{name} have shape {tuple(x.shape)}; expected (images, dimensions)")
    # Sums keep NaN and infinity; a row whose sum overflows is then looked at closely.
    doubtful = (~torch.isfinite(x.sum(1, dtype=torch.float64))).nonzero()[:, 0]
    bad = doubtful[~torch.isfinite(x[doubtful]).all(1)].tolist()
    if bad:
        shown = ", ".join(map(str, bad[:ROWS_SHOWN])) + (", ..." if len(bad) > ROWS_SHOWN else "")
        raise UserError(f"{name} hold NaN or infinite values in {len(bad)} rows: {shown}")
    return x


def _moved(x: torch.Tensor, device: str) -> torch.Tensor:
    try:
        return x.to(device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).strip().split("\n")[0]
        raise UserError(f"device {device!r} cannot be used ({reason}); cpu always can") from error


def _labels(labels: object, what: str) -> np.ndarray:
    names = labels.cpu().numpy() if torch.is_tensor(labels) else np.asarray(labels)
    if names.ndim != 1:
        raise UserError(f"{what} have shape {names.shape}; expected one label for each image")
    if names.dtype.kind == "O":
        if any(name is None or name != name for name in names):
            row = next(i for i, name in enumerate(names) if name is None or name != name)
            raise UserError(f"the label of row {row} is missing")
        names = names.astype(str)
    if names.dtype.kind not in "iubUS":
        raise UserError(f"{what} are of type {names.dtype}; they must be strings or integers")
    return names


def _check_lengths(x: torch.Tensor, names: np.ndarray, what: str, labels: str) -> None:
    if len(names) != len(x):
        raise UserError(f"{len(x)} {what} but {len(names)} {labels}: give one label for each row")


def _check_match(x: torch.Tensor, y: torch.Tensor, names: np.ndarray, others: np.ndarray) -> None:
    if x.shape[1] != y.shape[1]:
        raise UserError(
            f"queries have {x.shape[1]} dimensions, the gallery has {y.shape[1]}: embed both with "
            "one model"
        )
    if (names.dtype.kind in "US") != (others.dtype.kind in "US"):
        raise UserError(
            f"labels are {names.dtype} and gallery_labels {others.dtype}: give both as strings or "
            "both as integers"
        )


def _random_folds(codes: np.ndarray, sizes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Each class's images are shuffled and dealt to the folds in turn."""
    shuffled = np.lexsort((rng.random(len(codes)), codes))
    within = np.arange(len(codes)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    folds = np.empty(len(codes), dtype=np.int32)
    folds[shuffled] = within % FOLDS
    return folds
