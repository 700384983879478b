"""HIER's definition, slowly: loops over anchors, triplets and proxies, geoopt's distances."""

import geoopt
import torch
from torch.nn.functional import one_hot

from common import poincare

CURVATURE, CLIP = 0.1, 2.3
BALL = geoopt.PoincareBall(c=torch.tensor(CURVATURE, dtype=torch.float64))


def batch(seed=0, count=14, dim=6, classes=5, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(classes, (count,), generator=generator)
    centres = torch.randn(classes, dim, generator=generator, dtype=dtype)
    tangent = centres[labels] + 0.7 * torch.randn(count, dim, generator=generator, dtype=dtype)
    points = poincare.to_ball(tangent, CURVATURE, CLIP, riemannian=False)
    return points.detach().requires_grad_(), labels


def slow_neighbours(similarity, count):
    ranked = [set(row.argsort(descending=True)[:count].tolist()) for row in similarity]
    n = len(similarity)
    return [[j for j in range(n) if j != i and j in ranked[i] and i in ranked[j]] for i in range(n)]


def slow_triplets(similarity, count, per_anchor, draws):
    triplets, n = [], len(similarity)
    for i, near in enumerate(slow_neighbours(similarity, count)):
        if len(near) < 2:
            continue
        others = [k for k in range(n) if k not in near]
        for t in range(per_anchor):
            j = near[int(float(draws[0, i, t]) * len(near))]
            k = others[int(float(draws[1, i, t]) * len(others))]
            triplets.append((i, j, k))
    return triplets


def straight_through(logits, noise):
    soft = (logits + noise).softmax(0)
    hard = one_hot(soft.argmax(), len(soft)).to(soft)
    return hard - soft.detach() + soft


def slow_ancestor_loss(distances, triplets, temperature, margin, noise):
    total = 0 * distances.sum()
    for t, (i, j, k) in enumerate(triplets):
        d = distances
        pair = straight_through(-torch.maximum(d[i], d[j]) / temperature, noise[0, t])
        largest = torch.maximum(torch.maximum(d[i], d[j]), d[k])
        triple = straight_through(-largest / temperature, noise[1, t])
        if pair.argmax() == triple.argmax():
            continue
        total = total + torch.relu(d[i] @ pair - d[i] @ triple + margin)
        total = total + torch.relu(d[j] @ pair - d[j] @ triple + margin)
        total = total + torch.relu(d[k] @ triple - d[k] @ pair + margin)
    return total / max(len(triplets), 1)


def gumbel(shape):
    return -torch.log(-torch.log(torch.rand(shape, dtype=torch.float64)))


def slow_to_ball(tangent):
    """Clip, exponential map, and the Riemannian rescaling as a hook on the gradient."""
    norm = tangent.norm(dim=1, keepdim=True)
    points = BALL.expmap0(torch.where(norm > CLIP, tangent * CLIP / norm, tangent))
    if points.requires_grad:
        points.register_hook(lambda gradient: BALL.egrad2rgrad(points.detach(), gradient))
    return points


def slow_hier(x, labels, tangent_proxies, neighbours, per_anchor, temperature, margin):
    """Draws in the order of the loss: indices and noise of the images, then of the proxies."""
    proxies = slow_to_ball(tangent_proxies)
    to_proxies = BALL.dist(x[:, None], proxies[None, :])
    # geoopt's slope at distance zero is not defined, and a proxy is its own candidate.
    gap = 1 - torch.eye(len(proxies), dtype=torch.float64)[:, :, None]
    shifted = proxies[None, :] * gap
    between = BALL.dist(proxies[:, None] * gap + (1 - gap), shifted) * gap[:, :, 0]
    among_images = torch.exp(-BALL.dist(x[:, None], x[None, :])).detach()
    for i in range(len(x)):
        for j in range(len(x)):
            among_images[i, j] += labels[i] == labels[j]
    total = 0
    for similarity, distances in (
        (among_images, to_proxies),
        (torch.exp(-between.detach()), between),
    ):
        draws = torch.rand(2, len(similarity), per_anchor)
        triplets = slow_triplets(similarity, neighbours, per_anchor, draws)
        shape = (len(triplets), len(proxies))
        noise = torch.stack([gumbel(shape), gumbel(shape)])
        total = total + slow_ancestor_loss(distances, triplets, temperature, margin, noise)
    return total
