"""Batches of one domain each, for training on a merged set.

The strategies are those of UnED (Ypsilantis et al., "Towards Universal Image Embeddings", ICCV
2023), in words; ``mixed`` knows no domains.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from torch.utils.data import Sampler

from common.errors import UserError
from datasets.index import Index
from datasets.sampler import ClassBalancedBatchSampler

STRATEGIES = ("mixed", "dataset_size", "balanced", "round_robin")


def batch_sampler(
    index: Index,
    strategy: str,
    classes_per_batch: int,
    images_per_class: int,
    **arguments: object,
) -> ClassBalancedBatchSampler | DomainBatchSampler:
    """The sampler for training on ``index`` by a strategy of that name.

    Args:
        index: the training images.
        strategy: ``mixed``: classes of all domains in one deck, see
            :class:`datasets.sampler.ClassBalancedBatchSampler`. Else see
            :class:`DomainBatchSampler`.
        classes_per_batch, images_per_class, arguments: as for ``ClassBalancedBatchSampler``.

    Raises:
        UserError: no such strategy, or a domain has too few classes.
    """
    if strategy not in STRATEGIES:
        raise UserError(f"the batch strategy {strategy!r} is none of {', '.join(STRATEGIES)}")
    if strategy == "mixed":
        return ClassBalancedBatchSampler(
            index.label_codes, classes_per_batch, images_per_class, **arguments
        )
    return DomainBatchSampler(index, strategy, classes_per_batch, images_per_class, **arguments)


class DomainBatchSampler(Sampler[list[int]]):
    """Yields batches of P classes x K images, each of one domain.

    - ``dataset_size``: the domain of a batch is drawn at random, in proportion to the domains'
      numbers of training images;
    - ``balanced``: drawn at random, all domains alike;
    - ``round_robin``: the domains take turns, in the order of their names.

    Within a domain, batches are those of :class:`datasets.sampler.ClassBalancedBatchSampler`, dealt
    on from one batch of the domain to its next. Seeds, ranks, epochs and resuming are as there: an
    epoch depends on (index, arguments, epoch) only.

    Args:
        index: the training images; positions refer to its rows.
        strategy: see above.
        classes_per_batch, images_per_class: P and K.
        batches: in an epoch; None gives floor(images / (P K)), at least one.
        seed: any integer >= 0.
        rank, world_size, small_classes: as there.

    Raises:
        UserError: a domain has fewer than P classes (names it), or an argument is out of range.
    """

    def __init__(
        self,
        index: Index,
        strategy: str,
        classes_per_batch: int,
        images_per_class: int,
        batches: int | None = None,
        seed: int = 0,
        rank: int = 0,
        world_size: int = 1,
        small_classes: str = "repeat",
    ) -> None:
        if strategy not in STRATEGIES[1:]:
            raise UserError(f"the strategy {strategy!r} is none of {', '.join(STRATEGIES[1:])}")
        domains = index.table["domain"].to_numpy(dtype=object)
        self._rows = [np.flatnonzero(domains == domain) for domain in index.domains]
        sizes = np.array([len(rows) for rows in self._rows], dtype=np.float64)
        self.strategy = strategy
        self.batches = batches or max(1, len(index) // (classes_per_batch * images_per_class))
        self.seed = seed
        self.epoch = 0
        self.start_batch = 0
        self._shares = sizes / sizes.sum() if strategy == "dataset_size" else None
        self._samplers = []
        for number, (domain, rows) in enumerate(zip(index.domains, self._rows, strict=True)):
            try:
                sampler = ClassBalancedBatchSampler(
                    index.label_codes[rows],
                    classes_per_batch,
                    images_per_class,
                    batches=self.batches,
                    # Its own seed, so that domains of equal size are not shuffled alike.
                    seed=int(np.random.SeedSequence([seed, number]).generate_state(1)[0]),
                    rank=rank,
                    world_size=world_size,
                    small_classes=small_classes,
                )
            except UserError as error:
                raise UserError(f"domain {domain}: {error}") from error
            self._samplers.append(sampler)

    def __len__(self) -> int:
        return max(0, self.batches - self.start_batch)

    def set_epoch(self, epoch: int, start_batch: int = 0) -> None:
        """Chooses the epoch (>= 0) and the batch of it (>= 0) that iteration begins with."""
        if start_batch < 0:
            raise UserError(f"start_batch is {start_batch!r}, but must be at least 0")
        self.epoch = epoch
        self.start_batch = start_batch

    def domain_order(self) -> np.ndarray:
        """The domain of each batch of the epoch, shape (batches,): places in ``index.domains``."""
        count = len(self._rows)
        if self.strategy == "round_robin":
            return np.arange(self.batches) % count
        rng = np.random.default_rng([self.seed, self.epoch])
        return rng.choice(count, size=self.batches, p=self._shares)

    def __iter__(self) -> Iterator[list[int]]:
        for sampler in self._samplers:
            sampler.set_epoch(self.epoch)
        streams = [iter(sampler) for sampler in self._samplers]
        for number, domain in enumerate(self.domain_order()):
            batch = next(streams[domain])
            if number >= self.start_batch:
                yield self._rows[domain][batch].tolist()
