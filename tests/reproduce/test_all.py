"""All tables at once: shared runs once, a table's output each, then the commands that follow."""

import importlib

import pytest

import reproduce.all as everything
from common.errors import run_cli
from reproduce import results
from reproduce.commands import Command, commands
from reproduce.table import Table
from tests.reproduce import tiny

OTHER = Table("other", "Shares a run", {"demo": tiny.ROWS[:1]}, {"demo": 2})
FOLLOWING = "tests.reproduce.following"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """One run store for all tests here, which train the same runs."""
    return tmp_path_factory.mktemp("runs")


@pytest.fixture
def two_tables(monkeypatch):
    monkeypatch.setattr(everything, "TABLES", {"tiny": tiny.TABLE, "other": OTHER})
    others = (
        Command("apart", "is not run", FOLLOWING),
        Command("measured", "writes a CSV", FOLLOWING, ("device",), measures=True),
        Command("drawn", "reads results", FOLLOWING, ("scale", "results", "runs")),
    )
    monkeypatch.setattr(everything, "OTHERS", others)


def test_shared_runs_are_trained_once_and_commands_follow(tmp_path, runs, two_tables, capsys):
    options = [*tiny.arguments(tmp_path), "--runs", str(runs), "--jobs", "1", "--device", "cpu"]
    assert run_cli(everything.main, options) == 0
    said = capsys.readouterr().out
    assert "all tables at demo scale: 4 runs" in said
    assert len(list(runs.glob("*/record.json"))) == 3
    for name, rows in (("tiny", 2), ("other", 2)):
        frame = results.read(results.csv_path(name, "demo", tmp_path / "results"))
        assert len(frame) == rows
        assert set(frame["table"]) == {name}
    assert "given --device=cpu" in said
    folders = f"--results={tmp_path / 'results'} --runs={runs}"
    assert f"given --scale=demo {folders}" in said
    assert said.count("given") == 2
    # What was measured is not measured again; finished runs are not trained again.
    (tmp_path / "results" / "demo" / "measured.csv").write_text("")
    assert run_cli(everything.main, options) == 0
    said = capsys.readouterr().out
    assert "0 runs trained, 4 reused" in said
    assert "measured.csv is there" in said
    assert said.count("given") == 1


def test_a_command_that_fails_is_named_and_the_others_go_on(tmp_path, runs, two_tables, capsys):
    options = ["--runs", str(runs), "--results", str(tmp_path / "refused"), "--quiet"]
    options += ["--jobs", "1", "--device", "cpu"]
    assert run_cli(everything.main, options) == 2
    printed = capsys.readouterr()
    assert printed.err == "error: 1 of the commands failed: drawn (refused)\n"


def test_every_command_has_a_module_with_a_main():
    for command in commands().values():
        assert callable(importlib.import_module(command.module).main), command.name
        assert command.help
        assert "\n" not in command.help
