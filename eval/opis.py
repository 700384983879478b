"""OPIS and its relatives, from utility curves: small formulas on arrays (classes, thresholds)."""

from __future__ import annotations

import numpy as np


def utility(specificity: np.ndarray, sensitivity: np.ndarray, c: float = 1.0) -> np.ndarray:
    """U = (1 + c^2) phi psi / (c^2 phi + psi), in [0, 1]; 0 where phi and psi are both 0.

    Args:
        specificity: phi, share of a class's negative pairs beyond the threshold.
        sensitivity: psi, share of its positive pairs within.
        c: weight; 1 gives the harmonic mean.
    """
    product = (1 + c**2) * specificity * sensitivity
    below = c**2 * specificity + sensitivity
    return np.divide(product, below, out=np.zeros_like(product), where=below > 0)


def opis(curves: np.ndarray) -> float:
    """Mean over classes and thresholds of (U_i(d) - mean_j U_j(d))^2, of U (C, G)."""
    return float(np.mean((curves - curves.mean(0)) ** 2))


def epsilon_opis(curves: np.ndarray, epsilon: float) -> float:
    """Mean over d of the squared gap between the best and the worst share of the classes.

    The classes are ranked anew at each d; max(1, round(epsilon C)) on either side.
    """
    count = max(1, round(epsilon * len(curves)))
    ranked = np.sort(curves, axis=0)
    return float(np.mean((ranked[-count:].mean(0) - ranked[:count].mean(0)) ** 2))


def noise_floor(without: np.ndarray) -> float:
    """The OPIS that classes without any true difference would have, from U (C, F, G).

    ``without`` holds each class's utility with one of F folds of its images left out in turn. The
    jackknife over folds gives the variance that chance alone puts into the class's curve,
    (F - 1) / F * sum over folds of (U_without - mean)^2; equal classes would differ by that much.
    NaN without classes.
    """
    if not len(without):
        return float("nan")
    folds = without.shape[1]
    squares = (without - without.mean(1, keepdims=True)) ** 2
    return chance((folds - 1) * squares.mean((1, 2)))


def chance(variance: np.ndarray) -> float:
    """What independent errors of the classes' curves, of such variance (C,), add to OPIS."""
    return float(variance.mean() * (len(variance) - 1) / len(variance))
