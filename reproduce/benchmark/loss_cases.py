"""What the loss benchmark times: our losses, the bare similarity matrix, and straightforward peers.

Every case is a function that makes its inputs and returns a step: forward and backward, no update.
"""

from __future__ import annotations

from collections.abc import Callable

import timm
import torch
from pytorch_metric_learning.losses import ThresholdConsistentMarginLoss
from torch import nn
from torch.nn import functional

import losses
from common import poincare
from losses.ancestors import reciprocal_neighbours
from losses.hier import HIERLoss, HIERRegulariser
from losses.hyperbolic_proxy_anchor import HyperbolicProxyAnchorLoss

Step = Callable[[], object]
CURVATURE, CLIP_RADIUS = 0.1, 2.3


def clustered(count: int, dim: int, per_class: int, device: str):
    """Embeddings (count, dim) around class centres, with pairs on both sides of TCM's margins."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(count) // per_class
    centres = torch.randn(int(labels[-1]) + 1, dim, generator=generator)
    common = torch.randn(dim, generator=generator)
    x = common + centres[labels] + 0.7 * torch.randn(count, dim, generator=generator)
    return x.to(device).requires_grad_(), labels.to(device)


def step_of(loss: nn.Module, count: int, dim: int, per_class: int, device: str) -> Step:
    """Forward and backward of a loss on :func:`clustered` embeddings."""
    x, labels = clustered(count, dim, per_class, device)
    loss = loss.to(device)
    return lambda: loss(x, labels).backward()


def similarity_matrix(device: str, count: int = 4000) -> Step:
    """Normalise, x @ x.T, and the gradient of its sum: the least a pair loss can do by autograd."""
    x, _ = clustered(count, 512, 4, device)

    def step():
        unit = functional.normalize(x)
        (unit @ unit.T).sum().backward()

    return step


def tcm(device: str, count: int = 4000) -> Step:
    """Our TCM, 512 dimensions, 4 images of a class."""
    return step_of(losses.TCMLoss(), count, 512, 4, device)


def library_tcm(device: str, count: int = 400) -> Step:
    """pytorch-metric-learning's TCM."""
    return step_of(ThresholdConsistentMarginLoss(), count, 512, 4, device)


def recall_at_k(device: str, count: int = 4000) -> Step:
    """Our RS@K, 512 dimensions, 4 images of a class."""
    return step_of(losses.RecallAtKLoss(), count, 512, 4, device)


def recall_at_k_by_query(device: str, count: int = 4000, per_class: int = 4) -> Step:
    """RS@K with a Python loop over queries and one backward, as published code does it."""
    x, _ = clustered(count, 512, per_class, device)
    ks = torch.tensor([1.0, 2, 4, 8, 16], device=device)

    def step():
        unit = functional.normalize(x)
        total = 0
        for q in range(count):
            s = unit @ unit[q]
            first = q - q % per_class
            others = [p for p in range(first, first + per_class) if p != q]
            above = torch.sigmoid((s[:, None] - s[others]) / 0.01)
            keep = torch.ones_like(above)
            keep[q] = 0
            keep[others, range(len(others))] = 0
            rank = 1 + (above * keep).sum(0)
            hits = torch.sigmoid(ks - rank[:, None]).sum(0)
            recall = torch.minimum(hits, ks) / ks.clamp(max=len(others))
            total = total + (1 - recall.mean()) / count
        total.backward()

    return step


def on_ball(count: int, dim: int, device: str):
    """Points of the Poincaré ball (count, dim), two of a class, as leaves."""
    x, labels = clustered(count, dim, 2, device)
    points = poincare.to_ball(x.detach(), CURVATURE, CLIP_RADIUS)
    return points.requires_grad_(), labels


def hier(device: str, count: int = 180) -> Step:
    """Our HIER regulariser: 384 dimensions, 512 proxies."""
    points, labels = on_ball(count, 384, device)
    loss = HIERRegulariser(384).to(device)
    return lambda: loss(points, labels).backward()


def hier_by_anchor(device: str, count: int = 180) -> Step:
    """The same with a Python loop over anchors, the draws and Gumbel-softmax left to torch."""
    points, labels = on_ball(count, 384, device)
    tangent = HIERRegulariser(384).proxies.detach().to(device).requires_grad_()

    def term(similarity, distances):
        near = reciprocal_neighbours(similarity, 20)
        total, anchors = 0, 0
        for i, row in enumerate(near):
            if row.sum() < 2:
                continue
            j = row.nonzero()[:, 0]
            k = (~row).nonzero()[:, 0]
            j = j[torch.randint(len(j), (50,), device=device)]
            k = k[torch.randint(len(k), (50,), device=device)]
            d_i, d_j, d_k = distances[i].expand(50, -1), distances[j], distances[k]
            of_pair = torch.maximum(d_i, d_j)
            of_triple = torch.maximum(of_pair, d_k)
            pair = functional.gumbel_softmax(-of_pair / 0.1, dim=1, hard=True)
            triple = functional.gumbel_softmax(-of_triple / 0.1, dim=1, hard=True)
            cost = 0
            for d, sign in ((d_i, 1), (d_j, 1), (d_k, -1)):
                gap = (d * pair).sum(1) - (d * triple).sum(1)
                cost = cost + torch.relu(sign * gap + 0.1)
            total = total + (cost * (pair.argmax(1) != triple.argmax(1))).mean()
            anchors += 1
        return total / max(anchors, 1)

    def step():
        proxies = poincare.to_ball(tangent, CURVATURE, CLIP_RADIUS)
        among = torch.exp(-poincare.distance_matrix(points, points, CURVATURE)).detach()
        among += labels[:, None] == labels[None, :]
        to_proxies = poincare.distance_matrix(points, proxies, CURVATURE)
        between = poincare.distance_matrix(proxies, proxies, CURVATURE)
        value = term(among, to_proxies) + term(torch.exp(-between.detach()), between)
        value.backward()

    return step


def network_step(backbone: str, loss: nn.Module, batch: int, hyperbolic: bool, device: str) -> Step:
    """A training step's forward and backward: a timm network at 224 px, 384 dimensions."""
    network = timm.create_model(backbone, num_classes=0).to(device)
    head = nn.Linear(network.num_features, 384).to(device)
    loss = loss.to(device)
    images = torch.randn(batch, 3, 224, 224, device=device)
    labels = torch.arange(batch, device=device) // 2

    def step():
        embeddings = head(functional.layer_norm(network(images), (network.num_features,)))
        if hyperbolic:
            embeddings = poincare.to_ball(embeddings, CURVATURE, CLIP_RADIUS)
        loss(embeddings, labels).backward()

    return step


def vit_with_base(device: str, count: int = 32) -> Step:
    """ViT-S/16 with hyperbolic ProxyAnchor, 98 classes as in Cars."""
    return network_step(
        "vit_small_patch16_224", HyperbolicProxyAnchorLoss(98, 384), count, True, device
    )


def vit_with_hier(device: str, count: int = 32) -> Step:
    """ViT-S/16 with hyperbolic ProxyAnchor and HIER."""
    return network_step("vit_small_patch16_224", HIERLoss(98, 384), count, True, device)


def resnet_with_base(device: str, count: int = 64) -> Step:
    """ResNet-50 with ProxyAnchor."""
    base = losses.build("proxy_anchor", 98, 384)
    return network_step("resnet50", losses.CombinedLoss(base), count, False, device)


CASES: dict[str, Callable[..., Step]] = {
    case.__name__: case
    for case in (
        similarity_matrix,
        tcm,
        library_tcm,
        recall_at_k,
        recall_at_k_by_query,
        hier,
        hier_by_anchor,
        vit_with_base,
        vit_with_hier,
        resnet_with_base,
    )
}
