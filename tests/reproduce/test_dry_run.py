"""Dry runs say what is missing, no more and no less, and count what a network really does."""

import math
from pathlib import Path

import pytest
import torch

from common.errors import run_cli
from reproduce import estimate, outlook_text, places, table_cli
from reproduce.build import build_model
from reproduce.config import load
from reproduce.table import Row, Table
from tests.datasets.trees import make_cub

CONFIG = """
data: {name: cub, image_size: 32}
model:
  backbone: %s
  embedding_dim: 16
  options: {%s}
loss: {name: proxy_anchor}
evaluation: {tar_at: []}
train: {epochs: 3, classes_per_batch: 4, images_per_class: 2, learning_rate: 0.001, threads: 1}
"""
SMALL = ("glyph_cnn", "width: 8, norm: group")


def table(folder: Path, backbone: str = SMALL[0], options: str = SMALL[1]) -> Table:
    path = folder / "tiny.yaml"
    path.write_text(CONFIG % (backbone, options))
    rows = (Row("Base", str(path)), Row("Base+TCM", str(path), {"loss.tcm": {}}))
    return Table("tiny", "A tiny table", {"demo": rows, "paper": rows}, {"demo": 2, "paper": 2})


def dry_run(made: Table, folder: Path, *options: str, scale: str = "paper") -> int:
    where = ["--runs", str(folder / "runs"), "--results", str(folder / "results")]
    arguments = ["--scale", scale, "--dry-run", "--quiet", *where, *options]
    return run_cli(lambda argv: table_cli.main(made, argv), arguments)


def test_missing_data_is_a_sentence_with_the_way_to_get_it(tmp_path, capsys):
    assert dry_run(table(tmp_path), tmp_path, "--root", str(tmp_path)) == 1
    said = capsys.readouterr().out
    assert "missing  cub is not under" in said
    assert f"python -m datasets prepare cub --root {tmp_path}` would fetch CUB_200_2011.tgz" in said
    # Published: 5,864 training images, 100 classes; batches of 8, 3 epochs.
    assert f"{3 * (5864 // 8):,}" in said
    assert "4 runs, 4 of them distinct, 0 finished, 4 to be trained" in said
    assert not (tmp_path / "runs").exists()


def test_with_all_that_it_needs_a_table_is_ready_and_steps_are_those_of_the_data(tmp_path, capsys):
    make_cub(tmp_path, train=[5] * 8, test=[5] * 4)
    assert dry_run(table(tmp_path), tmp_path, "--root", str(tmp_path)) == 0
    said = capsys.readouterr().out
    assert said.rstrip().endswith("ready")
    assert "missing" not in said
    steps = [line.split()[4] for line in said.splitlines() if line.startswith("Base")]
    assert steps == ["15", "15"]


def test_finished_runs_are_counted_and_not_to_be_trained_again(tmp_path, capsys):
    made = table(tmp_path)
    make_cub(tmp_path, train=[5] * 8, test=[5] * 4)
    where = ["--root", str(tmp_path), "--runs", str(tmp_path / "runs"), "--quiet"]
    where += ["--results", str(tmp_path / "results"), "--scale", "paper"]
    assert (
        run_cli(lambda argv: table_cli.main(made, argv), [*where, "--seeds", "1", "--jobs", "1"])
        == 0
    )
    capsys.readouterr()
    assert dry_run(made, tmp_path, "--root", str(tmp_path)) == 0
    assert "4 of them distinct, 2 finished, 2 to be trained" in capsys.readouterr().out


def test_weights_that_are_not_in_the_cache_are_missing(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("reproduce.weights_state.is_cached", lambda config: False)
    made = table(tmp_path, "resnet10t", "pretrained: true, freeze_batch_norm: true")
    make_cub(tmp_path, train=[5] * 8, test=[5] * 4)
    assert dry_run(made, tmp_path, "--root", str(tmp_path)) == 1
    assert "missing  the weights of resnet10t" in capsys.readouterr().out
    monkeypatch.setattr("reproduce.weights_state.is_cached", lambda config: True)
    assert dry_run(made, tmp_path, "--root", str(tmp_path)) == 0


def test_a_weights_file_that_does_not_fit_is_said(tmp_path, capsys):
    make_cub(tmp_path, train=[5] * 8, test=[5] * 4)
    file = tmp_path / "weights.pt"
    torch.save({"strange": torch.zeros(1)}, file)
    options = ["--root", str(tmp_path), "--weights", str(file)]
    assert dry_run(table(tmp_path), tmp_path, *options) == 1
    assert "does not fit this network" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("gpus", "options", "wanted"),
    [
        (3, SMALL[1], "a batch of 8 images cannot be dealt to 3 GPUs"),
        (2, "width: 8", "set train.sync_batch_norm=true"),
        (2, SMALL[1], None),
    ],
)
def test_batches_that_gpus_cannot_share_are_said(tmp_path, capsys, gpus, options, wanted):
    make_cub(tmp_path, train=[5] * 8, test=[5] * 4)
    made = table(tmp_path, "glyph_cnn", options)
    code = dry_run(made, tmp_path, "--root", str(tmp_path), "--gpus-per-run", str(gpus))
    said = capsys.readouterr().out
    assert code == (0 if wanted is None else 1)
    assert (wanted or "8 = 4 x 2: 2 GPUs x 4") in said


def test_wrong_configurations_and_options_are_errors(tmp_path, capsys):
    assert dry_run(table(tmp_path), tmp_path, "--set", "train.epoch=1") == 2
    assert "unknown key" in capsys.readouterr().err
    assert dry_run(table(tmp_path), tmp_path, "--gpus-per-run", "0") == 2


def test_folders_that_cannot_be_written_or_are_full_are_said(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    found = places.problems({"--runs": file / "runs", "--results": tmp_path}, 1e30)
    assert len(found) == 2
    assert "is a file" in found[0]
    assert "make room" in found[1]
    assert places.problems({"--runs": tmp_path / "not" / "yet"}, 1.0) == []


def cnn_config(**values):
    plain = {"model.options": {"width": 8, "norm": "group"}, "data.image_size": 32}
    return load("demo/kanji_proxy_anchor").with_values(plain | values)


def test_operations_of_a_convolutional_network_by_hand():
    config = cnn_config(**{"model.options": {"width": 8, "norm": "group", "pooling": "average"}})
    # 3 x 3 convolutions: channels in, out, side of the output; then the head.
    layers = [(1, 8, 16), (8, 16, 8), (16, 32, 4), (32, 64, 4)]
    counted = [2 * 9 * i * o * side * side for i, o, side in layers]
    counted.append(2 * 64 * config.model.embedding_dim)
    cost = estimate.network_cost(config, channels=1)
    assert cost.forward == sum(counted)
    # Backward is twice that, but for the images, which need no gradient.
    assert cost.backward == 2 * sum(counted) - counted[0]
    assert cost.batch_norms == ()


def test_saved_activations_are_those_of_a_real_step():
    config = cnn_config()
    source = type("Grey", (), {"mean": (0.5,), "std": (0.5,)})
    model = build_model(config.with_values({"data.mean_std": "source"}), source, estimate.Runtime())
    weights = {p.untyped_storage().data_ptr() for p in model.parameters()}

    def saved(count: int) -> int:
        kept = {}

        def keep(tensor):
            if tensor.untyped_storage().data_ptr() not in weights:
                kept[tensor.untyped_storage().data_ptr()] = tensor
            return tensor

        images = torch.zeros(count, 1, 32, 32, dtype=torch.uint8)
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            model(images)
            return sum(tensor.untyped_storage().nbytes() for tensor in kept.values())

    assert estimate.network_cost(config, channels=1).activations == saved(9) - saved(8)


def test_chunks_cost_a_forward_pass_more_and_less_memory():
    network = estimate.NetworkCost(10, 20, 2**20, 1000, ())
    config = cnn_config(**{"train.classes_per_batch": 64, "train.images_per_class": 4})
    whole = estimate.run_cost(config, network, 100, 650, 0, 1)
    chunked = estimate.run_cost(
        config.with_values({"train.chunk_size": 16}), network, 100, 650, 0, 1
    )
    assert whole.operations == 100 * 256 * 30
    assert chunked.operations == 100 * 256 * 40
    assert whole.gpu_bytes - chunked.gpu_bytes == (256 - 16) * 2**20
    halves = estimate.run_cost(config, network, 100, 650, 0, 2)
    assert halves.operations == whole.operations
    assert whole.gpu_bytes - halves.gpu_bytes == 128 * 2**20


def test_hours():
    assert math.isclose(estimate.hours(3.6e18, 1.0), 1000.0)


def test_layouts_are_spelled_out():
    config = cnn_config(**{"train.classes_per_batch": 1000, "train.images_per_class": 4})
    chunked = config.with_values({"train.chunk_size": 100})
    assert outlook_text.batch_layout(config, 1) == "4,000 = 1000 x 4"
    assert (
        outlook_text.batch_layout(chunked, 8) == "4,000 = 1000 x 4: 8 GPUs x 500 in 5 chunks of 100"
    )
