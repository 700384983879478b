"""Images ready to be compared: who queries, what is searched, and whose pairs are counted apart."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch

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
    def pair_ends(self) -> np.ndarray:
        """(Q,) ends of pairs that a pair of a query stands for: two, or its weight in a sample."""
        return self.weights[self.queries.codes] * (1.0 if self.sampled else 2.0)

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
