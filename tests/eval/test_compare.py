"""Comparison of models: what it says, and when it refuses."""

from __future__ import annotations

import csv
import dataclasses
import json

import numpy as np
import pytest

from common.errors import UserError
from eval import evaluate
from eval.compare import write_comparison
from tests.eval.awkward import even_set, make_set


def shuffled(data, seed: int = 5):
    order = np.random.default_rng(seed).permutation(len(data.labels))
    return dataclasses.replace(data, embeddings=data.embeddings[order], labels=data.labels[order])


def test_numbers_are_the_engines_and_files_are_written(tmp_path):
    models = {"loose": even_set((0.2, 1.0)), "tight": even_set((0.55, 0.65))}
    table = write_comparison(models, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {
        *("comparison.json", "comparison.csv", "comparison.md", "pareto.png", "pareto.svg")
    }
    tree = json.loads((tmp_path / "comparison.json").read_text())
    with open(tmp_path / "comparison.csv", newline="") as file:
        rows = {row["model"]: row for row in csv.DictReader(file)}
    results = {name: evaluate(data.embeddings, data.labels) for name, data in models.items()}
    for name, result in results.items():
        assert float(rows[name]["opis"]) == result.opis == tree["models"][name]["opis"]
        assert float(rows[name]["recall_at_1"]) == result.recall_at[1]
    found = tree["differences"]["tight"]
    assert found["opis"] == results["tight"].opis - results["loose"].opis
    assert found["opis_interval"][0] < found["opis"] < found["opis_interval"][1] < 0
    assert found["verdict"] == "more consistent"
    assert found["recall_at_1"] == results["tight"].recall_at[1] - results["loose"].recall_at[1]
    assert "| tight less loose |" in table
    assert (tmp_path / "comparison.md").read_text() == table + "\n"


def test_pairing_makes_equal_models_equal(tmp_path):
    """The same model in another order of images: no difference, and an interval without width."""
    data = make_set()
    write_comparison({"a": data, "b": shuffled(data)}, tmp_path)
    found = json.loads((tmp_path / "comparison.json").read_text())["differences"]["b"]
    assert found["recall_at_1"] == 0
    assert found["recall_at_1_interval"] == [0, 0]
    assert found["opis"] == pytest.approx(0, abs=1e-12)
    assert found["verdict"] == "not told apart"


def test_pairing_makes_intervals_narrow(tmp_path):
    """A model and itself with a little noise: the paired interval is far below either's own."""
    data = make_set()
    noise = np.random.default_rng(0).normal(scale=1e-3, size=data.embeddings.shape)
    close = dataclasses.replace(data, embeddings=data.embeddings + noise)
    write_comparison({"a": data, "b": close}, tmp_path)
    low, high = json.loads((tmp_path / "comparison.json").read_text())["differences"]["b"][
        "opis_interval"
    ]
    assert high - low < 0.1 * evaluate(data.embeddings, data.labels).opis


def test_other_labels_are_refused(tmp_path):
    data = make_set()
    fewer = dataclasses.replace(data, embeddings=data.embeddings[1:], labels=data.labels[1:])
    with pytest.raises(UserError, match=r"images in a and .* in b; compare models on the same"):
        write_comparison({"a": data, "b": fewer}, tmp_path)
    renamed = dataclasses.replace(data, labels=np.char.add(data.labels, "?"))
    with pytest.raises(UserError, match="same labels"):
        write_comparison({"a": data, "b": renamed}, tmp_path)
    assert not list(tmp_path.iterdir())
