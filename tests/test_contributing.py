"""CONTRIBUTING.md names files, make targets and commands that are there, and stays short."""

import importlib.util
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_it_is_short():
    assert len(TEXT.splitlines()) < 120


def test_named_files_are_there():
    generated = ("runs/", "docs_build/")
    prose = "\n".join(line for line in TEXT.splitlines() if not line.startswith("|"))
    named = set(re.findall(r"`([\w./]+/[\w./]*)`|\]\(([\w./]+)\)", prose))
    paths = {name for pair in named for name in pair if name and not name.startswith(generated)}
    assert len(paths) > 15
    assert [path for path in sorted(paths) if not (ROOT / path).exists()] == []


def test_the_map_says_where_to_begin():
    missing = []
    for row in re.findall(r"^\| `([\w/]+/)` \|[^|]*\|(.*)\|$", TEXT, re.MULTILINE):
        folder, files = row
        missing += [] if (ROOT / folder).is_dir() or folder == "runs/" else [folder]
        for name in re.findall(r"`([\w./]+\.\w+)`", files):
            if not (ROOT / folder / name).exists():
                missing.append(folder + name)
    assert missing == []
    assert set(re.findall(r"^\| `(\w+)/` ", TEXT, re.MULTILINE)) >= {
        *("common", "datasets", "eval", "losses", "models", "reproduce", "notebooks", "tests"),
    }


def test_make_targets_and_commands_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"^make (\w+)", TEXT, re.MULTILINE)
    assert len(targets) == 4
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets)
    modules = set(re.findall(r"python -m ((?:reproduce|eval|datasets)[\w.]*)", TEXT))
    assert {"reproduce.table2", "reproduce.status", "reproduce.check"} <= modules
    assert all(importlib.util.find_spec(module) for module in modules)
