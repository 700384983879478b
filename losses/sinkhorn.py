"""Balanced assignment of samples to prototypes by Sinkhorn's algorithm."""

from __future__ import annotations

import math

import torch

ITERATIONS = 100


def sinkhorn_plan(scores: torch.Tensor, temperature: float) -> torch.Tensor:
    """The plan exp(scores / temperature) scaled to equal row sums and equal column sums.

    Shape (B, M) -> (B, M); rows sum to 1 / B and columns to 1 / M, up to the convergence of 100
    iterations (Cuturi, "Sinkhorn Distances", NeurIPS 2013; in the log domain, so that no
    temperature overflows). The columns come last and are exact to rounding.
    """
    count, prototypes = scores.shape
    plan = scores / temperature
    for _ in range(ITERATIONS):
        plan = plan - plan.logsumexp(1, keepdim=True) - math.log(count)
        plan = plan - plan.logsumexp(0, keepdim=True) - math.log(prototypes)
    return plan.exp()
