"""What TCM costs: training-step time and peak memory with and without it, on identical tensors.

    python -m reproduce.time_complexity --scale demo
    python -m reproduce.time_complexity --scale paper --device cuda

A step is the whole of it: network, loss, backward, update. Both losses get the same images, labels
and initial weights, and run in turn, so that a busy machine slows both; a repeat is the median of a
few steps of each. On one CPU thread the clock is the process's own time, which other processes on
the machine hardly touch. Peak memory is what a fresh process needs for three steps beyond what it
held before (on CUDA: what the allocator reports).
"""

if not __package__:
    raise SystemExit("run this from the repository root as: python -m reproduce.time_complexity")

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from types import SimpleNamespace

import pandas as pd
import torch

from common.errors import UserError, run_cli
from reproduce import optimise, peak, provenance, results, time_results
from reproduce.build import build_loss, build_model, place
from reproduce.config import RunConfig, load
from reproduce.figures import times
from reproduce.results_parser import results_parser
from reproduce.runtime import Runtime, prepare_process
from reproduce.step import TrainingStep
from reproduce.store import SCHEMA_VERSION, config_hash
from reproduce.table import WITH_TCM, loss_name

# ProxyAnchor is the cheapest base loss, on which TCM weighs most; RS@K has the largest batches.
ROWS = {
    "demo": {"ProxyAnchor": "demo/kanji_proxy_anchor", "RS@K": "demo/kanji_recall_at_k"},
    "paper": {
        "ProxyAnchor": "paper/inaturalist_proxy_anchor_resnet50",
        "RS@K": "paper/inaturalist_recall_at_k_resnet50",
    },
}
CHANNELS = {"demo": 1, "paper": 3}
CLASSES = {"demo": 650, "paper": 5690}
BATCHES = {"demo": (64, 128, 256, 512), "paper": (64, 128, 256, 384)}
Step = Callable[[], object]


def main(argv: list[str]) -> int:
    """Measures, writes the CSV and draws the figure."""
    parser = results_parser("time_complexity", __doc__)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--steps", type=int, default=5, help="of each loss in a repeat")
    parser.add_argument("--batches", type=int, nargs="+", help="batch sizes, multiples of 4")
    parser.add_argument("--peak-of", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    device = Runtime(device=options.device).torch_device()
    if options.peak_of:
        row, batch, tcm = options.peak_of
        config = _config(options.scale, row, tcm == "tcm")
        print(_peak_here(config, options.scale, int(batch), device))
        return 0
    batches = options.batches or BATCHES[options.scale]
    if options.repeats < 2 or options.steps < 1 or any(b < 8 or b % 4 for b in batches):
        raise UserError("at least 2 repeats of 1 step, and batches that are multiples of 4 from 8")
    frame = measure(options.scale, batches, options.repeats, options.steps, device)
    path = results.csv_path(time_results.NAME, options.scale, options.results)
    time_results.write(frame, path)
    figure = times.draw(time_results.read(path), path.parent / "figures" / time_results.NAME)
    print(f"wrote {path} and {figure}")
    return 0


def measure(scale: str, batches, repeats: int, steps: int, device: torch.device) -> pd.DataFrame:
    """All lines of the CSV, printed as they are measured."""
    commit, dirty = provenance.commit()
    lines = []
    for row in ROWS[scale]:
        plain, with_tcm = (_config(scale, row, tcm) for tcm in (False, True))
        for batch in batches:
            pair = [_step(config, scale, batch, device) for config in (plain, with_tcm)]
            peaks = [_peak(scale, row, batch, tcm, device) for tcm in ("base", "tcm")]
            for repeat, (base_ms, tcm_ms) in enumerate(_in_turn(pair, repeats, steps, device)):
                lines.append(
                    {
                        "table": time_results.NAME,
                        "row": row,
                        "backbone": plain.model.backbone,
                        "loss": loss_name(plain),
                        "batch_size": batch,
                        "repeat": repeat,
                        "base_ms": base_ms,
                        "tcm_ms": tcm_ms,
                        "base_peak_mb": peaks[0],
                        "tcm_peak_mb": peaks[1],
                        "config_hash": config_hash(plain),
                        "schema_version": SCHEMA_VERSION,
                        "commit": commit,
                        "dirty": dirty,
                        "device": provenance.device_name(device),
                        "threads": torch.get_num_threads(),
                        "versions": provenance.versions(),
                    }
                )
            last = lines[-repeats:]
            ratio = statistics.median(line["tcm_ms"] / line["base_ms"] for line in last)
            base = statistics.median(line["base_ms"] for line in last)
            print(
                f"{row}, batch {batch}: {base:.1f} ms without TCM, {ratio:.3f} times that with, "
                f"peak {peaks[0]:.0f} and {peaks[1]:.0f} MiB",
                flush=True,
            )
    return pd.DataFrame(lines)


def _config(scale: str, row: str, tcm: bool) -> RunConfig:
    """The row's own recipe, whole batches, random weights (the weights do not change the time)."""
    changes = {"train.chunk_size": None, "train.head_only_epochs": 0, "seed": 0}
    if CHANNELS[scale] == 3:
        changes["model.options.pretrained"] = False
    return load(ROWS[scale][row]).with_values({**changes, **(WITH_TCM if tcm else {})})


def _step(config: RunConfig, scale: str, batch: int, device: torch.device) -> Step:
    """A training step on random images, 4 of a class; the same for every loss."""
    prepare_process(config.seed, config.train.threads, deterministic=False)
    channels, size = CHANNELS[scale], config.data.image_size
    images = torch.randint(256, (batch, channels, size, size), dtype=torch.uint8).to(device)
    labels = (torch.arange(batch) // 4 % CLASSES[scale]).to(device)
    pixels = SimpleNamespace(mean=(0.5,) * channels, std=(0.25,) * channels)
    torch.manual_seed(config.seed)
    model = place(build_model(config, pixels, Runtime(device=str(device))), config.train, device)
    torch.manual_seed(config.seed)
    loss = build_loss(config, CLASSES[scale]).to(device)
    optimizer = optimise.optimiser(model, loss, config.train)
    schedule = optimise.scheduler(optimizer, config.train.schedule, 1000, config.train.epochs)
    step = TrainingStep(model, loss, optimizer, schedule, config.train, device, config.seed)
    step.start_epoch(0)
    return lambda: step(images, labels)


def _in_turn(pair: list[Step], repeats: int, steps: int, device: torch.device):
    """(ms, ms) of each repeat: medians of ``steps`` steps of either, alternating."""
    for step in pair:
        for _ in range(2):
            _timed(step, device)
    for repeat in range(repeats):
        seconds: tuple[list[float], list[float]] = ([], [])
        for number in range(steps):
            # Who goes first alternates too: the second finds warmer caches.
            for i in (0, 1) if (repeat + number) % 2 else (1, 0):
                seconds[i].append(_timed(pair[i], device))
        yield tuple(1e3 * statistics.median(of) for of in seconds)


def _timed(step: Step, device: torch.device) -> float:
    one_thread = device.type == "cpu" and torch.get_num_threads() == 1
    clock = time.process_time if one_thread else time.perf_counter
    _wait(device)
    started = clock()
    step()
    _wait(device)
    return clock() - started


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _peak(scale: str, row: str, batch: int, tcm: str, device: torch.device) -> float:
    """MiB of three steps, in a process of their own."""
    command = [sys.executable, "-m", "reproduce.time_complexity", "--scale", scale]
    command += ["--device", str(device), "--peak-of", row, str(batch), tcm]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise UserError(f"{row} at batch {batch} failed ({reason}); give smaller --batches")
    return float(done.stdout.split()[-1])


def _peak_here(config: RunConfig, scale: str, batch: int, device: torch.device) -> float:
    # A tiny batch first: thread pools and libraries that a step loads are not its memory.
    _step(config, scale, 8, device)()
    before = peak.reset(device)
    step = _step(config, scale, batch, device)
    for _ in range(3):
        step()
    return (peak.peak_bytes(device) - before) / 2**20


if __name__ == "__main__":
    raise SystemExit(run_cli(main))
