"""``python -m eval verify``: what it prints and writes, and what it says to bad lists."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from common.errors import run_cli
from eval.cli import main
from eval.pair_lists import read_keys, read_pair_list
from eval.verification import verify_pairs
from tests.eval.awkward import even_set

COUNT = 200  # images of 20 identities


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("verify")
    data = even_set((0.4, 0.9))
    x, labels = data.embeddings[:COUNT].astype(np.float32), data.labels[:COUNT]
    keys = np.array([f"img/{i}.png" for i in range(COUNT)])
    domains = np.array(["east", "west"])[labels % 2]
    np.savez(folder / "all.npz", embeddings=x, labels=labels, domains=domains)
    np.savez(folder / "keyed.npz", embeddings=x, labels=labels, keys=keys)
    np.save(folder / "bare.npy", x)
    rng = np.random.default_rng(0)
    rows = []
    for k in range(400):
        a = int(rng.integers(COUNT))
        b = a // 10 * 10 + (a + 1 + int(rng.integers(9))) % 10 if k % 2 else (a + 57) % COUNT
        rows.append((a, b, int(a // 10 == b // 10)))
    write_list(folder / "rows.csv", rows)
    words = ("different", "Same")
    write_list(folder / "keys.csv", [(keys[a], keys[b], words[s]) for a, b, s in rows])
    return folder


def write_list(path: Path, rows, header=("first", "second", "same")) -> None:
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *rows])


def result_of(folder: Path, *arguments: str, out: Path) -> dict:
    paths = [str(folder / a) if (folder / a).is_file() else a for a in arguments]
    assert main(["verify", *paths, "--out", str(out)]) == 0
    return json.loads((out / "verification.json").read_text(encoding="utf-8"))


def test_all_pairs(folder, tmp_path, capsys):
    found = result_of(folder, "all.npz", "--seed", "3", out=tmp_path)
    printed = capsys.readouterr().out
    assert [at["far"] for at in found["tar_at"]] == [1e-3, 1e-4]
    assert "FAR 1e-05 needs at least 100,000 negative pairs, there are 19,000" in printed
    assert f"{100 * found['tar_at'][0]['tar']:.2f} %" in printed
    assert found["settings"]["seed"] == 3
    assert found["settings"]["calibration_share"] == 0.5
    assert set(found["one_threshold"][0]["domains"]) == {"east", "west"}
    low, high = found["tar_at"][0]["interval"]
    assert low <= found["tar_at"][0]["tar"] <= high
    assert len(found["accuracy"]["accuracies"]) == 10
    with open(tmp_path / "det.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert all(float(r["frr"]) == pytest.approx(1 - float(r["tar"])) for r in rows)
    with Image.open(tmp_path / "det.png") as image:
        assert min(image.size) > 600
    axis = "FAR, share of different pairs accepted"
    assert axis in (tmp_path / "det.svg").read_text(encoding="utf-8")


def test_lists_by_row_by_key_and_without_labels_agree(folder, tmp_path):
    options = ("--fars", "0.1", "0.01", "--distance", "cosine")
    names = (("all.npz", "rows.csv"), ("keyed.npz", "keys.csv"), ("bare.npy", "rows.csv"))
    results = [
        result_of(folder, name, "--pairs", pairs, *options, out=tmp_path / name)
        for name, pairs in names
    ]
    assert results[0]["tar_at"] == results[1]["tar_at"]
    assert [r["settings"]["bootstrap"] for r in results] == [
        *("identities", "identities", "runs of listed pairs")
    ]
    for result in results:
        assert result["positives"] == 200
        assert result["equal_error"] == results[0]["equal_error"]
        assert result["accuracy"] == results[0]["accuracy"]
        assert result["one_threshold"] == []
    x = np.load(folder / "bare.npy")
    listed = read_pair_list(folder / "rows.csv", COUNT)
    expected = verify_pairs(x, listed.pairs, listed.same, fars=[0.1], distance="cosine")
    assert results[2]["tar_at"][0]["tar"] == expected.tar_at[0].tar


def test_figures_where_there_is_little_to_draw(tmp_path, capsys):
    """Without errors, with ties alone, with the fewest pairs: files all the same."""
    for number, distances in enumerate(([0.1, 0.9], [0.5, 0.5], [0.9, 0.1], [0.1, 0.2, 0.9])):
        angles = np.cumsum([0.0, *distances])
        np.save(tmp_path / "x.npy", np.stack([np.cos(angles), np.sin(angles)], 1))
        rows = [(i, i + 1, int(i == 0)) for i in range(len(distances))]
        write_list(tmp_path / "p.csv", rows)
        found = result_of(tmp_path, "x.npy", "--pairs", "p.csv", out=tmp_path / f"o{number}")
        assert found["tar_at"] == []
        assert found["accuracy"] is None
        assert "needs 10 pairs" in capsys.readouterr().out
        assert (tmp_path / f"o{number}" / "det.png").stat().st_size > 5000


def test_hyperbolic(folder, tmp_path):
    x = np.load(folder / "bare.npy") / 100
    np.savez(tmp_path / "ball.npz", embeddings=x, labels=np.repeat(np.arange(20), 10))
    options = ("--distance", "poincare", "--curvature", "0.5")
    found = result_of(tmp_path, "ball.npz", *options, out=tmp_path / "o")
    assert found["settings"]["curvature"] == 0.5


def test_keys_may_stand_beside_labels(tmp_path):
    labels = tmp_path / "labels.csv"
    labels.write_text("key,label\nb,1\na,1\n")
    assert read_keys(tmp_path / "x.npy", labels, 2).tolist() == ["b", "a"]
    assert read_keys(tmp_path / "x.npy", None, 2) is None


def fault(argv: list[str], capsys) -> str:
    assert run_cli(main, argv) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("error: ")
    assert printed.err.count("\n") == 1
    return printed.err


HEAD = "first,second,same\n0,1,1\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("first,second,same\n", "lists no pairs"),
        ("a,b,same\n0,1,1\n", "'first'"),
        ("first,second,first,same\n0,1,1,1\n", "has 2 columns named 'first'"),
        (HEAD + "0,1\n", "line 3 has 2 cells"),
        (HEAD + "\n", "line 3 has 0 cells"),
        (HEAD + "0,11,maybe\n", "line 3: 'maybe' says neither"),
        (HEAD + "0,200,0\n", "line 3: '200' is no row"),
        (HEAD + "-1,2,0\n", "line 3: '-1' is no row"),
        (HEAD + "1.0,2,0\n", "line 3: '1.0' is no row"),
        (HEAD + "x\x1b[31m,2,0\n", "line 3: 'x\\x1b[31m' is no row"),
        (HEAD + "²,2,0\n", "line 3: '²' is no row"),
        (HEAD + "9" * 5000 + ",2,0\n", "is no row"),
        (HEAD + "5,5,1\n", "line 3 pairs an image with itself"),
        (HEAD + "0,11,1\n", "line 3 says '1', the images' labels"),
        (HEAD + "0,2,different\n", "line 3 says 'different', the images' labels"),
        (HEAD + '"0,2\n', "the list cannot be read"),
        (HEAD, "no pair of the list is marked different"),
        ("first,second,same\n0,11,0\n", "no pair of the list is marked same"),
    ],
)
def test_bad_lists_are_named_by_line(folder, tmp_path, capsys, text, message):
    path = tmp_path / "bad.csv"
    path.write_text(text, encoding="utf-8")
    argv = ["verify", str(folder / "all.npz"), "--pairs", str(path), "--out", str(tmp_path / "o")]
    assert message in fault(argv, capsys)


def test_other_wrong_lines(folder, tmp_path, capsys):
    name, out = str(folder / "all.npz"), ["--out", str(tmp_path / "o")]
    keyed, rows = str(folder / "keyed.npz"), str(folder / "rows.csv")
    (tmp_path / "bytes.csv").write_bytes(HEAD.encode() + b"\xff,1,1\n")
    x, keys = np.load(folder / "bare.npy")[:4], np.array(["a", "b", "a", "c"])
    np.savez(tmp_path / "twice.npz", embeddings=x, labels=[0, 0, 1, 1], keys=keys)
    np.savez(tmp_path / "fewer.npz", embeddings=x, labels=[0, 0, 1, 1], keys=keys[:3])
    for arguments, message in (
        ([name, "--pairs", str(tmp_path / "bytes.csv")], "cannot be read"),
        ([name, "--pairs", str(tmp_path / "none.csv")], "does not exist"),
        ([keyed, "--pairs", rows], "line 2: no image has the key"),
        ([str(tmp_path / "twice.npz"), "--pairs", rows], "the key 'a' twice"),
        ([str(tmp_path / "fewer.npz"), "--pairs", rows], "keys have shape (3,)"),
        ([name, "--pairs", rows, "--calibration-share", "0.5"], "--calibration-share"),
        ([name, "--pairs", rows, "--fars", "1e-3"], "needs at least 1,000 negative pairs"),
        ([name, "--fars", "1e-5"], "needs at least 100,000 negative pairs, there are 19,000"),
        ([name, "--fars", "0"], "no false-accept rate"),
        ([name, "--fars", "nan"], "no false-accept rate"),
        ([name, "--calibration-share", "2"], "calibration share is 2"),
        ([name, "--calibration-share", "0.01"], "of the calibration identities 0"),
        ([name, "--seed", "-1"], "--seed is -1"),
        ([name, "--threads", "0"], "--threads is 0"),
        ([name, "--memory-mb", "0"], "--memory-mb is 0"),
        ([name, "--device", "abacus"], "abacus"),
        ([name, "--distance", "poincare", "--curvature", "0"], "curvature=0.0"),
        ([name, "--distance", "poincare", "--curvature", "5"], "outside of the Poincaré ball"),
        ([str(folder / "bare.npy")], "give --labels"),
    ):
        assert message in fault(["verify", *arguments, *out], capsys), arguments
