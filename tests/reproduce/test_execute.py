"""Whole runs at a tiny size: reuse, bit-equal repetition, resuming, what a run leaves behind."""

import hashlib
import os
import signal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from safetensors.numpy import load_file, save_file

import datasets
from common.errors import UserError
from datasets.index import Index
from eval import evaluate
from losses import TCMLoss
from reproduce.config import load
from reproduce.execute import execute, load_source, run_key
from reproduce.runtime import Runtime
from reproduce.step import TrainingStep
from reproduce.store import RunFolder
from tests.reproduce import small

# What may differ between two runs of the same configuration.
TIMINGS = {"seconds", "train_seconds", "data_wait_seconds", "peak_memory_mb"}
VARYING = TIMINGS | {"reused", "commit", "dirty"}

pytestmark = pytest.mark.usefixtures("small_data")


@pytest.fixture(scope="module")
def small_data():
    small.register()


def config(name: str = "demo/kanji_proxy_anchor", **values):
    return load(name).with_values(small.VALUES | {"model.options": {"width": 8}} | values)


def runtime(folder: Path, **changes) -> Runtime:
    return Runtime(**{"runs": folder, "progress": False} | changes)


def folder_of(run, where: Runtime) -> RunFolder:
    return RunFolder(run_key(run, load_source(run, where), where), where.runs)


def same_outcome(one: dict, two: dict) -> bool:
    def kept(record):
        return {name: value for name, value in record.items() if name not in VARYING}

    return kept(one) == kept(two)


def same_weights(one: RunFolder, two: RunFolder) -> bool:
    a, b = load_file(one.weights), load_file(two.weights)
    return a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)


@pytest.fixture(scope="module")
def finished(tmp_path_factory, small_data):
    where = runtime(tmp_path_factory.mktemp("runs"))
    run = config()
    return run, where, execute(run, where)


def test_a_finished_run_is_reused_and_says_so(finished):
    run, where, record = finished
    assert not record["reused"]
    again = execute(run, where)
    assert again["reused"]
    assert same_outcome(record, again)


def test_a_run_repeated_elsewhere_is_the_same_to_the_last_bit(finished, tmp_path):
    run, where, record = finished
    elsewhere = runtime(tmp_path)
    assert same_outcome(record, execute(run, elsewhere))
    assert same_weights(folder_of(run, where), folder_of(run, elsewhere))


def test_force_trains_again(finished):
    run, where, record = finished
    again = execute(run, where, force=True)
    assert not again["reused"]
    assert same_outcome(record, again)


def test_the_record_is_what_the_saved_embeddings_give(finished):
    run, where, record = finished
    with np.load(folder_of(run, where).embeddings) as saved:
        result = evaluate(
            saved["embeddings"],
            saved["labels"],
            domains=saved["domains"],
            grid_points=run.evaluation.grid_points,
        )
    assert result.opis == pytest.approx(record["metrics"]["opis"], rel=1e-9)
    assert result.recall_at[1] == record["metrics"]["recall_at_1"]


def test_proxies_move_and_are_saved(finished, tmp_path):
    run, where, _ = finished
    untrained = runtime(tmp_path)
    none = run.with_values({"train.epochs": 0})
    execute(none, untrained)
    before = load_file(folder_of(none, untrained).weights)
    after = load_file(folder_of(run, where).weights)
    proxies = [name for name in after if name.startswith("loss.")]
    assert proxies
    assert all(not np.array_equal(before[name], after[name]) for name in proxies)


def test_pairs_share_initial_weights_and_batches(finished, tmp_path):
    run, *_ = finished
    start = run.with_values({"train.epochs": 0})
    with_tcm = start.with_values({"loss.tcm": {}})
    for each in (start, with_tcm):
        execute(each, runtime(tmp_path))
    assert same_weights(folder_of(start, runtime(tmp_path)), folder_of(with_tcm, runtime(tmp_path)))


@pytest.mark.parametrize("name", ["demo/kanji_arcface", "demo/kanji_recall_at_k"])
def test_a_run_stopped_and_resumed_ends_as_if_undisturbed(name, tmp_path, monkeypatch):
    run = config(name, **{"loss.tcm": {}})
    undisturbed = execute(run, runtime(tmp_path / "a"))
    where = runtime(tmp_path / "b")

    whole, calls = TrainingStep.__call__, []

    def stop_in_the_fifth(self, images, labels):
        calls.append(1)
        if len(calls) == 5:
            os.kill(os.getpid(), signal.SIGTERM)
        return whole(self, images, labels)

    monkeypatch.setattr(TrainingStep, "__call__", stop_in_the_fifth)
    with pytest.raises(UserError, match="stopped by SIGTERM"):
        execute(run, where)
    monkeypatch.undo()
    assert folder_of(run, where).checkpoint.exists()
    assert same_outcome(undisturbed, execute(run, where))
    assert same_weights(folder_of(run, runtime(tmp_path / "a")), folder_of(run, where))
    assert not folder_of(run, where).checkpoint.exists()


def test_chunks_with_batch_norm_are_refused_by_name(tmp_path):
    with pytest.raises(UserError, match=r"train\.chunk_size"):
        execute(config(**{"train.chunk_size": 8}), runtime(tmp_path))


def test_chunks_give_the_same_training_as_one_pass(tmp_path):
    options = {"model.options": {"width": 8, "norm": "group"}}
    whole = execute(config(**options), runtime(tmp_path))
    chunked = execute(config(**options, **{"train.chunk_size": 8}), runtime(tmp_path))
    assert chunked["metrics"]["opis"] == pytest.approx(whole["metrics"]["opis"], rel=1e-3)


def test_embeddings_that_are_not_finite_stop_the_run_with_step_and_images(tmp_path):
    run = config(**{"train.learning_rate": 1e30, "train.schedule": {"name": "constant"}})
    with pytest.raises(UserError) as caught:
        execute(run, runtime(tmp_path))
    first = (
        "not finite at epoch 0, batch 1: embeddings are NaN or infinite; the batch starts with ["
    )
    assert first in str(caught.value)
    assert "lower train.learning_rate" in str(caught.value)


@pytest.mark.parametrize(("name", "value"), [("tcm", "nan"), ("tcm", "inf")])
def test_the_term_of_a_loss_that_is_not_finite_is_named(tmp_path, monkeypatch, name, value):
    whole, calls = TCMLoss.forward, []

    def spoiled(self, embeddings, labels):
        calls.append(1)
        factor = float(value) if len(calls) == 5 else 1.0
        return whole(self, embeddings, labels) * factor

    monkeypatch.setattr(TCMLoss, "forward", spoiled)
    with pytest.raises(UserError, match=rf"epoch 1, batch 1: .*{name} is {value}") as caught:
        execute(config(**{"loss.tcm": {}}), runtime(tmp_path))
    assert "base is" not in str(caught.value)


def test_validation_classes_are_cut_from_training_and_test_is_not_touched(tmp_path):
    run = config(**{"data.validation_fraction": 0.25, "data.evaluate_on": "validation"})
    record = execute(run, runtime(tmp_path))
    source = load_source(run, runtime(tmp_path))
    training = source.index.subset(split="train")
    assert record["training_classes"] + record["metrics"]["n_classes"] == len(training.classes)


def test_domains_are_reported_beside_the_whole(finished):
    run, where, record = finished
    metrics = record["metrics"]
    with np.load(folder_of(run, where).embeddings) as saved:
        lines = saved["domains"] == "lines"
        alone = evaluate(saved["embeddings"][lines], saved["labels"][lines])
    # Images of the other domain can only take hits away.
    assert 0 < metrics["lines_recall_at_1"] <= alone.recall_at[1]
    assert {"dots_opis", "lines_opis", "opis_across_domains"} <= metrics.keys()


def test_equalised_domains_have_as_many_images_in_every_class(tmp_path):
    run = config(**{"evaluation.equalise_domains": True, "train.epochs": 0})
    record = execute(run, runtime(tmp_path))
    classes = sum(small.CLASSES["test", domain] for domain in small.IMAGES)
    assert record["metrics"]["n_images"] == classes * min(small.IMAGES.values())
    assert "testing on 6 images of each class" in record["notes"]


def test_false_accept_rates_are_those_of_the_configuration(tmp_path):
    run = config(**{"evaluation.tar_at": [0.1, 0.01], "train.epochs": 0})
    metrics = execute(run, runtime(tmp_path))["metrics"]
    found = {name for name in metrics if name.startswith("tar_at_far")}
    assert found == {"tar_at_far_0.1", "tar_at_far_0.01"}
    assert metrics["tar_at_far_0.1"] >= metrics["tar_at_far_0.01"] > 0


def test_notes_are_sentences_apart(tmp_path, monkeypatch):
    whole = small.load

    def with_notes(root=None):
        source = whole(root)
        source.index = Index("small", source.index.table, "f", ("one thing", "another"))
        return source

    monkeypatch.setattr(small, "load", with_notes)
    record = execute(config(**{"train.epochs": 0}), runtime(tmp_path))
    assert record["notes"] == "one thing; another"


def test_a_weights_file_is_part_of_what_decides_a_run(tmp_path):
    run = config(**{"train.epochs": 0})
    where = runtime(tmp_path / "runs")
    backbone = {
        name.removeprefix("model.network.backbone."): value
        for name, value in load_file(trained_elsewhere(run, tmp_path).weights).items()
        if name.startswith("model.network.backbone.")
    }
    file = tmp_path / "backbone.safetensors"
    save_file(backbone, file)
    given = runtime(tmp_path / "runs", weights=file)
    record = execute(run, given)
    assert record["run_hash"] != execute(run, where)["run_hash"]
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    assert record["initial_weights"] == {"name": "backbone.safetensors", "sha256": digest}
    for name, value in backbone.items():
        np.testing.assert_array_equal(
            load_file(folder_of(run, given).weights)[f"model.network.backbone.{name}"], value
        )
    with pytest.raises(UserError, match=r"none\.pth: there is no such file"):
        execute(run, runtime(tmp_path / "runs", weights=tmp_path / "none.pth"))


def trained_elsewhere(run, tmp_path: Path) -> RunFolder:
    other = run.with_values({"seed": 5})
    execute(other, runtime(tmp_path / "elsewhere"))
    return folder_of(other, runtime(tmp_path / "elsewhere"))


def test_what_was_asked_of_the_machine_is_recorded(finished, tmp_path):
    *_, record = finished
    assert (record["amp"], record["tf32"], record["processes"]) == ("off", False, 1)
    options = {"train.amp": "bf16", "train.channels_last": True, "loss.tcm": {}}
    record = execute(config(**options), runtime(tmp_path))
    assert record["amp"] == "bfloat16"
    assert 0 < record["metrics"]["opis"] < 1
    with pytest.raises(UserError, match=r"train\.amp=fp16 needs a CUDA device"):
        execute(config(**{"train.amp": "fp16"}), runtime(tmp_path))


def test_channels_last_is_a_matter_of_memory_alone(tmp_path):
    plain = execute(config(), runtime(tmp_path))
    last = execute(config(**{"train.channels_last": True}), runtime(tmp_path))
    assert last["metrics"]["opis"] == pytest.approx(plain["metrics"]["opis"], rel=1e-3)


def test_the_folder_of_a_run_tells_its_story(finished):
    run, where, _ = finished
    folder = folder_of(run, where)
    assert load(folder.path / "config.yaml") == run
    log = folder.log.read_text()
    assert "starts after step 0 of 6" in log
    assert "torch==" in log
    assert "epoch 2 done: step=6 loss=" in log
    history = pd.read_csv(folder.history)
    assert {"loss", "base", "gradient_norm", "learning_rate", "images_per_second"} <= {*history}


def test_domains_take_turns_in_batches(tmp_path, monkeypatch):
    seen = []
    whole = TrainingStep.__call__

    def watched(self, images, labels):
        seen.append(labels.tolist())
        return whole(self, images, labels)

    monkeypatch.setattr(TrainingStep, "__call__", watched)
    run = config(**{"data.batch_strategy": "round_robin"})
    execute(run, runtime(tmp_path))
    classes = small.load().index.subset(split="train").classes
    domains = [{classes[code].split("/")[0] for code in labels} for labels in seen]
    # Three batches in each epoch, of which each begins with the first domain.
    assert domains == [{"dots"}, {"lines"}, {"dots"}] * 2


def test_glyphs_have_no_files_to_skip(tmp_path):
    with pytest.raises(UserError, match=r"data\.broken=error"):
        execute(load("demo/kanji_arcface", ["data.broken=skip"]), runtime(tmp_path))


def test_broken_images_stop_the_run_by_name_or_are_left_out_and_counted(tmp_path):
    rng = np.random.default_rng(0)
    for number in range(48):
        place = tmp_path / "data" / f"class{number % 6}" / f"{number}.png"
        place.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 255, (20, 20, 3), dtype=np.uint8)).save(place)
    training = datasets.load(f"folder:{tmp_path / 'data'}").index.subset(split="train")
    broken = tmp_path / "data" / training.table["key"].iloc[0]
    broken.write_bytes(broken.read_bytes()[:60])
    values = {"data.name": f"folder:{tmp_path / 'data'}", "train.classes_per_batch": 3}
    values |= {"train.steps_per_epoch": 2, "data.resize": 16, "train.images_per_class": 4}
    with pytest.raises(UserError, match=r"FAR 0\.001 needs 1,000 cross-class pairs.*make 192"):
        execute(config(**values), runtime(tmp_path / "runs"))
    values |= {"evaluation.tar_at": [0.1]}
    for workers in (0, 1):
        with pytest.raises(UserError) as caught:
            execute(config(**values), runtime(tmp_path / "runs", workers=workers))
        message = str(caught.value)
        assert message.startswith(f"{broken} cannot be decoded")
        assert "\n" not in message
    skipping = config(**values, **{"data.broken": "skip"})
    record = execute(skipping, runtime(tmp_path / "runs"))
    assert record["training_images"] == len(training) - 1
    assert "1 missing or broken images skipped" in record["notes"]
    assert broken.name in record["notes"]


@pytest.mark.soak
def test_a_compiled_network_trains_alike(tmp_path):
    plain = execute(config(), runtime(tmp_path))
    compiled = execute(config(**{"train.compile": True}), runtime(tmp_path))
    assert compiled["metrics"]["opis"] == pytest.approx(plain["metrics"]["opis"], rel=1e-2)
