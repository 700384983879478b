"""Every metric of one set of embeddings in one pass over its pairs."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from common.errors import UserError
from eval import opis as formulas
from eval.counts import ClassCounts
from eval.domains import average, class_domains, domain_results, opis_across_domains
from eval.exact_pass import LARGEST, exact_pass
from eval.geometry import geometry
from eval.large_pass import large_pass
from eval.options import Options
from eval.pairs import Pairs
from eval.prepare import prepare
from eval.result import EvaluationResult, Tar
from eval.sampling import draw_queries, intervals, sampling_variance
from eval.scores import Scores

# An average of smooth curves: a tenth of the thresholds is plenty for the noise floor and chance.
FLOOR_POINTS = 100


def evaluate(
    embeddings: Any,
    labels: Any,
    *,
    gallery: Any = None,
    gallery_labels: Any = None,
    sample_queries: int | None = None,
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
    device: str | None = None,
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
    memory is bounded by ``memory_mb`` and the number of same-class pairs, not by N^2. Embeddings on
    a GPU are counted there.

    With a ``gallery``, queries are compared with its images alone: a class's negatives are its
    queries against others' gallery images, and the reverse. With ``sample_queries`` so many
    queries, drawn class by class, are compared with all images; pooled rates weigh each query by
    the images that it stands for, ``opis`` and ``opis_far`` are less what the draw adds to them,
    and ``intervals`` say how far they and R@K may be from the whole set's.

    Corner cases: an image is never its own neighbour (by index); ties go to the lower index;
    queries and classes without a positive are left out and counted, the images still serve as
    negatives; an all-zero embedding has similarity 0 to all others; if the range is one point, OPIS
    is taken there. ``epsilon_opis`` of sampled queries is not freed of chance.

    Args:
        embeddings: (N, D) numpy array or tensor of any float type.
        labels: (N,) strings or integers.
        gallery, gallery_labels: (G, D) and (G,), where other images are searched than queried.
        sample_queries: how many queries to draw; None takes all.
        ks: values of K.
        far_range: false-accept rates of the calibration range, in (0, 1].
        epsilon: share of best and of worst classes that epsilon-OPIS compares, in (0, 0.5].
        c: weight of specificity in the utility, above 0.
        distance: euclidean, cosine or poincare (embeddings as they are, of this ``curvature``).
        grid_points: thresholds over the range, at least 1.
        tar_at: false-accept rates at which TAR is wanted.
        domains: (N,) names, or None; all images of a class are in one domain.
        seed: of the random folds behind the noise floor, and of the draw of queries.
        memory_mb: for histograms, and for same-class pairs, in MiB each.
        threads: None for all.
        device: where to count; None: where the embeddings are.
        progress: show a bar.

    Raises:
        UserError: bad shapes or values (rows are named), too few classes or negatives, an option
            out of range, same-class pairs that do not fit into memory.
    """
    options = Options(ks, far_range, epsilon, c, distance, curvature, grid_points, seed)
    space = geometry(distance, curvature)
    images = prepare(embeddings, labels, gallery, gallery_labels, seed=seed, device=device)
    if sample_queries is not None:
        images = draw_queries(images, sample_queries, seed)
    of_class = None if domains is None else class_domains(images, domains)
    pairs, how = _all_pairs(Scores(images, space), options, memory_mb, threads, progress)
    counts = ClassCounts(pairs, images, space)
    ends = (_rank(f, pairs, math.ceil) for f in sorted(options.far_range))
    d_min, d_max = (counts.threshold_at_rank(k) for k in ends)
    thresholds = np.linspace(d_min, d_max, grid_points) if d_max > d_min else np.array([d_min])
    far, frr = counts.far(thresholds), counts.frr(thresholds)
    curves = formulas.utility(1 - far, 1 - frr, c)
    few = thresholds[:: math.ceil(len(thresholds) / FLOOR_POINTS)]
    without = [1 - rates for rates in counts.rates_without_a_fold(few)]
    floor = formulas.noise_floor(formulas.utility(*without, c))
    variance = np.zeros(len(curves))
    if images.sampled:
        variance = sampling_variance(counts, few, c)
        floor = max(0.0, floor - formulas.chance(variance))
    opis = formulas.opis(curves) - formulas.chance(variance)
    codes = images.queries.codes
    valid, weight, ranks = images.kept[codes], images.weights[codes], pairs.ranks
    recall_at = {k: average(ranks.first <= k, valid, weight) for k in options.ks}
    map_at_r = average(ranks.precision, valid, weight)
    found = {}
    if images.sampled:
        centre = {"opis": opis, "map_at_r": map_at_r}
        centre |= {f"recall_at_{k}": value for k, value in recall_at.items()}
        found = intervals(counts, few, c, options.ks, centre, seed)
    per_domain, across = {}, float("nan")
    if of_class is not None:
        per_domain = domain_results(images, of_class, curves, variance, ranks, options.ks)
        across = opis_across_domains(counts, of_class, thresholds, c)
    kept, everyone = images.kept, images.gallery if images.sampled else images.queries
    return EvaluationResult(
        recall_at=recall_at,
        map_at_r=map_at_r,
        opis=opis,
        epsilon_opis=formulas.epsilon_opis(curves, epsilon),
        opis_floor=floor,
        opis_corrected=opis - floor,
        opis_far=_opis_far(counts, options),
        d_min=d_min,
        d_max=d_max,
        thresholds=thresholds,
        classes=images.classes[kept],
        images=everyone.sizes[kept],
        utility=curves,
        far=far,
        frr=frr,
        tar_at={f: _tar(counts, f) for f in tar_at},
        n_images=len(everyone.codes),
        n_gallery=len(images.gallery.codes),
        n_classes=int(kept.sum()),
        n_queries=int(valid.sum()),
        left_out_queries=int((~kept[everyone.codes]).sum()),
        left_out_classes=int((~kept).sum()),
        opis_across_domains=across,
        domains=per_domain,
        intervals=found,
        settings=options.settings(how),
        counts=counts,
    )


def _all_pairs(scores: Scores, options: Options, memory_mb, threads, progress) -> tuple[Pairs, str]:
    """The pairs of a set, by the pass that suits its size, and which they are."""
    images = scores.images
    queries, gallery = len(images.queries.codes), len(images.gallery.codes)
    which = f"{queries} sampled queries against all" if images.sampled else "all"
    if queries * gallery <= LARGEST:
        return exact_pass(scores), f"{which}, in float64"
    pairs = large_pass(
        scores,
        ks=options.ks,
        far_range=options.far_range,
        memory_mb=memory_mb,
        threads=threads,
        progress=progress,
    )
    return pairs, f"{which}, binned"


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


def _opis_far(counts: ClassCounts, options: Options) -> float:
    """OPIS with thresholds spaced evenly in log FAR."""
    rates = np.geomspace(*sorted(options.far_range), options.grid_points)
    ranks = [_rank(f, counts.pairs, math.ceil) for f in rates]
    at = {k: counts.threshold_at_rank(k) for k in set(ranks)}
    thresholds = np.array([at[k] for k in ranks])
    far, frr = counts.far(thresholds), counts.frr(thresholds)
    found = formulas.opis(formulas.utility(1 - far, 1 - frr, options.c))
    if counts.images.sampled:
        few = thresholds[:: math.ceil(len(thresholds) / FLOOR_POINTS)]
        found -= formulas.chance(sampling_variance(counts, few, options.c))
    return found
