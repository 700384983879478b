"""Every fault of a file is named, with the rows that have it."""

from __future__ import annotations

import numpy as np
import pytest

from common.errors import UserError
from eval.readers import read_embedding_set

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


def write_npz(folder, **arrays):
    np.savez(folder / "e.npz", **arrays)
    return folder / "e.npz"


def test_rows_with_faults_are_named(tmp_path, embeddings, labels):
    embeddings[[3, 7]] = np.nan
    embeddings[8, 2] = -np.inf
    with pytest.raises(UserError, match=r"rows 3, 7, 8 hold NaN or infinity \(rows count from 0"):
        read_embedding_set(write_npz(tmp_path, embeddings=embeddings, labels=labels))
    embeddings[:10] = 0
    with pytest.raises(UserError, match=r"rows 0, 1, 2, 3, 4 and 5 more .* zero vector"):
        read_embedding_set(write_npz(tmp_path, embeddings=embeddings, labels=labels))
    embeddings[:10] = 1e30
    with pytest.raises(UserError, match=r"longer than 1e\+18"):
        read_embedding_set(write_npz(tmp_path, embeddings=embeddings, labels=labels))


FAULTS = {
    "object labels": (lambda e, y: {"embeddings": e, "labels": y.astype(object)}, "pickle"),
    "object embeddings": (lambda e, y: {"embeddings": e.astype(object), "labels": y}, "pickle"),
    "no labels": (lambda e, y: {"embeddings": e}, "has no 'labels'; .* --labels"),
    "no embeddings": (lambda e, y: {"labels": y}, "has no 'embeddings'"),
    "both spellings": (lambda e, y: {"embeddings": e, "embedding": e, "labels": y}, "keep one"),
    "fewer labels": (lambda e, y: {"embeddings": e, "labels": y[1:]}, "11 labels for 12"),
    "matrix of labels": (lambda e, y: {"embeddings": e, "labels": y[:, None]}, r"shape \(12, 1\)"),
    "one class": (lambda e, y: {"embeddings": e, "labels": y[:1].repeat(12)}, "one class only"),
    "empty label": (
        lambda e, y: {"embeddings": e, "labels": np.where(y == "bee", " ", y)},
        "rows 4, 5, 6, 7 .* empty label",
    ),
    "broken label": (
        lambda e, y: {"embeddings": e, "labels": np.r_[np.nan, 0.5, np.ones(10)]},
        "rows 0, 1 .* no whole number",
    ),
    "dates": (lambda e, y: {"embeddings": e, "labels": np.zeros(12, "M8[s]")}, "datetime64"),
    "not UTF-8": (lambda e, y: {"embeddings": e, "labels": np.full(12, b"\xff")}, "UTF-8"),
    "vector": (lambda e, y: {"embeddings": e[:, 0], "labels": y}, r"shape \(12,\)"),
    "cube": (lambda e, y: {"embeddings": e[None], "labels": y}, r"shape \(1, 12, 5\)"),
    "complex": (lambda e, y: {"embeddings": e + 1j, "labels": y}, "complex"),
    "texts": (lambda e, y: {"embeddings": e.astype(str), "labels": y}, "type <U"),
    "booleans": (lambda e, y: {"embeddings": e > 0, "labels": y}, "type bool"),
    "nothing": (lambda e, y: {"embeddings": e[:0], "labels": y[:0]}, "empty"),
    "few domains": (lambda e, y: {"embeddings": e, "labels": y, "domains": y[2:]}, "10 domains"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_in_arrays(tmp_path, embeddings, labels, fault):
    arrays, message = FAULTS[fault]
    with pytest.raises(UserError, match=message) as caught:
        read_embedding_set(write_npz(tmp_path, **arrays(embeddings, labels)))
    assert "e.npz" in str(caught.value)
    assert "\n" not in str(caught.value)


CSV_FAULTS = {
    "row too long": ("label\na\nb,c\n", "row 1 .* has 2 cells"),
    "no such column": ("class\na\n", "no column 'label'"),
    "column twice": ("label,label\na,b\n", "two columns named label"),
    "too few": ("label\n" + "a\nb\n" * 5, "10 labels for 12"),
    "an empty cell": ("label,x\n" + "a,1\nb,1\n" * 5 + ",1\n,1\n", "rows 10, 11 .* empty label"),
    "a blank line": ("label\n" + "a\nb\n" * 5 + "\na\nb\n", "row 10 .* has 0 cells"),
    "open quote": ('label\n"a\nb\n', "cannot be read"),
    "a long label": ("label\n" + "a" * 200_000 + "\n", "cannot be read"),
    "header alone": ("label\n", "0 labels for 12"),
}


@pytest.mark.parametrize("fault", CSV_FAULTS)
def test_faults_in_csv(tmp_path, embeddings, fault):
    text, message = CSV_FAULTS[fault]
    np.save(tmp_path / "e.npy", embeddings)
    (tmp_path / "l.csv").write_text(text)
    with pytest.raises(UserError, match=message) as caught:
        read_embedding_set(tmp_path / "e.npy", tmp_path / "l.csv")
    assert "l.csv" in str(caught.value)


def test_labels_may_be_left_out_where_they_are_not_needed(tmp_path, embeddings):
    path = write_npz(tmp_path, embeddings=embeddings)
    assert read_embedding_set(path, labels_needed=False).labels is None
    path = write_npz(tmp_path, embeddings=embeddings, labels=np.zeros(ROWS))
    assert len(read_embedding_set(path, labels_needed=False).labels) == ROWS


def test_labels_given_twice(tmp_path, embeddings, labels):
    path = write_npz(tmp_path, embeddings=embeddings, labels=labels)
    with pytest.raises(UserError, match="leave out --labels"):
        read_embedding_set(path, tmp_path / "l.csv")


@pytest.mark.parametrize("name", ["e.pkl", "e.pt", "e", "e.csv"])
def test_other_types_are_not_read(tmp_path, name):
    (tmp_path / name).write_bytes(b"x")
    with pytest.raises(UserError, match="are not read"):
        read_embedding_set(tmp_path / name)


def test_parquet_faults(tmp_path, embeddings, labels):
    path = tmp_path / "e.parquet"
    ragged = [list(row) for row in embeddings]
    ragged[6] = ragged[6][:3]
    parquet.write_table(pa.table({"embedding": ragged, "label": labels.tolist()}), path)
    with pytest.raises(UserError, match="row 6 of column embedding has 3 values, row 0 has 5"):
        read_embedding_set(path)
    nulls = [list(row) for row in embeddings]
    nulls[6][1] = None
    parquet.write_table(pa.table({"embedding": nulls, "label": labels.tolist()}), path)
    with pytest.raises(UserError, match="row 6 of column embedding holds a null"):
        read_embedding_set(path)
    some = [None if i == 9 else label for i, label in enumerate(labels.tolist())]
    parquet.write_table(pa.table({"embedding": embeddings.tolist(), "label": some}), path)
    with pytest.raises(UserError, match="row 9 of column label holds a null"):
        read_embedding_set(path)


def test_a_run_length_bomb_is_refused_before_it_is_unpacked(tmp_path):
    column = pa.array(np.zeros(50_000_000, np.float32))
    lists = pa.FixedSizeListArray.from_arrays(column, 500)
    table = pa.table({"embedding": lists, "label": np.zeros(100_000, np.int8)})
    parquet.write_table(table, tmp_path / "bomb.parquet", compression="zstd")
    with pytest.raises(UserError, match="decompression bomb"):
        read_embedding_set(tmp_path / "bomb.parquet")
