"""What an evaluation returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from eval.counts import ClassCounts


@dataclass(frozen=True)
class Tar:
    """The true-accept rate at one false-accept rate.

    Attributes:
        far: asked for, over all cross-class pairs.
        threshold: distance; a pair matches when its distance is at most this.
        tar: share of same-class pairs that match, in [0, 1].
    """

    far: float
    threshold: float
    tar: float


@dataclass(frozen=True)
class DomainResult:
    """One domain's queries and classes, at the thresholds that all domains share."""

    recall_at: dict[int, float]
    map_at_r: float
    opis: float
    n_classes: int
    n_queries: int


@dataclass(frozen=True)
class EvaluationResult:
    """All metrics of one set of embeddings; definitions in the README and ``eval.evaluate``.

    Attributes:
        recall_at: R@K by K, in [0, 1].
        map_at_r: MAP@R, in [0, 1].
        opis, epsilon_opis: raw, not times 1e3.
        opis_floor: what classes that do not differ would give (a jackknife over parts of each).
        opis_corrected: opis - opis_floor; may be negative.
        opis_far: OPIS averaged uniformly in log FAR: invariant under monotone changes of distance.
        d_min, d_max: the calibration range, distances.
        thresholds: (G,) distances over the range.
        classes: (C,) names of the classes with two images or more.
        images: (C,) images of each.
        utility, far, frr: (C, G).
        tar_at: by FAR.
        n_images, n_gallery: all images that may be queries, and those that are searched.
        n_classes, n_queries: classes, and queries compared, that have a positive.
        left_out_queries, left_out_classes: images and classes without one.
        domains: by name, empty without a domain column; ``opis_across_domains`` is the variance
            over domains of the pooled utility, NaN without.
        intervals: 95 % intervals by metric, where queries were sampled; else empty.
        settings: every declared choice that was used.
        counts: for curves at any other threshold.
    """

    recall_at: dict[int, float]
    map_at_r: float
    opis: float
    epsilon_opis: float
    opis_floor: float
    opis_corrected: float
    opis_far: float
    d_min: float
    d_max: float
    thresholds: np.ndarray
    classes: np.ndarray
    images: np.ndarray
    utility: np.ndarray
    far: np.ndarray
    frr: np.ndarray
    tar_at: dict[float, Tar]
    n_images: int
    n_gallery: int
    n_classes: int
    n_queries: int
    left_out_queries: int
    left_out_classes: int
    opis_across_domains: float
    domains: dict[str, DomainResult]
    intervals: dict[str, tuple[float, float]]
    settings: dict[str, Any]
    counts: ClassCounts = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """The scalars, ready for JSON."""
        plain = {
            name: getattr(self, name)
            for name in (
                "map_at_r", "opis", "epsilon_opis", "opis_floor", "opis_corrected", "opis_far",
                "d_min", "d_max", "n_images", "n_gallery", "n_classes", "n_queries",
                "left_out_queries", "left_out_classes",
            )
        }  # fmt: skip
        recall = {f"recall_at_{k}": value for k, value in self.recall_at.items()}
        tar = {
            f"tar_at_far_{far:g}": {"tar": tar.tar, "threshold": tar.threshold}
            for far, tar in self.tar_at.items()
        }
        tree = {**recall, **plain, **tar, "settings": self.settings}
        if self.intervals:
            tree["intervals"] = {name: list(ends) for name, ends in self.intervals.items()}
        if self.domains:
            tree["opis_across_domains"] = self.opis_across_domains
            tree["domains"] = {name: vars(value) for name, value in self.domains.items()}
        return tree
