"""Image files through PyTorch's loader: workers, spawned or forked, and what breaks on the way."""

import multiprocessing

import pytest
import torch
from torch.utils.data import DataLoader

import datasets
from common.errors import UserError
from datasets.domain_sampler import DomainBatchSampler
from tests.datasets.trees import (
    encode,
    make_cars_old,
    make_cub,
    make_inaturalist,
    make_sop,
    picture,
    write,
)

SIDE = 24


@pytest.fixture
def tree(tmp_path):
    for number in range(24):
        name = f"{'train' if number < 16 else 'test'}/class{number // 4}/{number}.jpg"
        write(tmp_path / "set" / name, encode(picture(number, (80, 60))))
    return tmp_path / "set"


def batches(source, transform, epoch=0, **options):
    served = datasets.ImageDataset(source, source.index, transform, seed=3)
    served.set_epoch(epoch)
    options = {"batch_size": 6, **options}
    return list(DataLoader(served, collate_fn=datasets.collate, **options))


@pytest.mark.parametrize("how", ["fork", pytest.param("spawn", marks=pytest.mark.soak)])
def test_workers_give_what_the_main_process_gives(tree, how):
    source = datasets.load(f"folder:{tree}")
    train = datasets.transforms(source, size=SIDE).train
    alone = batches(source, train)
    context = multiprocessing.get_context(how)
    shared = batches(source, train, num_workers=2, multiprocessing_context=context)
    assert len(alone) == len(shared) == 4
    for one, other in zip(alone, shared, strict=True):
        assert one.images.shape == (6, 3, SIDE, SIDE)
        assert one.images.dtype == torch.uint8
        assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))
    assert not torch.equal(batches(source, train, epoch=1)[0].images, alone[0].images)


def test_reduced_decoding_shows_the_same_picture(tree):
    full = datasets.load(f"folder:{tree}")
    fast = datasets.load(f"folder:{tree}", decode_side=SIDE)
    test = datasets.transforms(full, size=SIDE, resize=SIDE).test
    for one, other in zip(batches(full, test), batches(fast, test), strict=True):
        assert (one.images.float() - other.images.float()).abs().mean() < 4


@pytest.mark.parametrize("workers", [0, 1])
def test_an_image_that_breaks_in_training_is_named(tree, workers):
    source = datasets.load(f"folder:{tree}")
    path = tree / "train/class1/5.jpg"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(UserError, match=r"class1/5\.jpg cannot be decoded"):
        batches(source, datasets.transforms(source, size=SIDE).train, num_workers=workers)
    skipping = datasets.load(f"folder:{tree}", broken="skip")
    assert len(skipping.index) == 23
    assert "1 missing or broken images skipped: train/class1/5.jpg" in skipping.index.notes
    assert len(batches(skipping, datasets.transforms(skipping, size=SIDE).train)) == 4


def test_batches_of_one_domain_from_the_merged_set(tmp_path):
    make_cub(tmp_path / "cub", [3, 3], [2])
    make_sop(tmp_path / "sop", [3, 3], [2])
    make_cars_old(tmp_path / "cars", [1] * 3 + [2] * 3 + [100] * 2)
    make_inaturalist(tmp_path / "inaturalist", [3, 3], [2])
    source = datasets.load("merged", tmp_path)
    train = source.index.subset(split="train")
    served = datasets.ImageDataset(source, train, datasets.transforms(source, size=SIDE).train)
    sampler = DomainBatchSampler(train, "round_robin", 2, 3, batches=8)
    loader = DataLoader(served, batch_sampler=sampler, collate_fn=datasets.collate, num_workers=2)
    seen = []
    for batch in loader:
        assert batch.images.shape == (6, 3, SIDE, SIDE)
        domains = set(train.table["domain"].to_numpy()[batch.positions.numpy()])
        assert len(domains) == 1
        seen += domains
    assert seen == ["cars", "cub", "inaturalist", "sop"] * 2
