"""Files appear whole or not at all: failures, permissions, full disks, and a killed process."""

import errno
import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from common.atomic import TEMPORARY_PREFIX, atomic_path, write_bytes, write_text
from common.errors import UserError

ROOT = Path(__file__).resolve().parent.parent.parent


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_content_is_written_and_nothing_else_is_left(tmp_path):
    write_bytes(tmp_path / "a.bin", b"\x00\r\n\xff")
    write_text(tmp_path / "b.txt", "α\nβ\n")
    assert (tmp_path / "a.bin").read_bytes() == b"\x00\r\n\xff"
    assert (tmp_path / "b.txt").read_bytes() == "α\nβ\n".encode()
    write_text(str(tmp_path / "b.txt"), "new")
    assert (tmp_path / "b.txt").read_text() == "new"
    assert names(tmp_path) == ["a.bin", "b.txt"]


def test_the_temporary_name_is_beside_the_file_and_keeps_its_suffixes(tmp_path):
    target = tmp_path / "runs" / "deep" / "table.csv.gz"
    with atomic_path(target) as temporary:
        assert temporary.parent == target.parent
        assert temporary.name.startswith(TEMPORARY_PREFIX)
        assert temporary.name.endswith(".csv.gz")
        assert not target.exists()
        temporary.write_bytes(b"1")
    assert names(target.parent) == ["table.csv.gz"]


class MishapError(Exception):
    pass


def write_half(target: Path, error: BaseException) -> None:
    with atomic_path(target) as temporary:
        temporary.write_text("half of the n")
        raise error


@pytest.mark.parametrize(
    "error", [MishapError(), KeyboardInterrupt(), UserError("row 3: no number")]
)
def test_a_failure_while_writing_keeps_the_old_file_and_is_passed_on(tmp_path, error):
    target = tmp_path / "record.json"
    target.write_text("old")
    with pytest.raises(type(error)) as caught:
        write_half(target, error)
    assert caught.value is error
    assert target.read_text() == "old"
    assert names(tmp_path) == ["record.json"]


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_permissions_are_those_of_an_ordinary_new_file(tmp_path, mask, mode):
    target = tmp_path / "a.txt"
    before = os.umask(mask)
    try:
        write_text(target, "x")
        (tmp_path / "ordinary.txt").write_text("x")
        now = os.umask(mask)
    finally:
        os.umask(before)
    assert now == mask
    assert stat.S_IMODE(target.stat().st_mode) == mode
    assert target.stat().st_mode == (tmp_path / "ordinary.txt").stat().st_mode


@pytest.mark.parametrize("function", ["fsync", "replace"])
def test_a_full_disk_is_one_sentence_and_keeps_the_old_file(tmp_path, monkeypatch, function):
    target = tmp_path / "weights.pth"
    target.write_bytes(b"old")

    def full(*_arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, function, full)
    with pytest.raises(UserError) as caught:
        write_bytes(target, b"new")
    assert str(caught.value) == (
        f"cannot write {target} (No space left on device); check free space and permissions, "
        "the previous file (if any) is untouched"
    )
    assert target.read_bytes() == b"old"
    assert names(tmp_path) == ["weights.pth"]


def fill_the_disk(target: Path) -> None:
    # The device takes no byte: what a writer sees of a full disk, at its flush.
    with atomic_path(target) as temporary, open("/dev/full", "wb") as file:
        temporary.write_bytes(b"the first half")
        file.write(b"the second")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_disk_that_fills_up_while_a_library_writes(tmp_path):
    target = tmp_path / "curves.npz"
    with pytest.raises(UserError, match=r"curves\.npz \(No space left on device\)"):
        fill_the_disk(target)
    assert names(tmp_path) == []


@pytest.mark.parametrize("kind", ["a file in the way", "a folder of that name"])
def test_places_that_cannot_be_written_are_named(tmp_path, kind):
    if kind == "a file in the way":
        (tmp_path / "out").write_text("a file")
        target = tmp_path / "out" / "x.txt"
    else:
        target = tmp_path / "x.txt"
        target.mkdir()
        (target / "inside").touch()
    with pytest.raises(UserError, match=r"cannot write .*x\.txt") as caught:
        write_text(target, "x")
    assert "\n" not in str(caught.value)
    assert not [name for name in names(tmp_path) if name.startswith(TEMPORARY_PREFIX)]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root writes anywhere")
def test_a_read_only_folder_is_named(tmp_path):
    tmp_path.chmod(0o555)
    try:
        with pytest.raises(UserError, match="Permission denied"):
            write_text(tmp_path / "x.txt", "x")
    finally:
        tmp_path.chmod(0o755)


def test_readers_never_see_half_a_file(tmp_path):
    target, done, seen = tmp_path / "a.bin", threading.Event(), set()
    versions = [bytes([number]) * 200_000 for number in range(30)]
    write_bytes(target, versions[0])

    def read():
        while not done.is_set():
            seen.add(target.read_bytes())

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for version in versions:
            write_bytes(target, version)
    finally:
        done.set()
        reader.join()
    assert seen
    assert seen <= set(versions)


KILLED = """
import sys
from pathlib import Path
from common.atomic import atomic_path
with atomic_path(Path(sys.argv[1])) as temporary:
    temporary.write_text("half of the n")
    print("writing", flush=True)
    sys.stdin.read()
"""


@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
def test_a_process_killed_while_writing_leaves_the_old_file(tmp_path):
    target = tmp_path / "checkpoint.pt"
    target.write_text("old")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", KILLED, str(target)], cwd=ROOT, **pipes) as child:
        assert child.stdout.readline() == b"writing\n"
        child.send_signal(signal.SIGKILL)
    assert target.read_text() == "old"
    write_text(target, "new")
    assert target.read_text() == "new"
