"""Smaller copies, from a folder and from an archive that streams by."""

import hashlib
import io
import os
import tarfile

import numpy as np
import pytest
from PIL import Image

import datasets
from common.errors import UserError
from datasets import resize
from datasets.read_image import read_image
from datasets.resize import reduce_image, resize_folder, resize_stream
from tests.datasets.trees import encode, picture, write


@pytest.mark.parametrize(
    ("size", "result"), [((400, 300), (171, 128)), ((300, 400), (128, 171)), ((500, 128), None)]
)
@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_the_shorter_side(size, result, kind):
    data = encode(picture(0, size), kind)
    reduced = reduce_image(data, 128)
    if result is None:
        assert reduced == data
        return
    with Image.open(io.BytesIO(reduced)) as image:
        assert image.size == result
        assert image.format == kind


def test_the_picture_stays_the_same():
    original = picture(3, (512, 384))
    reduced = read_image(io.BytesIO(reduce_image(encode(original, quality=95), 128)))
    wanted = original.resize(reduced.size, Image.Resampling.LANCZOS)
    difference = np.asarray(reduced, dtype=float) - np.asarray(wanted, dtype=float)
    assert np.abs(difference).mean() < 3


def test_other_modes_become_rgb():
    data = encode(Image.new("CMYK", (300, 300), (0, 255, 255, 0)))
    with Image.open(io.BytesIO(reduce_image(data, 64))) as image:
        assert image.mode == "RGB"


KEYS = ["a/1.jpg", "a/2.jpg", "b/1.jpg"]


@pytest.fixture
def tree(tmp_path):
    for number, key in enumerate(KEYS):
        write(tmp_path / "set" / key, encode(picture(number, (200, 100))))
    write(tmp_path / "set/lists/list.txt", "list")
    return tmp_path / "set"


def test_a_folder(tree):
    target = tree.parent / "set-50"
    resize_folder(tree, KEYS, [tree / "lists/list.txt"], target, 50)
    assert [read_image(target / key).size for key in KEYS] == [(100, 50)] * 3
    assert (target / "lists/list.txt").read_text() == "list"
    assert sorted(os.listdir(tree.parent)) == ["set", "set-50"]
    with pytest.raises(UserError, match="is there already; delete it"):
        resize_folder(tree, KEYS, [], target, 50)


def test_an_interrupted_run_goes_on(tree, monkeypatch):
    target = tree.parent / "set-50"
    (tree / "b/1.jpg").write_bytes(b"broken")
    with pytest.raises(UserError, match=r"b/1\.jpg cannot be decoded"):
        resize_folder(tree, KEYS, [], target, 50)
    assert not target.exists()
    write(tree / "b/1.jpg", encode(picture(5, (200, 100))))
    made = []
    original = resize.reduce_image
    monkeypatch.setattr(
        resize, "reduce_image", lambda source, *rest: made.append(source) or original(source, *rest)
    )
    resize_folder(tree, KEYS, [], target, 50)
    assert made == [str(tree / "b/1.jpg")]


def test_keys_that_lead_out(tree):
    with pytest.raises(UserError, match="leads out of the folder"):
        resize_folder(tree, ["../x.jpg"], [], tree.parent / "set-50", 50)


def archive_of(tree):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        archive.add(tree, "top")
    return buffer.getvalue()


def test_a_stream(tree):
    data = archive_of(tree)
    target = tree.parent / "out"
    resize_stream(io.BytesIO(data), "it", hashlib.md5(data).hexdigest(), target, 50, pause_at=2)
    assert sorted(p.relative_to(target).as_posix() for p in target.rglob("*.*")) == [
        f"top/{key}" for key in KEYS
    ]
    assert read_image(target / "top/a/1.jpg").size == (100, 50)


def test_a_stream_of_something_else(tree):
    data = archive_of(tree)
    target = tree.parent / "out"
    with pytest.raises(UserError, match=r"it has a wrong checksum .* delete .*partial"):
        resize_stream(io.BytesIO(data), "it", "0" * 32, target, 50)
    with pytest.raises(UserError, match="it is damaged or cut short"):
        resize_stream(io.BytesIO(data[: len(data) // 2]), "it", None, target, 50)
    with pytest.raises(UserError, match="it is damaged or cut short"):
        resize_stream(io.BytesIO(b"<html>"), "it", None, target, 50)
    assert not target.exists()


def test_a_broken_image_in_a_stream_is_named(tree):
    (tree / "a/1.jpg").write_bytes(b"broken")
    with pytest.raises(UserError, match=r"^top/a/1\.jpg cannot be decoded"):
        resize_stream(io.BytesIO(archive_of(tree)), "it", None, tree.parent / "out", 50)


def test_a_disk_that_does_not_take_it(tree, monkeypatch):
    def refuse(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(resize.Path, "write_bytes", refuse)
    with pytest.raises(UserError, match=r"cannot write .*No space left on device"):
        resize_folder(tree, KEYS, [], tree.parent / "set-50", 50)


def test_missing_images(tree):
    with pytest.raises(UserError, match=r"cannot read .*none\.jpg"):
        resize_folder(tree, ["none.jpg"], [], tree.parent / "set-50", 50)


def test_reduced_decoding_of_a_source(tree):
    full = datasets.load(f"folder:{tree}")
    fast = datasets.load(f"folder:{tree}", decode_side=20)
    assert full.read("a/1.jpg").size == (200, 100)
    assert fast.read("a/1.jpg").size == (50, 25)
