"""This machine and its software, for bug reports and for measurements: nothing that is a secret.

Only the facts that are named here are read; the environment is never listed.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
from pathlib import Path
from typing import Any

import faiss
import torch

from reproduce import provenance

GIB = 2**30
# Variables that change speed or threads, and hold numbers or numbers alone.
VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "CUDA_VISIBLE_DEVICES", "CUDA_LAUNCH_BLOCKING")
SHM = Path("/dev/shm")


def facts() -> dict[str, Any]:
    """Plain values: versions, processor, threads, memory, GPUs, faiss; sizes in bytes."""
    commit, dirty = provenance.commit()
    return {
        "commit": commit,
        "dirty": dirty,
        "versions": provenance.versions(),
        "platform": platform.platform(),
        "processor": provenance.device_name(torch.device("cpu")).removeprefix("cpu: "),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
        "torch_threads": torch.get_num_threads(),
        "variables": {name: os.environ[name] for name in VARIABLES if name in os.environ},
        "memory": memory(),
        "shared_memory": shutil.disk_usage(SHM).total if SHM.is_dir() else None,
        "gpus": gpus(),
        "cuda": torch.version.cuda,
        "faiss": faiss_kind(),
    }


def memory() -> dict[str, int | None]:
    """``total`` and ``available`` of the machine, ``limit`` of this process's group, in bytes."""
    found: dict[str, int | None] = {"total": None, "available": None, "limit": None}
    try:
        lines = Path("/proc/meminfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    sizes = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines if "kB" in line}
    found |= {"total": sizes.get("MemTotal"), "available": sizes.get("MemAvailable")}
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        try:
            text = Path("/sys/fs/cgroup", name).read_text(encoding="utf-8").strip()
        except OSError:
            continue
        # No limit is written as a word, or as a number beyond any machine.
        if text.isdecimal() and int(text) < 2**60:
            found["limit"] = int(text)
    return found


def gpus() -> list[dict[str, Any]]:
    """Name, memory and bfloat16 support of each GPU that torch sees."""
    if not torch.cuda.is_available():
        return []
    listed = []
    for number in range(torch.cuda.device_count()):
        free, total = torch.cuda.mem_get_info(number)
        listed.append(
            {
                "name": torch.cuda.get_device_name(number),
                "total": total,
                "free": free,
                "capability": ".".join(map(str, torch.cuda.get_device_capability(number))),
                "bfloat16": torch.cuda.is_bf16_supported(),
            }
        )
    return listed


def faiss_kind() -> str:
    """``faiss-gpu 1.15.1, 0 GPUs seen``: which distribution, and what it can use."""
    names = importlib.metadata.packages_distributions().get("faiss", ["unknown distribution"])
    can = f"{faiss.get_num_gpus()} GPUs seen" if hasattr(faiss, "get_num_gpus") else "CPU only"
    return f"{'/'.join(sorted(set(names)))} {faiss.__version__}, {can}"
