"""Over a thousand malformed inputs: one line on stderr and exit code 2 each, no traceback."""

from __future__ import annotations

import contextlib
import io
import itertools
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from common.errors import UserError, run_cli
from eval.cli import main
from eval.readers import read_embedding_set
from tests.eval import malformed, malformed_commands, malformed_content

ROOT = Path(__file__).parents[2]
SECONDS_PER_INPUT = 60  # far above what any takes: a hang fails, a slow machine does not


@pytest.fixture(scope="module")
def good(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("good") / "good.npz"
    path.write_bytes(malformed.encode(".npz", malformed.good_arrays(np.random.default_rng(9))))
    return path


def command_lines(folder: Path, good: Path) -> Iterator[list[str]]:
    """Writes the malformed files and gives the command lines that read them."""
    rng = np.random.default_rng(0)
    files = itertools.chain(
        malformed.cut_short(rng),
        malformed.noise(rng),
        malformed.lying_headers(rng),
        malformed.bad_numbers(rng),
        malformed_content.bad_arrays(rng),
        malformed_content.pickles(rng, folder / "marker"),
        malformed_content.bombs(rng),
    )
    out = ["--out", str(folder / "out")]
    labels = folder / "labels.csv"
    labels.write_text("label\n" + "".join(f"{i // 4}\n" for i in range(24)))
    for number, (suffix, content) in enumerate(files):
        path = folder / f"{number}{suffix}"
        path.write_bytes(content)
        extra = ["--labels", str(labels)] if suffix == ".npy" else []
        yield ["report", str(path), *extra, *out]
    embeddings = folder / "embeddings.npy"
    embeddings.write_bytes(malformed.encode(".npy", malformed.good_arrays(rng)))
    for number, content in enumerate(malformed_commands.bad_tables(rng)):
        path = folder / f"{number}.csv"
        path.write_bytes(content)
        yield ["report", str(embeddings), "--labels", str(path), *out]
    yield from malformed_commands.bad_commands(good, folder)


@contextlib.contextmanager
def alarm(seconds: int) -> Iterator[None]:
    def give_up(*_):
        raise TimeoutError(f"still running after {seconds} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def fault_of(argv: list[str]) -> str:
    """What is wrong with the answer to ``argv``; empty if it is one line and exit code 2."""
    out, err = io.StringIO(), io.StringIO()
    try:
        with (
            alarm(SECONDS_PER_INPUT),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            code = run_cli(main, argv)
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    return judge(code, out.getvalue(), err.getvalue())


def judge(code: int, out: str, err: str) -> str:
    one_line = err.startswith("error: ") and err.count("\n") == 1 and err.endswith("\n")
    return "" if code == 2 and one_line and not out else f"exit code {code}, {out!r}, {err!r}"


def test_every_malformed_input_gives_one_line_and_code_2(tmp_path, good):
    faults, count = [], 0
    for argv in command_lines(tmp_path, good):
        count += 1
        fault = fault_of(argv)
        if fault:
            faults.append(f"{argv}: {fault}")
    assert count >= 1000
    assert not faults, f"{len(faults)} of {count}:\n" + "\n".join(faults[:20])
    assert not (tmp_path / "marker").exists(), "a pickle was loaded"


@pytest.mark.parametrize("suffix", [".npz", ".npy", ".safetensors", ".parquet"])
def test_flipped_bytes_are_read_or_refused(tmp_path, suffix):
    """A flipped byte may leave a file that is fine; what it may not leave is a traceback."""
    rng = np.random.default_rng(1)
    whole = np.frombuffer(malformed.encode(suffix, malformed.good_arrays(rng)), np.uint8)
    labels = tmp_path / "labels.npy"
    np.save(labels, np.repeat(np.arange(6), 4))
    path = tmp_path / f"flipped{suffix}"
    outcomes = set()
    for _ in range(400):
        damaged = whole.copy()
        damaged[rng.integers(len(whole), size=rng.integers(1, 4))] ^= np.uint8(rng.integers(1, 256))
        path.write_bytes(damaged.tobytes())
        try:
            with alarm(SECONDS_PER_INPUT):
                read_embedding_set(path, labels if suffix == ".npy" else None)
            outcomes.add("read")
        except UserError as error:
            outcomes.add("refused" if "\n" not in str(error) else f"two lines: {error}")
    assert outcomes <= {"read", "refused"}
    assert "refused" in outcomes


def test_the_good_file_is_good(tmp_path, good):
    """Else the command lines above would fail for another reason than the one meant."""
    assert (
        run_cli(main, ["neighbours", str(good), "--k", "3", "--out", str(tmp_path / "n.csv")]) == 0
    )


@pytest.mark.parametrize("count", [4, pytest.param(20, marks=pytest.mark.soak)])
def test_as_real_commands(tmp_path, good, count):
    """Spread over all kinds. Each costs the seconds that importing torch takes."""
    chosen = list(command_lines(tmp_path, good))
    chosen = chosen[:: len(chosen) // count][:count]
    assert len(chosen) == count
    for two in zip(chosen[::2], chosen[1::2], strict=True):
        running = [
            subprocess.Popen(
                [sys.executable, "-m", "eval", *(part.replace("\0", "") for part in argv)],
                cwd=ROOT,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for argv in two
        ]
        for process, argv in zip(running, two, strict=True):
            out, err = process.communicate(timeout=2 * SECONDS_PER_INPUT)
            assert not judge(process.returncode, out, err), argv
