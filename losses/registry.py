"""Losses by name: ours, and pytorch-metric-learning's."""

from __future__ import annotations

import importlib
import inspect
import math
from typing import Any

from torch import nn

from common.errors import UserError
from losses.library import LibraryLoss

_LIBRARY = "pytorch_metric_learning.losses"

# name: (module, class, whether it holds a vector per class). Modules are imported when asked for.
LOSSES: dict[str, tuple[str, str, bool]] = {
    "proxy_anchor": (_LIBRARY, "ProxyAnchorLoss", True),
    "arcface": (_LIBRARY, "ArcFaceLoss", True),
    "cosface": (_LIBRARY, "CosFaceLoss", True),
    "soft_triple": (_LIBRARY, "SoftTripleLoss", True),
    "contrastive": (_LIBRARY, "ContrastiveLoss", False),
    "triplet": (_LIBRARY, "TripletMarginLoss", False),
    "multi_similarity": (_LIBRARY, "MultiSimilarityLoss", False),
    "smooth_ap": ("losses.smooth_ap", "SmoothAPLoss", False),
    "recall_at_k": ("losses.recall_at_k", "RecallAtKLoss", False),
    "tcm": ("losses.tcm", "TCMLoss", False),
    "hyperbolic_proxy_anchor": (
        "losses.hyperbolic_proxy_anchor",
        "HyperbolicProxyAnchorLoss",
        True,
    ),
    "hier": ("losses.hier", "HIERLoss", True),
    "curricular_face": ("losses.curricular_face", "CurricularFaceLoss", True),
    "oneface": ("losses.oneface", "OneFaceLoss", True),
}


def build(name: str, num_classes: int, embedding_dim: int, **options: Any) -> nn.Module:
    """Builds a loss: ``loss(embeddings, labels) -> scalar``.

    Class vectors (proxies, centres) are the module's parameters; they are drawn from torch's global
    generator.

    Args:
        name: a key of :data:`LOSSES`.
        num_classes: classes in training, labels run from 0 to ``num_classes - 1``; used by losses
            that hold class vectors.
        embedding_dim: D of the embeddings; used by the same.
        options: the loss's own, by the names of its constructor. ArcFace's ``margin`` is in
            radians, as in its paper (the library wants degrees).

    Raises:
        UserError: unknown name or option, or a value that the loss refuses.
    """
    if name not in LOSSES:
        raise UserError(f"there is no loss {name!r}; choose from {', '.join(sorted(LOSSES))}")
    module, kind, has_classes = LOSSES[name]
    factory = getattr(importlib.import_module(module), kind)
    _check_options(name, factory, options)
    if has_classes:
        size = "embedding_size" if module == _LIBRARY else "embedding_dim"
        options |= {"num_classes": num_classes, size: embedding_dim}
    try:
        if name == "arcface" and "margin" in options:
            options["margin"] = math.degrees(options["margin"])
        loss = factory(**options)
    except (TypeError, ValueError, AssertionError) as error:
        raise UserError(f"loss {name}: {error}") from None
    if module != _LIBRARY:
        return loss
    return LibraryLoss(loss, num_classes if has_classes else None)


def module_of(name: str) -> str:
    """The module of ours that decides what a loss does, for hashing the code behind a run.

    Raises:
        UserError: unknown name.
    """
    if name not in LOSSES:
        raise UserError(f"there is no loss {name!r}; choose from {', '.join(sorted(LOSSES))}")
    module = LOSSES[name][0]
    return "losses.library" if module == _LIBRARY else module


def _check_options(name: str, factory: type[nn.Module], options: dict[str, Any]) -> None:
    # pytorch-metric-learning passes **kwargs on to its base classes.
    kinds = [kind for kind in inspect.getmro(factory) if kind not in (object, nn.Module)]
    parameters = [p for kind in kinds for p in inspect.signature(kind.__init__).parameters]
    known = {*parameters} - {
        *("self", "args", "kwargs", "num_classes", "embedding_size", "embedding_dim")
    }
    for option in options:
        if option not in known:
            raise UserError(
                f"loss {name} has no option {option!r}; known: {', '.join(sorted(known))}"
            )
