"""Checks embeddings and labels, and sorts them by class: the form in which the passes read them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch

from common.errors import UserError

ROWS_SHOWN = 5
# Parts of each class, left out in turn, that tell how much chance is in its curve.
FOLDS = 4


@dataclass(frozen=True)
class Side:
    """The n queries, or the n images of the gallery: sorted by class, ties in their old order.

    Attributes:
        embeddings: (M, D) as they came, float32 or float64, on the caller's device.
        order: (n,) the row of ``embeddings`` of each image.
        codes: (n,) class code of each image, ascending.
        starts: (C + 1,) first image of each class, and n.
        folds: (n,) 0 to FOLDS - 1: random parts of each class, for the noise floor.
    """

    embeddings: torch.Tensor
    order: np.ndarray
    codes: np.ndarray
    starts: np.ndarray
    folds: np.ndarray

    @property
    def sizes(self) -> np.ndarray:
        """(C,) images of each class."""
        return np.diff(self.starts)

    def rows(self, places: slice | np.ndarray) -> torch.Tensor:
        """(n, D) float64 embeddings of sorted images."""
        index = torch.from_numpy(self.order[places]).to(self.embeddings.device)
        return self.embeddings[index].double()


@dataclass(frozen=True)
class Groups:
    """Whose negatives are counted apart: the folds of each class, or each sampled query.

    Attributes:
        classes, folds: (g,) of each group, class by class.
        of_query: (Q,) group of each query.
        of_gallery: (G,) of each gallery image, None where negatives count for queries alone.
    """

    classes: np.ndarray
    folds: np.ndarray
    of_query: np.ndarray
    of_gallery: np.ndarray | None


@dataclass(frozen=True)
class Prepared:
    """Queries, each to be compared with a gallery.

    Attributes:
        queries, gallery: one and the same object when a set is compared with itself.
        classes: (C,) class names of both, sorted.
        own: (Q,) the place of each query itself in the gallery, -1 in a gallery of other images.
        weights: (C,) images that each query of the class stands for: 1 unless sampled.
        sampled: the queries are a sample of the gallery.
    """

    queries: Side
    gallery: Side
    classes: np.ndarray
    own: np.ndarray
    weights: np.ndarray
    sampled: bool = False

    @property
    def symmetric(self) -> bool:
        """One set: half of the pairs tell about all."""
        return self.queries is self.gallery

    @property
    def separate(self) -> bool:
        """The gallery is another set of images."""
        return not self.symmetric and not self.sampled

    @property
    def groups(self) -> Groups:
        """How negatives are counted."""
        queries, gallery = self.queries, self.gallery
        if self.sampled:
            return Groups(queries.codes, queries.folds, np.arange(len(queries.codes)), None)
        every = np.arange(FOLDS * len(self.classes))
        of_query, of_gallery = (FOLDS * side.codes + side.folds for side in (queries, gallery))
        return Groups(every // FOLDS, every % FOLDS, of_query, of_gallery)

    @property
    def relevant(self) -> np.ndarray:
        """(Q,) positives of each query: R of MAP@R."""
        return self.gallery.sizes[self.queries.codes] - (self.own >= 0)

    @property
    def kept(self) -> np.ndarray:
        """(C,) which classes have a positive pair; the others serve as negatives alone."""
        if self.separate:
            return (self.queries.sizes > 0) & (self.gallery.sizes > 0)
        return self.gallery.sizes >= 2


def prepare(
    embeddings: object,
    labels: object,
    gallery: object = None,
    gallery_labels: object = None,
    *,
    seed: int = 0,
) -> Prepared:
    """Checks and sorts.

    Args:
        embeddings: (N, D) floats, a torch tensor or anything that numpy takes; float16 is widened.
        labels: (N,) strings or integers, in any order.
        gallery, gallery_labels: the same for a gallery of other images, or None.
        seed: of the random folds.

    Raises:
        UserError: wrong shapes or types, no images, NaN or infinite values, fewer than two classes
            with a pair; names the rows.
    """
    rng = np.random.default_rng(seed)
    if (gallery is None) != (gallery_labels is None):
        raise UserError("give gallery and gallery_labels together, or neither")
    x, names = _floats(embeddings, "embeddings"), _labels(labels, "labels")
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


def take_queries(images: Prepared, chosen: np.ndarray, weights: np.ndarray) -> Prepared:
    """One set with only some images as queries.

    Args:
        chosen: (Q,) ascending places in the sorted set.
        weights: (C,) images that a query of each class stands for.
    """
    one = images.gallery
    codes = one.codes[chosen]
    starts = np.searchsorted(codes, np.arange(len(images.classes) + 1))
    queries = replace(
        one, order=one.order[chosen], codes=codes, starts=starts, folds=one.folds[chosen]
    )
    return replace(images, queries=queries, own=chosen, weights=weights, sampled=True)


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
