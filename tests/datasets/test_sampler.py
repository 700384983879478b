"""The class-balanced batch sampler and its corner cases."""

from collections import Counter
from itertools import chain

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from common.errors import UserError
from datasets import ClassBalancedBatchSampler

UNEVEN = np.repeat([7, 3, 11, 5, 2], [9, 4, 2, 1, 6])  # class codes need not be 0..C-1


def classes_of(batch, labels, per_class):
    """The class of each group of ``per_class`` positions; fails where a group is mixed."""
    groups = np.asarray(labels)[np.asarray(batch)].reshape(-1, per_class)
    assert (groups == groups[:, :1]).all()
    return groups[:, 0].tolist()


@given(
    sizes=st.lists(st.integers(1, 9), min_size=2, max_size=8),
    p=st.integers(1, 8),
    k=st.integers(1, 5),
    small_classes=st.sampled_from(["repeat", "drop"]),
    seed=st.integers(0, 99),
)
def test_every_batch_has_p_distinct_classes_with_k_images(sizes, p, k, small_classes, seed):
    labels = np.random.default_rng(seed).permutation(np.repeat(range(len(sizes)), sizes))
    kept = [c for c, n in enumerate(sizes) if small_classes == "repeat" or n >= k]
    if len(kept) < p:
        with pytest.raises(UserError, match="lower classes_per_batch"):
            ClassBalancedBatchSampler(labels, p, k, small_classes=small_classes)
        return
    sampler = ClassBalancedBatchSampler(labels, p, k, 5, seed, small_classes=small_classes)
    batches = list(sampler)
    assert len(batches) == len(sampler) == 5
    for batch in batches:
        drawn = classes_of(batch, labels, k)
        assert len(set(drawn)) == len(drawn) == p
        assert set(drawn) <= set(kept)
        for position, times in Counter(batch).items():
            size = sizes[labels[position]]
            # An image is repeated only where its class is small, and then as little as possible.
            assert k // size <= times <= -(-k // size)


def test_classes_come_equally_often_whatever_their_size():
    sampler = ClassBalancedBatchSampler(UNEVEN, 2, 2, batches=500)
    times = Counter(c for batch in sampler for c in classes_of(batch, UNEVEN, 2))
    assert set(times) == set(UNEVEN)
    assert max(times.values()) - min(times.values()) <= 1


def test_every_image_comes_before_any_comes_again():
    labels = np.repeat([0, 1], 8)
    sampler = ClassBalancedBatchSampler(labels, 2, 4, batches=2)
    assert sorted(position for batch in sampler for position in batch) == list(range(16))


def test_an_epoch_by_default_is_as_many_images_as_are_kept():
    assert len(ClassBalancedBatchSampler(np.repeat(range(10), 8), 4, 4)) == 5
    assert len(ClassBalancedBatchSampler(UNEVEN, 2, 2, small_classes="drop")) == 5
    assert len(ClassBalancedBatchSampler(UNEVEN, 5, 9)) == 1


def test_epochs_and_seeds_differ_and_repeat():
    def batches(seed, epoch):
        sampler = ClassBalancedBatchSampler(UNEVEN, 3, 2, batches=4, seed=seed)
        sampler.set_epoch(epoch)
        assert list(sampler) == list(sampler)
        return list(sampler)

    assert batches(0, 0) == batches(0, 0)
    assert batches(0, 0) != batches(0, 1)
    assert batches(0, 0) != batches(1, 0)
    assert batches(0, 1) != batches(1, 0)


def test_resumes_in_the_middle_of_an_epoch():
    sampler = ClassBalancedBatchSampler(UNEVEN, 3, 2, batches=6, seed=4)
    sampler.set_epoch(2)
    whole = list(sampler)
    sampler.set_epoch(2, start_batch=4)
    assert len(sampler) == 2
    assert list(sampler) == whole[4:]
    sampler.set_epoch(2, start_batch=6)
    assert list(sampler) == []


@pytest.mark.parametrize("world_size", [1, 2, 3, 6])
def test_ranks_share_the_global_batch_in_order(world_size):
    whole = list(ClassBalancedBatchSampler(UNEVEN, 3, 2, batches=3, seed=1))
    shares = [
        list(ClassBalancedBatchSampler(UNEVEN, 3, 2, 3, 1, rank, world_size))
        for rank in range(world_size)
    ]
    joined = [list(chain.from_iterable(parts)) for parts in zip(*shares, strict=True)]
    assert joined == whole


def test_leaves_the_global_generators_alone():
    np.random.seed(0)
    torch.manual_seed(0)
    state = np.random.get_state()[1].copy(), torch.get_rng_state()
    list(ClassBalancedBatchSampler(UNEVEN, 3, 2, batches=3))
    assert (np.random.get_state()[1] == state[0]).all()
    assert torch.equal(torch.get_rng_state(), state[1])


def test_yields_plain_integers():
    batch = next(iter(ClassBalancedBatchSampler(UNEVEN, 3, 2)))
    assert type(batch) is list
    assert {type(position) for position in batch} == {int}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"classes_per_batch": 6}, "needs 6 classes, but the data has 5; lower"),
        ({"small_classes": "drop", "images_per_class": 3}, "has 3 with 3 images or more"),
        ({"classes_per_batch": 0}, "classes_per_batch is 0"),
        ({"images_per_class": 0}, "images_per_class is 0"),
        ({"batches": 0}, "batches is 0"),
        ({"world_size": 5}, "world_size is 5, but must be a factor of 8"),
        ({"world_size": 0}, "world_size is 0"),
        ({"rank": 1}, "rank is 1"),
        ({"small_classes": "skip"}, "small_classes is 'skip'"),
    ],
)
def test_refuses_with_a_sentence(arguments, message):
    good = {"classes_per_batch": 4, "images_per_class": 2}
    with pytest.raises(UserError, match=message):
        ClassBalancedBatchSampler(UNEVEN, **{**good, **arguments})


def test_refuses_data_without_images():
    with pytest.raises(UserError, match="the data has 0"):
        ClassBalancedBatchSampler(np.empty(0, dtype=np.int64), 1, 1)
