"""Makes files and command lines that are wrong in every way we could think of, over a thousand."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from pyarrow import parquet
from safetensors.numpy import save as safetensors_bytes

ROWS, DIMENSIONS = 24, 6


def good_arrays(rng: np.random.Generator) -> dict[str, np.ndarray]:
    return {
        "embeddings": rng.normal(size=(ROWS, DIMENSIONS)).astype(np.float32),
        "labels": np.repeat(np.arange(6), 4),
    }


def encode(suffix: str, arrays: dict[str, np.ndarray]) -> bytes:
    """A file of that type as bytes; ``.npy`` holds the embeddings alone."""
    file = io.BytesIO()
    if suffix == ".npz":
        np.savez_compressed(file, **arrays)
    elif suffix == ".npy":
        np.save(file, arrays["embeddings"])
    elif suffix == ".safetensors":
        return safetensors_bytes({name: np.ascontiguousarray(a) for name, a in arrays.items()})
    else:
        columns = {name: a.tolist() for name, a in arrays.items()}
        parquet.write_table(pa.table(columns), file)
    return file.getvalue()


def npy(header: str, body: bytes, version: tuple[int, int] = (1, 0), length=None) -> bytes:
    text = header.encode("latin1") + b"\n"
    size = len(text) if length is None else length
    return (
        b"\x93NUMPY"
        + bytes(version)
        + struct.pack("<H" if version == (1, 0) else "<I", size)
        + (text + body)
    )


def zipped(members: dict[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def as_npy(array: np.ndarray, pickled: bool = False) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, array, allow_pickle=pickled)
    return file.getvalue()


def cut_short(rng) -> Iterator[tuple[str, bytes]]:
    for suffix in (".npz", ".npy", ".safetensors", ".parquet"):
        whole = encode(suffix, good_arrays(rng))
        for length in rng.integers(0, len(whole), size=75):
            yield suffix, whole[:length]


def noise(rng) -> Iterator[tuple[str, bytes]]:
    magics = {".npz": b"PK\x03\x04", ".npy": b"\x93NUMPY\x01\x00", ".parquet": b"PAR1"}
    for suffix in (".npz", ".npy", ".safetensors", ".parquet"):
        for i in range(25):
            start = magics.get(suffix, b"") if i % 2 else b""
            yield suffix, start + rng.bytes(int(rng.integers(1, 600))) + (start if i % 3 else b"")


def lying_headers(rng) -> Iterator[tuple[str, bytes]]:
    body = rng.bytes(ROWS * DIMENSIONS * 4)
    shapes = [
        "(10**9,)",
        "(-1, 6)",
        "(24, -6)",
        "(24,)",
        "()",
        "(0, 6)",
        "(24, 0)",
        "24",
        "'a'",
        "None",
    ]
    shapes += [
        "(24, 6.0)",
        "(24, 6, 0)",
        "(2**70, 6)",
        "(24, 6)*9",
        "[24, 6]",
        "(" * 90,
        "(1,)" * 900,
    ]
    shapes += [f"({10 ** int(e)}, {int(d)})" for e, d in rng.integers(3, 19, size=(60, 2))]
    for shape in shapes:
        yield ".npy", npy(f"{{'descr':'<f4','fortran_order':False,'shape':{shape}}}", body)
        header = f"{{'descr':'<f4','fortran_order':False,'shape':{shape}}}"
        yield ".npz", zipped({"embeddings.npy": npy(header, body), "labels.npy": b""})
    for descr in (
        "'|O'",
        "'<U0'",
        "'<f3'",
        "'<M8[s]'",
        "'|V4'",
        "[('a','<f4')]",
        "('<f4',(2,))",
        "'<c8'",
        "'|b1'",
        "'<U1'",
        "'garbage'",
        "1",
        "None",
        "'f4,f4'",
        "'<f4' * 99",
    ):
        header = f"{{'descr':{descr},'fortran_order':False,'shape':(24, 6)}}"
        yield ".npy", npy(header, body)
        yield ".npy", npy(header, body, (2, 0))
        yield ".npy", npy(header, body, (3, 0))
    good = "{'descr':'<f4','fortran_order':False,'shape':(24, 6)}"
    for length in (0, 1, 65535, *rng.integers(0, 50, size=5)):
        yield ".npy", npy(good, body, length=int(length))
    for length in (2**32 - 1, 2**31):
        yield ".npy", npy(good, body, (2, 0), length=length)
    yield ".npy", npy(" " * 30000 + good, body)
    yield ".npy", npy(good, body + b"more")


def bad_numbers(rng) -> Iterator[tuple[str, bytes]]:
    for suffix in (".npz", ".safetensors", ".parquet"):
        for value in (np.nan, np.inf, -np.inf, 1e38, "zero"):
            for _ in range(8):
                arrays = good_arrays(rng)
                rows = rng.choice(ROWS, size=rng.integers(1, 9), replace=False)
                columns = slice(None) if value == "zero" else rng.integers(DIMENSIONS)
                arrays["embeddings"][rows, columns] = 0 if value == "zero" else value
                yield suffix, encode(suffix, arrays)
