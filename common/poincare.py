"""The Poincaré ball: what HIER's head, losses and evaluation share.

Points x have ``curvature * |x|^2 < 1`` (the curvature is written as c > 0, the ball's is -c). The
formulas are those of Ganea, Bécigneul and Hofmann, "Hyperbolic Neural Networks", NeurIPS 2018.
"""

from __future__ import annotations

import torch

# Points are kept this far inside the ball, as a share of its radius (HIER's released code).
BOUNDARY = 1e-3


def to_ball(
    tangent: torch.Tensor,
    curvature: float,
    clip_radius: float | None = None,
    riemannian: bool = True,
) -> torch.Tensor:
    """Maps vectors (..., D) to the ball: clip the norm, exponential map at the origin, project.

    Args:
        tangent: vectors of the tangent space at the origin; zero is mapped to zero.
        curvature: c > 0.
        clip_radius: longer vectors are shortened to this length first (Guo et al., "Clipped
            Hyperbolic Classifiers Are Super-Hyperbolic Classifiers", CVPR 2022); None: not.
        riemannian: scale the gradient of the points by ((1 - c|x|^2) / 2)^2, the inverse of the
            ball's metric, as HIER's released code does. What flows back is then not the plain
            gradient of the loss.
    """
    if clip_radius is not None:
        norm = _norm(tangent)
        tangent = tangent * (clip_radius / norm.clamp(min=clip_radius))
    points = project(exp_map_zero(tangent, curvature), curvature)
    return _RiemannianGradient.apply(points, curvature) if riemannian else points


def exp_map_zero(tangent: torch.Tensor, curvature: float) -> torch.Tensor:
    """tanh(sqrt(c) |u|) u / (sqrt(c) |u|): the end of the geodesic from the origin along u.

    Shape (..., D) -> (..., D). Very long vectors are rounded to the boundary: see :func:`project`.
    """
    length = curvature**0.5 * _norm(tangent)
    return tangent * (length.tanh() / length)


def project(points: torch.Tensor, curvature: float) -> torch.Tensor:
    """Points (..., D) beyond (1 - 1e-3) of the ball's radius are moved back to it."""
    limit = (1 - BOUNDARY) / curvature**0.5
    return points * (limit / _norm(points).clamp(min=limit))


def distance(x: torch.Tensor, y: torch.Tensor, curvature: float) -> torch.Tensor:
    """Geodesic distances of matched points, (..., D) and (..., D) -> (...).

    2/sqrt(c) arsinh sqrt(c |x-y|^2 / ((1-c|x|^2)(1-c|y|^2))), which equals the usual
    2/sqrt(c) artanh(sqrt(c) |(-x) (+) y|) but keeps its digits close to the boundary. At distance
    zero the gradient is zero.
    """
    gap = (x - y).square().sum(-1)
    return _from_squared_gap(gap, _depth(x, curvature), _depth(y, curvature), curvature)


def distance_matrix(x: torch.Tensor, y: torch.Tensor, curvature: float) -> torch.Tensor:
    """Geodesic distances of all points to all others, (N, D) and (M, D) -> (N, M).

    From one matrix product, without an (N, M, D) tensor. The squared Euclidean gap is a difference
    of rounded numbers, so that float32 resolves distances of about 1e-3 and more; give float64
    where smaller ones matter. Formula and gradient at zero: :func:`distance`.
    """
    x_square, y_square = x.square().sum(-1), y.square().sum(-1)
    gap = x_square[:, None] + y_square[None, :] - 2 * (x @ y.T)
    x_depth, y_depth = 1 - curvature * x_square, 1 - curvature * y_square
    return _from_squared_gap(gap, x_depth[:, None], y_depth[None, :], curvature)


def _from_squared_gap(gap, x_depth, y_depth, curvature: float) -> torch.Tensor:
    ratio = curvature * gap / (x_depth * y_depth)
    # The root has an infinite slope at zero: there, and at gaps rounded below, 0 is a constant.
    positive = ratio > 0
    root = torch.where(positive, ratio, 1).sqrt()
    return torch.where(positive, 2 / curvature**0.5 * torch.asinh(root), 0)


def _depth(x: torch.Tensor, curvature: float) -> torch.Tensor:
    """1 - c|x|^2: 1 at the origin, 0 on the boundary."""
    return 1 - curvature * x.square().sum(-1)


def _norm(x: torch.Tensor) -> torch.Tensor:
    """Norms with the last dimension kept, above zero, and with a zero gradient at zero."""
    return x.norm(dim=-1, keepdim=True).clamp(min=torch.finfo(x.dtype).tiny ** 0.5)


class _RiemannianGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, points, curvature):
        ctx.save_for_backward(points)
        ctx.curvature = curvature
        return points.view_as(points)

    @staticmethod
    def backward(ctx, grad_points):
        (points,) = ctx.saved_tensors
        scale = _depth(points, ctx.curvature).square().unsqueeze(-1) / 4
        return grad_points * scale, None
