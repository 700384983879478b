"""Nearest neighbours by faiss, for galleries too large for the exact pass too."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from tqdm import tqdm

from common.errors import UserError
from common.geometry import NORM_EPSILON

GPU_MAX_K = 2048  # faiss's limit on a GPU
SPARE = 8  # more candidates than asked for, so that ties can be put in order of index
QUERIES_PER_BLOCK = 1024
IVF_LISTS_PER_ROOT = 4
IVF_PROBED_SHARE = 0.05
RECALL_QUERIES = 200


@dataclass(frozen=True)
class Neighbours:
    """The k nearest other images of some queries.

    Attributes:
        queries: (Q,) row numbers of the queries in the gallery.
        indices: (Q, k) row numbers of their neighbours, nearest first, ties by row number.
        similarities: (Q, k) cosine similarities, float64, in [-1, 1].
        backend: what searched, for a reader: index, version, processor.
        agreement: share of the exact neighbours that an approximate index found, measured on a
            sample of queries; 1.0 for the exact index.
    """

    queries: np.ndarray
    indices: np.ndarray
    similarities: np.ndarray
    backend: str
    agreement: float


def nearest_neighbours(
    embeddings: np.ndarray,
    k: int,
    *,
    queries: np.ndarray | None = None,
    approximate: bool = False,
    progress: bool = False,
) -> Neighbours:
    """The ``k`` nearest other rows of each query by cosine similarity (so by distance as well).

    A query never finds itself: it is dropped by its row number, not by being first, so duplicates
    of it stay. Candidates are scored anew in float64 and ordered by (similarity, row number). Where
    more than ``SPARE`` rows tie with the k-th neighbour, which of them are shown is up to faiss.

    Args:
        embeddings: (N, D), finite, no zero rows; they are normalised here.
        k: neighbours of each query, 1 to N - 1.
        queries: (Q,) row numbers, all rows if None.
        approximate: an inverted-file index that looks at a twentieth of the gallery for each query
            in place of the exact flat one. What that costs is measured, see ``agreement``.
        progress: show a bar on stderr.

    A GPU is used where faiss sees one and k is small enough for it; ``backend`` says so.

    Raises:
        UserError: k or a query out of range; faiss is not installed.
    """
    count = len(embeddings)
    if not 1 <= k <= count - 1:
        raise UserError(f"k is {k}; with {count} embeddings it must be from 1 to {count - 1}")
    queries = np.arange(count) if queries is None else np.asarray(queries, dtype=np.int64)
    if len(queries) and not 0 <= queries.min() <= queries.max() < count:
        raise UserError(f"queries must be row numbers from 0 to {count - 1}")
    units = _unit_rows(embeddings)
    asked = min(count, k + 1 + SPARE)
    index, backend = _build_index(units, asked, approximate)
    found = _search(index, units, queries, k, asked, progress)
    agreement = 1.0
    if approximate:
        sample = queries[:: max(1, len(queries) // RECALL_QUERIES)]
        exact_index, _ = _build_index(units, asked, approximate=False)
        exact = _search(exact_index, units, sample, k, asked, progress=False)[0]
        approx = _search(index, units, sample, k, asked, progress=False)[0]
        agreement = float(np.mean([np.isin(a, b).mean() for a, b in zip(exact, approx, strict=1)]))
    return Neighbours(queries, *found, backend, agreement)


def _unit_rows(embeddings: np.ndarray) -> np.ndarray:
    units = np.array(embeddings, dtype=np.float32, order="C")
    units /= np.maximum(np.linalg.norm(units, axis=1, keepdims=True), NORM_EPSILON)
    return units


def _build_index(units: np.ndarray, asked: int, approximate: bool):
    try:
        import faiss
    except ImportError as error:
        raise UserError("neighbours need faiss; pip install faiss-cpu (or faiss-gpu)") from error
    count, dimensions = units.shape
    index = faiss.IndexFlatIP(dimensions)
    kind = "flat (exact)"
    if approximate:
        lists = max(1, min(count // 40, int(IVF_LISTS_PER_ROOT * count**0.5)))
        index = faiss.IndexIVFFlat(index, dimensions, lists, faiss.METRIC_INNER_PRODUCT)
        # The fewest lists that hold enough candidates, however few rows there are.
        needed = -(-asked * lists // count)
        index.nprobe = min(lists, max(round(lists * IVF_PROBED_SHARE), needed, 1))
        kind = f"inverted file ({lists} lists, {index.nprobe} probed)"
    gpus = getattr(faiss, "get_num_gpus", lambda: 0)()
    processor = "CPU"
    if gpus and asked <= GPU_MAX_K:
        index = faiss.index_cpu_to_gpu(faiss.StandardGpuResources(), 0, index)
        processor = "GPU 0"
    elif gpus:
        processor = f"CPU (a GPU is there, but faiss allows k up to {GPU_MAX_K} on it)"
    index.train(units)
    index.add(units)
    return index, f"faiss {faiss.__version__}, {kind}, {processor}"


def _search(index, units, queries, k: int, asked: int, progress: bool):
    indices = np.empty((len(queries), k), np.int64)
    similarities = np.empty((len(queries), k))
    blocks = range(0, len(queries), QUERIES_PER_BLOCK)
    for start in tqdm(blocks, desc="neighbours", unit="block", disable=not progress):
        part = slice(start, start + QUERIES_PER_BLOCK)
        indices[part], similarities[part] = _search_block(index, units, queries[part], k, asked)
    return indices, similarities


def _search_block(index, units, queries, k: int, asked: int):
    indices, similarities = _ordered(units, queries, index.search(units[queries], asked)[1], k)
    short = np.flatnonzero(np.isinf(similarities[:, -1]))
    if len(short):
        # The lists that an inverted file probed held fewer than k rows: probe all of them.
        probed, index.nprobe = index.nprobe, index.nlist
        again = index.search(units[queries[short]], asked)[1]
        index.nprobe = probed
        indices[short], similarities[short] = _ordered(units, queries[short], again, k)
    return indices, similarities


def _ordered(units: np.ndarray, queries: np.ndarray, candidates: np.ndarray, k: int):
    """The k best of (Q, asked) candidates; -1 (nothing found) and the query itself come last."""
    exact = units[queries].astype(np.float64)
    exact /= np.linalg.norm(exact, axis=1, keepdims=True)
    scores = np.empty(candidates.shape)
    for column, rows in enumerate(candidates.T):
        others = units[rows].astype(np.float64)
        scores[:, column] = (exact * others).sum(axis=1) / np.linalg.norm(others, axis=1)
    scores[(candidates == queries[:, None]) | (candidates < 0)] = -np.inf
    order = np.lexsort((candidates, -scores), axis=1)[:, :k]
    return np.take_along_axis(candidates, order, 1), np.take_along_axis(scores, order, 1)
