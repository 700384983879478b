"""CSV files and command lines that are wrong."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tests.eval.malformed import ROWS


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
