"""The data set over a source: right pictures, and randomness tied to the image alone."""

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader

import datasets
from datasets import ArraySource, GlyphAugmentation, ImageDataset, Index

COUNT = 40
EVERYTHING = GlyphAugmentation(stroke=0.5, contrast=0.3, noise=0.1)


def make_index(count=COUNT):
    return Index(
        "toys",
        pd.DataFrame(
            {
                "key": [f"k{i}" for i in range(count)],
                "label": [f"c{i // 4}" for i in range(count)],
                "domain": "toys",
                "split": "train",
            }
        ),
        "00",
    )


def make_arrays(count=COUNT):
    images = np.random.default_rng(0).integers(0, 256, (count, 32, 32), dtype=np.uint8)
    return ArraySource(make_index(count), images, (0.5,), (0.25,))


class Files:
    """A source that reads one image at a time, like a folder of files; modes vary."""

    mean = std = (0.5, 0.5, 0.5)

    def __init__(self):
        self.index = make_index()

    def read(self, key):
        number = int(key[1:])
        pixels = np.random.default_rng(number).integers(0, 256, (40, 60, 3), dtype=np.uint8)
        return Image.fromarray(pixels).convert(["RGB", "L", "P", "RGBA"][number % 4])


@pytest.mark.parametrize("source", [make_arrays(), Files()], ids=["arrays", "files"])
def test_an_image_depends_on_seed_epoch_and_position_alone(source):
    transform = datasets.transforms(source, size=24, resize=28, glyphs=EVERYTHING).train

    def images(positions, seed=0, epoch=0):
        dataset = ImageDataset(source, source.index, transform, seed)
        dataset.set_epoch(epoch)
        return dataset.batch(positions).images

    whole = images(range(COUNT))
    order = np.random.default_rng(1).permutation(COUNT)
    assert torch.equal(images(order), whole[order])
    assert all(torch.equal(images([i])[0], whole[i]) for i in range(COUNT))
    dataset = ImageDataset(source, source.index, transform)
    assert torch.equal(dataset[3].images, whole[3])
    assert torch.equal(dataset[-1].images, whole[-1])
    for other in (images(range(COUNT), seed=1), images(range(COUNT), epoch=1)):
        assert not any(torch.equal(a, b) for a, b in zip(other, whole, strict=True))


@pytest.mark.parametrize("source", [make_arrays(), Files()], ids=["arrays", "files"])
def test_workers_do_not_change_a_bit(source):
    transform = datasets.transforms(source, size=24, resize=28, glyphs=EVERYTHING).train
    dataset = ImageDataset(source, source.index, transform, seed=5)

    def read(workers):
        loader = DataLoader(dataset, batch_size=7, num_workers=workers, collate_fn=datasets.collate)
        return [torch.cat(parts) for parts in zip(*loader, strict=True)]

    alone, shared = read(0), read(2)
    assert all(torch.equal(a, b) for a, b in zip(alone, shared, strict=True))
    assert alone[1].tolist() == source.index.label_codes.tolist()
    assert alone[2].tolist() == list(range(COUNT))


@pytest.mark.parametrize("source", [make_arrays(), Files()], ids=["arrays", "files"])
def test_leaves_the_global_generators_alone(source):
    transform = datasets.transforms(source, size=24, resize=28, glyphs=EVERYTHING).train
    torch.manual_seed(0)
    state = torch.get_rng_state()
    ImageDataset(source, source.index, transform).batch(range(COUNT))
    assert torch.equal(torch.get_rng_state(), state)


def test_collates_single_items_as_well():
    source = make_arrays()
    dataset = ImageDataset(source, source.index, datasets.transforms(source).test)
    batch = datasets.collate([dataset[2], dataset[5]])
    assert torch.equal(batch.images, dataset.batch([2, 5]).images)
    assert batch.labels.tolist() == [0, 1]
    assert batch.positions.tolist() == [2, 5]


def test_serves_a_subset_with_its_own_codes():
    source = make_arrays()
    part = source.index.subset(classes=["c3", "c9"])
    dataset = ImageDataset(source, part, datasets.transforms(source).test)
    batch = dataset.batch(range(len(dataset)))
    assert np.array_equal(batch.images[:, 0], source.images[[*range(12, 16), *range(36, 40)]])
    assert batch.labels.tolist() == [0] * 4 + [1] * 4
    with pytest.raises(IndexError, match="outside of 8 images"):
        dataset[8]


def test_an_index_of_other_images_is_refused():
    with pytest.raises(KeyError, match="k40"):
        ImageDataset(make_arrays(), make_index(COUNT + 4), datasets.augment.keep_batch)


def test_arrays_must_fit_their_index():
    with pytest.raises(ValueError, match="uint8 of shape"):
        ArraySource(make_index(), np.zeros((3, 32, 32), np.uint8), (0.5,), (0.5,))


def test_arrays_are_read_by_key():
    source = make_arrays()
    assert np.array_equal(np.asarray(source.read("k17")), source.images[17])


def test_file_transforms_give_rgb_squares_of_the_asked_size():
    source = Files()
    for transform in datasets.transforms(source, size=24, resize=28):
        images = ImageDataset(source, source.index, transform).batch(range(COUNT)).images
        assert images.shape == (COUNT, 3, 24, 24)
        assert images.dtype == torch.uint8


def test_the_test_transform_is_the_centre_of_the_resized_picture():
    source = Files()
    transform = datasets.transforms(source, size=20, resize=20).test
    expected = source.read("k0").resize((30, 20), Image.Resampling.BILINEAR).crop((5, 0, 25, 20))
    result = ImageDataset(source, source.index, transform)[0].images
    assert np.array_equal(result.permute(1, 2, 0), np.asarray(expected))


def test_flip_mirrors():
    source = Files()
    always, never = (datasets.transforms(source, size=24, flip=flip).train for flip in (1.0, 0.0))
    mirrored = ImageDataset(source, source.index, always)[0].images
    straight = ImageDataset(source, source.index, never)[0].images
    assert torch.equal(mirrored.flip(-1), straight)
