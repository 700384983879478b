"""Scores of pairs: exactly, in float64, and as float32 vectors for the large matrix products."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from common.errors import UserError
from eval import kernels
from eval.geometry import Geometry
from eval.prepared import Prepared, Side

# Exact scores are rounded to so many decimals: what is computed in another order then still ties.
RESOLUTION = 12
# Two float32 scores of vectors of length 1 that are nearer than this are compared in float64.
TOLERANCE = 1e-5
# Unit vectors with a mean of square length above 1 - TIGHT are centred before float32 sees them.
TIGHT = 0.25
CHUNK = 8192


@dataclass(frozen=True)
class Single:
    """Float32 vectors: the score is ``left_i . right_j + offset``.

    Attributes:
        left, right: (Q, D') and (G, D') in sorted order, on the embeddings' device.
        offset: keeps the digits where all scores are nearly equal.
        tolerance: products that differ by more are ordered as the exact scores are.
    """

    left: torch.Tensor
    right: torch.Tensor
    offset: float
    tolerance: float


class Scores:
    """The scores of one prepared set in one geometry.

    Raises:
        UserError: an embedding outside of the Poincaré ball, with its row.
    """

    def __init__(self, images: Prepared, geometry: Geometry) -> None:
        self.images, self.geometry = images, geometry
        self._terms = {
            id(side): _terms(side, geometry) for side in (images.queries, images.gallery)
        }

    def block(self, rows: slice | np.ndarray, columns: slice) -> np.ndarray:
        """(r, c) float64 scores of sorted queries against sorted gallery images, rounded."""
        queries, gallery = self.images.queries, self.images.gallery
        f, g = (term[queries.order[rows]] for term in self._terms[id(queries)])
        h, k = (term[gallery.order[columns]] for term in self._terms[id(gallery)])
        products = (queries.rows(rows) @ gallery.rows(columns).T).cpu().numpy()
        products *= self.geometry.slope
        if not self.geometry.spherical:
            products += g[:, None]
            products += k
        products *= f[:, None]
        products *= h
        return np.round(products, RESOLUTION, out=products)

    def rows(self, queries: np.ndarray) -> np.ndarray:
        """(q, G) float64 scores of some queries against the whole gallery, rounded."""
        parts = _chunks(len(self.images.gallery.codes))
        return np.concatenate([self.block(queries, slice(*part)) for part in parts], axis=1)

    def pairs(self, pairs: np.ndarray) -> np.ndarray:
        """(E,) float64 scores of (query, gallery image) pairs (E, 2), rounded."""
        queries, gallery = self.images.queries, self.images.gallery
        a, b = queries.order[pairs[:, 0]], gallery.order[pairs[:, 1]]
        (f, g), (h, k) = self._terms[id(queries)], self._terms[id(gallery)]
        if queries.embeddings.device.type == "cpu":
            products = np.empty(len(a))
            x, y = queries.embeddings.numpy(), gallery.embeddings.numpy()
            kernels.paired_products(x, y, a, b, products)
        else:
            products = _gathered_products(queries.embeddings, gallery.embeddings, a, b)
        scores = f[a] * h[b] * (self.geometry.slope * products + (g[a] + k[b]))
        return np.round(scores, RESOLUTION)

    def single(self) -> Single:
        """Float32 vectors; tight sets and hyperbolic ones are moved to the origin first.

        Between vectors p = x - mean the score is a f f (p.p' - |p|^2 / 2 - |p'|^2 / 2) + offset,
        whose terms are as small as the spread: float32 then resolves what 1 - 1e-7 hides.
        """
        queries, gallery = self.images.queries, self.images.gallery
        if self.geometry.spherical:
            right, mean = self._unit(gallery)
            if 1 - float(mean @ mean) > TIGHT or self._has_zeros():
                left = right if gallery is queries else self._unit(queries)[0]
                return Single(left, right, 0.0, TOLERANCE)
        else:
            mean = gallery.embeddings.mean(0, dtype=torch.float64)
        reach = max(
            self._reach(side, mean) for side in {id(s): s for s in (queries, gallery)}.values()
        )
        balance = max(reach / 2**0.5, np.finfo(np.float32).tiny ** 0.5)
        left = self._centred(queries, mean, balance, left=True)
        right = self._centred(gallery, mean, balance, left=False)
        longest = float(left.norm(dim=1).max()) * float(right.norm(dim=1).max())
        offset = 1.0 if self.geometry.spherical else 0.0
        return Single(left, right, offset, TOLERANCE * longest)

    def _unit(self, side: Side) -> tuple[torch.Tensor, torch.Tensor]:
        """(n, D) float32 unit vectors and their mean (D,)."""
        x = side.embeddings
        out = torch.empty((len(side.codes), x.shape[1]), dtype=torch.float32, device=x.device)
        total = torch.zeros(x.shape[1], dtype=torch.float64, device=x.device)
        f = self._terms[id(side)][0][side.order]
        for begin, stop in _chunks(len(out)):
            unit = side.rows(slice(begin, stop)) * torch.from_numpy(f[begin:stop, None]).to(
                x.device
            )
            total += unit.sum(0)
            out[begin:stop] = unit
        return out, total / len(out)

    def _has_zeros(self) -> bool:
        """Zero vectors stay at the origin: moving it would give them other scores."""
        sides = (self.images.queries, self.images.gallery)
        return any(bool((side.embeddings == 0).all(1).any()) for side in sides)

    def _moved(self, side: Side, mean: torch.Tensor, begin: int, stop: int):
        """p (n, D) and f (n, 1) of the docstring of :meth:`single`, float64."""
        x = side.rows(slice(begin, stop))
        f = torch.from_numpy(self._terms[id(side)][0][side.order[begin:stop], None]).to(x.device)
        if self.geometry.spherical:
            return x * f - mean, torch.ones_like(f)
        return x - mean, f

    def _reach(self, side: Side, mean: torch.Tensor) -> float:
        parts = [self._moved(side, mean, *chunk)[0] for chunk in _chunks(len(side.codes))]
        return max(float(part.norm(dim=1).max()) for part in parts)

    def _centred(self, side: Side, mean, balance: float, left: bool) -> torch.Tensor:
        n, dimensions = len(side.codes), side.embeddings.shape[1]
        out = torch.empty((n, dimensions + 2), dtype=torch.float32, device=mean.device)
        for begin, stop in _chunks(n):
            p, f = self._moved(side, mean, begin, stop)
            own = -(p * p).sum(1, keepdim=True) / (2 * balance)
            other = torch.full_like(own, balance)
            both = (own, other) if left else (other, own)
            out[begin:stop] = self.geometry.slope**0.5 * f * torch.cat([p, *both], 1)
        return out


def _terms(side: Side, geometry: Geometry) -> tuple[np.ndarray, np.ndarray]:
    """f and g of all rows, in the order in which they came."""
    parts = [geometry.terms(rows.double()) for rows in side.embeddings.split(CHUNK)]
    f, g = (torch.cat(part).cpu().numpy() for part in zip(*parts, strict=True))
    outside = np.flatnonzero(~((f > 0) & np.isfinite(f)))
    if len(outside):
        raise UserError(
            f"row {outside[0]} lies outside of the Poincaré ball: give points of the ball, or "
            "another curvature"
        )
    return f, g


def _gathered_products(x: torch.Tensor, y: torch.Tensor, a: np.ndarray, b: np.ndarray):
    """(E,) float64 inner products of matched rows, by torch."""
    parts = [np.empty(0)]
    for begin, stop in _chunks(len(a)):
        i, j = (torch.from_numpy(index[begin:stop]).to(x.device) for index in (a, b))
        parts.append((x[i].double() * y[j].double()).sum(1).cpu().numpy())
    return np.concatenate(parts)


def _chunks(n: int) -> list[tuple[int, int]]:
    return [(begin, min(n, begin + CHUNK)) for begin in range(0, n, CHUNK)]
