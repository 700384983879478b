"""The repository's own rules: whose package wins, which way imports point, how scripts start."""

import ast
import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("common", "datasets", "models", "losses", "eval", "reproduce")
ALLOWED = {
    "common": {"common"},
    "datasets": {"common", "datasets"},
    "models": {"common", "models"},
    "losses": {"common", "losses"},
    "eval": {"common", "eval"},
    "reproduce": set(PACKAGES),
}
SOURCES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
SCRIPTS = ("table2", "check", "report", "pareto", "utility", "margins", "latex", "time_complexity")


def imported(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names.add(node.module.split(".")[0])
    return names


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_imports_point_one_way_and_files_are_small(path):
    package = path.relative_to(ROOT).parts[0]
    ours = imported(path) & {*PACKAGES, "tests"}
    assert ours <= ALLOWED[package]
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 250


def where(name: str) -> str:
    return __import__(name).__file__


def other_packages(folder: Path) -> dict[str, str]:
    """An environment in which packages of the same names are installed."""
    for name in PACKAGES:
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text("raise ImportError('not ours')")
    return {**os.environ, "PYTHONPATH": str(folder)}


CHILD = """
import multiprocessing, torch
import common, datasets, eval, losses, models, reproduce

class Where(torch.utils.data.Dataset):
    def __len__(self): return 1
    def __getitem__(self, i):
        import datasets
        return datasets.__file__

if __name__ == "__main__":
    for module in (common, datasets, eval, losses, models, reproduce):
        print(module.__file__)
    context = multiprocessing.get_context("spawn")
    loader = torch.utils.data.DataLoader(Where(), num_workers=1, multiprocessing_context=context)
    print(next(iter(loader))[0])
"""


def test_ours_win_over_installed_packages_of_the_same_name(tmp_path):
    environment = other_packages(tmp_path)
    # As `python -m` does, the root comes first; in spawned loader workers as well.
    script = tmp_path / "child.py"
    script.write_text(f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{CHILD}")
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    files = [Path(line) for line in done.stdout.splitlines()]
    assert len(files) == len(PACKAGES) + 1
    assert all(file.is_relative_to(ROOT) for file in files)


def test_ours_win_in_spawned_processes_of_a_test():
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert Path(pool.apply(where, ("datasets",))).is_relative_to(ROOT)


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_run_as_a_file_says_how_to_run_it(name, tmp_path):
    done = subprocess.run(
        [sys.executable, str(ROOT / "reproduce" / f"{name}.py")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode != 0
    assert done.stderr.strip() == (
        f"run this from the repository root as: python -m reproduce.{name}"
    )


@pytest.mark.parametrize("command", [["reproduce.table2"], ["reproduce", "table2"]])
def test_both_spellings_of_a_command_are_the_same(command):
    done = subprocess.run(
        [sys.executable, "-m", *command, "--help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "usage: python -m reproduce.table2" in done.stdout
