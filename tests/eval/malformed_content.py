"""Files that parse, up to a point, and hold what must not be: pickles, bombs, wrong arrays."""

from __future__ import annotations

import io
import json
import pickle
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from tests.eval.malformed import ROWS, as_npy, encode, good_arrays, zipped


class Bomb:
    """A pickle that would leave a file behind if anyone ever loaded it."""

    def __init__(self, target: Path):
        self.target = str(target)

    def __reduce__(self):
        return (open, (self.target, "w"))


def bad_arrays(rng) -> Iterator[tuple[str, bytes]]:
    e, y = good_arrays(rng).values()
    for suffix in (".npz", ".safetensors", ".parquet"):
        for arrays in (
            *({"embeddings": e, "labels": y[:n]} for n in range(1, 24)),
            *({"embeddings": e[:n], "labels": y} for n in range(1, 24)),
            *({"embeddings": e, "labels": np.full(ROWS, n)} for n in range(5)),
            {"embeddings": e}, {"labels": y}, {"other": e},
            {"embeddings": e, "labels": y + 0.5},
            {"embeddings": e, "labels": np.where(y > 2, np.nan, y)},
            {"embeddings": e, "labels": np.arange(ROWS)},
            {"embeddings": e, "labels": np.r_[0, np.arange(ROWS - 1)]},
            {"embeddings": e, "embedding": e, "labels": y},
        ):  # fmt: skip
            if suffix != ".parquet" or len({len(a) for a in arrays.values()}) == 1:
                yield suffix, encode(suffix, arrays)
    for array in (e.astype(str), e > 0, e + 1j, e[0], e[None], e.astype("M8[s]"), e[:0], e[:, :0]):
        yield ".npz", encode(".npz", {"embeddings": array, "labels": y[: len(array)]})
    for labels in (
        y[:, None],
        y.astype("M8[D]"),
        y + 1j,
        np.full(ROWS, ""),
        np.full(ROWS, b"\xff"),
    ):
        yield ".npz", encode(".npz", {"embeddings": e, "labels": labels})
    surrogates = np.full(ROWS, 0xD800 + 7, np.uint32).view("<U1")
    beyond = np.r_[np.full(ROWS - 1, 65), 2**31 + 5].astype(np.uint32).view("<U1")
    for labels in (surrogates, beyond):
        members = {"embeddings.npy": as_npy(e), "labels.npy": as_npy(labels)}
        yield ".npz", zipped(members)


def pickles(rng, marker: Path) -> Iterator[tuple[str, bytes]]:
    e, y = good_arrays(rng).values()
    objects = np.array([Bomb(marker)] * ROWS, dtype=object)
    for name, array in (("embeddings", e), ("labels", y)):
        members = {"embeddings.npy": as_npy(e), "labels.npy": as_npy(y)}
        members[f"{name}.npy"] = as_npy(objects, pickled=True)
        yield ".npz", zipped(members)
        yield ".npz", zipped(members, zipfile.ZIP_STORED)
        members[f"{name}.npy"] = pickle.dumps(array)
        yield ".npz", zipped(members)
    yield ".npy", as_npy(objects, pickled=True)
    for suffix in (".npy", ".npz", ".safetensors", ".parquet", ".pkl", ".pt", ".pth", ".bin", ""):
        for protocol in range(6):
            yield suffix, pickle.dumps(Bomb(marker), protocol)


def bombs(rng) -> Iterator[tuple[str, bytes]]:
    packer = zlib.compressobj(9, wbits=-15)
    zeros = b"".join(packer.compress(bytes(2**20)) for _ in range(100)) + packer.flush()
    for claimed in (2**32 - 2, 2**31, 100 * 2**20, 10, *rng.integers(1e8, 4e9, size=16)):
        yield ".npz", one_member(zeros, int(claimed), 0)
    header = {
        "embeddings": {"dtype": "F32", "shape": [10**9, 512], "data_offsets": [0, 2048 * 10**9]}
    }
    for text in (json.dumps(header), json.dumps(header)[:-3], "[]", "{", "null", '{"a":1}', ""):
        yield ".safetensors", struct.pack("<Q", len(text)) + text.encode() + bytes(64)
    for length in (2**63, 2**64 - 1, 10**8, *rng.integers(2**20, 2**62, size=12)):
        yield ".safetensors", struct.pack("<Q", int(length)) + b"{}"
    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(2**25, np.int32)), ["a" * 50])
    file = io.BytesIO()
    parquet.write_table(pa.table({"embedding": column, "label": column}), file)
    yield ".parquet", file.getvalue()


def one_member(packed: bytes, claimed: int, crc: int) -> bytes:
    """A zip archive, by hand, of one deflated member that claims ``claimed`` bytes."""
    name = b"embeddings.npy"
    fields = (20, 0, 8, 0, 33, crc, len(packed), claimed, len(name), 0)
    local = b"PK\x03\x04" + struct.pack("<HHHHHIIIHH", *fields) + name
    central = b"PK\x01\x02" + struct.pack("<HHHHHHIIIHHHHHII", 20, *fields, 0, 0, 0, 0, 0) + name
    end = struct.pack("<HHHHIIH", 0, 0, 1, 1, len(central), len(local) + len(packed), 0)
    return local + packed + central + b"PK\x05\x06" + end
