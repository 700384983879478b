"""Losses by name: ours, and pytorch-metric-learning's."""

from __future__ import annotations

import importlib
import inspect
import math
from collections.abc import Callable
from typing import Any

from torch import nn

from common.errors import UserError

# name: (module, class, library name of the proxies' shape arguments or None). Modules are imported
# when asked for. pytorch-metric-learning's losses that hold class vectors take num_classes and
# embedding_size.
LIBRARY = "pytorch_metric_learning.losses"
LOSSES: dict[str, tuple[str, str, bool]] = {
    "proxy_anchor": (LIBRARY, "ProxyAnchorLoss", True),
    "arcface": (LIBRARY, "ArcFaceLoss", True),
    "cosface": (LIBRARY, "CosFaceLoss", True),
    "soft_triple": (LIBRARY, "SoftTripleLoss", True),
    "smooth_ap": (LIBRARY, "SmoothAPLoss", False),
    "contrastive": (LIBRARY, "ContrastiveLoss", False),
    "triplet": (LIBRARY, "TripletMarginLoss", False),
    "multi_similarity": (LIBRARY, "MultiSimilarityLoss", False),
    "recall_at_k": ("losses.recall_at_k", "RecallAtKLoss", False),
    "tcm": ("losses.tcm", "TCMLoss", False),
}


def build(name: str, num_classes: int, embedding_dim: int, **options: Any) -> nn.Module:
    """Builds a loss: ``loss(embeddings, labels) -> scalar``.

    Args:
        name: a key of :data:`LOSSES`.
        num_classes: classes in training, labels run from 0 to ``num_classes - 1``; used by losses
            that hold class vectors.
        embedding_dim: D of the embeddings.
        options: the loss's own. ArcFace's ``margin`` is in radians, as in its paper (the library
            wants degrees); both ArcFace's and CosFace's scale is ``scale``.

    Raises:
        UserError: unknown name or option, or a value that the loss refuses.
    """
    if name not in LOSSES:
        raise UserError(f"there is no loss {name!r}; choose from {', '.join(sorted(LOSSES))}")
    module, kind, has_classes = LOSSES[name]
    factory: Callable[..., nn.Module] = getattr(importlib.import_module(module), kind)
    _check_options(name, factory, options)
    if name == "arcface" and "margin" in options:
        options["margin"] = math.degrees(options["margin"])
    if has_classes:
        options |= {"num_classes": num_classes, "embedding_size": embedding_dim}
    try:
        return factory(**options)
    except (TypeError, ValueError, AssertionError) as error:
        raise UserError(f"loss {name}: {error}") from None


def module_of(name: str) -> str:
    """The module that holds a loss, for hashing the code that decides a run."""
    return LOSSES[name][0] if name in LOSSES else "losses"


def _check_options(name: str, factory: Callable, options: dict[str, Any]) -> None:
    known: set[str] = set()
    for kind in inspect.getmro(factory):
        # pytorch-metric-learning passes **kwargs on to its base classes.
        known |= set(inspect.signature(kind.__init__).parameters) if kind is not object else set()
        if kind is nn.Module:
            break
    known -= {"self", "args", "kwargs", "num_classes", "embedding_size"}
    for option in options:
        if option not in known:
            raise UserError(
                f"loss {name} has no option {option!r}; known: {', '.join(sorted(known))}"
            )
