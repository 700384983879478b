"""The data set and its transforms: right pictures, and randomness tied to the image alone."""

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader

import datasets
from datasets import ArraySource, GlyphAugmentation, ImageDataset, Index
from datasets.randomness import sample_keys, uniform

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


def bar_images(count):
    """A horizontal bar in the middle, the same in each image."""
    images = np.zeros((count, 1, 32, 32), dtype=np.uint8)
    images[..., 14:18, 6:26] = 255
    return torch.from_numpy(images)


def moments(images):
    """Centre of mass (x, y) in pixels and tilt in degrees of each image."""
    mass = images[:, 0].double().numpy()
    y, x = np.mgrid[:32, :32]
    total = mass.sum((1, 2))
    cx, cy = (mass * x).sum((1, 2)) / total, (mass * y).sum((1, 2)) / total
    dx, dy = x - cx[:, None, None], y - cy[:, None, None]
    xx, yy, xy = ((mass * a).sum((1, 2)) / total for a in (dx * dx, dy * dy, dx * dy))
    return cx, cy, np.rad2deg(np.arctan2(2 * xy, xx - yy) / 2), total


def test_random_numbers_are_those_of_splitmix64():
    # The first outputs for seed 1234567, as published with the generator.
    known = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    draws = uniform(np.array([1234567], dtype=np.uint64), 3)[0]
    assert draws.tolist() == [(number >> 11) / 2**53 for number in known]


def test_sample_keys_differ_in_each_argument():
    keys = {
        int(sample_keys(seed, epoch, np.array([position]))[0])
        for seed in range(10)
        for epoch in range(10)
        for position in range(10)
    }
    assert len(keys) == 1000


def test_random_numbers_are_uniform_and_unrelated():
    draws = uniform(sample_keys(0, 0, np.arange(20000)), 6)
    assert draws.min() >= 0
    assert draws.max() < 1
    assert np.abs(draws.mean(axis=0) - 0.5).max() < 5 * np.sqrt(1 / 12 / 20000)
    correlation = np.corrcoef(np.concatenate([draws[:-1], draws[1:]], axis=1).T)
    assert np.abs(correlation - np.eye(12)).max() < 5 / np.sqrt(20000)


def test_no_augmentation_keeps_every_pixel():
    still = GlyphAugmentation(0, 0, 0, 0)
    source = make_arrays()
    batch = ImageDataset(source, source.index, still).batch(range(COUNT))
    assert np.array_equal(batch.images[:, 0], source.images)


def test_shift_moves_within_bounds_both_ways():
    keys = sample_keys(0, 0, np.arange(300))
    cx, cy, _, _ = moments(GlyphAugmentation(0, 0, 0, shift=0.1)(bar_images(300), keys))
    for centre in (cx, cy):
        moved = centre - 15.5
        assert np.abs(moved).max() <= 3.2 + 0.05
        assert moved.min() < -2.5
        assert moved.max() > 2.5


def test_rotation_turns_within_bounds_both_ways_about_the_centre():
    keys = sample_keys(0, 0, np.arange(300))
    cx, cy, tilt, _ = moments(
        GlyphAugmentation(rotation=20, scale=0, shear=0, shift=0)(bar_images(300), keys)
    )
    assert np.abs(tilt).max() < 21
    assert tilt.min() < -15
    assert tilt.max() > 15
    assert np.abs(np.concatenate([cx, cy]) - 15.5).max() < 0.1


def test_scale_changes_the_area_within_bounds_both_ways():
    keys = sample_keys(0, 0, np.arange(300))
    images = bar_images(300)
    total = moments(GlyphAugmentation(0, scale=0.2, shear=0, shift=0)(images, keys))[3]
    ratio = total / moments(images)[3]
    assert ratio.max() < 1.2**2 + 0.02
    assert ratio.min() > 1.2**-2 - 0.02
    assert ratio.max() > 1.3
    assert ratio.min() < 0.77


def test_shear_slants_upright_strokes_and_keeps_level_ones_level():
    keys = sample_keys(0, 0, np.arange(300))
    slant = GlyphAugmentation(0, 0, shear=0.2, shift=0)
    assert np.abs(moments(slant(bar_images(300), keys))[2]).max() < 3
    upright = slant(bar_images(300).transpose(2, 3).contiguous(), keys)
    tilt = np.abs(moments(upright)[2])
    assert tilt.min() > 90 - np.rad2deg(np.arctan(0.2)) - 1
    assert tilt.min() < 80


def test_stroke_thickens_and_thins_by_at_most_a_pixel():
    keys = sample_keys(0, 0, np.arange(300))
    images = bar_images(300)
    drawn = GlyphAugmentation(0, 0, 0, 0, stroke=1.0)(images, keys)
    total = moments(drawn)[3] / 255
    assert total.max() <= 6 * 22
    assert total.min() >= 2 * 18
    assert total.max() > 6 * 22 - 4
    assert total.min() < 2 * 18 + 4
    assert (drawn[:, :, 15:17, 7:25] == 255).all()
    assert (drawn[:, :, :13] == 0).all()


def test_contrast_darkens_and_noise_stays_within_its_amplitude():
    keys = sample_keys(0, 0, np.arange(300))
    images = bar_images(300)
    brightest = GlyphAugmentation(0, 0, 0, 0, contrast=0.4)(images, keys).amax((1, 2, 3))
    assert 0.6 * 255 - 1 <= brightest.min() < 0.65 * 255
    assert brightest.max() > 0.95 * 255
    noisy = GlyphAugmentation(0, 0, 0, 0, noise=0.1)(images, keys)
    change = noisy.int() - images.int()
    assert change.abs().max() <= 26
    assert change.abs().amax((1, 2, 3)).float().std() > 1  # the amplitude varies
    # All but those that drew an amplitude of almost nothing differ.
    assert len({image.numpy().tobytes() for image in noisy}) > 280


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
