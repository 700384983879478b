"""What a benchmark found: printed line by line as it is measured, and kept by name."""

from __future__ import annotations

import json
from pathlib import Path

import torch

from common.atomic import write_text


class Bars:
    """Collects numbers.

    Attributes:
        numbers: by name; seconds for what was timed.
    """

    def __init__(self) -> None:
        self.numbers: dict[str, float] = {"threads": torch.get_num_threads()}

    def timed(self, name: str, seconds: float) -> None:
        """Keeps a time."""
        self.numbers[name] = seconds
        shown = f"{seconds:9.2f} s" if seconds >= 1 else f"{1e3 * seconds:9.1f} ms"
        print(f"{name:52s} {shown}", flush=True)

    def bar(self, name: str, value: float, limit: float, unit: str, at_least: bool = False) -> None:
        """Keeps a number that should be at most (or at least) ``limit``."""
        self.numbers[name] = value
        met = value >= limit if at_least else value <= limit
        bound = f"{'at least' if at_least else 'at most'} {limit:g}{unit}"
        print(
            f"{name:52s} {value:9.3g}{unit:9s} {bound:24s} {'met' if met else 'MISSED'}", flush=True
        )

    def write(self, path: Path | None) -> None:
        """Writes the numbers as JSON, if a path is given."""
        if path is not None:
            write_text(path, json.dumps(self.numbers, indent=2) + "\n")
