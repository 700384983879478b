"""Batches of one domain, by each strategy."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest

from common.errors import UserError
from datasets.domain_sampler import DomainBatchSampler, batch_sampler
from datasets.index import Index
from datasets.sampler import ClassBalancedBatchSampler

SIZES = {"big": [30] * 8, "middle": [10] * 6, "small": [5] * 4}


@pytest.fixture(scope="module")
def index():
    rows = [
        (f"{domain}/{label}/{i}", f"{domain}/{label}", domain, "train")
        for domain, sizes in SIZES.items()
        for label, size in enumerate(sizes)
        for i in range(size)
    ]
    table = pd.DataFrame(rows, columns=["key", "label", "domain", "split"])
    return Index("merged", table.sample(frac=1, random_state=0), "0")


def domains_of(index, sampler):
    names = index.table["domain"].to_numpy()
    found = []
    for batch in sampler:
        assert len(set(names[batch])) == 1
        labels = Counter(index.table["label"].to_numpy()[batch])
        assert sorted(labels.values()) == [3, 3, 3, 3]
        assert len(set(batch)) == 12
        found.append(names[batch][0])
    return found


def test_round_robin_takes_turns(index):
    sampler = DomainBatchSampler(index, "round_robin", 4, 3, batches=7)
    assert domains_of(index, sampler) == ["big", "middle", "small"] * 2 + ["big"]


@pytest.mark.parametrize(
    ("strategy", "shares"),
    [("balanced", [1 / 3] * 3), ("dataset_size", [240 / 320, 60 / 320, 20 / 320])],
)
def test_random_strategies_have_their_shares(index, strategy, shares):
    count = 1500
    sampler = DomainBatchSampler(index, strategy, 4, 3, batches=count, seed=1)
    found = Counter(domains_of(index, sampler))
    for domain, share in zip(SIZES, shares, strict=True):
        deviation = (count * share * (1 - share)) ** 0.5
        assert abs(found[domain] - count * share) < 5 * deviation


def test_default_length_is_one_look_at_all(index):
    assert len(DomainBatchSampler(index, "balanced", 4, 3)) == 320 // 12


def test_epochs_seeds_and_resuming(index):
    def batches(seed=0, epoch=0, start=0):
        sampler = DomainBatchSampler(index, "balanced", 4, 3, batches=9, seed=seed)
        sampler.set_epoch(epoch, start)
        made = list(sampler)
        assert len(made) == len(sampler)
        return made

    assert batches() == batches()
    assert batches() != batches(epoch=1)
    assert batches() != batches(seed=1)
    assert batches(epoch=3)[4:] == batches(epoch=3, start=4)


def test_ranks_share_each_batch(index):
    whole = list(DomainBatchSampler(index, "balanced", 4, 3, batches=5))
    parts = [
        list(DomainBatchSampler(index, "balanced", 4, 3, batches=5, rank=rank, world_size=2))
        for rank in range(2)
    ]
    assert [one + two for one, two in zip(*parts, strict=True)] == whole


def test_domains_of_equal_shape_are_not_shuffled_alike():
    rows = [(f"{d}{c}{i}", f"{d}{c}", d, "train") for d in "ab" for c in range(6) for i in range(5)]
    table = pd.DataFrame(rows, columns=["key", "label", "domain", "split"])
    sampler = DomainBatchSampler(Index("x", table, "0"), "round_robin", 3, 2, batches=8)
    batches = np.array(list(sampler))
    assert (batches[0::2] != batches[1::2] - 30).any()


def test_mixed_is_the_ordinary_sampler(index):
    mixed = batch_sampler(index, "mixed", 4, 3, batches=5, seed=2)
    plain = ClassBalancedBatchSampler(index.label_codes, 4, 3, batches=5, seed=2)
    assert list(mixed) == list(plain)


def test_faults(index):
    with pytest.raises(UserError, match="domain small: a batch of 5 classes"):
        DomainBatchSampler(index, "balanced", 5, 3)
    with pytest.raises(UserError, match="'fair' is none of mixed, dataset_size"):
        batch_sampler(index, "fair", 4, 3)
    with pytest.raises(UserError, match="'mixed' is none of dataset_size"):
        DomainBatchSampler(index, "mixed", 4, 3)
    with pytest.raises(UserError, match="start_batch is -1"):
        batch_sampler(index, "balanced", 4, 3).set_epoch(0, -1)
