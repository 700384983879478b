"""A configuration by itself, on the user's own images."""

import json

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from common.errors import run_cli
from reproduce import run

CONFIG = """
data: {name: glyphs, options: {domain: kana}, image_size: 32}
model: {backbone: glyph_cnn, embedding_dim: 16, options: {width: 8}}
loss: {name: proxy_anchor}
evaluation: {tar_at: []}
train:
  {epochs: 1, steps_per_epoch: 2, classes_per_batch: 4, images_per_class: 2, learning_rate: 0.01,
   threads: 1}
"""


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    for label in range(12):
        (tmp_path / "mine" / f"class {label}").mkdir(parents=True)
        for image in range(6):
            pixels = rng.integers(256, size=(40, 40, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / "mine" / f"class {label}" / f"{image}.png")
    (tmp_path / "own.yaml").write_text(CONFIG)
    return tmp_path


def arguments(folder, *more: str) -> list[str]:
    where = ["--runs", str(folder / "runs"), "--results", str(folder / "results"), "--quiet"]
    return [str(folder / "own.yaml"), "--data", f"folder:{folder / 'mine'}", *where, *more]


def test_own_images_by_one_command(folder, capsys):
    assert run.main(arguments(folder, "--tcm", "--latex")) == 0
    assert "toprule" in (folder / "results" / "own" / "own.tex").read_text()
    frame = pd.read_csv(folder / "results" / "own" / "own.csv")
    assert list(frame["row"]) == ["proxy_anchor", "proxy_anchor+TCM"]
    assert frame["recall_at_1"].between(0, 1).all()
    assert (frame["dataset"] == f"folder:{folder / 'mine'}").all()
    assert "2 runs trained" in capsys.readouterr().out
    # What was trained can be evaluated by itself.
    records = [json.loads(p.read_text()) for p in folder.glob("runs/*/record.json")]
    assert {record["metrics"]["n_classes"] for record in records} == {6}


def test_what_is_missing_is_said_before_anything_is_trained(folder, capsys):
    assert run.main(arguments(folder, "--dry-run")) == 0
    assert "ready" in capsys.readouterr().out
    missing = ["--data", "folder:/no/such/folder"]
    assert run_cli(run.main, arguments(folder, *missing)) == 2
    assert "/no/such/folder" in capsys.readouterr().err
