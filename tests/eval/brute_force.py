"""The metrics by their definitions, in float64, with loops: written apart from the engine."""

from __future__ import annotations

import math

import numpy as np


def distances(embeddings, kind: str = "euclidean") -> np.ndarray:
    """(N, N); similarities are compared to 12 decimals, which is what a tie means here."""
    x = np.asarray(embeddings, dtype=np.float64)
    norms = np.linalg.norm(x, axis=1, keepdims=True)
    x = np.divide(x, norms, out=np.zeros_like(x), where=norms > 1e-12)
    s = np.round(x @ x.T, 12)
    return 1 - s if kind == "cosine" else np.sqrt(np.maximum(0, 2 - 2 * s))


def recall_and_map(d: np.ndarray, labels, ks) -> tuple[dict[int, float], float]:
    """R@K and MAP@R; ties by index, self out by index, queries without a positive left out."""
    n = len(labels)
    hits, precisions = {k: [] for k in ks}, []
    for q in range(n):
        relevant = sum(labels[j] == labels[q] for j in range(n)) - 1
        if not relevant:
            continue
        order = sorted((j for j in range(n) if j != q), key=lambda j: (d[q, j], j))
        same = [labels[j] == labels[q] for j in order]
        for k in ks:
            hits[k].append(any(same[:k]))
        found = np.cumsum(same[:relevant])
        precisions.append(sum(found[i] / (i + 1) for i in range(relevant) if same[i]) / relevant)
    return {k: float(np.mean(values)) for k, values in hits.items()}, float(np.mean(precisions))


def cross_class(d: np.ndarray, labels) -> np.ndarray:
    """Ascending distances of all unordered cross-class pairs."""
    n = len(labels)
    return np.sort([d[i, j] for i in range(n) for j in range(i + 1, n) if labels[i] != labels[j]])


def utility(d: np.ndarray, labels, thresholds, c: float = 1.0) -> np.ndarray:
    """(C, G) of classes with two images, sorted by label."""
    labels = np.asarray(labels)
    curves = []
    for name in sorted(set(labels.tolist())):
        inside = np.flatnonzero(labels == name)
        outside = np.flatnonzero(labels != name)
        if len(inside) < 2:
            continue
        positive = [d[i, j] for a, i in enumerate(inside) for j in inside[a + 1 :]]
        negative = d[np.ix_(inside, outside)].ravel()
        curve = []
        for t in thresholds:
            phi = np.mean(negative > t + 1e-13)
            psi = np.mean(np.asarray(positive) <= t + 1e-13)
            weighted = c**2 * phi + psi
            curve.append((1 + c**2) * phi * psi / weighted if weighted else 0.0)
        curves.append(curve)
    return np.array(curves)


def calibration_range(d: np.ndarray, labels, far_range=(1e-2, 1e-1), points: int = 1001):
    """(points,) thresholds, or one where the range is a single point."""
    negative = cross_class(d, labels)
    low, high = (negative[math.ceil(round(f * len(negative), 9)) - 1] for f in far_range)
    return np.linspace(low, high, points) if high > low else np.array([low])


def opis(curves: np.ndarray) -> float:
    """Mean over classes and thresholds of the squared deviation from the mean curve."""
    mean = curves.mean(0)
    return float(np.mean([np.mean((curve - mean) ** 2) for curve in curves]))


def epsilon_opis(curves: np.ndarray, epsilon: float) -> float:
    """Squared gap of the best and the worst share of classes, ranked anew at each threshold."""
    count = max(1, round(epsilon * len(curves)))
    gaps = []
    for column in curves.T:
        ranked = sorted(column)
        gaps.append((np.mean(ranked[-count:]) - np.mean(ranked[:count])) ** 2)
    return float(np.mean(gaps))
