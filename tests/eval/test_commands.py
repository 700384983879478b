"""The commands on good files, from the command line to what they print and write."""

from __future__ import annotations

import csv
import io
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from common.errors import UserError, run_cli
from eval import evaluate
from eval.cli import main
from tests.eval.awkward import brute_force, make_set

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def data():
    return make_set()


@pytest.fixture(scope="module")
def file(data, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("run") / "embeddings.npz"
    np.savez(path, embeddings=data.embeddings, labels=data.labels, domains=data.domains)
    return path


def table_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_report(file, tmp_path, capsys):
    options = ["--ks", "5", "--c", "2", "--title", "<b>Mine</b>"]
    assert main(["report", str(file), "--out", str(tmp_path / "r"), *options]) == 0
    printed = capsys.readouterr().out
    metrics = json.loads((tmp_path / "r" / "metrics.json").read_text())
    assert metrics["settings"]["c"] == 2
    assert metrics["settings"]["ks"] == [1, 5]
    assert f"{1e3 * metrics['opis']:.3g}e-3" in printed
    assert str(tmp_path / "r" / "report.html") in printed
    page = (tmp_path / "r" / "report.html").read_text(encoding="utf-8")
    assert "<h1>&lt;b&gt;Mine&lt;/b&gt;</h1>" in page


def test_report_of_queries_against_a_gallery(data, tmp_path, capsys):
    queries = np.arange(len(data.labels)) % 3 == 0
    for name, some in (("q", queries), ("g", ~queries)):
        np.savez(
            tmp_path / f"{name}.npz", embeddings=data.embeddings[some], labels=data.labels[some]
        )
    command = ["report", str(tmp_path / "q.npz"), "--gallery", str(tmp_path / "g.npz")]
    assert main([*command, "--out", str(tmp_path / "r"), "--target-far", "0.05"]) == 0
    metrics = json.loads((tmp_path / "r" / "metrics.json").read_text())
    x, labels, y, others = (
        a[some] for some in (queries, ~queries) for a in (data.embeddings, data.labels)
    )
    expected = evaluate(x, labels, gallery=y, gallery_labels=others)
    assert metrics["opis"] == expected.opis
    assert metrics["n_gallery"] == len(y)
    assert f"{len(x):,} queries against {len(y):,} images" in capsys.readouterr().out
    rows = table_of((tmp_path / "r" / "per_class.csv").read_text(encoding="utf-8"))
    for row in rows:
        q, g = (int((some == row["label"].lstrip("'")).sum()) for some in (labels, others))
        assert int(row["positives"]) == q * g
        assert int(row["negatives"]) == q * (len(y) - g) + g * (len(x) - q)


def test_report_of_sampled_queries_has_intervals(file, data, tmp_path, capsys):
    options = ["--sample-queries", "90", "--seed", "5", "--device", "cpu"]
    assert main(["report", str(file), "--out", str(tmp_path), *options]) == 0
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    expected = evaluate(
        data.embeddings, data.labels, domains=data.domains, sample_queries=90, seed=5
    )
    assert metrics["intervals"]["opis"] == pytest.approx(expected.intervals["opis"])
    assert metrics["settings"]["pairs"].startswith("90 sampled queries")
    assert "95 % interval" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "of them queries" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--gallery-labels", "x.csv"], "goes with --gallery"),
        (["--gallery", "nowhere.npz"], "nowhere.npz"),
        (["--sample-queries", "1"], "sample_queries=1"),
        (["--seed", "-1"], "--seed is -1"),
        (["--device", "abacus"], "abacus"),
    ],
)
def test_wrong_sides_are_named(file, tmp_path, options, message):
    with pytest.raises(UserError, match=message):
        main(["report", str(file), "--out", str(tmp_path), *options])


def test_report_of_npy_and_csv_is_that_of_npz(file, data, tmp_path):
    np.save(tmp_path / "e.npy", data.embeddings)
    with open(tmp_path / "l.csv", "w", encoding="utf-8", newline="") as labels:
        writer = csv.writer(labels)
        writer.writerows([("label", "domain"), *zip(data.labels, data.domains, strict=True)])
    main(["report", str(file), "--out", str(tmp_path / "a")])
    arguments = [str(tmp_path / "e.npy"), "--labels", str(tmp_path / "l.csv")]
    main(["report", *arguments, "--out", str(tmp_path / "b")])
    for name in ("per_class.csv", "utility.svg"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_compare_names_models_by_as_many_folders_as_needed(file, data, tmp_path, capsys):
    other = tmp_path / "other" / "embeddings.npz"
    other.parent.mkdir()
    np.savez(other, embeddings=data.embeddings**3, labels=data.labels)
    assert main(["compare", str(file), str(other), "--out", str(tmp_path / "c")]) == 0
    assert "| other/embeddings less" in capsys.readouterr().out
    with pytest.raises(UserError, match="given twice"):
        main(["compare", str(file), str(file), "--out", str(tmp_path / "c")])


def test_sensitivity(file, tmp_path, capsys):
    assert main(["sensitivity", str(file), "--out", str(tmp_path / "s")]) == 0
    assert "0.01 to 0.1 (declared)" in capsys.readouterr().out


def test_neighbours_agree_with_the_engine(file, data, tmp_path):
    out = tmp_path / "n.csv"
    assert main(["neighbours", str(file), "--k", "4", "--out", str(out)]) == 0
    rows = table_of(out.read_text())
    assert len(rows) == 4 * len(data.labels)
    assert all(row["query"] != row["neighbour"] for row in rows)
    assert all((row["query_label"] == row["neighbour_label"]) == int(row["same"]) for row in rows)
    hits = np.array([int(row["same"]) for row in rows]).reshape(-1, 4)
    sizes = dict(zip(*np.unique(data.labels, return_counts=True), strict=True))
    asked = np.array([sizes[label] > 1 for label in data.labels])
    result = evaluate(data.embeddings, data.labels, ks=(1, 2, 4))
    for k in (1, 2, 4):
        assert hits[asked, :k].any(axis=1).mean() == pytest.approx(result.recall_at[k], abs=1e-12)
    truth = brute_force(data.embeddings, data.labels)
    for row in rows[::7]:
        distance = truth.distances[int(row["query"]), int(row["neighbour"])]
        assert 1 - distance**2 / 2 == pytest.approx(float(row["similarity"]), abs=2e-6)


def test_neighbours_need_no_labels_and_print_to_standard_output(data, tmp_path, capsys):
    np.save(tmp_path / "e.npy", data.embeddings)
    arguments = ["neighbours", str(tmp_path / "e.npy"), "--k", "2", "--queries", "3"]
    assert main(arguments) == 0
    printed = capsys.readouterr()
    rows = table_of(printed.out)
    assert list(rows[0]) == ["query", "rank", "neighbour", "similarity"]
    assert [row["rank"] for row in rows] == ["1", "2"] * 3
    assert "searched by faiss" in printed.err
    assert main([*arguments, "--approximate"]) == 0
    assert "of the exact neighbours found" in capsys.readouterr().err


@pytest.mark.parametrize("command", [[], ["report"], ["compare"], ["neighbours"], ["sensitivity"]])
def test_help(command, capsys):
    with pytest.raises(SystemExit) as stopped:
        main([*command, "--help"])
    assert stopped.value.code == 0
    assert "usage: python -m eval" in capsys.readouterr().out


def test_folder_that_cannot_be_made_is_found_before_the_work(file, tmp_path, capsys):
    (tmp_path / "taken").write_text("")
    for command in ("report", "sensitivity"):
        assert run_cli(main, [command, str(file), "--out", str(tmp_path / "taken")]) == 2
        assert "cannot make the folder" in capsys.readouterr().err


def test_eval_and_common_alone_are_enough(file, tmp_path):
    """Both folders copied into another project, as the README proposes."""
    for package in ("eval", "common"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__*__"))
        for start in (ROOT / package).glob("__*__.py"):
            shutil.copy(start, tmp_path / package)
    command = [sys.executable, "-m", "eval", "report", str(file), "--out", "written"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "written" / "report.html").stat().st_size > 50_000


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_standard_output_that_is_full(file):
    command = [sys.executable, "-m", "eval", "neighbours", str(file), "--k", "2"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("error: cannot write to standard output (No space left")
    assert done.stderr.count("\n") == 1


def test_a_reader_that_stops_early_is_no_error(file):
    """As in ``python -m eval neighbours FILE | head``."""
    command = [sys.executable, "-m", "eval", "neighbours", str(file), "--k", "100"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.readline()
    process.stdout.close()
    assert b"Traceback" not in process.stderr.read()
    process.stderr.close()
    process.wait(timeout=60)
