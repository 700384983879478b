"""Images behind an index: the sources that hold them and the PyTorch data set over them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import pandas as pd
import torch
from PIL import Image
from torch.utils.data import Dataset, default_collate

from datasets.index import Index
from datasets.randomness import sample_keys


class Source(Protocol):
    """Where images come from.

    Attributes:
        index: every image that the source has.
        mean, std: per channel, in units of pixel value / 255. Training normalises with them on the
            device, from uint8: ``(image / 255 - mean) / std``.
    """

    index: Index
    mean: tuple[float, ...]
    std: tuple[float, ...]

    def read(self, key: str) -> Image.Image:
        """The image of that key, decoded.

        Raises:
            UserError: it is missing or broken; names the file.
        """
        ...


@runtime_checkable
class GatheringSource(Protocol):
    """A source that hands out whole batches from memory; transforms then act on batches, too."""

    def gather(self, rows: np.ndarray) -> torch.Tensor:
        """Rows of the source's index, shape (B,) -> new uint8 tensor of shape (B, C, H, W)."""
        ...


class ArraySource:
    """Grey images in memory: ``images[i]`` belongs to row i of ``index``.

    Args:
        index: N rows.
        images: uint8, shape (N, H, W).
        mean, std: see :class:`Source`.
    """

    def __init__(
        self, index: Index, images: np.ndarray, mean: tuple[float, ...], std: tuple[float, ...]
    ) -> None:
        if images.dtype != np.uint8 or images.ndim != 3 or len(images) != len(index):
            raise ValueError(
                f"images must be uint8 of shape ({len(index)}, H, W), "
                f"got {images.dtype} of shape {images.shape}"
            )
        self.index = index
        self.mean = mean
        self.std = std
        self.images = images
        self._rows = pd.Index(index.table["key"])

    def read(self, key: str) -> Image.Image:
        return Image.fromarray(self.images[self._rows.get_loc(key)])

    def gather(self, rows: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(self.images[rows]).unsqueeze(1)


class Batch(NamedTuple):
    """One batch, or one item without the leading B.

    images (B, C, H, W), uint8 unless the transform says otherwise; labels (B,) int64 codes in the
    order of ``index.classes``; positions (B,) int64 rows of ``index``.
    """

    images: torch.Tensor
    labels: torch.Tensor
    positions: torch.Tensor


class ImageDataset(Dataset):
    """The images of ``index``, transformed.

    Randomness of the transform depends on (seed, epoch, position) and on nothing else: not on the
    worker, not on the batch, not on the global generators, which are left as they were. So an image
    that is drawn twice within one epoch looks the same twice; call :meth:`set_epoch` for new looks.
    With persistent workers, ``set_epoch`` does not reach the copies in the workers: make the loader
    anew each epoch, or leave ``persistent_workers`` off.

    Args:
        source: holds the images.
        index: the rows to serve, ``source.index`` or a subset of it.
        transform: for a :class:`GatheringSource`, maps (images (B, C, H, W) uint8, sample keys (B,)
            uint64) to images; for other sources, maps one PIL image to a tensor (C, H, W), drawing
            from PyTorch's CPU generator, which is seeded for the call. See :func:`transforms`.
        seed: any integer >= 0.

    Raises:
        KeyError: ``index`` has keys that the source lacks.
    """

    def __init__(self, source: Source, index: Index, transform: Callable, seed: int = 0) -> None:
        self.source = source
        self.index = index
        self.transform = transform
        self.seed = seed
        self.epoch = 0
        self._keys = index.table["key"].to_numpy()
        self._labels = torch.from_numpy(index.label_codes)
        self._rows = pd.Index(source.index.table["key"]).get_indexer(pd.Index(self._keys))
        if (self._rows < 0).any():
            missing = self._keys[self._rows < 0][0]
            raise KeyError(f"{index.name}: the source has no image {missing!r}")

    def __len__(self) -> int:
        return len(self.index)

    def set_epoch(self, epoch: int) -> None:
        """New random looks from here on; epoch >= 0."""
        self.epoch = epoch

    def __getitem__(self, position: int) -> Batch:
        if not -len(self) <= position < len(self):
            raise IndexError(f"position {position} is outside of {len(self)} images")
        return Batch(*(part[0] for part in self.batch([position % len(self)])))

    def __getitems__(self, positions: Sequence[int]) -> Batch:
        """A whole batch at once, already collated: use :func:`collate` in the DataLoader."""
        return self.batch(positions)

    def batch(self, positions: Sequence[int] | np.ndarray) -> Batch:
        """The images at these positions, shape (B, C, H, W), with labels and positions."""
        positions = np.asarray(positions, dtype=np.int64)
        keys = sample_keys(self.seed, self.epoch, positions)
        if isinstance(self.source, GatheringSource):
            images = self.transform(self.source.gather(self._rows[positions]), keys)
        else:
            images = torch.stack(
                [
                    self._transform_one(self.source.read(self._keys[i]), int(key))
                    for i, key in zip(positions, keys, strict=True)
                ]
            )
        where = torch.from_numpy(positions)
        return Batch(images, self._labels[where], where)

    def _transform_one(self, image: Image.Image, key: int) -> torch.Tensor:
        # torch.manual_seed would reseed CUDA as well; only the CPU generator is borrowed here.
        generator = torch.default_generator
        state = generator.get_state()
        try:
            generator.manual_seed(key >> 1)
            return self.transform(image)
        finally:
            generator.set_state(state)


def collate(items: Batch | list[Batch]) -> Batch:
    """For a DataLoader over an :class:`ImageDataset`; batches made whole pass through."""
    return items if isinstance(items, Batch) else default_collate(items)
