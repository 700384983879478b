"""``--weights [BACKBONE=]FILE``: initial weights for the runs of a table with several backbones."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path

from reproduce.runtime import Runtime


@dataclass(frozen=True)
class TableRuntime(Runtime):
    """The runtime of many runs.

    Attributes:
        weights_of: files for single backbones, by name; ``weights`` is for all others.
    """

    weights_of: Mapping[str, Path] = field(default_factory=dict)

    def absolute(self) -> TableRuntime:
        """The same where the working folder is another."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        for name in ("data_root", "runs", "weights", "tensorboard"):
            values[name] = values[name] and Path(values[name]).absolute()
        values["weights_of"] = {name: path.absolute() for name, path in self.weights_of.items()}
        return TableRuntime(**values)


def add(parser: argparse.ArgumentParser) -> None:
    """Adds the option."""
    parser.add_argument(
        "--weights",
        action="append",
        default=[],
        metavar="[BACKBONE=]FILE",
        help="the backbone's pretrained weights; may be given for each backbone of a table",
    )


def parse(texts: Sequence[str], backbones: Iterable[str]) -> tuple[Path | None, dict[str, Path]]:
    """(file for all other backbones or None, file by backbone).

    A text is taken for BACKBONE=FILE where its first part is one of ``backbones``, else for a path;
    the last one counts.
    """
    known, default, chosen = set(backbones), None, {}
    for text in texts:
        name, separator, rest = text.partition("=")
        if separator and name in known:
            chosen[name] = Path(rest)
        else:
            default = Path(text)
    return default, chosen


def of_backbone(runtime: Runtime, backbone: str) -> Runtime:
    """The runtime of a run with this backbone."""
    values = {item.name: getattr(runtime, item.name) for item in fields(Runtime)}
    chosen = getattr(runtime, "weights_of", {})
    return Runtime(**values | {"weights": chosen.get(backbone, runtime.weights)})
