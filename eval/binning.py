"""Where the calibration range lies, from a sample of images, and histogram bins to suit it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from eval.geometry import Geometry
from eval.pairs import BinnedNegatives
from eval.prepare import Prepared

COARSE = 256  # bins on either side of the calibration range
FINE = 4096  # bins within it, where memory allows
FOLD_BINS = 128  # bins within it for each fold: the noise floor needs no more
FEWEST_FINE = 512
TAIL = 2**20  # bins above it, over all classes together: for TAR at small FAR
SAMPLE = 512  # images that are compared with all others beforehand
DEEPEST = 256  # queries whose ranks matter beyond this are not pruned by the sample
# The range is widened by these factors of FAR, since a sample only estimates it.
WIDER = (0.7, 1.3)
# Scores are float32: a range narrower than their resolution is widened by this share.
LEAST_WIDTH = 1e-6


@dataclass(frozen=True)
class Sample:
    """Scores of all images against a few.

    Attributes:
        negatives: (S,) scores of sampled cross-class pairs, ascending.
        cutoff: (N,) positives below this cannot reach a rank that matters: as many sampled
            negatives already beat them.
    """

    negatives: np.ndarray
    cutoff: np.ndarray


def sample_scores(
    left: torch.Tensor, right: torch.Tensor, images: Prepared, relevant: np.ndarray
) -> Sample:
    """Compares all images with :data:`SAMPLE` of them, drawn with a fixed seed."""
    n = len(images.codes)
    rng = np.random.default_rng(0)
    columns = np.sort(rng.choice(n, size=min(n, SAMPLE), replace=False))
    codes = torch.from_numpy(images.codes)
    cutoff = np.full(n, -np.inf)
    depth = min(int(relevant[relevant <= DEEPEST].max(initial=0)), len(columns))
    parts = []
    for i in range(0, n, 2048):
        rows = slice(i, min(n, i + 2048))
        scores = left[rows] @ right[columns].T
        scores[codes[rows, None] == codes[columns][None, :]] = -torch.inf
        parts.append(scores[:: max(1, n // 2048)].flatten())
        if depth:
            best = torch.topk(scores, depth, dim=1).values.numpy()
            wanted = relevant[rows]
            usable = wanted <= depth
            picked = best[np.flatnonzero(usable), wanted[usable] - 1]
            # Float32 scores may be off by less than this.
            cutoff[rows][usable] = picked - 1e-4
    negatives = torch.cat(parts)
    negatives = torch.sort(negatives[torch.isfinite(negatives)]).values.numpy()
    return Sample(negatives.astype(np.float64), cutoff)


@dataclass(frozen=True)
class Bins:
    """Edges of the histogram: coarse, fine from ``low`` to ``high``, coarse."""

    bottom: float
    low: float
    high: float
    top: float
    fine: int

    @property
    def count(self) -> int:
        """Number of bins."""
        return 2 * COARSE + self.fine

    @property
    def edges(self) -> np.ndarray:
        """(count + 1,) ascending."""
        return np.concatenate(
            [
                np.linspace(self.bottom, self.low, COARSE, endpoint=False),
                np.linspace(self.low, self.high, self.fine, endpoint=False),
                np.linspace(self.high, self.top, COARSE + 1),
            ]
        )

    @property
    def tail_edges(self) -> np.ndarray:
        """(TAIL + 1,) from ``high`` to ``top``."""
        return np.linspace(self.high, self.top, TAIL + 1)

    @property
    def fold_edges(self) -> np.ndarray:
        """(FOLD_BINS + 2,) from ``low`` to ``high``, and ``top``."""
        return np.append(np.linspace(self.low, self.high, FOLD_BINS + 1), self.top)

    def around(
        self, negatives: BinnedNegatives, counts: np.ndarray, far_range: tuple[float, float]
    ) -> Bins | None:
        """None if the calibration range lies in the fine bins, else bins that are fine there."""
        total = int(counts.sum()) // 2
        ends = [negatives.kth_largest(max(1, math.ceil(far * total))) for far in far_range]
        if self.low <= min(ends) and max(ends) <= self.high:
            return None
        # The bins in which the ends were found hold them for certain.
        first = np.searchsorted(self.edges, min(ends), "right") - 1
        last = np.searchsorted(self.edges, max(ends), "left")
        low, high = self.edges[max(0, first)], self.edges[min(last, self.count)]
        least = LEAST_WIDTH * max(1.0, abs(high))
        top = max(self.top, high + 2 * least)
        return Bins(self.bottom - least, float(low - least), float(high + least), top, self.fine)

    @property
    def numbers(self) -> tuple[tuple[np.float32, ...], np.float32, np.float32, int]:
        """For the compiled loop: where the parts begin and bins per unit of score; fold; tail."""
        width = self.high - self.low, self.top - self.high
        parts = (
            self.bottom,
            self.low,
            self.high,
            COARSE / (self.low - self.bottom),
            self.fine / width[0],
            COARSE / width[1],
        )
        numbers = tuple(np.float32(number) for number in parts)
        return numbers, np.float32(FOLD_BINS / width[0]), np.float32(TAIL / width[1]), self.fine


def choose_bins(
    sample: Sample,
    images: Prepared,
    geometry: Geometry,
    far_range: tuple[float, float],
    memory_mb: float,
    threads: int,
) -> Bins:
    """Bins around the estimated calibration range, as many as memory allows."""
    far_low, far_high = min(far_range) * WIDER[0], min(1.0, max(far_range) * WIDER[1])
    low, high = np.quantile(sample.negatives, [1 - far_high, 1 - far_low])
    least = LEAST_WIDTH * max(1.0, abs(high))
    low, high = low - least, high + least
    top = max(geometry.self_score, sample.negatives[-1]) + least
    bottom = min(sample.negatives[0], low) - least
    bytes_per_bin = len(images.classes) * (4 * threads + 16)
    affordable = int(memory_mb * 2**20 / bytes_per_bin) - 2 * COARSE
    fine = max(FEWEST_FINE, min(FINE, affordable))
    return Bins(
        float(bottom), float(low), float(max(high, low)), float(max(top, high + least)), fine
    )
