"""Verification: are two images of one identity? All pairs of a set, or the pairs of a list."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from common.errors import UserError
from eval.domains import class_domains
from eval.fold_accuracy import FoldAccuracy, consecutive_folds, draw_folds, fold_accuracy
from eval.geometry import geometry
from eval.one_threshold import (
    CALIBRATION_SHARE,
    OneThreshold,
    check_far,
    judge_threshold,
    split_identities,
)
from eval.pair_rates import ListedPairs, PairRates, count_all_pairs, pairs_needed
from eval.pair_scores import listed_distances
from eval.resampling import CONFIDENCE, RESAMPLES
from eval.scores import Scores
from eval.verification_rates import DetCurve, EqualError, TarAtFar, det, equal_error, tar_at_far

DEFAULT_FARS = (1e-3, 1e-4, 1e-5)


@dataclass(frozen=True)
class Verification:
    """What a set of pairs says about verification.

    Attributes:
        positives, negatives: pairs, each unordered pair once.
        tar_at: one for each FAR, in the order asked for.
        equal_error: where FAR and FRR meet.
        det: the curve of both.
        accuracy: over ten folds as in LFW; None where there are too few identities or pairs.
        one_threshold: for each FAR; empty for lists of pairs, and where there are too few pairs.
        left_out: a sentence for each result that was not asked for by name and could not be had.
        settings: all choices.
    """

    positives: int
    negatives: int
    tar_at: list[TarAtFar]
    equal_error: EqualError
    det: DetCurve
    accuracy: FoldAccuracy | None
    one_threshold: list[OneThreshold]
    left_out: list[str]
    settings: dict[str, Any]


def verify(
    embeddings: Any,
    labels: Any,
    *,
    domains: Any = None,
    fars: Iterable[float] | None = None,
    calibration_share: float | None = None,
    distance: str = "euclidean",
    curvature: float = 0.1,
    seed: int = 0,
    **resources: Any,
) -> Verification:
    """Verification over all pairs of a set.

    Args:
        embeddings, labels: (N, D) and (N,), see :func:`eval.evaluate`.
        domains: (N,) names, or None; all images of an identity are in one domain.
        fars: false-accept rates in (0, 1); None for those of 1e-3, 1e-4 and 1e-5 for which there
            are enough negative pairs.
        calibration_share: of the identities, in (0, 1), that fix the one threshold for all; 0
            leaves that part out; None for a half, where there are enough pairs.
        distance, curvature: see :func:`eval.evaluate`.
        seed: of the bootstrap, the folds' pairs, and the calibration identities.
        resources: ``memory_mb``, ``threads``, ``device`` and ``progress`` of ``evaluate``.

    Raises:
        UserError: what ``evaluate`` refuses; too few negative pairs for a FAR that was asked for,
            with the number that it takes.
    """
    wanted, left_out = _checked(fars), []
    settings = {"distance": distance, "curvature": curvature, **resources}
    rates = count_all_pairs(embeddings, labels, wanted, seed=seed, **settings)
    images, space = rates.counts.images, rates.counts.geometry
    if domains is not None:
        class_domains(images, domains)  # refuses wrong ones
    possible = _possible(wanted, rates.negatives, fars is not None, left_out)
    accuracy = None
    try:
        pairs, same, folds = draw_folds(images, seed)
    except UserError as error:
        left_out.append(_sentence(error))
    else:
        distances = space.to_distance(Scores(images, space).pairs(pairs))
        accuracy = fold_accuracy(distances, same, folds)
    share = CALIBRATION_SHARE if calibration_share is None else calibration_share
    found = []
    if share and possible:
        try:
            split = split_identities(
                embeddings, labels, possible, domains, share=share, seed=seed, **settings
            )
            # Highest FAR first: where pairs run out, they do for all that follow.
            for far in sorted(possible, reverse=True):
                found.append(judge_threshold(split, far))
        except UserError as error:
            if calibration_share is not None:
                raise
            left_out.append(_sentence(error))
    chosen = {"calibration_share": share, "domains": domains is not None}
    units = "identities"
    return _result(rates, possible, accuracy, found, left_out, units, seed, settings | chosen)


def verify_pairs(
    embeddings: Any,
    pairs: np.ndarray,
    same: np.ndarray,
    *,
    labels: Any = None,
    fars: Iterable[float] | None = None,
    distance: str = "euclidean",
    curvature: float = 0.1,
    seed: int = 0,
) -> Verification:
    """Verification over the pairs of a list alone, in float64; its folds are consecutive tenths.

    The bootstrap draws identities where ``labels`` tell them; else runs of pairs that are
    neighbours in the list, at most 1,000, as if these were independent of each other.

    Args:
        embeddings: (N, D).
        pairs: (E, 2) rows.
        same: (E,) bool, whether the pair is of one identity.
        labels: (N,) identities, or None.
        fars, distance, curvature, seed: see :func:`verify`.

    Raises:
        UserError: no positive or no negative pair; too few negative pairs for a FAR that was asked
            for, with the number that it takes.
    """
    wanted, left_out = _checked(fars), []
    pairs, same = np.asarray(pairs), np.asarray(same, dtype=bool)
    if pairs.shape != (len(same), 2) or pairs.dtype.kind not in "iu":
        raise UserError(f"pairs have shape {pairs.shape}; give two row numbers for each of `same`")
    if pairs.size and not 0 <= pairs.min() <= pairs.max() < len(embeddings):
        raise UserError(f"pairs name rows outside of 0 to {len(embeddings) - 1}; mend them")
    for kind, name in ((same, "same"), (~same, "different")):
        if not kind.any():
            raise UserError(f"no pair of the list is marked {name}; both kinds are needed")
    distances = listed_distances(embeddings, pairs, geometry(distance, curvature))
    ends = None
    if labels is not None:
        ends = np.unique(np.asarray(labels)[pairs], return_inverse=True)[1].reshape(-1, 2)
    rates = ListedPairs(distances, same, ends)
    possible = _possible(wanted, rates.negatives, fars is not None, left_out)
    accuracy = None
    try:
        accuracy = fold_accuracy(distances, same, consecutive_folds(len(same)))
    except UserError as error:
        left_out.append(_sentence(error))
    settings = {"distance": distance, "curvature": curvature}
    units = "runs of listed pairs" if labels is None else "identities"
    return _result(rates, possible, accuracy, [], left_out, units, seed, settings)


def _checked(fars: Iterable[float] | None) -> list[float]:
    wanted = list(dict.fromkeys(DEFAULT_FARS if fars is None else fars))
    for far in wanted:
        check_far(far)
    return wanted


def _possible(fars: list[float], negatives: int, strict: bool, left_out: list[str]) -> list[float]:
    """Those for which there are enough pairs.

    Raises:
        UserError: not all, and ``strict``.
    """
    found = []
    for far in fars:
        needed = pairs_needed(far)
        if negatives >= needed:
            found.append(far)
            continue
        text = f"FAR {far:g} needs at least {needed:,} negative pairs, there are {negatives:,}"
        if strict:
            raise UserError(f"{text}; ask for a higher FAR or bring more images")
        left_out.append(f"{text}: left out.")
    return found


def _sentence(error: UserError) -> str:
    text = str(error)
    return f"{text[0].upper()}{text[1:]}."


def _result(
    rates: PairRates, fars, accuracy, one_threshold, left_out, units, seed, settings
) -> Verification:
    pairs = "listed, in float64" if isinstance(rates, ListedPairs) else "all of the set"
    if settings["distance"] != "poincare":
        settings.pop("curvature")
    settings |= {
        "fars": fars, "seed": seed, "pairs": pairs, "bootstrap": units, "resamples": RESAMPLES,
        "confidence": CONFIDENCE,
    }  # fmt: skip
    for name in ("memory_mb", "threads", "device", "progress"):
        settings.pop(name, None)
    return Verification(
        positives=rates.positives,
        negatives=rates.negatives,
        tar_at=[tar_at_far(rates, far, seed) for far in fars],
        equal_error=equal_error(rates),
        det=det(rates),
        accuracy=accuracy,
        one_threshold=one_threshold,
        left_out=left_out,
        settings=settings,
    )
