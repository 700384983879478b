"""Peak memory of this process, or of the GPU's allocator, since a reset."""

from __future__ import annotations

import contextlib
import os
import resource
import sys
from pathlib import Path

import torch


def reset(device: torch.device) -> int:
    """Forgets the peak so far, that of loading the libraries; bytes in use now."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        return torch.cuda.memory_allocated(device)
    # Where this is not allowed the earlier peak counts too, and the result is too large at worst.
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    status = Path("/proc/self/statm")
    if status.exists():
        return int(status.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return peak_bytes(device)


def peak_bytes(device: torch.device) -> int:
    """The peak. Not ru_maxrss on Linux: there a child starts with its parent's peak."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    status = Path("/proc/self/status")
    if status.exists():
        fields = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return 1024 * int(fields["VmHWM"].split()[0])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak
