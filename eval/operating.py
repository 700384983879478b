"""Per-class error rates over all thresholds that a reader may want to try."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from eval.opis import utility
from eval.result import EvaluationResult

CURVE_BYTES = 8e6  # of both rates of all classes
MIN_POINTS, MAX_POINTS = 41, 201
MARGIN = 1e-3


@dataclass(frozen=True)
class OperatingCurves:
    """FAR and FRR of every class (C) at every threshold (T), and of all pairs together.

    Attributes:
        classes: (C,) names as texts, of the classes with two images or more.
        images: (C,) images of each class.
        thresholds: (T,) distances, ascending; a pair is accepted when its distance is at most that.
        positives: (C,) same-class pairs.
        negatives: (C,) pairs with one end in the class.
        far, frr: (C, T) in [0, 1].
        overall_far, overall_frr: (T,) over all cross-class and all same-class pairs.
        overall_negatives, overall_positives: numbers of those pairs, each once.
        c: weight of specificity in the utility.
    """

    classes: np.ndarray
    images: np.ndarray
    thresholds: np.ndarray
    positives: np.ndarray
    negatives: np.ndarray
    far: np.ndarray
    frr: np.ndarray
    overall_far: np.ndarray
    overall_frr: np.ndarray
    overall_negatives: int
    overall_positives: int
    c: float

    @property
    def utility(self) -> np.ndarray:
        """(C, T): the harmonic mean, weighted by c, of specificity and sensitivity."""
        return utility(1 - self.far, 1 - self.frr, self.c)

    def nearest(self, distance: float) -> int:
        """Index of the threshold nearest to ``distance``."""
        return int(np.argmin(np.abs(self.thresholds - distance)))


def operating_curves(
    results: Sequence[EvaluationResult], thresholds: np.ndarray
) -> OperatingCurves:
    """Error rates at ``thresholds`` (T,), ascending.

    Args:
        results: of the same embeddings, with different calibration ranges. In large sets pairs are
            counted in bins that are finest within the range, so each threshold is looked up in the
            last result whose range holds it, or in the first one.
    """
    first = results[0]
    source = np.zeros(len(thresholds), dtype=int)
    for i, result in enumerate(results):
        source[(thresholds >= result.d_min) & (thresholds <= result.d_max)] = i
    far = np.empty((first.n_classes, len(thresholds)))
    frr, overall_far, overall_frr = np.empty_like(far), *np.empty((2, len(thresholds)))
    for i in np.unique(source):
        at, counts = source == i, results[i].counts
        far[:, at], frr[:, at] = counts.far(thresholds[at]), counts.frr(thresholds[at])
        overall_far[at] = counts.overall_far(thresholds[at])
        overall_frr[at] = counts.overall_frr(thresholds[at])
    positives = first.counts.positive_pairs
    return OperatingCurves(
        classes=first.classes.astype(np.str_),
        images=first.images,
        thresholds=thresholds,
        positives=positives,
        negatives=first.counts.negative_pairs,
        far=far,
        frr=frr,
        overall_far=overall_far,
        overall_frr=overall_frr,
        overall_negatives=first.counts.pairs.total_negatives,
        overall_positives=int(positives.sum()),
        c=first.settings["c"],
    )


def reading_grid(result: EvaluationResult, extra: Sequence[float] = ()) -> np.ndarray:
    """Thresholds for a reader: the calibration range finely, what lies around it coarsely.

    From where nearly nothing is accepted to where half of the negatives and nearly all positives
    are; both ends of the range and ``extra`` are among them. Their number falls with the number of
    classes, so that the curves stay near ``CURVE_BYTES``.
    """
    counts = result.counts
    total = counts.pairs.total_negatives
    distances = counts.geometry.to_distance(counts.pairs.positives.scores)
    near, far = np.quantile(distances, [0.05, 0.995])
    low = min(near, counts.threshold_at_rank(max(1, round(1e-5 * total))), result.d_min, *extra)
    high = max(far, counts.threshold_at_rank(max(1, total // 2)), result.d_max, *extra)
    if high - low < MARGIN:  # all distances are the same
        low, high = max(0.0, low - MARGIN), high + MARGIN
    points = int(np.clip(CURVE_BYTES / (8 * result.n_classes), MIN_POINTS, MAX_POINTS))
    inside = np.linspace(result.d_min, result.d_max, points // 2)
    return np.unique([*np.linspace(low, high, points - points // 2), *inside, *extra])


def similarity_histogram(
    result: EvaluationResult, bins: int = 100
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Edges (B + 1,) of cosine similarity and the shares (B,) of positives and negatives."""
    counts = result.counts
    total = counts.pairs.total_negatives
    farthest = counts.geometry.to_score(np.float64(counts.threshold_at_rank(total)))
    lowest = min(float(farthest), float(counts.pairs.positives.scores.min()))
    # Whole twentieths look tidy, and leave a margin for rounding at the farthest pair.
    edges = np.linspace(max(-1.0, np.floor(lowest * 20 - 0.01) / 20), 1.0, bins + 1)
    # Rounding may carry scores beyond 1; the ends of the distances take everything.
    distances = counts.geometry.to_distance(edges)[::-1]
    positive = counts.positive_histogram(distances)[::-1]
    negative = counts.negative_histogram(distances)[::-1]
    return edges, positive / max(positive.sum(), 1), negative / max(negative.sum(), 1)


def recall_at_1_by_class(result: EvaluationResult) -> np.ndarray:
    """(C,) share of each class's queries whose nearest other image is of the class."""
    counts = result.counts
    codes, classes = counts.images.queries.codes, len(counts.images.classes)
    hits = np.bincount(codes, counts.pairs.ranks.first == 1, minlength=classes)
    return (hits / np.maximum(counts.images.queries.sizes, 1))[counts.kept]
