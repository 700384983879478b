"""The page for bug reports: what is there and what holds back, and nothing that is a secret."""

import pytest

from common.errors import run_cli
from reproduce import doctor, machine
from tests.datasets.trees import make_cub


@pytest.fixture
def page(tmp_path, monkeypatch, capsys):
    """The page of a machine with CUB alone, whose home folder and tokens must not show."""
    home = tmp_path / "home" / "someone"
    data = home / "data"
    make_cub(data, train=[2] * 2, test=[2] * 2)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("SECRET_TOKEN", "do-not-print")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    options = ["--root", str(data), "--runs", str(home / "runs")]
    assert run_cli(doctor.main, options) == 0
    return capsys.readouterr().out


def test_it_shows_versions_machine_data_and_what_holds_back_each_table(page):
    for text in ("torch==", "faiss: faiss-", "cores, torch uses", "OMP_NUM_THREADS=1", "GiB free"):
        assert text in page
    assert "cub: found at ~/data/CUB_200_2011" in page
    assert "cars: no, cars is not under ~/data" in page
    lines = page.splitlines()
    assert "  table2 (demo): ready" in lines
    start = lines.index("  table2 (paper): held back by") + 1
    held = [line for line in lines[start : start + 8] if line.startswith("    - ")]
    assert any("inaturalist is not under ~/data" in line for line in held)


def test_it_shows_no_secret_and_no_home(page, tmp_path):
    assert "do-not-print" not in page
    assert "SECRET_TOKEN" not in page
    assert str(tmp_path / "home") not in page
    assert "--runs ~/runs" in page


def test_a_folder_that_cannot_be_written_holds_back_every_table(tmp_path, capsys):
    file = tmp_path / "file"
    file.write_text("")
    assert run_cli(doctor.main, ["--runs", str(file / "runs")]) == 0
    out = capsys.readouterr().out
    assert "demo): ready" not in out
    assert "is a file; choose another folder" in out


def test_little_shared_memory_and_no_gpu_are_remarked():
    facts = machine.facts() | {"shared_memory": 64 * 2**20, "gpus": [], "cuda": None}
    said = " ".join(doctor.describe(facts))
    assert "use --workers 0" in said
    assert "built without CUDA" in said


def test_gpus_are_listed_with_what_amp_will_take():
    gpu = {"name": "GPU", "total": 16 * 2**30, "free": 2**30, "capability": "7.5"}
    facts = machine.facts() | {"gpus": [gpu | {"bfloat16": False}]}
    said = list(doctor.describe(facts))
    assert any("cuda:0 GPU, compute 7.5, 16.0 GiB, 1.0 GiB free, no bfloat16" in t for t in said)
