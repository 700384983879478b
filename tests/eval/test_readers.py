"""Every file type reads back what was written; every fault is named."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from eval.readers import EmbeddingSet, read_embedding_set

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

ROWS, DIMENSIONS = 12, 5


@pytest.fixture
def embeddings() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(ROWS, DIMENSIONS)).astype(np.float32)


@pytest.fixture
def labels() -> np.ndarray:
    return np.repeat(["ape", "bee", "NA"], 4)


@pytest.fixture
def domains() -> np.ndarray:
    return np.tile([0, 1], 6)


def assert_same(found: EmbeddingSet, embeddings, labels, domains=None):
    np.testing.assert_array_equal(found.embeddings, embeddings)
    assert found.embeddings.dtype.isnative
    np.testing.assert_array_equal(found.labels, labels)
    assert (found.domains is None) == (domains is None)
    if domains is not None:
        np.testing.assert_array_equal(found.domains, domains)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz(tmp_path, embeddings, labels, domains, save):
    path = tmp_path / "set.npz"
    save(path, embeddings=embeddings, labels=labels, domains=domains, other=np.zeros(3))
    found = read_embedding_set(path)
    assert_same(found, embeddings, labels, domains)
    assert found.name == "set"


def test_npy_with_csv(tmp_path, embeddings, labels, domains):
    np.save(tmp_path / "e.npy", embeddings)
    lines = [f'{i},"{a}",{d}' for i, (a, d) in enumerate(zip(labels, domains, strict=True))]
    # A byte-order mark and Windows line ends, as spreadsheets write them.
    text = "\ufeff" + "\r\n".join(["row,label,domain", *lines]) + "\r\n"
    (tmp_path / "l.csv").write_bytes(text.encode())
    found = read_embedding_set(tmp_path / "e.npy", tmp_path / "l.csv")
    assert_same(found, embeddings, labels, domains)


def test_npy_with_npy(tmp_path, embeddings):
    np.save(tmp_path / "e.npy", embeddings)
    np.save(tmp_path / "l.npy", np.arange(ROWS) % 3)
    assert_same(
        read_embedding_set(tmp_path / "e.npy", tmp_path / "l.npy"), embeddings, np.arange(ROWS) % 3
    )


@pytest.mark.parametrize("kind", ["list", "fixed", "large"])
@pytest.mark.parametrize("dictionary", [False, True])
def test_parquet(tmp_path, embeddings, labels, domains, kind, dictionary):
    types = {
        "list": pa.list_(pa.float32()),
        "fixed": pa.list_(pa.float32(), DIMENSIONS),
        "large": pa.large_list(pa.float32()),
    }
    label_column = pa.array(labels.tolist())
    table = pa.table(
        {
            "embedding": pa.array(embeddings.tolist(), types[kind]),
            "label": label_column.dictionary_encode() if dictionary else label_column,
            "domain": domains,
        }
    )
    parquet.write_table(table, tmp_path / "e.parquet", row_group_size=5)
    assert_same(read_embedding_set(tmp_path / "e.parquet"), embeddings, labels, domains)


def test_safetensors(tmp_path, embeddings):
    numbers = np.arange(ROWS) % 3
    tensors = {"embeddings": torch.from_numpy(embeddings), "labels": torch.from_numpy(numbers)}
    save_file(tensors, tmp_path / "e.safetensors")
    assert_same(read_embedding_set(tmp_path / "e.safetensors"), embeddings, numbers)
    tensors["embeddings"] = tensors["embeddings"].bfloat16()
    save_file(tensors, tmp_path / "b.safetensors")
    found = read_embedding_set(tmp_path / "b.safetensors")
    assert_same(found, tensors["embeddings"].float().numpy(), numbers)


@pytest.mark.parametrize("dtype", ["<f2", ">f4", "<f8", ">f8", np.longdouble, np.int8])
@pytest.mark.parametrize("order", ["C", "F"])
def test_number_types_and_orders(tmp_path, dtype, order):
    values = np.random.default_rng(1).integers(1, 100, size=(ROWS, DIMENSIONS))
    np.savez(
        tmp_path / "e.npz",
        embeddings=np.asarray(values, dtype=dtype, order=order),
        labels=np.arange(ROWS) % 2,
    )
    found = read_embedding_set(tmp_path / "e.npz").embeddings
    assert_same(read_embedding_set(tmp_path / "e.npz"), values, np.arange(ROWS) % 2)
    assert found.dtype in (np.float16, np.float32, np.float64)
    torch.from_numpy(found)  # what an engine does with it


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (np.array(["1", "2"] * 6), np.array([1, 2] * 6)),
        (np.array(["01", "2"] * 6), np.array(["01", "2"] * 6)),
        (
            np.array(["-1", "99999999999999999999"] * 6),
            np.array(["-1", "99999999999999999999"] * 6),
        ),
        (np.array(["é".encode(), b"z"] * 6), np.array(["é", "z"] * 6)),
        (np.array([3.0, 4.0] * 6, np.float32), np.array([3, 4] * 6)),
        (np.array([True, False] * 6), np.array([1, 0] * 6)),
        (np.array([7, 9] * 6, np.uint64), np.array([7, 9] * 6)),
    ],
)
def test_labels_are_the_same_whatever_holds_them(tmp_path, embeddings, written, read):
    np.savez(tmp_path / "e.npz", embeddings=embeddings, labels=written)
    labels = read_embedding_set(tmp_path / "e.npz").labels
    np.testing.assert_array_equal(labels, read)
    assert labels.dtype.kind == read.dtype.kind
