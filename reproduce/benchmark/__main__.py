"""``python -m reproduce.benchmark``: all speed benchmarks, one after the other, in one run."""

from __future__ import annotations

import subprocess
import sys

PARTS = ("evaluation", "loss_speed", "loading", "memory")


def main(argv: list[str]) -> int:
    """Runs the named parts, or all; each in a process of its own, so that peaks do not mix."""
    worst = 0
    for name in argv or PARTS:
        print(f"== {name}", flush=True)
        done = subprocess.run([sys.executable, "-m", f"reproduce.benchmark.{name}"], check=False)
        worst = max(worst, done.returncode)
    return worst


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
