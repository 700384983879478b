"""Metrics of each domain, and consistency across domains, at the thresholds that all share."""

from __future__ import annotations

from typing import Any

import numpy as np

from common.errors import UserError
from eval import opis as formulas
from eval.counts import ClassCounts
from eval.pairs import Ranks
from eval.prepared import Prepared
from eval.result import DomainResult


def class_domains(images: Prepared, domains: Any) -> np.ndarray:
    """(C,) the domain of each class, '' for a class without a query.

    Args:
        domains: (N,) names, in the order in which the queries (before sampling) came.

    Raises:
        UserError: wrong length, or a class in two domains.
    """
    side = images.gallery if images.sampled else images.queries
    names = np.asarray(domains).astype(str)
    if names.shape != side.codes.shape:
        raise UserError(f"{len(side.codes)} embeddings but domains of shape {names.shape}")
    names = names[side.order]
    of_class = np.full(len(images.classes), "", dtype=names.dtype)
    of_class[side.codes] = names
    mixed = np.flatnonzero(names != of_class[side.codes])
    if len(mixed):
        label = images.classes[side.codes[mixed[0]]]
        raise UserError(f"class {label!r} is in two domains: prefix labels with their domain")
    return of_class


def domain_results(
    images: Prepared,
    of_class: np.ndarray,
    curves: np.ndarray,
    variance: np.ndarray,
    ranks: Ranks,
    ks: tuple[int, ...],
) -> dict[str, DomainResult]:
    """Results by name.

    Args:
        curves: (C kept, T) utility.
        variance: (C kept,) what sampling adds to each curve's variance, 0 without.
    """
    kept, codes = images.kept, images.queries.codes
    weight = images.weights[codes]
    results = {}
    for name in np.unique(of_class[kept]):
        queries = (of_class[codes] == name) & kept[codes]
        rows = of_class[kept] == name
        results[str(name)] = DomainResult(
            recall_at={k: average(ranks.first <= k, queries, weight) for k in ks},
            map_at_r=average(ranks.precision, queries, weight),
            opis=formulas.opis(curves[rows]) - formulas.chance(variance[rows]),
            n_classes=int(rows.sum()),
            n_queries=int(queries.sum()),
        )
    return results


def opis_across_domains(counts: ClassCounts, of_class, thresholds, c: float) -> float:
    """OPIS with domains for classes: variance over domains of the utility of their pooled pairs."""
    names = of_class[counts.kept]
    far, frr = counts.far(thresholds), counts.frr(thresholds)
    curves = []
    for name in np.unique(names):
        at = names == name
        pooled_far = np.average(far[at], axis=0, weights=counts.negative_pairs[at])
        pooled_frr = np.average(frr[at], axis=0, weights=counts.positive_pairs[at])
        curves.append(formulas.utility(1 - pooled_far, 1 - pooled_frr, c))
    return formulas.opis(np.array(curves))


def average(values: np.ndarray, some: np.ndarray, weights: np.ndarray) -> float:
    """Weighted mean of some of the values."""
    return float(np.average(values[some], weights=weights[some]))
