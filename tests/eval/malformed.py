"""Makes files and command lines that are wrong in every way we could think of, over a thousand."""

from __future__ import annotations

import io
import json
import os
import pickle
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet
from safetensors.numpy import save as safetensors_bytes

ROWS, DIMENSIONS = 24, 6


class Bomb:
    """A pickle that would leave a file behind if anyone ever loaded it."""

    def __init__(self, target: Path):
        self.target = str(target)

    def __reduce__(self):
        return (open, (self.target, "w"))


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


def as_npy(array: np.ndarray, allow_pickle: bool = False) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, array, allow_pickle=allow_pickle)
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
        members[f"{name}.npy"] = as_npy(objects, allow_pickle=True)
        yield ".npz", zipped(members)
        yield ".npz", zipped(members, zipfile.ZIP_STORED)
        members[f"{name}.npy"] = pickle.dumps(array)
        yield ".npz", zipped(members)
    yield ".npy", as_npy(objects, allow_pickle=True)
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


def bad_tables(rng) -> Iterator[bytes]:
    """CSV files of labels for 24 embeddings."""
    whole = "label\n" + "".join(f"c{i}\n" for i in np.repeat(np.arange(6), 4))
    for length in rng.integers(0, len(whole) - 4, size=40):
        yield whole[:length].encode()
    for row in range(1, ROWS + 1):
        lines = whole.splitlines()
        for broken in ("", "a,b", '"', "\x00", '"a"b'):
            yield "\n".join([*lines[:row], broken, *lines[row + 1 :]]).encode() + b"\n"
    yield whole.replace("label", "name").encode()
    yield whole.encode("utf-16")
    yield whole.replace("c", "é").encode("latin1")
    yield ("label,label\n" + "a,b\n" * ROWS).encode()
    yield b"\xef\xbb\xbf"
    yield b"label\n" + b"x" * 10**6


def bad_commands(good: Path, folder: Path) -> Iterator[list[str]]:
    """Command lines that are wrong though the file is good."""
    name, out = str(good), str(folder / "out")
    yield from ([], ["nonsense"], ["report"], ["report", name, "--nonsense"], ["compare", name])
    for path in (
        "missing.npz",
        ".",
        "/dev/zero",
        "/dev/null",
        "a\0b.npz",
        "x" * 300 + ".npz",
        "",
        "\n.npz",
    ):
        for command in ("report", "neighbours", "sensitivity"):
            yield [command, path if path[:1] == "/" else str(folder / path), "--out", out]
    os.mkfifo(folder / "pipe.npz")
    yield ["report", str(folder / "pipe.npz"), "--out", out]
    yield ["report", name, "--labels", str(folder / "missing.csv"), "--out", out]
    for values in ("0 1", "1e-2", "a b", "nan 1e-1", "-1 0.5", "1e-2 2", "1 2 3", "inf 1"):
        yield ["report", name, "--out", out, "--far-range", *values.split()]
    for flag, values in {
        "--epsilon": ("0", "-1", "nan", "0.51", "x", "inf"),
        "--c": ("0", "-1", "nan", "inf", "x"),
        "--distance": ("manhattan", ""),
        "--grid-points": ("0", "-5", "1.5", "x", "1000000000"),
        "--target-far": ("0", "1", "-1", "nan", "2", "x", "1e-30"),
        "--factor": ("1", "0", "nan", "x", "-3"),
        "--ks": ("0", "-1", "x", "", "1,2"),
        "--threads": ("0", "-1", "x"),
        "--memory-mb": ("0", "-1", "nan", "inf", "x"),
    }.items():
        for value in values:
            for command in ("report", "sensitivity")[
                : 1 if flag in ("--target-far", "--factor") else 2
            ]:
                yield [command, name, f"{flag}={value}", "--out", out]
    for value in ("0", "-1", "24", "1000000", "x", "1.5"):
        yield ["neighbours", name, f"--k={value}", "--out", out]
        yield ["neighbours", name, f"--queries={value.replace('24', '25')}", "--out", out]
    (folder / "occupied").write_text("a file, not a folder")
    yield ["report", name, "--out", str(folder / "occupied")]
