"""Twins: byte for byte and nearly."""

import numpy as np
import pytest
from PIL import Image

from datasets.duplicates import Twins, count_twins, near_groups, perceptual_hash
from tests.datasets.trees import picture


def photograph(seed, size=(320, 240)):
    pixels = np.random.default_rng(seed).integers(0, 256, (9, 12, 3), dtype=np.uint8)
    return Image.fromarray(pixels).resize(size, Image.Resampling.BICUBIC)


def test_counts_by_hand():
    groups = np.array([1, 1, 2, 3, 3, 3, 2])
    test = np.array([0, 0, 0, 0, 1, 1, 1], dtype=bool)
    # 1: two in training. 2: one each. 3: one in training, two in testing.
    assert count_twins(groups, test) == Twins(train=2, test=2, across=3)
    assert not count_twins(np.array(["a", "b"]), np.array([False, True]))


def test_a_copy_of_other_size_and_quality_is_near_and_another_picture_is_not(tmp_path):
    originals = [photograph(seed) for seed in range(40)]
    copies = []
    for number, image in enumerate(originals):
        path = tmp_path / f"{number}.jpg"
        image.resize((200, 150)).save(path, quality=60)
        copies.append(Image.open(path))
    hashes = np.stack([perceptual_hash(image) for image in originals + copies])
    assert hashes.shape == (80, 8)
    groups = near_groups(hashes)
    assert (groups[:40] == groups[40:]).mean() > 0.9
    assert len(set(groups[:40])) == 40


def brute_force(hashes, bits):
    """Groups by flooding, from all pairwise distances."""
    different = np.unpackbits(hashes[:, None] ^ hashes[None], axis=-1).sum(-1)
    groups = np.full(len(hashes), -1)
    for start in range(len(hashes)):
        if groups[start] >= 0:
            continue
        waiting = [start]
        while waiting:
            node = waiting.pop()
            if groups[node] < 0:
                groups[node] = start
                waiting += list(np.flatnonzero(different[node] <= bits))
    return groups


@pytest.mark.parametrize("bits", [0, 1, 2, 5])
def test_groups_agree_with_flooding(bits):
    rng = np.random.default_rng(bits)
    hashes = rng.integers(0, 256, (12, 8), dtype=np.uint8)[rng.integers(0, 12, 60)]
    flips = rng.integers(0, 64, (60, 3))
    for row, places in enumerate(flips):
        for place in places[: rng.integers(0, 4)]:
            hashes[row, place // 8] ^= 1 << (place % 8)
    found, expected = near_groups(hashes, bits), brute_force(hashes, bits)
    assert ((found[:, None] == found) == (expected[:, None] == expected)).all()


def test_no_images():
    assert near_groups(np.empty((0, 8), dtype=np.uint8)).shape == (0,)


def test_tiny_and_flat_images_have_a_hash():
    for size in ((1, 1), (1, 300), (16, 16)):
        assert perceptual_hash(picture(0, size)).shape == (8,)
    flat = [perceptual_hash(Image.new("RGB", (side, side))) for side in (5, 9)]
    assert (flat[0] == flat[1]).all()
