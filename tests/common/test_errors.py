"""Exit codes and messages of command lines, in this process and in one of their own."""

import argparse
import subprocess
import sys
from pathlib import Path

import pytest

from common.errors import UserError, run_cli

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.mark.parametrize(("returned", "code"), [(None, 0), (0, 0), (1, 1), (3, 3)])
def test_the_exit_code_is_what_main_returns(returned, code, capsys):
    assert run_cli(lambda argv: returned, []) == code
    output = capsys.readouterr()
    assert output.out == output.err == ""


def test_a_user_error_is_one_line_and_code_2(capsys):
    def main(argv):
        print("a first result")
        raise UserError(f"{argv[0]}: row 3 has no label; add one")

    assert run_cli(main, ["data.csv"]) == 2
    output = capsys.readouterr()
    assert output.err == "error: data.csv: row 3 has no label; add one\n"
    assert output.out == "a first result\n"


def test_interruption_is_code_130(capsys):
    def main(argv):
        raise KeyboardInterrupt

    assert run_cli(main, []) == 130
    assert capsys.readouterr().err == "interrupted\n"


@pytest.mark.parametrize("error", [ValueError("a bug"), RuntimeError("another"), AssertionError()])
def test_bugs_are_not_dressed_up_as_the_users_fault(error, capsys):
    def main(argv):
        raise error

    with pytest.raises(type(error)):
        run_cli(main, [])
    assert capsys.readouterr().err == ""


def test_argparse_keeps_its_own_exit(capsys):
    def main(argv):
        argparse.ArgumentParser().parse_args(argv)

    with pytest.raises(SystemExit) as caught:
        run_cli(main, ["--no-such-option"])
    assert caught.value.code == 2


def test_without_arguments_those_of_the_process_are_taken(monkeypatch):
    seen = []
    monkeypatch.setattr(sys, "argv", ["program", "--far", "1e-3"])
    assert run_cli(seen.extend) == 0
    assert seen == ["--far", "1e-3"]
    # An empty list is a list of no arguments, not a missing one.
    seen.clear()
    assert run_cli(seen.extend, []) == 0
    assert seen == []


SCRIPT = """
import sys
from common.errors import UserError, run_cli

def main(argv):
    if argv[0] == "mend":
        raise UserError("embeddings.npy: no such file; give an existing one")
    if argv[0] == "stop":
        raise KeyboardInterrupt
    return int(argv[0])

sys.exit(run_cli(main))
"""


@pytest.mark.parametrize(
    ("argument", "code", "error"),
    [
        ("mend", 2, "error: embeddings.npy: no such file; give an existing one\n"),
        ("stop", 130, "interrupted\n"),
        ("0", 0, ""),
        ("7", 7, ""),
    ],
)
def test_a_process_ends_with_the_code_and_no_traceback(argument, code, error):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, argument],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (code, "", error)
