"""Time and memory of the losses: ``python -m reproduce.benchmark.loss_speed``.

Two to three minutes on 2 cores, of which the networks take most (``--skip-networks``). Times are
medians; two cases that are compared run in turn, so that a busy machine slows both. Peak memory is
what a fresh process needs beyond its inputs (on CUDA: what the allocator reports).
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path

import torch

from common.errors import UserError, run_cli
from reproduce import peak
from reproduce.benchmark.bars import Bars
from reproduce.benchmark.loss_cases import CASES, Step

MATRIX_BYTES = 4 * 4000 * 4000


def main(argv: list[str]) -> int:
    """Measures, prints a line for each bar, and writes JSON where asked."""
    parser = argparse.ArgumentParser(
        prog="python -m reproduce.benchmark.loss_speed", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--json", type=Path, help="write the numbers to this file as well")
    parser.add_argument("--skip-networks", action="store_true", help="leave out the training steps")
    parser.add_argument("--peak-of", metavar="CASE:COUNT", help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.device == "cuda" and not torch.cuda.is_available():
        raise UserError("--device cuda: torch finds no CUDA device here; leave the option out")
    if arguments.peak_of:
        print(_peak_here(*_case_and_count(arguments.peak_of), arguments.device))
        return 0
    measure(arguments.device, networks=not arguments.skip_networks).write(arguments.json)
    return 0


def measure(device: str, networks: bool = True) -> Bars:
    """All numbers."""
    found = Bars()
    bar, timed = found.bar, found.timed
    a, b = _in_turn("tcm", "similarity_matrix", device, rounds=7)
    timed("TCM, 4000 x 512", a)
    timed("similarity matrix, 4000 x 512", b)
    bar("TCM over the similarity matrix, time", a / b, 2, "x")
    bar("TCM, peak in 4000 x 4000 float32", _peak("tcm:4000", device) / MATRIX_BYTES, 6, "")
    a, b = _in_turn("tcm", "library_tcm", device, rounds=5, count=400)
    timed("TCM, batch 400", a)
    timed("pytorch-metric-learning's TCM, batch 400", b)
    bar("its time over ours", b / a, 30, "x", at_least=True)
    ours, theirs = _peak("tcm:400", device), _peak("library_tcm:400", device)
    bar("our peak over its", ours / theirs, 0.1, "x")
    a, b = _in_turn("recall_at_k", "recall_at_k_by_query", device, rounds=1)
    timed("RS@K, 4000 x 512, 4 of a class", a)
    timed("RS@K by a loop over queries", b)
    bar("its time over ours (RS@K)", b / a, 3, "x", at_least=True)
    bar("RS@K, peak", _peak("recall_at_k:4000", device) / 1e9, 3, " GB")
    a, b = _in_turn("hier", "hier_by_anchor", device, rounds=3)
    timed("HIER, batch 180, 384-d, 512 proxies", a)
    timed("HIER by a loop over anchors", b)
    bar("its time over ours (HIER)", b / a, 5, "x", at_least=True)
    if networks:
        a, b = _in_turn("vit_with_hier", "vit_with_base", device, rounds=3)
        timed("ViT-S/16 step with HIER, batch 32", a)
        timed("ViT-S/16 step with hyperbolic ProxyAnchor", b)
        bar("HIER over its base, whole step", a / b, 1.5, "x")
        a, b = _in_turn("tcm", "resnet_with_base", device, rounds=2, count=64)
        timed("ResNet-50 step, 224 px, batch 64", b)
        bar("TCM's share of that step", 100 * a / b, 3, " %")
    return found


def _in_turn(first: str, second: str, device: str, rounds: int, count: int | None = None):
    """Median seconds of two cases, run alternately after one warm-up each (none for one round)."""
    size = {} if count is None else {"count": count}
    steps: list[Step] = [CASES[name](device, **size) for name in (first, second)]
    times: tuple[list[float], list[float]] = ([], [])
    for number in range(rounds + (rounds > 1)):
        for step, seconds in zip(steps, times, strict=True):
            _wait(device)
            started = time.perf_counter()
            step()
            _wait(device)
            if number or rounds == 1:
                seconds.append(time.perf_counter() - started)
    return statistics.median(times[0]), statistics.median(times[1])


def _wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def _peak(case: str, device: str) -> float:
    """Bytes that ``case`` ("name:count") needs beyond its inputs, measured in a fresh process."""
    command = [sys.executable, "-m", "reproduce.benchmark.loss_speed", "--peak-of", case]
    done = subprocess.run(
        [*command, "--device", device], capture_output=True, text=True, check=True
    )
    return float(done.stdout.split()[-1])


def _peak_here(name: str, count: int, device: str) -> int:
    step = CASES[name](device, count=count)
    # A tiny batch first: thread pools and libraries that the step loads are not its memory.
    CASES[name](device, count=16)()
    before = peak.reset(torch.device(device))
    step()
    return max(0, peak.peak_bytes(torch.device(device)) - before)


def _case_and_count(text: str) -> tuple[str, int]:
    name, _, count = text.partition(":")
    return name, int(count)


if __name__ == "__main__":
    sys.exit(run_cli(main))
