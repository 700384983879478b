"""Counts images that occur twice, byte for byte or to the eye."""

from __future__ import annotations

from dataclasses import dataclass

import faiss
import imagehash
import numpy as np
from PIL import Image

HASH_BITS = 64
# Two bits of 64 cover another JPEG quality or size, not another photograph of the same thing.
NEAR_BITS = 2


@dataclass(frozen=True)
class Twins:
    """How many images have a twin: in their own split, and in the other one."""

    train: int
    test: int
    across: int

    def __bool__(self) -> bool:
        return bool(self.train or self.test or self.across)


def perceptual_hash(image: Image.Image) -> np.ndarray:
    """The 64-bit pHash (DCT of a 32 x 32 reduction; package imagehash), shape (8,) uint8."""
    return np.packbits(imagehash.phash(image).hash.ravel())


def count_twins(groups: np.ndarray, test: np.ndarray) -> Twins:
    """Counts images whose group holds another image.

    Args:
        groups: shape (N,), the group of each image.
        test: shape (N,), whether it is a test image.

    Returns:
        ``train``: training images with a twin in training; ``test``: likewise; ``across``: test
        images with a twin in training.
    """
    codes = np.unique(groups, return_inverse=True)[1]
    in_train = np.bincount(codes[~test], minlength=len(codes) + 1)
    in_test = np.bincount(codes[test], minlength=len(codes) + 1)
    return Twins(
        train=int((in_train[codes[~test]] > 1).sum()),
        test=int((in_test[codes[test]] > 1).sum()),
        across=int((in_train[codes[test]] > 0).sum()),
    )


def near_groups(hashes: np.ndarray, bits: int = NEAR_BITS) -> np.ndarray:
    """Groups of images whose hashes differ in at most ``bits`` bits, chains of such included.

    Args:
        hashes: shape (N, 8), uint8.
        bits: largest Hamming distance, at least 0.

    Returns:
        Group numbers, shape (N,), int64.
    """
    if not len(hashes):
        return np.empty(0, dtype=np.int64)
    unique, place = np.unique(hashes, axis=0, return_inverse=True)
    index = faiss.IndexBinaryFlat(HASH_BITS)
    index.add(unique)
    # faiss's radius is exclusive.
    limits, _, found = index.range_search(unique, bits + 1)
    parent = np.arange(len(unique))

    def root(node: int) -> int:
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return int(node)

    first = np.repeat(np.arange(len(unique)), np.diff(limits.astype(np.int64)))
    for one, other in zip(first[first < found], found[first < found], strict=True):
        parent[root(int(one))] = root(int(other))
    return np.array([root(node) for node in range(len(unique))], dtype=np.int64)[place.ravel()]
