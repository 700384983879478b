"""Queries against another gallery, and sampled queries: against the brute force and the truth."""

import math

import numpy as np
import pytest

from common.errors import UserError
from eval import evaluate
from eval.exact_pass import exact_pass
from eval.geometry import geometry
from eval.large_pass import large_pass
from eval.prepare import prepare
from eval.sampling import draw_queries
from eval.scores import Scores
from tests.eval import brute_force
from tests.eval.test_engine import assert_same_ranks, random_set


def two_sets(seed: int):
    """Queries and a gallery: classes in both, in either alone; sizes differ."""
    x, labels = random_set(seed)
    rng = np.random.default_rng(seed)
    query = rng.random(len(x)) < 0.3
    query |= labels == 3  # queries without an image in the gallery
    query &= labels != 4  # images without a query
    return x[query], labels[query], x[~query], labels[~query]


def by_definition(x, labels, y, others, thresholds):
    """R@1 of queries with a positive, negatives ascending, FAR and FRR of shared classes."""
    unit = [a / np.linalg.norm(a.astype(np.float64), axis=1, keepdims=True) for a in (x, y)]
    d = np.sqrt(np.maximum(0, 2 - 2 * np.round(unit[0] @ unit[1].T, 12)))
    same = labels[:, None] == others[None]
    hits = [same[q, np.argmin(row)] for q, row in enumerate(d) if same[q].any()]
    far, frr = [], []
    for name in sorted(set(labels) & set(others)):
        ends = (labels == name)[:, None] ^ (others == name)[None]
        both = (labels == name)[:, None] & (others == name)[None]
        far.append([np.mean(d[ends] <= t + 1e-13) for t in thresholds])
        frr.append([np.mean(d[both] > t + 1e-13) for t in thresholds])
    return np.mean(hits), np.sort(d[~same]), np.array(far), np.array(frr)


def test_a_gallery_of_other_images_by_definition():
    x, labels, y, others = two_sets(11)
    result = evaluate(x, labels, gallery=y, gallery_labels=others, grid_points=21)
    recall, negatives, far, frr = by_definition(x, labels, y, others, result.thresholds)
    assert result.recall_at[1] == pytest.approx(recall)
    ends = [negatives[math.ceil(f * len(negatives)) - 1] for f in (1e-2, 1e-1)]
    assert (result.d_min, result.d_max) == pytest.approx(tuple(ends), abs=1e-9)
    assert result.far == pytest.approx(far, abs=1e-9)
    assert result.frr == pytest.approx(frr, abs=1e-9)
    assert result.n_images == len(x)
    assert result.n_gallery == len(y)
    assert result.left_out_queries == np.isin(labels, others, invert=True).sum()


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("mode", ["gallery", "sample"])
def test_the_large_pass_knows_both_sides_as_the_exact_one(mode, compiled):
    if mode == "gallery":
        images = prepare(*two_sets(12))
    else:
        images = draw_queries(prepare(*random_set(12)), 200, seed=1)
    scores = Scores(images, geometry("euclidean"))
    options = {"ks": (1, 8), "far_range": (1e-2, 1e-1), "memory_mb": 256, "progress": False}
    exact = exact_pass(scores)
    large = large_pass(scores, threads=2, block=(50, 70), compiled=compiled, **options)
    assert_same_ranks(large, exact)
    assert large.total_negatives == exact.total_negatives
    for far in (1e-2, 5e-2, 1e-1):
        k = math.ceil(far * exact.total_negatives)
        score = np.array([exact.negatives.kth_largest(k)])
        # A bin is about 3e-4 wide here, and pairs are so few that most bins are empty.
        assert large.negatives.kth_largest(k) == pytest.approx(score[0], abs=4e-4)
        for method in ("within", "within_by_fold"):
            found, true = (getattr(p.negatives, method)(score) for p in (large, exact))
            assert found == pytest.approx(true, abs=2.5)
        some = slice(3, 20)
        found, true = (p.negatives.within_by_group(score, some) for p in (large, exact))
        assert found == pytest.approx(true, abs=2.5)


def test_a_sample_of_all_queries_is_the_whole_set():
    x, labels = random_set(13)
    whole, sample = evaluate(x, labels), evaluate(x, labels, sample_queries=len(x))
    for name in ("opis", "opis_far", "map_at_r", "d_min", "d_max", "epsilon_opis", "opis_floor"):
        assert getattr(sample, name) == pytest.approx(getattr(whole, name), rel=1e-9), name
    assert sample.recall_at == pytest.approx(whole.recall_at)
    assert sample.intervals["opis"] == pytest.approx((whole.opis, whole.opis))
    assert sample.intervals["recall_at_1"] == pytest.approx((whole.recall_at[1],) * 2)


def test_intervals_of_samples_cover_the_truth_as_often_as_they_say():
    x, labels = random_set(14, classes=24, size=40, noise=0.9)
    truth = evaluate(x, labels, grid_points=51)
    samples = [
        evaluate(x, labels, sample_queries=160, grid_points=51, seed=seed) for seed in range(60)
    ]
    values = {"opis": truth.opis, "recall_at_1": truth.recall_at[1], "map_at_r": truth.map_at_r}
    for name, value in values.items():
        covered = np.mean([s.intervals[name][0] <= value <= s.intervals[name][1] for s in samples])
        # 95 % of 60, give or take three standard deviations.
        assert covered >= 0.86, (name, covered)
    found = np.array([s.opis for s in samples])
    error = found.std() / np.sqrt(len(found))
    assert found.mean() == pytest.approx(truth.opis, abs=3 * error)
    # Without the correction they are too large.
    plain = np.mean([brute_force.opis(s.utility) for s in samples])
    assert plain > truth.opis + 3 * error
    wide = np.mean([np.diff(s.intervals["opis"])[0] for s in samples])
    assert wide == pytest.approx(2 * 1.96 * found.std(), rel=0.35)


def test_pooled_rates_weigh_each_query_by_what_it_stands_for():
    # One large loose class and small tight ones: unweighted, the small ones would count too much.
    x, labels = random_set(15, classes=20, size=6, noise=0.1)
    rng = np.random.default_rng(0)
    x = np.concatenate([x, rng.normal(size=(400, 16)).astype(np.float32)])
    labels = np.concatenate([labels, np.full(400, 99)])
    truth = evaluate(x, labels)
    found = [evaluate(x, labels, sample_queries=120, seed=s) for s in range(30)]
    for get in (lambda r: r.recall_at[1], lambda r: r.map_at_r, lambda r: r.d_max):
        values = np.array([get(r) for r in found])
        margin = 3.5 * values.std() / np.sqrt(len(values)) + 1e-9
        assert values.mean() == pytest.approx(get(truth), abs=margin)


def test_a_sample_is_drawn_class_by_class():
    _, labels = random_set(16)
    images = prepare(np.eye(len(labels)), labels)
    drawn = draw_queries(images, 150, seed=3)
    sizes = drawn.gallery.sizes
    assert len(drawn.queries.codes) == 150
    pairs = sizes >= 2
    assert (drawn.queries.sizes[pairs] >= 2).all()
    assert drawn.weights[pairs] == pytest.approx((sizes / drawn.queries.sizes)[pairs])
    assert (drawn.weights[drawn.queries.codes]).sum() == pytest.approx(len(labels))
    assert np.array_equal(drawn.gallery.codes[drawn.own], drawn.queries.codes)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sample_queries": 3}, "sample_queries=3: with these classes and images give"),
        ({"sample_queries": 10**6}, "sample_queries=1000000"),
        ({"gallery": np.ones((3, 16))}, "together"),
        ({"gallery": np.ones((3, 5)), "gallery_labels": [0, 0, 1]}, "queries have 16 dimensions"),
        ({"gallery": np.ones((2, 16)), "gallery_labels": [0, 0, 1]}, "2 gallery embeddings but 3"),
        ({"gallery": np.ones((3, 16)), "gallery_labels": list("aab")}, "both as strings"),
        ({"gallery": np.ones((3, 16)), "gallery_labels": [0, -1, -1]}, "1 of 41 classes have a"),
        (
            {"gallery": np.ones((3, 16)), "gallery_labels": [0, 1, 2], "sample_queries": 80},
            "either",
        ),
    ],
)
def test_sides_that_make_no_sense_are_refused(options, message):
    x, labels = random_set(17)
    with pytest.raises(UserError, match=message):
        evaluate(x, labels, **options)
