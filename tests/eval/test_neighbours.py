"""Neighbours by faiss against brute force in float64."""

from __future__ import annotations

import numpy as np
import pytest

from common.errors import UserError
from eval.neighbours import nearest_neighbours


def brute_force(embeddings: np.ndarray, k: int) -> np.ndarray:
    units = embeddings.astype(np.float64)
    units /= np.linalg.norm(units, axis=1, keepdims=True)
    similarities = units @ units.T
    np.fill_diagonal(similarities, -np.inf)
    index = np.broadcast_to(np.arange(len(units)), similarities.shape)
    # Rounded, so that duplicates tie in this matrix product too.
    return np.lexsort((index, -similarities.round(9)), axis=1)[:, :k]


@pytest.mark.parametrize(("count", "k"), [(2, 1), (50, 1), (300, 10), (300, 299)])
def test_equals_brute_force(count, k):
    embeddings = np.random.default_rng(count + k).normal(size=(count, 12)).astype(np.float32)
    found = nearest_neighbours(embeddings, k)
    np.testing.assert_array_equal(found.indices, brute_force(embeddings, k))
    assert found.agreement == 1.0
    assert "exact" in found.backend


def test_duplicates_are_neighbours_and_self_is_not():
    embeddings = np.repeat(np.random.default_rng(0).normal(size=(20, 6)), 3, axis=0)
    found = nearest_neighbours(embeddings, 2)
    for row, neighbours in enumerate(found.indices):
        group = row - row % 3
        assert list(neighbours) == [i for i in range(group, group + 3) if i != row]
    np.testing.assert_allclose(found.similarities, 1, atol=1e-6)


def test_some_queries_only():
    embeddings = np.random.default_rng(1).normal(size=(80, 5))
    queries = np.array([70, 3])
    found = nearest_neighbours(embeddings, 4, queries=queries)
    np.testing.assert_array_equal(found.indices, brute_force(embeddings, 4)[queries])


def test_lengths_do_not_matter():
    rng = np.random.default_rng(2)
    embeddings = rng.normal(size=(60, 7))
    scaled = embeddings * rng.uniform(1e-3, 1e3, size=(60, 1))
    np.testing.assert_array_equal(
        nearest_neighbours(embeddings, 5).indices, nearest_neighbours(scaled, 5).indices
    )


def test_approximate_index_measures_what_it_costs():
    rng = np.random.default_rng(3)
    centres = rng.normal(size=(40, 16))
    embeddings = np.repeat(centres, 60, axis=0) + 0.1 * rng.normal(size=(2400, 16))
    found = nearest_neighbours(embeddings, 10, approximate=True)
    assert "inverted file" in found.backend
    exact = brute_force(embeddings, 10)
    overlap = np.mean([np.isin(a, b).mean() for a, b in zip(exact, found.indices, strict=True)])
    assert found.agreement == pytest.approx(overlap, abs=0.05)
    assert overlap > 0.9


def test_approximate_index_always_finds_k():
    # One tight clump beside loners: the lists are far from equal.
    rng = np.random.default_rng(4)
    embeddings = rng.normal(size=(900, 8))
    embeddings[:700] = embeddings[0] + 1e-3 * rng.normal(size=(700, 8))
    found = nearest_neighbours(embeddings, 60, approximate=True)
    assert (found.indices >= 0).all()
    assert np.isfinite(found.similarities).all()
    assert all(row not in neighbours for row, neighbours in enumerate(found.indices))
    assert all(len(set(neighbours)) == 60 for neighbours in found.indices)


@pytest.mark.parametrize("k", [0, -1, 10, 11])
def test_k_out_of_range(k):
    with pytest.raises(UserError, match="must be from 1 to 9"):
        nearest_neighbours(np.eye(10), k)


def test_queries_out_of_range():
    with pytest.raises(UserError, match="row numbers from 0 to 9"):
        nearest_neighbours(np.eye(10), 1, queries=np.array([10]))


def gpus() -> int:
    import faiss

    return getattr(faiss, "get_num_gpus", lambda: 0)()


@pytest.mark.gpu
@pytest.mark.skipif(gpus() == 0, reason="faiss sees no GPU")
@pytest.mark.parametrize("approximate", [False, True])
def test_gpu_gives_the_same_and_says_so(approximate):
    embeddings = np.random.default_rng(7).normal(size=(3000, 32)).astype(np.float32)
    found = nearest_neighbours(embeddings, 10, approximate=approximate)
    assert found.backend.endswith("GPU 0")
    if not approximate:
        np.testing.assert_array_equal(found.indices, brute_force(embeddings, 10))
    large = nearest_neighbours(embeddings, 2045, queries=np.array([5]), approximate=approximate)
    assert "faiss allows k up to 2048" in large.backend
