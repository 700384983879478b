"""CurricularFace against its definition, written with loops and angles."""

import math

import pytest
import torch
from torch.nn.functional import cross_entropy, normalize

import losses

DIM = 6


def test_curricular_face_is_its_definition():
    generator = torch.Generator().manual_seed(9)
    labels = torch.randint(4, (12,), generator=generator)
    x = torch.randn(12, DIM, generator=generator, dtype=torch.float64, requires_grad=True)
    torch.manual_seed(0)
    loss = losses.build("curricular_face", 5, DIM, margin=0.4, scale=8.0).double()
    t = 0.0
    for _ in range(3):
        value = loss(x, labels)
        theta = torch.acos(normalize(x) @ normalize(loss.centres).T)
        rows = torch.arange(len(x))
        t = 0.99 * t + 0.01 * float(theta[rows, labels].cos().mean().detach())
        logits = []
        for i, y in enumerate(labels.tolist()):
            limit = (theta[i, y] + 0.4).cos()
            row = []
            for j in range(5):
                cosine = theta[i, j].cos()
                if j == y:
                    over = theta[i, y] + 0.4 > math.pi
                    row.append(cosine - 0.4 * math.sin(0.4) if over else limit)
                else:
                    row.append(cosine * (t + cosine) if cosine > limit else cosine)
            logits.append(torch.stack(row))
        expected = cross_entropy(8 * torch.stack(logits), labels)
        torch.testing.assert_close(value, expected)
    ours = torch.autograd.grad(value, [x, loss.centres])
    theirs = torch.autograd.grad(expected, [x, loss.centres])
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-8, atol=1e-10)
    assert float(loss.t) == pytest.approx(t)
    loss.eval()
    loss(x, labels)
    assert float(loss.t) == pytest.approx(t)


def test_curricular_face_has_finite_gradients_on_its_class_vectors():
    loss = losses.build("curricular_face", 3, DIM)
    x = loss.centres.detach().clone().requires_grad_()
    loss(torch.cat([x, -x]), torch.tensor([0, 1, 2, 0, 1, 2])).backward()
    assert torch.isfinite(x.grad).all()
