"""What every loss asks of its batch, and the precision it computes in."""

from __future__ import annotations

import torch

from common.errors import UserError


def prepare(
    embeddings: torch.Tensor, labels: torch.Tensor, num_classes: int | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Checks a batch: embeddings (B, D), labels (B,) -> float32 or float64 (B, D), int64 (B,).

    Half precision becomes float32 (losses overflow in less), float64 stays; labels move to the
    device of the embeddings.

    Raises:
        UserError: no image, shapes that do not fit, NaN or infinite embeddings, labels that are not
            whole numbers or lie outside [0, num_classes).
    """
    if embeddings.ndim != 2 or labels.shape != embeddings.shape[:1] or len(labels) == 0:
        raise UserError(
            f"a loss takes embeddings (B, D) and labels (B,) with B > 0, got "
            f"{tuple(embeddings.shape)} and {tuple(labels.shape)}"
        )
    if labels.is_floating_point() or labels.dtype in (torch.bool, torch.complex64):
        raise UserError(f"labels are class numbers (integers), got {labels.dtype}")
    labels = labels.to(embeddings.device, torch.int64)
    bad = ~torch.isfinite(embeddings).all()
    if num_classes is not None:
        bad |= (labels.min() < 0) | (labels.max() >= num_classes)
    # One question to the device; which of the two it was is asked only if something was wrong.
    if bad:
        if not torch.isfinite(embeddings).all():
            raise UserError(
                "embeddings contain NaN or infinite values; lower the learning rate or turn off AMP"
            )
        raise UserError(
            f"labels run from {int(labels.min())} to {int(labels.max())}, "
            f"but the loss was built for classes 0 to {num_classes - 1}"
        )
    return embeddings if embeddings.dtype == torch.float64 else embeddings.float(), labels


def prepare_points(
    points: torch.Tensor, labels: torch.Tensor, curvature: float, num_classes: int | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Like :func:`prepare`, for points of the Poincaré ball.

    Raises:
        UserError: also where a point lies outside the ball, 1 / sqrt(curvature) from the origin.
    """
    points, labels = prepare(points, labels, num_classes)
    if (curvature * points.square().sum(1)).max() >= 1:
        raise UserError(
            f"embeddings lie outside the ball of curvature {curvature}; "
            "this loss needs a network with a hyperbolic head of the same curvature"
        )
    return points, labels
