"""One threshold for all: fixed on some identities, judged on the others and in each domain.

After the protocol of OneFace (Liu et al., OneFace: One Threshold for All, ECCV 2022), in which one
calibration threshold serves several data sets. Its code is not public; that the calibration set is
a random share of the identities is our reading.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from common.errors import UserError
from eval.domains import class_domains
from eval.pair_rates import AllPairs, count_all_pairs, pairs_needed, threshold_at_far

CALIBRATION_SHARE = 0.5


@dataclass(frozen=True)
class Rates:
    """At the one threshold.

    Attributes:
        tar, far: in [0, 1]; NaN without positive, negative pairs.
        identities: with an image there.
        positives, negatives: pairs; in a domain, negatives count once for each end in it.
    """

    tar: float
    far: float
    identities: int
    positives: int
    negatives: int


@dataclass(frozen=True)
class OneThreshold:
    """How a threshold travels.

    Attributes:
        target_far: asked for.
        threshold: a distance, the largest of a negative calibration pair at which FAR is at most
            ``target_far`` on the calibration identities.
        calibration: rates on these.
        overall: on all pairs of the other identities.
        domains: by name, on those of the pairs that have an end in the domain; a pair across two
            domains is in both, a pair within one counts once for either end, as in a class's FAR.
            Empty without domains.
    """

    target_far: float
    threshold: float
    calibration: Rates
    overall: Rates
    domains: dict[str, Rates]


@dataclass(frozen=True)
class Split:
    """Pairs among the calibration identities and among the others; none across.

    Attributes:
        of_class: (C,) the domain of each of the others, or None.
    """

    calibration: AllPairs
    others: AllPairs
    of_class: np.ndarray | None


def one_threshold(
    embeddings: Any,
    labels: Any,
    *,
    far: float,
    domains: Any = None,
    calibration_share: float = CALIBRATION_SHARE,
    seed: int = 0,
    **settings: Any,
) -> OneThreshold:
    """Fixes a threshold on a part of the identities, and judges it on the rest.

    Args:
        embeddings, labels: (N, D) and (N,), see :func:`eval.evaluate`.
        far: false-accept rate wanted on the calibration identities, in (0, 1).
        domains: (N,) names, or None; all images of an identity are in one domain.
        calibration_share: of the identities, drawn at random, in (0, 1).
        seed: of the draw.
        settings: ``distance``, ``curvature``, ``device`` and resources of :func:`eval.evaluate`.

    Raises:
        UserError: what ``evaluate`` refuses, too few calibration pairs for ``far``, or fewer than
            two identities with two images on either side.
    """
    check_far(far)
    split = split_identities(
        embeddings, labels, [far], domains, share=calibration_share, seed=seed, **settings
    )
    return judge_threshold(split, far)


def check_far(far: float) -> None:
    """Refuses what is no rate.

    Raises:
        UserError: not between 0 and 1.
    """
    if not 0 < far < 1:
        raise UserError(
            f"FAR {far:g} is no false-accept rate between 0 and 1; give one such as 1e-3"
        )


def split_identities(
    embeddings: Any,
    labels: Any,
    fars: list[float],
    domains: Any = None,
    *,
    share: float = CALIBRATION_SHARE,
    seed: int = 0,
    **settings: Any,
) -> Split:
    """Draws the calibration identities and counts the pairs of either part.

    Raises:
        UserError: see :func:`one_threshold`.
    """
    if not 0 < share < 1:
        raise UserError(f"the calibration share is {share:g}; give a share between 0 and 1")
    x = embeddings if torch.is_tensor(embeddings) else np.asarray(embeddings)
    names = labels.cpu().numpy() if torch.is_tensor(labels) else np.asarray(labels)
    if len(x) != len(names):
        raise UserError(f"{len(x)} embeddings but {len(names)} labels: give one label for each row")
    classes, codes = np.unique(names, return_inverse=True)
    drawn = np.random.default_rng(seed).permutation(len(classes))[: round(share * len(classes))]
    calibrates = np.zeros(len(classes), dtype=bool)
    calibrates[drawn] = True
    parts = []
    for part, what in ((calibrates, "calibration"), (~calibrates, "other")):
        rows = np.flatnonzero(part[codes])
        several = int((np.bincount(codes[rows], minlength=1) >= 2).sum())
        if several < 2:
            raise UserError(
                f"one threshold for all: of the {what} identities {several} have two images or "
                "more, two are needed; choose another calibration share or seed, or bring more "
                "identities"
            )
        parts.append((rows, count_all_pairs(x[rows], names[rows], fars, seed=seed, **settings)))
    (_, calibration), (rows, others) = parts
    of_class = None
    if domains is not None:
        tags = np.asarray(domains)
        if tags.shape != names.shape:
            raise UserError(f"{len(names)} embeddings but domains of shape {tags.shape}")
        of_class = class_domains(others.counts.images, tags[rows])
    return Split(calibration, others, of_class)


def judge_threshold(split: Split, far: float) -> OneThreshold:
    """The threshold of the calibration part for ``far``, and what it does to the other part.

    Raises:
        UserError: the calibration part has too few negative pairs, which says how many it takes.
    """
    needed, there = pairs_needed(far), split.calibration.negatives
    if there < needed:
        raise UserError(
            f"one threshold for all at FAR {far:g} needs at least {needed:,} negative pairs among "
            f"the calibration identities, there are {there:,}; ask for a higher FAR, raise the "
            "calibration share or bring more images"
        )
    threshold = threshold_at_far(split.calibration, far)
    domains = {}
    if split.of_class is not None:
        for name in np.unique(split.of_class):
            domains[str(name)] = _rates_of(split.others, split.of_class == name, threshold)
    return OneThreshold(
        target_far=far,
        threshold=threshold,
        calibration=_overall(split.calibration, threshold),
        overall=_overall(split.others, threshold),
        domains=domains,
    )


def _overall(rates: AllPairs, threshold: float) -> Rates:
    at = np.array([threshold])
    return Rates(
        tar=float(1 - rates.frr(at)[0]),
        far=float(rates.far(at)[0]),
        identities=len(rates.counts.images.classes),
        positives=rates.positives,
        negatives=rates.negatives,
    )


def _rates_of(rates: AllPairs, some: np.ndarray, threshold: float) -> Rates:
    """Pooled over the pairs of some of the classes (C,)."""
    within, negatives, accepted, positives = (
        part[some].sum(0) for part in rates.by_unit(np.array([threshold]))
    )
    return Rates(
        tar=float(accepted[0] / positives) if positives else float("nan"),
        far=float(within[0] / negatives) if negatives else float("nan"),
        identities=int(some.sum()),
        positives=int(positives) // 2,
        negatives=int(negatives),
    )
