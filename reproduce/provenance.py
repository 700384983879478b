"""What made a number: commit, dirty flag, device, versions, peak memory."""

from __future__ import annotations

import importlib.metadata
import platform
import subprocess
from typing import Any

import torch

from reproduce import peak
from reproduce.code_hash import ROOT

LIBRARIES = ("torch", "torchvision", "timm", "pytorch-metric-learning", "numpy", "numba", "pandas")


def of_process(device: torch.device, threads: int) -> dict[str, Any]:
    """The part of a record that says where and by what a run was made; ``threads`` on the CPU."""
    head, dirty = commit()
    return {
        "peak_memory_mb": round(peak.peak_bytes(device) / 2**20, 1),
        "commit": head,
        "dirty": dirty,
        "device": device_name(device),
        "threads": threads,
        "versions": versions(),
    }


def commit() -> tuple[str, bool | None]:
    """The checked-out commit and whether tracked files outside results/ differ from it.

    ``("unknown", None)`` where this is no git checkout.
    """
    head = _git("rev-parse", "HEAD")
    if head is None:
        return "unknown", None
    changes = _git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!results")
    return head.strip(), bool(changes and changes.strip())


def versions() -> str:
    """Python and the libraries that decide numbers, as ``name==version`` separated by spaces."""
    parts = [f"python=={platform.python_version()}"]
    for name in LIBRARIES:
        try:
            parts.append(f"{name}=={importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            parts.append(f"{name}==missing")
    return " ".join(parts)


def device_name(device: torch.device) -> str:
    """``cuda: NVIDIA H100`` or ``cpu: x86_64``, the processor's model where the system tells."""
    if device.type == "cuda":
        return f"cuda: {torch.cuda.get_device_name(device)}"
    return f"{device.type}: {_processor()}"


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
