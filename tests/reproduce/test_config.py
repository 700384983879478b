"""Configurations: everything that is wrong is named, nothing is overridden silently."""

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from common.errors import UserError
from reproduce import config as module
from reproduce.config import CONFIG_FOLDER, dump, load, parse

SMALL = """
data: {name: glyphs}
model: {backbone: glyph_cnn}
loss: {name: proxy_anchor}
train: {epochs: 1, classes_per_batch: 2, images_per_class: 2, learning_rate: 0.1}
"""


def write(folder: Path, text: str, name: str = "a.yaml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    "path", sorted(p for p in CONFIG_FOLDER.rglob("*.yaml") if not p.name.startswith("_")), ids=str
)
def test_every_committed_configuration_is_valid_and_survives_a_round_trip(path, tmp_path):
    config = load(path)
    assert load(write(tmp_path, dump(config))) == config


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("train: {epochz: 3}", "train.epochz"),
        ("trian: {}", "trian"),
        ("train: {epochs: many}", "train.epochs"),
        ("train: {epochs: '3'}", "train.epochs"),
        ("train: {epochs: 1.5}", "train.epochs"),
        ("train: {epochs: true}", "train.epochs"),
        ("train: {learning_rate: -1}", "train.learning_rate"),
        ("train: {optimiser: lion}", "train.optimiser"),
        ("loss: {name: proxy_anchor, tcm: {margin_plus: 1.5}}", "loss.tcm.margin_plus"),
        ("loss: {name: proxy_anchor, tcm: {margin: 0.5}}", "loss.tcm.margin"),
        ("evaluation: {far_range: [0.1]}", "evaluation.far_range"),
        ("data: {name: glyphs, evaluate_on: validation}", "validation_fraction"),
        ("seed: -1", "seed"),
        ("evaluation: {ks: [2, 4]}", "ks must hold 1"),
        ("evaluation: {distance: poincare}", "model.options.head=hyperbolic"),
        (
            "model: {backbone: glyph_cnn, options: {head: hyperbolic, curvature: 0.5}}\n"
            "evaluation: {distance: poincare}",
            "evaluation.curvature is not model.options.curvature",
        ),
        ("train: {selection: validation}", "data.validation_fraction above 0"),
        ("train: {sync_batch_norm: true, chunk_size: 4}", "sync_batch_norm cannot see a batch"),
        ("train: {schedule: {name: one_cycle, warm_up_steps: 5}}", "warm_up_fraction"),
        ("data: {broken: skip, options: {broken: skip}}", "say it twice"),
        ("data: {batch_strategy: alternate}", "data.batch_strategy"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, text, key):
    base = write(tmp_path, SMALL, "small.yaml")
    path = write(tmp_path, f"base: {base.stem}\n{text}\n")
    with pytest.raises(UserError, match=key):
        load(path)


def test_a_missing_section_is_named(tmp_path):
    with pytest.raises(UserError, match="train"):
        load(write(tmp_path, "data: {name: glyphs}"))


def test_overrides_change_just_their_key(tmp_path):
    path = write(tmp_path, SMALL)
    changed = load(path, ["train.epochs=5", "loss.tcm={lambda_minus: 0.0}"])
    assert changed.train.epochs == 5
    assert changed.loss.tcm.lambda_minus == 0
    assert changed.loss.tcm.margin_plus == 0.9
    assert changed.data == load(path).data


@pytest.mark.parametrize(
    ("text", "value"), [("1e-4", 1e-4), ("2E+1", 20.0), ("1.5e-3", 1.5e-3), ("3", 3.0)]
)
def test_numbers_are_read_as_people_write_them(tmp_path, text, value):
    config = load(write(tmp_path, SMALL), [f"train.learning_rate={text}"])
    assert config.train.learning_rate == value


@pytest.mark.parametrize("text", ["train.epochs", "=3", "train.epoch=3", "seed.x=1", "seed=[", ""])
def test_wrong_overrides_are_errors(tmp_path, text):
    with pytest.raises(UserError):
        load(write(tmp_path, SMALL), [text])


def test_later_bases_and_the_file_itself_win(tmp_path):
    write(tmp_path, SMALL, "small.yaml")
    write(tmp_path, "train: {epochs: 7, weight_decay: 0.5}", "more.yaml")
    config = load(write(tmp_path, "base: [small, more]\ntrain: {epochs: 9}"))
    assert (config.train.epochs, config.train.weight_decay, config.train.learning_rate) == (
        9,
        0.5,
        0.1,
    )


def test_a_circle_of_bases_is_an_error(tmp_path):
    write(tmp_path, "base: b", "a.yaml")
    write(tmp_path, "base: a", "b.yaml")
    with pytest.raises(UserError, match="circle"):
        load(tmp_path / "a.yaml")


def test_yaml_tags_run_no_code(tmp_path):
    marker = tmp_path / "ran"
    text = f"data: !!python/object/apply:pathlib.Path.touch [{marker}]"
    with pytest.raises(UserError, match="YAML"):
        load(write(tmp_path, text))
    assert not marker.exists()


@given(st.text(max_size=200))
def test_any_text_is_a_user_error_of_one_line(text):
    with pytest.raises(UserError) as caught:
        parse(module._parse_yaml(text, "text"), "text")
    assert "\n" not in str(caught.value)


@given(st.binary(max_size=200))
def test_any_file_is_a_user_error(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("fuzz") / "a.yaml"
    path.write_bytes(data)
    with pytest.raises(UserError):
        load(path)


def test_dump_is_plain_yaml():
    config = parse(yaml.safe_load(SMALL), "small")
    assert yaml.safe_load(dump(config)) == config.model_dump(mode="json")
