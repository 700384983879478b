"""Poolings against their formulas, written out with loops, and against limits."""

from __future__ import annotations

import pytest
import torch

from models.pooling import AverageMaxPooling, AveragePooling, GeMPooling, TokenPooling


def feature_map() -> torch.Tensor:
    return torch.randn(2, 3, 4, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def test_average_and_maximum() -> None:
    features = feature_map()
    average, both = AveragePooling(0)(features), AverageMaxPooling()(features)
    for b in range(2):
        for f in range(3):
            values = features[b, f].flatten().tolist()
            assert average[b, f].item() == pytest.approx(sum(values) / 20, rel=1e-12)
            assert both[b, f].item() == pytest.approx(sum(values) / 20 + max(values), rel=1e-12)


@pytest.mark.parametrize("prefix_tokens", [0, 1, 2])
def test_average_of_tokens_leaves_the_prefix_out(prefix_tokens: int) -> None:
    tokens = torch.arange(24.0).view(2, 4, 3)
    expected = sum(tokens[:, t] for t in range(prefix_tokens, 4)) / (4 - prefix_tokens)
    torch.testing.assert_close(AveragePooling(prefix_tokens)(tokens), expected)
    torch.testing.assert_close(TokenPooling()(tokens), tokens[:, 0])


@pytest.mark.parametrize("p", [1.0, 3.0, 7.5])
def test_gem_formula(p: float) -> None:
    features, pooling = feature_map(), GeMPooling(p).double()
    pooled = pooling(features)
    for b in range(2):
        for f in range(3):
            values = [max(v, 1e-6) ** p for v in features[b, f].flatten().tolist()]
            expected = (sum(values) / len(values)) ** (1 / p)
            assert pooled[b, f].item() == pytest.approx(expected, rel=1e-10)


def test_gem_goes_from_mean_to_maximum() -> None:
    features = feature_map().abs()
    torch.testing.assert_close(GeMPooling(1.0).double()(features), features.mean((2, 3)))
    torch.testing.assert_close(
        GeMPooling(200.0).double()(features), features.amax((2, 3)), rtol=0.02, atol=0
    )


def test_gem_learns_p() -> None:
    pooling, features = GeMPooling().double(), feature_map().abs() + 0.1
    assert [p.numel() for p in pooling.parameters()] == [1]
    assert torch.autograd.gradcheck(
        lambda p: torch.func.functional_call(pooling, {"p": p}, (features,)),
        torch.tensor(3.0, dtype=torch.float64, requires_grad=True),
    )


def test_gem_under_autocast_does_not_overflow() -> None:
    # 60^3 is beyond half precision's 65,504.
    features = torch.full((1, 2, 3, 3), 60.0, dtype=torch.float16)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        pooled = GeMPooling()(features)
    assert pooled.dtype == torch.float32
    torch.testing.assert_close(pooled, torch.full((1, 2), 60.0))
