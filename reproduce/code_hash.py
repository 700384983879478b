"""Which source files decide a run's outcome, and a hash over them.

The files are found by following the imports of our own packages from the training loop and from
the modules that the configuration names (its loss, backbone and data set). Editing a report's
template or another data set's loader therefore does not make finished runs stale; changing one line
of the loss does.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("common", "datasets", "models", "losses", "eval", "reproduce")


def code_hash(modules: Iterable[str]) -> str:
    """sha256 over the import closure of ``modules`` (dotted names of ours), 64 hex digits."""
    digest = hashlib.sha256()
    for path in source_files(modules):
        digest.update(path.relative_to(ROOT).as_posix().encode())
        digest.update(_without_line_end_style(path))
    return digest.hexdigest()


def source_files(modules: Iterable[str]) -> list[Path]:
    """The files of ours that ``modules`` import, directly or not, themselves included; sorted."""
    found: set[Path] = set()
    queue = [path for name in modules for path in _files_of(name)]
    while queue:
        path = queue.pop()
        if path not in found:
            found.add(path)
            queue.extend(_imported_files(path))
    return sorted(found)


def _without_line_end_style(path: Path) -> bytes:
    return path.read_bytes().replace(b"\r\n", b"\n")


def _imported_files(path: Path) -> tuple[Path, ...]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names.add(node.module)
            # ``from losses import tcm`` may name a module rather than an attribute.
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return tuple(path for name in sorted(names) for path in _files_of(name))


def _files_of(name: str) -> list[Path]:
    """The package files on the way to a dotted name, and the module itself where there is one."""
    parts = name.split(".")
    if parts[0] not in PACKAGES:
        return []
    files = []
    for depth in range(1, len(parts) + 1):
        stem = ROOT.joinpath(*parts[:depth])
        files += [path for path in (stem / "__init__.py", stem.with_suffix(".py")) if path.exists()]
    return files
