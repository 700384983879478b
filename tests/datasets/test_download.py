"""Downloads from a server that drops connections, refuses, and lies about lengths."""

import errno
import hashlib
import os
from pathlib import Path

import pytest

from common.errors import UserError
from datasets import download
from datasets.catalogue import Download
from datasets.download import fetch
from datasets.http_reader import MirrorError, ResumingReader
from tests.datasets.flaky_server import Flaky, serve

CONTENT = bytes(range(256)) * 4000
MD5 = hashlib.md5(CONTENT).hexdigest()


def item(*urls, md5=MD5):
    return Download("a.zip", tuple(urls), md5, manual="look in the attic")


def fetch_one(tmp_path, *urls, md5=MD5):
    return fetch(item(*urls, md5=md5), tmp_path, pause=0)


def test_a_plain_download(tmp_path):
    with serve(file=Flaky(CONTENT)) as base:
        path = fetch_one(tmp_path, f"{base}/file")
    assert path == tmp_path / "a.zip"
    assert path.read_bytes() == CONTENT
    assert os.listdir(tmp_path) == ["a.zip"]


def test_dropped_connections_are_taken_up_where_they_broke(tmp_path):
    flaky = Flaky(CONTENT, drop_after=[1000, 5000, 200_000])
    with serve(file=flaky) as base:
        path = fetch_one(tmp_path, f"{base}/file")
    assert path.read_bytes() == CONTENT
    assert flaky.requests == ["", "bytes=1000-", "bytes=6000-", "bytes=206000-"]


def test_a_server_without_ranges_is_read_over(tmp_path):
    flaky = Flaky(CONTENT, drop_after=[100_000], ranges=False)
    with serve(file=flaky) as base:
        assert fetch_one(tmp_path, f"{base}/file").read_bytes() == CONTENT


def test_an_interrupted_download_goes_on_in_the_next_run(tmp_path):
    flaky = Flaky(CONTENT, drop_after=[30_000, 0, 0, 0, 0])
    with serve(file=flaky) as base:
        with pytest.raises(UserError, match=r"it sent 30,000|broke off"):
            fetch_one(tmp_path, f"{base}/file")
        assert not (tmp_path / "a.zip").exists()
        flaky.requests.clear()
        assert fetch_one(tmp_path, f"{base}/file").read_bytes() == CONTENT
    assert flaky.requests == ["bytes=30000-"]


def test_a_part_that_is_complete_already(tmp_path):
    flaky = Flaky(CONTENT)
    with serve(file=flaky) as base:
        url = f"{base}/file"
        fetch_one(tmp_path, url)
        os.rename(tmp_path / "a.zip", download.part_path(item(url), url, tmp_path))
        assert fetch_one(tmp_path, url).read_bytes() == CONTENT
    assert flaky.requests[1:] == [f"bytes={len(CONTENT)}-"]


def test_a_part_longer_than_the_file_is_dropped(tmp_path):
    with serve(file=Flaky(CONTENT)) as base:
        url = f"{base}/file"
        download.part_path(item(url), url, tmp_path).write_bytes(CONTENT + b"x")
        with pytest.raises(UserError, match="shorter than what is here"):
            fetch_one(tmp_path, url)
        assert fetch_one(tmp_path, url).read_bytes() == CONTENT


def test_503_is_tried_again_and_404_is_not(tmp_path):
    busy, gone = Flaky(CONTENT, statuses=[503, 503]), Flaky(CONTENT, statuses=[404])
    with serve(busy=busy, gone=gone) as base:
        assert fetch_one(tmp_path, f"{base}/gone", f"{base}/busy").read_bytes() == CONTENT
    assert len(gone.requests) == 1
    assert len(busy.requests) == 3


def test_when_every_mirror_fails_each_reason_is_said_and_what_to_do(tmp_path):
    with (
        serve(busy=Flaky(b"", statuses=[503] * 9), page=Flaky(b"<p>", html=True)) as base,
        pytest.raises(UserError) as caught,
    ):
        fetch_one(tmp_path, f"{base}/none", f"{base}/busy", f"{base}/page")
    message = str(caught.value)
    assert "/none: it answered 404 Not Found" in message
    assert "/busy: it answered 503 Service Unavailable (5 attempts)" in message
    assert "/page: it answered with a web page instead of the file" in message
    assert f"by hand: look in the attic, put it into {tmp_path}, and run prepare" in message
    assert "\n" not in message
    assert os.listdir(tmp_path) == []


def test_no_server_at_all(tmp_path):
    with pytest.raises(UserError, match=r"no connection \(5 attempts\)"):
        fetch_one(tmp_path, "http://127.0.0.1:9/a.zip")
    with pytest.raises(UserError, match="no server offers it"):
        fetch_one(tmp_path)


def test_more_bytes_promised_than_there_are(tmp_path):
    with serve(file=Flaky(CONTENT, extra_length=10)) as base:
        # Asked for the rest, the server admits that there is none; the checksum agrees.
        assert fetch_one(tmp_path, f"{base}/file").read_bytes() == CONTENT
    (tmp_path / "a.zip").unlink()
    with (
        serve(file=Flaky(CONTENT, extra_length=10, ranges=False)) as base,
        pytest.raises(UserError, match=r"broke off \(5 attempts\)"),
    ):
        fetch_one(tmp_path, f"{base}/file")
    assert not (tmp_path / "a.zip").exists()


def test_fewer_bytes_promised_than_there_are(tmp_path):
    with (
        serve(file=Flaky(CONTENT, extra_length=-10)) as base,
        pytest.raises(UserError, match="what it sent has a wrong checksum"),
    ):
        fetch_one(tmp_path, f"{base}/file")
    assert os.listdir(tmp_path) == []


def test_a_wrong_checksum_sends_us_to_the_next_mirror(tmp_path):
    with serve(wrong=Flaky(b"other"), right=Flaky(CONTENT)) as base:
        assert fetch_one(tmp_path, f"{base}/wrong", f"{base}/right").read_bytes() == CONTENT


def test_a_file_that_is_there_is_kept_or_refused_but_never_replaced(tmp_path):
    path = tmp_path / "a.zip"
    path.write_bytes(CONTENT)
    assert fetch_one(tmp_path) == path
    path.write_bytes(b"other")
    with pytest.raises(UserError, match=r"has a wrong checksum .* delete it and run prepare again"):
        fetch_one(tmp_path)
    assert path.read_bytes() == b"other"


def test_without_a_known_checksum(tmp_path):
    with serve(file=Flaky(CONTENT)) as base:
        assert fetch_one(tmp_path, f"{base}/file", md5=None).read_bytes() == CONTENT


def test_a_file_that_changes_meanwhile(tmp_path):
    flaky = Flaky(CONTENT, drop_after=[1000], etags=['"one"', '"two"'])
    with serve(file=flaky) as base, pytest.raises(UserError, match="the file changed on the"):
        fetch_one(tmp_path, f"{base}/file")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk(tmp_path):
    with serve(file=Flaky(CONTENT)) as base:
        url = f"{base}/file"
        download.part_path(item(url), url, tmp_path).symlink_to("/dev/full")
        with pytest.raises(UserError, match=r"cannot write .*a\.zip \(No space left on device\)"):
            fetch_one(tmp_path, url)


def test_too_little_room_is_said_beforehand(tmp_path, monkeypatch):
    class Usage:
        free = 1000

    monkeypatch.setattr(download.shutil, "disk_usage", lambda _: Usage)
    with (
        serve(file=Flaky(CONTENT)) as base,
        pytest.raises(UserError, match=r"GB free, but 0\.0 GB"),
    ):
        fetch_one(tmp_path, f"{base}/file")


def test_a_read_only_root(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(UserError, match="Read-only file system"):
        fetch_one(tmp_path / "new", "http://127.0.0.1:9/a.zip")


def test_a_stream_is_read_like_a_file():
    with (
        serve(file=Flaky(CONTENT, drop_after=[10, 20])) as base,
        ResumingReader(f"{base}/file", pause=0) as reader,
    ):
        assert reader.read() == CONTENT
        assert reader.total == reader.position == len(CONTENT)


def test_a_stream_gives_up_after_its_attempts():
    with (
        serve(file=Flaky(CONTENT, drop_after=[7, 0, 0])) as base,
        ResumingReader(f"{base}/file", attempts=3, pause=0) as reader,
        pytest.raises(MirrorError, match="3 attempts"),
    ):
        reader.read()
