"""The glyph augmentation and its random numbers: what each change does, and within what bounds."""

import numpy as np
import torch

from datasets import GlyphAugmentation
from datasets.randomness import sample_keys, uniform


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
    images = torch.randint(0, 256, (40, 1, 32, 32), dtype=torch.uint8)
    still = GlyphAugmentation(0, 0, 0, 0)(images, sample_keys(0, 0, np.arange(40)))
    assert torch.equal(still, images)


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
