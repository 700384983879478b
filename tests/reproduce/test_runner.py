"""Many runs at once: shared ones once, locked ones last, and every way of being stopped."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import filelock
import pytest

from common.errors import UserError
from reproduce.runner import run_all
from reproduce.runtime import Runtime
from reproduce.table import Planned
from reproduce.workers import Workers
from tests.reproduce import tiny
from tests.reproduce.dying import die

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 300


def planned(*configs) -> list[Planned]:
    return [Planned(tiny.ROWS[0], config) for config in configs]


def runtime(folder: Path) -> Runtime:
    return Runtime(runs=folder / "runs", progress=False)


def start(folder: Path, *options: str) -> subprocess.Popen:
    command = [sys.executable, "-m", "tests.reproduce.tiny", *options, *tiny.arguments(folder)]
    # A group of its own: signals of a terminal go to a whole group.
    return subprocess.Popen(
        command,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def until(what, process: subprocess.Popen | None = None) -> None:
    deadline = time.monotonic() + PATIENCE
    while not what():
        assert process is None or process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def group(leader: int) -> list[int]:
    """Living processes of a group, zombies left out."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == leader and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


def test_runs_that_are_the_same_are_trained_once(tmp_path, monkeypatch):
    import reproduce.runner as runner

    calls = []
    execute = runner.execute
    monkeypatch.setattr(runner, "execute", lambda *a, **k: calls.append(1) or execute(*a, **k))
    one, other = tiny.config(), tiny.config(seed=1)
    records = run_all(planned(one, other, one), runtime(tmp_path))
    assert len(calls) == 2
    assert records[0] == records[2] != records[1]


def test_a_run_that_another_process_is_at_comes_last(tmp_path):
    first, second = tiny.config(), tiny.config(seed=1)
    folders = [tiny.folder_of(run, tmp_path / "runs") for run in (first, second)]
    folders[0].start()
    lock = filelock.FileLock(folders[0].lock, thread_local=False)
    lock.acquire()
    order = []

    def release_after_the_other() -> None:
        until(lambda: folders[1].record() is not None)
        order.append(folders[0].record() is None)
        lock.release()

    thread = threading.Thread(target=release_after_the_other)
    thread.start()
    records = run_all(planned(first, second), runtime(tmp_path))
    thread.join()
    assert order == [True]
    assert [record["reused"] for record in records] == [False, False]


def test_the_lock_of_a_killed_process_is_none(tmp_path):
    folder = tiny.folder_of(tiny.config(), tmp_path)
    folder.start()
    assert not folder.is_locked()
    code = "import filelock, sys, time; lock = filelock.FileLock(sys.argv[1]); lock.acquire(); "
    holder = subprocess.Popen(
        [sys.executable, "-c", f"{code}print(flush=True); time.sleep(600)", str(folder.lock)],
        stdout=subprocess.PIPE,
    )
    holder.stdout.readline()
    assert folder.is_locked()
    holder.kill()
    holder.communicate()
    assert folder.lock.exists()
    assert not folder.is_locked()


def test_two_tables_at_once_share_the_work(tmp_path):
    both = [start(tmp_path, "--jobs", "1", "--seeds", "2") for _ in range(2)]
    outputs = [process.communicate(timeout=PATIENCE) for process in both]
    assert [process.returncode for process in both] == [0, 0], outputs
    trained = [int(out.split(" runs trained")[0].split()[-1]) for out, _ in outputs]
    assert sum(trained) == 4
    assert len(list((tmp_path / "runs").glob("*/record.json"))) == 4


@pytest.fixture
def started():
    """Processes whose groups are killed after the test, however it ends."""
    processes: list[subprocess.Popen] = []
    yield processes
    for process in processes:
        for member in group(process.pid):
            os.kill(member, signal.SIGKILL)
        process.communicate()


def endless_table(folder: Path, started: list[subprocess.Popen]) -> subprocess.Popen:
    """A table with two busy workers, of which each has written a checkpoint."""
    process = start(folder, "--endless", "--jobs", "2")
    started.append(process)
    until(lambda: len(list((folder / "runs").glob("*/checkpoint.pt"))) == 2, process)
    return process


def test_workers_of_a_killed_table_stop_with_their_checkpoints(tmp_path, started):
    process = endless_table(tmp_path, started)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("runs/*/checkpoint.pt")}
    process.kill()
    process.wait()
    until(lambda: not group(process.pid))
    assert all(path.stat().st_mtime_ns >= written for path, written in before.items())
    logs = [path.read_text() for path in tmp_path.glob("runs/*/log.txt")]
    assert all("stopped by SIGTERM" in log for log in logs)
    assert not list(tmp_path.rglob(".tmp-*"))


@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.soak)]
)
def test_a_stopped_table_stops_its_workers_and_says_one_sentence(tmp_path, started, number):
    process = endless_table(tmp_path, started)
    if number == signal.SIGINT:
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    _, error = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2
    assert error.startswith(f"error: stopped by {'Ctrl-C' if number == signal.SIGINT else 'SIGT'}")
    assert len(error.splitlines()) == 1
    until(lambda: not group(process.pid))
    assert len(list(tmp_path.glob("runs/*/checkpoint.pt"))) == 2


def test_a_worker_that_dies_is_an_error_with_its_cause_and_the_others_go_on():
    with Workers(die, 1) as workers:
        outcomes = {}
        for item in ("killed", "fine", "exit"):
            workers.submit(item)
            outcomes |= dict(workers.outcomes())
    assert outcomes["fine"] == "fine"
    assert isinstance(outcomes["killed"], UserError)
    assert "want of memory" in str(outcomes["killed"])
    assert "exit code 3" in str(outcomes["exit"])
