"""Batches of P classes x K images, the usual diet of pair-based losses."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from torch.utils.data import Sampler

from common.errors import UserError

SMALL_CLASSES = ("repeat", "drop")


class ClassBalancedBatchSampler(Sampler[list[int]]):
    """Yields lists of positions: K images of each of P classes, class by class.

    Classes are dealt from a shuffled deck of all classes, and images from a shuffled deck of each
    class; an exhausted deck is shuffled anew. So classes come equally often whatever their size,
    and so do, in the long run, the images of one class.

    Corner cases:

    - A class with fewer than K images: ``small_classes="repeat"`` shows some of its images several
      times in a batch (each floor(K / n) or one more, so pairs at distance 0 may occur); ``"drop"``
      leaves the class out altogether, as the RS@K repository does.
    - A class deck with fewer than K images left is not mixed with the next deck: the rest is set
      aside until the reshuffle, so that no image is twice in one batch if the class has K.
    - Fewer classes than P (after dropping): UserError.
    - Last batch: every batch is full. ``batches=None`` gives floor(kept images / (P K)) batches, at
      least one.
    - Seeds: an epoch's batches depend on (labels, P, K, seed, epoch) only; the generator is the
      sampler's own, no global one is read or moved. Iterating twice without
      :meth:`set_epoch` gives the same batches twice.
    - Ranks: every rank computes the same global batch and takes its share, slice ``rank`` of
      ``world_size`` equal slices in order: joined in rank order they are the global batch.
    - Resuming: ``set_epoch(epoch, start_batch=n)`` skips the first n batches; ``len`` counts what
      is left. The sampler keeps no count of batches handed out, because loader workers fetch ahead
      of what was trained on; the training loop knows.

    Args:
        label_codes: shape (N,), integers.
        classes_per_batch: P >= 1.
        images_per_class: K >= 1.
        batches: batches in an epoch, or None.
        seed: any integer >= 0.
        rank: this process, in 0 .. world_size - 1.
        world_size: number of processes; must divide P x K.
        small_classes: "repeat" or "drop".

    Raises:
        UserError: fewer classes than P, or an argument outside of its range.
    """

    def __init__(
        self,
        label_codes: np.ndarray,
        classes_per_batch: int,
        images_per_class: int,
        batches: int | None = None,
        seed: int = 0,
        rank: int = 0,
        world_size: int = 1,
        small_classes: str = "repeat",
    ) -> None:
        size = classes_per_batch * images_per_class
        _require(classes_per_batch >= 1, "classes_per_batch", classes_per_batch, "at least 1")
        _require(images_per_class >= 1, "images_per_class", images_per_class, "at least 1")
        _require(batches is None or batches >= 1, "batches", batches, "None or at least 1")
        divides = world_size >= 1 and size % world_size == 0
        _require(divides, "world_size", world_size, f"a factor of {size}")
        _require(0 <= rank < world_size, "rank", rank, f"0 to {world_size - 1}")
        _require(small_classes in SMALL_CLASSES, "small_classes", small_classes, "repeat or drop")

        label_codes = np.asarray(label_codes)
        order = np.argsort(label_codes, kind="stable")
        _, counts = np.unique(label_codes, return_counts=True)
        groups = np.split(order, np.cumsum(counts)[:-1]) if len(order) else []
        if small_classes == "drop":
            groups = [group for group in groups if len(group) >= images_per_class]
        if len(groups) < classes_per_batch:
            raise UserError(
                f"a batch of {classes_per_batch} classes x {images_per_class} images needs "
                f"{classes_per_batch} classes, but the data has {len(groups)}"
                + (f" with {images_per_class} images or more" if small_classes == "drop" else "")
                + "; lower classes_per_batch"
            )
        self.classes_per_batch = classes_per_batch
        self.images_per_class = images_per_class
        self.seed = seed
        self.epoch = 0
        self.start_batch = 0
        self.batches = batches or max(1, sum(map(len, groups)) // size)
        self._groups = groups
        share = size // world_size
        self._share = slice(rank * share, (rank + 1) * share)

    def __len__(self) -> int:
        return max(0, self.batches - self.start_batch)

    def set_epoch(self, epoch: int, start_batch: int = 0) -> None:
        """Chooses the epoch (>= 0) and the batch of it (>= 0) that iteration begins with."""
        _require(start_batch >= 0, "start_batch", start_batch, "at least 0")
        self.epoch = epoch
        self.start_batch = start_batch

    def __iter__(self) -> Iterator[list[int]]:
        for number, batch in enumerate(self._epoch(np.random.default_rng([self.seed, self.epoch]))):
            if number >= self.start_batch:
                yield batch[self._share].tolist()

    def _epoch(self, rng: np.random.Generator) -> Iterator[np.ndarray]:
        """The global batches of one epoch, each of shape (P K,)."""
        p = self.classes_per_batch
        classes = np.empty(0, dtype=np.int64)
        decks: dict[int, np.ndarray] = {}
        for _ in range(self.batches):
            if len(classes) < p:
                fresh = rng.permutation(len(self._groups))
                # What is left of the old deck comes first, its twins of the new deck last: the
                # next P classes are distinct.
                twins = np.isin(fresh, classes)
                classes = np.concatenate([classes, fresh[~twins], fresh[twins]])
            drawn, classes = classes[:p], classes[p:]
            yield np.concatenate([self._deal(int(c), decks, rng) for c in drawn])

    def _deal(
        self, code: int, decks: dict[int, np.ndarray], rng: np.random.Generator
    ) -> np.ndarray:
        """K images of one class, shape (K,)."""
        k = self.images_per_class
        group = self._groups[code]
        if len(group) < k:
            whole = np.tile(group, k // len(group))
            return np.concatenate([whole, rng.permutation(group)[: k - len(whole)]])
        deck = decks.get(code)
        if deck is None or len(deck) < k:
            deck = rng.permutation(group)
        decks[code] = deck[k:]
        return deck[:k]


def _require(met: bool, name: str, value: object, wanted: str) -> None:
    if not met:
        raise UserError(f"{name} is {value!r}, but must be {wanted}")
