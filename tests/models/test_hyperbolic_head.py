"""The head onto the Poincaré ball against its formula, and where it could break."""

from __future__ import annotations

import math

import pytest
import torch

import models
from models.head import ToPoincare

SETTINGS = {"backbone": "glyph_vit", "in_channels": 1, "image_size": 32, "width": 24, "depth": 1}
SETTINGS |= {"embedding_dim": 8, "pooling": "token", "head": "hyperbolic"}
SETTINGS |= {"layer_norm": True, "layer_norm_affine": False, "head_init": "orthogonal"}


@pytest.mark.parametrize("length", [1e-6, 0.5, 2.2, 2.3, 40.0])
@pytest.mark.parametrize("curvature", [0.1, 1.0])
def test_formula(length: float, curvature: float) -> None:
    direction = torch.tensor([[3.0, -4.0, 12.0]], dtype=torch.float64) / 13
    point = ToPoincare(curvature, 2.3)(length * direction)
    clipped = min(length, 2.3)
    radius = math.tanh(math.sqrt(curvature) * clipped) / math.sqrt(curvature)
    torch.testing.assert_close(point, radius * direction, rtol=1e-10, atol=0)


def test_zero_stays_zero_with_finite_gradient() -> None:
    tangent = torch.zeros(2, 4, requires_grad=True)
    ToPoincare()(tangent).sum().backward()
    assert torch.isfinite(tangent.grad).all()
    assert not ToPoincare()(torch.zeros(2, 4)).any()


def test_network_stays_inside_the_ball_and_is_not_normalised() -> None:
    torch.manual_seed(0)
    model = models.build(**SETTINGS)
    points = model(torch.randn(16, 1, 32, 32))
    norms = points.norm(dim=1)
    # Clipped at 2.3: tanh(sqrt(0.1) 2.3) / sqrt(0.1) = 1.9651.
    assert norms.max() <= 1.96513
    assert 0.1 * norms.max() ** 2 < 1
    assert len(model.head_parameters()) == 2
    assert models.build(**SETTINGS | {"head": "linear"}).normalise


def test_float32_under_autocast() -> None:
    model = models.build(**SETTINGS)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        points = model(torch.randn(4, 1, 32, 32))
    assert points.dtype == torch.float32
    points.square().sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in model.head_parameters())
