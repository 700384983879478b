"""The cached table: fresh when files change, safe with two builders, no need of a writable disk."""

import multiprocessing
import os
import warnings

import numpy as np
import pandas as pd
import pytest

from common.errors import UserError
from datasets import index_cache
from datasets.index_cache import VARIABLE, cached_table, content_digest, location
from tests.datasets.trees import encode, link_images, picture, write


@pytest.fixture
def folder(tmp_path):
    tmp_path = tmp_path / "data"
    for number in range(4):
        write(tmp_path / f"{number}.png", encode(picture(number), "PNG"))
    write(tmp_path / "list.txt", "0.png\n1.png\n2.png\n3.png\n")
    return tmp_path


class Lister:
    """Lists ``list.txt`` and counts how often it was asked."""

    def __init__(self, folder):
        self.folder = folder
        self.calls = 0

    def __call__(self):
        self.calls += 1
        keys = (self.folder / "list.txt").read_text().split()
        return pd.DataFrame({"key": keys, "label": keys})


def table(folder, lister=None, **options):
    return cached_table("set", folder, lister or Lister(folder), [folder / "list.txt"], **options)


def reads(monkeypatch):
    seen = []
    original = index_cache.content_digest
    monkeypatch.setattr(
        index_cache, "content_digest", lambda path: seen.append(path) or original(path)
    )
    return seen


def test_the_second_time_nothing_is_listed_or_read(folder, monkeypatch):
    lister = Lister(folder)
    first = table(folder, lister)
    seen = reads(monkeypatch)
    second = table(folder, lister)
    assert lister.calls == 1
    assert seen == []
    assert first.astype(object).equals(second.astype(object).where(second.notna(), pd.NA))
    assert list(second["size"]) == [os.path.getsize(folder / k) for k in second["key"]]
    assert second["content"][2] == content_digest(folder / "2.png")


def test_a_changed_file_is_read_again_even_at_the_same_size(folder, monkeypatch):
    before = table(folder)
    path = folder / "1.png"
    data = bytearray(path.read_bytes())
    data[-20] ^= 1
    path.write_bytes(bytes(data))
    os.utime(path, ns=(1, 1))
    seen = reads(monkeypatch)
    after = table(folder)
    assert seen == [str(path)]
    assert list(before["content"] != after["content"]) == [False, True, False, False]


def test_a_changed_list_is_read_again(folder):
    lister = Lister(folder)
    table(folder, lister)
    write(folder / "list.txt", "3.png\n0.png\n")
    assert list(table(folder, lister)["key"]) == ["3.png", "0.png"]
    assert lister.calls == 2


def test_a_missing_file_is_marked(folder):
    table(folder)
    (folder / "2.png").unlink()
    found = table(folder)
    assert list(found["size"] < 0) == [False, False, True, False]
    assert found["content"][2] == ""


def test_decoding_is_done_once(folder, monkeypatch):
    (folder / "1.png").write_bytes(b"no image")
    assert table(folder)["broken"].isna().all()
    found = table(folder, decode=True)
    assert list(found["broken"] == "") == [True, False, True, True]
    assert "1.png cannot be decoded" in found["broken"][1]
    monkeypatch.setattr(index_cache, "read_image", None)
    assert list(table(folder, decode=True)["broken"] == "") == [True, False, True, True]


def test_a_damaged_cache_is_built_anew(folder):
    lister = Lister(folder)
    table(folder, lister)
    (location(folder) / "set.parquet").write_bytes(b"PAR1 nonsense")
    assert len(table(folder, lister)) == 4
    assert lister.calls == 2


def test_without_a_list_the_folder_is_looked_at_each_time(folder):
    lister = Lister(folder)
    for _ in range(2):
        assert len(cached_table("set", folder, lister, None)) == 4
    assert lister.calls == 2


def test_a_read_only_folder_is_a_warning_not_an_end(folder, monkeypatch):
    monkeypatch.setattr(index_cache.os, "access", lambda *_: False)
    with pytest.warns(UserWarning, match=f"read-only.*unless {VARIABLE} names a writable"):
        assert len(table(folder)) == 4
    assert not (location(folder) / "set.parquet").exists()


def test_a_full_disk_is_a_warning_not_an_end(folder, monkeypatch):
    def refuse(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(index_cache.pq, "write_table", refuse)
    with pytest.warns(UserWarning, match="No space left on device"):
        assert len(table(folder)) == 4


def test_the_variable_names_another_place(folder, tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(tmp_path / "caches"))
    table(folder)
    assert not (folder.parent / index_cache.FOLDER).exists()
    assert [path.name for path in (tmp_path / "caches").rglob("*.parquet")] == ["set.parquet"]


def test_an_unreadable_file_is_named(folder):
    (folder / "1.png").unlink()
    (folder / "1.png").mkdir()
    with pytest.raises(UserError, match=r"cannot read .*1\.png"):
        table(folder)


def build(folder, barrier):
    barrier.wait(30)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = table(folder)
    return found["content"].tolist()


def test_processes_that_build_at_once_agree(tmp_path):
    link_images(tmp_path, [f"{number}.png" for number in range(500)])
    write(tmp_path / "list.txt", "".join(f"{number}.png\n" for number in range(500)))
    context = multiprocessing.get_context("fork")
    with context.Manager() as manager, context.Pool(3) as pool:
        barrier = manager.Barrier(3)
        one, two, three = pool.starmap(build, [(tmp_path, barrier)] * 3, chunksize=1)
    assert one == two == three
    assert len(np.unique(one)) == 8
    assert len(table(tmp_path)) == 500
    assert not [name for name in os.listdir(location(tmp_path)) if name.startswith(".tmp-")]
