"""The engine against the brute force, on both passes; hand-worked cases; every refusal."""

import math
import sys

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from common.errors import UserError
from eval import evaluate
from eval.exact_pass import exact_pass
from eval.geometry import geometry
from eval.large_pass import large_pass
from eval.prepare import prepare
from eval.scores import Scores
from tests.eval import brute_force


@st.composite
def labelled_sets(draw):
    """Small sets with all that makes trouble; at least two classes have a pair."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sizes = [2, 2, *draw(st.lists(st.integers(1, 9), max_size=6))]
    labels = np.repeat(np.arange(len(sizes)), sizes)
    dimensions = draw(st.integers(2, 8))
    centres = rng.normal(size=(len(sizes), dimensions))
    x = centres[labels] + draw(st.sampled_from([0.05, 0.5, 2.0])) * rng.normal(
        size=(len(labels), dimensions)
    )
    if draw(st.booleans()):  # tied distances
        x = np.round(x)
    if draw(st.booleans()):  # duplicates, within and across classes
        x[rng.integers(len(x), size=3)] = x[0]
    if draw(st.booleans()):
        x /= np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-9)
    order = rng.permutation(len(labels))
    x, labels = x[order], labels[order]
    x = x.astype(draw(st.sampled_from([np.float16, np.float32, np.float64])))
    if draw(st.booleans()):  # not contiguous
        x = np.repeat(x, 2, axis=1)[:, ::2]
    if draw(st.booleans()):
        labels = np.array([f"class {9 - label}" for label in labels])
    return x, labels


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(labelled_sets(), st.sampled_from(["euclidean", "cosine"]), st.sampled_from([0.5, 1.0, 2.0]))
def test_every_metric_agrees_with_the_brute_force(case, distance, c):
    x, labels = case
    result = evaluate(x, labels, ks=(1, 3), distance=distance, c=c, grid_points=21, epsilon=0.25)
    d = brute_force.distances(x, distance)
    recall, map_at_r = brute_force.recall_and_map(d, labels, (1, 3))
    assert result.recall_at == pytest.approx(recall, abs=1e-12)
    assert result.map_at_r == pytest.approx(map_at_r, abs=1e-12)
    thresholds = brute_force.calibration_range(d, labels, points=21)
    assert result.thresholds == pytest.approx(thresholds, abs=1e-9)
    curves = brute_force.utility(d, labels, result.thresholds, c)
    assert result.utility == pytest.approx(curves, abs=1e-9)
    assert result.opis == pytest.approx(brute_force.opis(curves), abs=1e-9)
    assert result.epsilon_opis == pytest.approx(brute_force.epsilon_opis(curves, 0.25), abs=1e-9)
    assert result.n_queries + result.left_out_queries == len(labels)


def random_set(seed: int, classes: int = 40, size: int = 24, dimensions: int = 16, **options):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, size, size=classes)
    labels = np.repeat(np.arange(classes), sizes)
    noise = options.get("noise", 0.5) * (1 + rng.random(classes))[labels][:, None]
    x = rng.normal(size=(classes, dimensions))[labels] + noise * rng.normal(
        size=(len(labels), dimensions)
    )
    order = rng.permutation(len(labels))
    return (options.get("squeeze", 1) * x + options.get("shift", 0))[order].astype(
        np.float32
    ), labels[order]


def both_passes(x, labels, **options):
    """The same pairs counted by the exact and by the large pass."""
    scores = Scores(prepare(x, labels), geometry("euclidean"))
    large = {"ks": (1, 8), "far_range": (1e-2, 1e-1), "memory_mb": 256, "progress": False}
    large |= {"threads": 1} | options
    return exact_pass(scores), large_pass(scores, **large)


def assert_same_ranks(large, exact):
    """First hits as far as R@8 and MAP@R read them, and the terms of MAP@R."""
    relevant = np.diff(exact.positives.start)
    limit = np.maximum(relevant, 8)
    cut = [np.minimum(pairs.ranks.first, limit + 1)[relevant > 0] for pairs in (large, exact)]
    assert np.array_equal(*cut)
    assert large.ranks.precision == pytest.approx(exact.ranks.precision, abs=1e-12)


CASES = {
    "plain": {},
    "high accuracy": {"noise": 0.1},
    "tight": {"squeeze": 0.01, "shift": 1.0},
    "few dimensions": {"dimensions": 3},
}


@pytest.mark.parametrize("path", [{"threads": 1}, {"threads": 2}, {"compiled": False}])
@pytest.mark.parametrize("block", [(1024, 512), (64, 100), (7, 13)])
@pytest.mark.parametrize("name", CASES)
def test_the_large_pass_counts_what_the_exact_one_does(name, block, path):
    x, labels = random_set(1, **CASES[name])
    exact, large = both_passes(x, labels, block=block, **path)
    assert large.total_negatives == exact.total_negatives
    assert np.array_equal(large.negative_counts, exact.negative_counts)
    assert_same_ranks(large, exact)
    for far in (1e-3, 1e-2, 5e-2, 1e-1):
        k = math.ceil(far * exact.total_negatives)
        score = exact.negatives.kth_largest(k)
        spread = exact.negatives.kth_largest(1) - exact.negatives.kth_largest(exact.total_negatives)
        assert large.negatives.kth_largest(k) == pytest.approx(score, abs=1e-4 * spread)
        counted = large.negatives.within(np.array([score]))
        # Float32 resolves tight sets less finely; OPIS is still right, see the next test.
        few = 6 if name == "tight" else 2.5
        assert counted == pytest.approx(exact.negatives.within(np.array([score])), abs=few)


@pytest.mark.parametrize("name", CASES)
def test_opis_of_a_large_set_is_that_of_the_exact_pass_to_a_thousandth(name, monkeypatch):
    x, labels = random_set(2, classes=60, size=80, **CASES[name])
    assert len(x) > 2048
    binned = evaluate(x, labels, tar_at=(1e-3,))
    assert binned.settings["pairs"] == "all, binned"

    monkeypatch.setattr(sys.modules["eval.evaluate"], "LARGEST", len(x) ** 2)
    exact = evaluate(x, labels, tar_at=(1e-3,))
    assert exact.settings["pairs"] == "all, in float64"
    assert binned.recall_at == exact.recall_at
    assert binned.map_at_r == pytest.approx(exact.map_at_r, abs=1e-12)
    for metric in ("opis", "opis_far", "epsilon_opis", "d_min", "d_max"):
        assert getattr(binned, metric) == pytest.approx(getattr(exact, metric), rel=1e-3), metric
    assert binned.opis_floor == pytest.approx(exact.opis_floor, rel=1e-2)
    assert binned.tar_at[1e-3].tar == pytest.approx(exact.tar_at[1e-3].tar, abs=1e-3)


def test_a_range_that_the_sample_misses_is_found_by_a_second_count(monkeypatch):
    x, labels = random_set(3)
    monkeypatch.setattr("eval.binning.WIDER", (1e-4, 1e-3))
    exact, large = both_passes(x, labels)
    for far in (1e-2, 1e-1):
        k = math.ceil(far * exact.total_negatives)
        score = exact.negatives.kth_largest(k)
        assert large.negatives.kth_largest(k) == pytest.approx(score, abs=1e-4)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("radius", [0.1, 3.0])
def test_the_large_pass_in_the_ball_counts_what_the_exact_one_does(radius, compiled):
    x, labels = random_set(18)
    lengths = radius * np.random.default_rng(0).uniform(0.5, 1, size=(len(x), 1))
    x = x / np.linalg.norm(x, axis=1, keepdims=True) * lengths  # radius 3 is near the rim, at 3.16
    scores = Scores(prepare(x, labels), geometry("poincare", 0.1))
    options = {"ks": (1, 8), "far_range": (1e-2, 1e-1), "memory_mb": 256, "threads": 1}
    exact = exact_pass(scores)
    large = large_pass(scores, progress=False, compiled=compiled, **options)
    assert_same_ranks(large, exact)
    for far in (1e-2, 1e-1):
        k = math.ceil(far * exact.total_negatives)
        score = exact.negatives.kth_largest(k)
        assert large.negatives.kth_largest(k) == pytest.approx(score, rel=2e-3)
        found, true = (p.negatives.within(np.array([score])) for p in (large, exact))
        assert found == pytest.approx(true, abs=2.5)


@pytest.mark.parametrize("compiled", [True, False])
def test_near_ties_are_settled_exactly(compiled):
    x, labels = random_set(4, dimensions=3)
    exact, large = both_passes(np.round(x), labels, compiled=compiled)
    assert_same_ranks(large, exact)


def test_all_embeddings_equal_on_both_passes():
    labels = np.arange(600) % 20
    exact, large = both_passes(np.ones((600, 4), np.float32), labels)
    assert_same_ranks(large, exact)
    result = evaluate(np.ones((600, 4)), labels)
    assert result.opis == 0
    assert result.d_min == result.d_max == 0


def test_six_points_by_hand():
    # On the circle, classes a: 0 and 10 degrees, b: 20 and 60, c: 100 and 180.
    angles = np.radians([0, 10, 20, 60, 100, 180])
    x = np.stack([np.cos(angles), np.sin(angles)], 1)
    result = evaluate(x, list("aabbcc"), ks=(1, 2), far_range=(0.25, 0.5), grid_points=2)
    # Nearest: 0 -> 10 hit; 10 -> 0 and 20 tie, the lower index wins: hit; 20 -> 10 miss;
    # 60 -> 20 and 100 tie, index: hit; 100 -> 60 miss; 180 -> 100 hit.
    assert result.recall_at[1] == pytest.approx(4 / 6)
    # Second: 20 -> 0 miss; 100 -> 20 and 180 tie, index: miss.
    assert result.recall_at[2] == pytest.approx(4 / 6)
    # 12 cross-class pairs, sorted angles 10 20 40 50 60 80 90 100 120 160 170 180:
    # FAR 1/4 is the third, 40 degrees, FAR 1/2 the sixth, 80 degrees.
    chord = 2 * np.sin(np.radians([40, 80]) / 2)
    assert (result.d_min, result.d_max) == pytest.approx(tuple(chord))
    # At 40: a accepts 10, 20 of 0-20, 10-20 and no 0-60...: 2 of 8; b: 10, 20, 40 of 8; c: 40.
    # At 80: a adds 50, 60; b adds 50, 60, 80; c adds 80.
    assert result.far == pytest.approx(np.array([[2, 4], [3, 6], [1, 2]]) / 8)
    assert result.frr == pytest.approx(np.array([[0, 0], [0, 0], [1, 0]]))
    phi = 1 - np.array([[2, 4], [3, 6], [1, 2]]) / 8
    psi = np.array([[1, 1], [1, 1], [0, 1]])
    assert result.utility == pytest.approx(2 * phi * psi / (phi + psi))


def test_opis_far_does_not_care_for_monotone_changes_of_distance():
    x, labels = random_set(5)
    euclidean = evaluate(x, labels)
    cosine = evaluate(x, labels, distance="cosine")
    assert cosine.opis_far == pytest.approx(euclidean.opis_far, rel=1e-9)
    assert abs(cosine.opis / euclidean.opis - 1) > 1e-4


def test_poincare_distance_by_its_formula():
    x, labels = random_set(6)
    x = (2 * x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float64)
    c = 0.1
    square = (x**2).sum(1)
    gap = ((x[:, None] - x[None]) ** 2).sum(2)
    d = np.arccosh(1 + 2 * c * gap / np.outer(1 - c * square, 1 - c * square)) / np.sqrt(c)
    result = evaluate(x, labels, distance="poincare", curvature=c, ks=(1, 4))
    recall, map_at_r = brute_force.recall_and_map(d, labels, (1, 4))
    assert result.recall_at == pytest.approx(recall)
    assert result.map_at_r == pytest.approx(map_at_r)
    curves = brute_force.utility(d, labels, result.thresholds)
    assert result.opis == pytest.approx(brute_force.opis(curves), rel=1e-2)


@pytest.mark.parametrize("size", [16, 32])
def test_equal_classes_have_an_opis_of_about_the_noise_floor(size):
    rng = np.random.default_rng(0)
    ratios = []
    for _ in range(4):
        labels = np.repeat(np.arange(40), size)
        x = 6 * np.eye(40)[labels] + 1.4 * rng.normal(size=(len(labels), 40))
        result = evaluate(x, labels)
        ratios.append(result.opis_floor / result.opis)
    assert 0.7 < np.mean(ratios) < 2.0


def test_unequal_classes_stand_out_of_the_noise_floor():
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(40), 32)
    spread = np.where(labels % 2, 0.5, 1.5)[:, None]
    result = evaluate(6 * np.eye(40)[labels] + spread * rng.normal(size=(1280, 40)), labels)
    assert result.opis > 5 * result.opis_floor


def test_tar_is_the_share_of_positives_within_the_threshold():
    x, labels = random_set(7)
    result = evaluate(x, labels, tar_at=(0.01, 0.5))
    d = brute_force.distances(x)
    negative = brute_force.cross_class(d, labels)
    positive = [
        d[i, j] for i in range(len(x)) for j in range(i + 1, len(x)) if labels[i] == labels[j]
    ]
    for far in (0.01, 0.5):
        threshold = negative[math.floor(far * len(negative)) - 1]
        assert result.tar_at[far].threshold == pytest.approx(threshold, abs=1e-9)
        expected = np.mean(np.array(positive) <= threshold + 1e-12)
        assert result.tar_at[far].tar == pytest.approx(expected)


def test_domains_share_the_thresholds():
    x, labels = random_set(8)
    domains = np.where(labels < 20, "first", "second")
    result = evaluate(x, labels, domains=domains)
    rows = {"first": result.classes < 20, "second": result.classes >= 20}
    for name, at in rows.items():
        assert result.domains[name].opis == pytest.approx(brute_force.opis(result.utility[at]))
        assert result.domains[name].n_classes == at.sum()
    assert result.opis_across_domains >= 0
    weighted = sum(r.recall_at[1] * r.n_queries for r in result.domains.values())
    assert weighted / result.n_queries == pytest.approx(result.recall_at[1])


def test_torch_and_numpy_give_the_same():
    x, labels = random_set(9)
    one, two = evaluate(x, labels), evaluate(torch.from_numpy(x), torch.from_numpy(labels))
    assert one.to_dict() == two.to_dict()


GOOD = np.random.default_rng(0).normal(size=(8, 3))
LABELS = [0, 0, 1, 1, 2, 2, 3, 3]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"embeddings": np.where(np.arange(24).reshape(8, 3) == 7, np.nan, GOOD)}, "rows: 2"),
        ({"embeddings": GOOD[:, 0]}, r"shape \(8,\)"),
        ({"embeddings": GOOD[:0]}, "shape"),
        ({"embeddings": GOOD.astype(str)}, "numbers"),
        ({"labels": LABELS[:-1]}, "8 embeddings but 7 labels"),
        ({"labels": [0] * 8}, "two classes"),
        ({"labels": list(range(8))}, "two images or more"),
        ({"labels": [0, 0, 1, 2, 3, 4, 5, 6]}, "1 of 7 classes"),
        ({"labels": [None, *LABELS[1:]]}, "row 0 is missing"),
        ({"ks": ()}, "ks"),
        ({"ks": (0,)}, "ks"),
        ({"far_range": (0, 0.1)}, "far_range"),
        ({"epsilon": 0.6}, "epsilon"),
        ({"c": 0}, "c=0"),
        ({"grid_points": 0}, "grid_points"),
        ({"distance": "manhattan"}, "manhattan"),
        ({"tar_at": (1e-4,)}, "at least 10000 cross-class pairs"),
        ({"domains": list("aabbccdx")}, "two domains"),
        ({"domains": list("aab")}, "domains"),
    ],
)
def test_what_cannot_be_evaluated_is_named(changes, message):
    arguments = {"embeddings": GOOD, "labels": LABELS} | changes
    with pytest.raises(UserError, match=message):
        evaluate(arguments.pop("embeddings"), arguments.pop("labels"), **arguments)
