"""Every metric of one set of embeddings in one pass over its pairs."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from common.errors import UserError
from eval import opis as formulas
from eval.counts import ClassCounts
from eval.exact_pass import LARGEST, exact_pass
from eval.geometry import geometry
from eval.large_pass import large_pass
from eval.pairs import Pairs
from eval.prepare import Prepared, prepare
from eval.result import DomainResult, EvaluationResult, Tar

# An average of smooth curves: a tenth of the thresholds is plenty for the noise floor.
FLOOR_POINTS = 100


def evaluate(
    embeddings: Any,
    labels: Any,
    *,
    ks: Iterable[int] = (1, 2, 4, 8),
    far_range: tuple[float, float] = (1e-2, 1e-1),
    epsilon: float = 0.1,
    c: float = 1.0,
    distance: str = "euclidean",
    curvature: float = 0.1,
    grid_points: int = 1001,
    tar_at: Iterable[float] = (),
    domains: Any = None,
    seed: int = 0,
    memory_mb: float = 1024,
    threads: int | None = None,
    progress: bool = False,
) -> EvaluationResult:
    """R@K, MAP@R, OPIS and its relatives, error-rate curves and TAR, over all pairs.

    A match is a distance of at most the threshold. Over the n cross-class pairs, each unordered
    pair once, the calibration range runs from the ceil(f n)-th smallest distance for the lower FAR
    to that for the higher one. OPIS is the variance over classes of U_i(d), averaged over
    ``grid_points`` distances of the range; a class's negatives are the pairs with one end in it.

    Up to 2,048 images every pair is kept, in float64. Beyond, negatives are counted in histogram
    bins in one blockwise float32 pass over half of the similarity matrix: OPIS then agrees with the
    exact value to 1e-3 relative, R@K and MAP@R are exact (near ties are compared in float64), and
    memory is bounded by ``memory_mb`` and the number of same-class pairs, not by N^2.

    Corner cases: an image is never its own neighbour (by index); ties go to the lower index;
    queries and classes without a positive are left out and counted, the images still serve as
    negatives; an all-zero embedding has similarity 0 to all others; if the range is one point, OPIS
    is taken there.

    Args:
        embeddings: (N, D) numpy array or tensor of any float type.
        labels: (N,) strings or integers.
        ks: values of K.
        far_range: false-accept rates of the calibration range, in (0, 1].
        epsilon: share of best and of worst classes that epsilon-OPIS compares, in (0, 0.5].
        c: weight of specificity in the utility, above 0.
        distance: euclidean, cosine or poincare (embeddings as they are, of this ``curvature``).
        grid_points: thresholds over the range, at least 1.
        tar_at: false-accept rates at which TAR is wanted.
        domains: (N,) names, or None; all images of a class are in one domain.
        seed: of the random folds behind the noise floor.
        memory_mb: for histograms, in MiB.
        threads: None for all.
        progress: show a bar.

    Raises:
        UserError: bad shapes or values (rows are named), too few classes or negatives, an option
            out of range.
    """
    ks, far_range = tuple(ks), tuple(far_range)
    _check_options(ks, far_range, epsilon, c, grid_points)
    space = geometry(distance, curvature)
    images = prepare(embeddings, labels, seed)
    if len(images.codes) <= LARGEST:
        pairs = exact_pass(images, space)
    else:
        pairs = large_pass(
            images,
            space,
            ks=ks,
            far_range=far_range,
            memory_mb=memory_mb,
            threads=threads,
            progress=progress,
        )
    kept = images.sizes >= 2
    counts = ClassCounts(pairs, images, space, kept)
    d_min, d_max = (counts.threshold_at_rank(_rank(f, pairs, math.ceil)) for f in sorted(far_range))
    thresholds = np.linspace(d_min, d_max, grid_points) if d_max > d_min else np.array([d_min])
    far, frr = counts.far(thresholds), counts.frr(thresholds)
    curves = formulas.utility(1 - far, 1 - frr, c)
    some = thresholds[:: math.ceil(len(thresholds) / FLOOR_POINTS)]
    without = [1 - rates for rates in counts.rates_without_a_fold(some)]
    floor = formulas.noise_floor(formulas.utility(*without, c))
    found = formulas.opis(curves)
    first, precision = _per_query(pairs, images)
    valid = images.sizes[images.codes] >= 2
    per_domain, across = {}, float("nan")
    if domains is not None:
        of_class = _class_domains(images, domains)
        per_domain = _domain_results(images, of_class, curves, first, precision, ks, kept)
        across = _across_domains(counts, of_class, thresholds, c)
    settings = {
        "ks": list(ks), "far_range": list(far_range), "epsilon": epsilon, "c": c,
        "distance": distance, "grid_points": grid_points, "floor_seed": seed,
        "pairs": "all, in float64" if len(images.codes) <= LARGEST else "all, binned",
    }  # fmt: skip
    if distance == "poincare":
        settings["curvature"] = curvature
    return EvaluationResult(
        recall_at={k: float((first[valid] <= k).mean()) for k in ks},
        map_at_r=float(precision[valid].mean()),
        opis=found,
        epsilon_opis=formulas.epsilon_opis(curves, epsilon),
        opis_floor=floor,
        opis_corrected=found - floor,
        opis_far=_opis_far(counts, far_range, grid_points, c),
        d_min=d_min,
        d_max=d_max,
        thresholds=thresholds,
        classes=images.classes[kept],
        images=images.sizes[kept],
        utility=curves,
        far=far,
        frr=frr,
        tar_at={f: _tar(counts, f) for f in tar_at},
        n_images=len(images.codes),
        n_classes=int(kept.sum()),
        n_queries=int(valid.sum()),
        left_out_queries=int((~valid).sum()),
        left_out_classes=int((~kept).sum()),
        opis_across_domains=across,
        domains=per_domain,
        settings=settings,
        counts=counts,
    )


def _check_options(ks, far_range, epsilon, c, grid_points) -> None:
    if not ks or min(ks) < 1:
        raise UserError(f"ks={list(ks)}: give values of K that are at least 1")
    if len(far_range) != 2 or not all(0 < f <= 1 for f in far_range):
        raise UserError(f"far_range={list(far_range)}: give two false-accept rates in (0, 1]")
    if not 0 < epsilon <= 0.5:
        raise UserError(f"epsilon={epsilon}: it must lie in (0, 0.5]")
    if not c > 0:
        raise UserError(f"c={c}: it must be above 0")
    if grid_points < 1:
        raise UserError(f"grid_points={grid_points}: at least 1 is needed")


def _rank(far: float, pairs: Pairs, rounding) -> int:
    """k of the k-th smallest negative distance; f n is rounded first: 0.1 x 30 is 3."""
    return rounding(round(far * pairs.total_negatives, 6))


def _tar(counts: ClassCounts, far: float) -> Tar:
    if not 0 < far <= 1:
        raise UserError(f"tar_at: {far} is no false-accept rate in (0, 1]")
    k = _rank(far, counts.pairs, math.floor)
    if k == 0:
        raise UserError(
            f"FAR {far:g} needs at least {math.ceil(1 / far)} cross-class pairs, there are "
            f"{counts.pairs.total_negatives}: ask for a higher FAR or bring more images"
        )
    threshold = counts.threshold_at_rank(k)
    return Tar(far, threshold, float(1 - counts.overall_frr(np.array([threshold]))[0]))


def _opis_far(counts: ClassCounts, far_range, grid_points: int, c: float) -> float:
    rates = np.geomspace(*sorted(far_range), grid_points)
    ranks = sorted({_rank(f, counts.pairs, math.ceil) for f in rates})
    at = {k: counts.threshold_at_rank(k) for k in ranks}
    thresholds = np.array([at[_rank(f, counts.pairs, math.ceil)] for f in rates])
    curves = formulas.utility(1 - counts.far(thresholds), 1 - counts.frr(thresholds), c)
    return formulas.opis(curves)


def _per_query(pairs: Pairs, images: Prepared) -> tuple[np.ndarray, np.ndarray]:
    """(N,) rank of the first positive (beyond all for queries without), and MAP@R's term.

    MAP@R (Musgrave et al. 2020): mean over the R nearest of precision at i where i is a hit.
    """
    n = len(images.codes)
    relevant = images.sizes[images.codes] - 1
    first = np.full(n, np.iinfo(np.int64).max)
    positives = pairs.positives
    np.minimum.at(first, positives.query, positives.rank)
    start = np.concatenate([[0], np.cumsum(relevant)])
    place = np.arange(len(positives.rank)) - start[positives.query] + 1
    hits = positives.rank <= relevant[positives.query]
    terms = np.where(hits, place / positives.rank, 0.0)
    sums = np.bincount(positives.query, weights=terms, minlength=n)
    return first, sums / np.maximum(relevant, 1)


def _class_domains(images: Prepared, domains: Any) -> np.ndarray:
    """(C,) the domain of each class."""
    names = np.asarray(domains).astype(str)
    if names.shape != images.codes.shape:
        raise UserError(f"{len(images.codes)} embeddings but domains of shape {names.shape}")
    names = names[images.order]
    of_class = names[images.starts[:-1]]
    mixed = np.flatnonzero(names != of_class[images.codes])
    if len(mixed):
        label = images.classes[images.codes[mixed[0]]]
        raise UserError(f"class {label!r} is in two domains: prefix labels with their domain")
    return of_class


def _domain_results(images, of_class, curves, first, precision, ks, kept):
    results = {}
    for name in np.unique(of_class[kept]):
        queries = (of_class[images.codes] == name) & (images.sizes[images.codes] >= 2)
        rows = curves[of_class[kept] == name]
        results[str(name)] = DomainResult(
            recall_at={k: float((first[queries] <= k).mean()) for k in ks},
            map_at_r=float(precision[queries].mean()),
            opis=formulas.opis(rows),
            n_classes=len(rows),
            n_queries=int(queries.sum()),
        )
    return results


def _across_domains(counts: ClassCounts, of_class, thresholds, c: float) -> float:
    """OPIS with domains for classes: variance over domains of the utility of their pooled pairs."""
    kept = counts.kept
    names = of_class[kept]
    negatives = counts.pairs.negative_counts.sum(1)[kept].astype(float)
    sizes = counts.images.sizes[kept].astype(float)
    positives = sizes * (sizes - 1)
    far, frr = counts.far(thresholds), counts.frr(thresholds)
    curves = []
    for name in np.unique(names):
        at = names == name
        pooled_far = np.average(far[at], axis=0, weights=negatives[at])
        pooled_frr = np.average(frr[at], axis=0, weights=positives[at])
        curves.append(formulas.utility(1 - pooled_far, 1 - pooled_frr, c))
    return formulas.opis(np.array(curves))
