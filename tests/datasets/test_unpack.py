"""Archives that mean no good, and archives that are damaged."""

import errno
import io
import os
import stat
import tarfile
import zipfile
from pathlib import Path

import pytest

from common.errors import UserError
from datasets import unpack as unpacking
from datasets.unpack import is_archive, members, unpack


def make_zip(path: Path, files: dict[str, bytes], mode: int = 0) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            archive.writestr(info, content)
    return path


def make_tar(path: Path, files: dict[str, bytes], kind: bytes = tarfile.REGTYPE) -> Path:
    with tarfile.open(path, "w:gz" if path.name.endswith("gz") else "w") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.type = kind
            info.linkname = "/etc/passwd" if kind in (tarfile.SYMTYPE, tarfile.LNKTYPE) else ""
            info.size = len(content) if kind == tarfile.REGTYPE else 0
            archive.addfile(info, io.BytesIO(content))
    return path


FILES = {"set/a.txt": b"one", "set/sub dir/\u00e9.txt": b"two" * 1000, "b.txt": b""}
MAKERS = [(make_zip, "x.zip"), (make_tar, "x.tar"), (make_tar, "x.tar.gz"), (make_tar, "x.tgz")]


@pytest.mark.parametrize(("make", "name"), MAKERS)
def test_everything_comes_out_and_what_was_there_stays(tmp_path, make, name):
    target = tmp_path / "out"
    target.mkdir()
    (target / "mine.txt").write_text("mine")
    archive = make(tmp_path / name, FILES)
    assert is_archive(archive)
    assert unpack(archive, target) == ["b.txt", "set"]
    for inner, content in FILES.items():
        assert (target / inner).read_bytes() == content
    assert sorted(os.listdir(target)) == ["b.txt", "mine.txt", "set"]


@pytest.mark.parametrize(("make", "name"), MAKERS)
@pytest.mark.parametrize(
    "member", ["../evil.txt", "a/../../evil.txt", "/evil.txt", "..\\evil.txt", "C:\\evil.txt"]
)
def test_paths_that_lead_out_are_refused_and_nothing_is_left(tmp_path, make, name, member):
    archive = make(tmp_path / name, {"good.txt": b"1", member: b"2"})
    with pytest.raises(UserError, match="a path that leads out of its folder"):
        unpack(archive, tmp_path / "in" / "out")
    assert os.listdir(tmp_path / "in" / "out") == []
    assert not list(tmp_path.rglob("*evil*"))


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_in_tar_files(tmp_path, kind):
    archive = make_tar(tmp_path / "x.tar", {"link": b""}, kind)
    with pytest.raises(UserError, match="'link', a link or device"):
        unpack(archive, tmp_path / "out")


def test_links_in_zip_files(tmp_path):
    archive = make_zip(tmp_path / "x.zip", {"link": b"/etc/passwd"}, stat.S_IFLNK | 0o777)
    with pytest.raises(UserError, match="'link', a link or device"):
        unpack(archive, tmp_path / "out")


@pytest.mark.parametrize(("make", "name"), MAKERS)
def test_limits_of_size_and_number(tmp_path, make, name):
    archive = make(tmp_path / name, {"a": b"x" * 600, "b": b"x" * 600})
    with pytest.raises(UserError, match="unpacks to more than"):
        unpack(archive, tmp_path / "out", max_bytes=1000)
    assert os.listdir(tmp_path / "out") == []
    with pytest.raises(UserError, match=r"more than .* 1 files"):
        list(members(archive, max_members=1))


@pytest.mark.parametrize(("make", "name"), MAKERS)
def test_archives_cut_short(tmp_path, make, name):
    archive = make(tmp_path / name, {f"{i}.bin": os.urandom(30_000) for i in range(3)})
    archive.write_bytes(archive.read_bytes()[:40_000])
    with pytest.raises(UserError, match=r"is damaged or cut short .* run prepare again"):
        unpack(archive, tmp_path / "out")
    assert os.listdir(tmp_path / "out") == []


def test_changed_bytes_in_a_zip(tmp_path):
    archive = make_zip(tmp_path / "x.zip", {"a.bin": b"y" * 1000})
    data = bytearray(archive.read_bytes())
    data[500] ^= 1
    archive.write_bytes(bytes(data))
    with pytest.raises(UserError, match="is damaged"):
        unpack(archive, tmp_path / "out")


def test_one_name_twice(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("a", "1")
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("a", "2")
    with pytest.raises(UserError, match="holds a twice, or in two spellings"):
        unpack(tmp_path / "x.zip", tmp_path / "out")


def test_names_that_are_taken(tmp_path):
    archive = make_zip(tmp_path / "x.zip", {"a": b"1"})
    unpack(archive, tmp_path / "out")
    with pytest.raises(UserError, match="is there already"):
        unpack(archive, tmp_path / "out")


@pytest.mark.parametrize(
    ("number", "words"),
    [(errno.ENOSPC, "No space left on device"), (errno.EROFS, "Read-only file system")],
)
def test_a_disk_that_does_not_take_it(tmp_path, monkeypatch, number, words):
    def refuse(*_, **__):
        raise OSError(number, os.strerror(number))

    archive = make_zip(tmp_path / "x.zip", {"a": b"1"})
    monkeypatch.setattr(unpacking.shutil, "copyfileobj", refuse)
    with pytest.raises(UserError, match=f"cannot unpack .*{words}"):
        unpack(archive, tmp_path / "out")
    assert os.listdir(tmp_path / "out") == []


def test_a_stream_of_a_tar_file(tmp_path):
    archive = make_tar(tmp_path / "x.tar.gz", FILES)
    with archive.open("rb") as stream:
        found = {member.name: member.file.read() for member in members(stream, "a stream")}
    assert found == FILES


def test_a_file_that_is_no_archive(tmp_path):
    (tmp_path / "x.zip").write_bytes(b"<html>not found</html>" * 100)
    with pytest.raises(UserError, match=r"x\.zip is damaged"):
        unpack(tmp_path / "x.zip", tmp_path / "out")
