"""A small set with everything awkward in it, and brute force in float64 to judge by."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eval.readers import EmbeddingSet

HOSTILE = "</script><script>document.title='pwned'</script>"


@dataclass(frozen=True)
class BruteForce:
    """All pairs of a set; ``distances`` (N, N) on unit vectors, ``same`` (N, N) by class."""

    labels: np.ndarray
    distances: np.ndarray
    same: np.ndarray

    @property
    def negatives(self) -> np.ndarray:
        """All cross-class distances, each pair once, ascending."""
        upper = np.triu(~self.same, 1)
        return np.sort(self.distances[upper])

    def rates(self, label: object, threshold: float) -> tuple[float, float]:
        """FAR and FRR of one class."""
        rows = np.flatnonzero(self.labels == label)
        others = np.flatnonzero(self.labels != label)
        inside = [self.distances[i, j] for i in rows for j in rows if i < j]
        across = self.distances[np.ix_(rows, others)]
        return float((across <= threshold).mean()), float((np.array(inside) > threshold).mean())

    def hits(self) -> np.ndarray:
        """(N,) whether the nearest other image is of the class."""
        apart = self.distances + np.diag(np.full(len(self.labels), np.inf))
        return self.labels[np.argmin(apart, axis=1)] == self.labels


def brute_force(embeddings: np.ndarray, labels: np.ndarray) -> BruteForce:
    units = embeddings.astype(np.float64)
    units /= np.linalg.norm(units, axis=1, keepdims=True)
    distances = np.sqrt(np.maximum(0, 2 - 2 * (units @ units.T)))
    return BruteForce(labels, distances, labels[:, None] == labels[None, :])


def make_set(seed: int = 0, spread: tuple[float, float] = (0.2, 0.9)) -> EmbeddingSet:
    """24 classes of 1 to 12 images, some tight and some loose, some with hostile names."""
    rng = np.random.default_rng(seed)
    names = np.array([f"class {i}" for i in range(24)], dtype="<U60")
    names[[3, 7, 11]] = [HOSTILE, "=HYPERLINK(1)", "-12"]
    sizes = np.r_[1, 2, 3, rng.integers(4, 13, size=21)]
    codes = np.repeat(np.arange(24), sizes)
    centres = rng.normal(size=(24, 8))
    noise = rng.uniform(*spread, size=24)[codes, None] * rng.normal(size=(len(codes), 8))
    embeddings = (centres[codes] + noise).astype(np.float32)
    order = rng.permutation(len(codes))
    domains = np.array(["east", "west"])[codes % 2]
    return EmbeddingSet("awkward", embeddings[order], names[codes][order], domains[order])


def even_set(spread: tuple[float, float]) -> EmbeddingSet:
    """60 classes of 10 images around the same centres, as loose as ``spread`` makes them."""
    rng = np.random.default_rng(1)
    codes = np.repeat(np.arange(60), 10)
    centres, noise = rng.normal(size=(60, 16)), rng.normal(size=(600, 16))
    widths = rng.uniform(*spread, size=60)[codes, None]
    return EmbeddingSet("even", centres[codes] + widths * noise, codes, None)
