"""Poincaré ball operations against geoopt, in float64."""

import geoopt
import pytest
import torch
from geoopt.manifolds.stereographic import math as reference

from common import poincare

CURVATURES = (0.1, 1.0)


def points(count, dim, curvature, seed=0, share=None):
    """Random points; ``share`` of the ball's radius, or all radii up to 0.999."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(count, dim, generator=generator, dtype=torch.float64)
    radius = torch.rand(count, 1, generator=generator, dtype=torch.float64) * 0.999
    radius = radius if share is None else torch.full_like(radius, share)
    return x / x.norm(dim=1, keepdim=True) * radius / curvature**0.5


def ball(curvature):
    return geoopt.PoincareBall(c=torch.tensor(curvature, dtype=torch.float64))


@pytest.mark.parametrize("curvature", CURVATURES)
def test_exponential_map_and_projection_are_geoopts(curvature):
    u = torch.randn(50, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(1)) * 3
    k = torch.tensor(-curvature, dtype=torch.float64)
    expected = reference.expmap0(u, k=k)
    torch.testing.assert_close(
        poincare.exp_map_zero(u, curvature), expected, rtol=1e-12, atol=1e-12
    )
    far = points(20, 8, curvature, share=0.9999)
    expected = reference.project(far, k=k, eps=poincare.BOUNDARY)
    torch.testing.assert_close(poincare.project(far, curvature), expected, rtol=1e-12, atol=0)
    near = points(20, 8, curvature, share=0.5)
    torch.testing.assert_close(poincare.project(near, curvature), near, rtol=0, atol=0)


@pytest.mark.parametrize("curvature", CURVATURES)
@pytest.mark.parametrize("share", [None, 1e-6, 0.5, 0.999, 1 - 1e-6])
def test_distances_are_geoopts_up_to_the_boundary(curvature, share):
    x = points(12, 5, curvature, seed=2, share=share)
    y = points(9, 5, curvature, seed=3, share=share)
    expected = ball(curvature).dist(x[:, None], y[None, :])
    # geoopt clamps the argument of artanh at 1 - 1e-7: beyond, the closed form is the oracle.
    gap = (x[:, None] - y[None, :]).square().sum(-1)
    depth = (1 - curvature * x.square().sum(-1))[:, None] * (1 - curvature * y.square().sum(-1))
    closed = torch.acosh(1 + 2 * curvature * gap / depth) / curvature**0.5
    limit = 2 * torch.atanh(torch.tensor(1 - 1e-7)).item() / curvature**0.5
    expected = torch.where(closed < 0.95 * limit, expected, closed)
    matrix = poincare.distance_matrix(x, y, curvature)
    torch.testing.assert_close(matrix, expected, rtol=1e-7, atol=1e-9)
    matched = poincare.distance(x[:9], y, curvature)
    torch.testing.assert_close(matched, expected[:9].diagonal(), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("function", ["distance", "distance_matrix"])
def test_gradients_are_geoopts(function):
    x, y = points(6, 4, 0.1, seed=4), points(6, 4, 0.1, seed=5)
    x.requires_grad_()
    weights = torch.rand(6, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(6))
    if function == "distance":
        ours = (poincare.distance(x, y, 0.1) * weights[0]).sum()
        expected = (ball(0.1).dist(x, y) * weights[0]).sum()
    else:
        ours = (poincare.distance_matrix(x, y, 0.1) * weights).sum()
        expected = (ball(0.1).dist(x[:, None], y[None, :]) * weights).sum()
    (a,) = torch.autograd.grad(ours, x)
    (b,) = torch.autograd.grad(expected, x)
    torch.testing.assert_close(a, b, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_at_zero_distance_and_at_the_origin_gradients_are_finite(dtype):
    x = torch.zeros(3, 4, dtype=dtype)
    x[1:] = points(2, 4, 0.1, seed=7).to(dtype)
    x.requires_grad_()
    mapped = poincare.to_ball(x, 0.1, clip_radius=2.3)
    value = poincare.distance_matrix(mapped, mapped, 0.1).sum()
    value = value + poincare.distance(mapped, mapped.clone(), 0.1).sum()
    value.backward()
    assert torch.isfinite(x.grad).all()
    assert float(poincare.distance(mapped, mapped, 0.1).abs().max().detach()) == 0
    origin = torch.zeros(2, 4, dtype=dtype, requires_grad=True)
    poincare.exp_map_zero(origin, 0.1).sum().backward()
    # The map is the identity to first order.
    torch.testing.assert_close(origin.grad, torch.ones_like(origin))


def test_clipping_shortens_long_vectors_only():
    u = torch.tensor([[3.0, 4.0], [0.3, 0.4]], dtype=torch.float64)
    mapped = poincare.to_ball(u, 0.1, clip_radius=2.3)
    lengths = poincare.distance(mapped, torch.zeros_like(mapped), 0.1)
    # The exponential map doubles lengths: the metric at the origin is 4 times the Euclidean one.
    torch.testing.assert_close(lengths, torch.tensor([4.6, 1.0], dtype=torch.float64))


def test_the_riemannian_gradient_is_geoopts():
    u = points(5, 3, 0.1, seed=8)
    weights = torch.rand(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(9))
    u.requires_grad_()
    plain = poincare.to_ball(u, 0.1, riemannian=False)
    scaled = poincare.to_ball(u, 0.1, riemannian=True)
    torch.testing.assert_close(plain, scaled, rtol=0, atol=0)
    (ours,) = torch.autograd.grad(scaled, u, weights)
    rescaled = ball(0.1).egrad2rgrad(plain.detach(), weights)
    (expected,) = torch.autograd.grad(plain, u, rescaled)
    torch.testing.assert_close(ours, expected, rtol=1e-12, atol=0)


def test_half_precision_inputs_are_not_made_infinite():
    u = torch.full((2, 4), 300.0, dtype=torch.bfloat16)
    assert torch.isfinite(poincare.to_ball(u, 0.1, clip_radius=2.3)).all()
