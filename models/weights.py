"""Weights from a local file, strictly matched; no code in the file is ever executed."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import nn

from common.errors import UserError

# Classifiers are not part of a backbone; files carry them under these names.
CLASSIFIERS = ("fc.", "head.", "head_dist.", "classifier.")
SHOWN = 4


def load_weights(network: nn.Module, path: str | Path) -> None:
    """Loads a ``.safetensors``, ``.pth`` or ``.pt`` file into a network without classifier.

    Classifier entries that the network does not have are left out; all else must match, name by
    name and shape by shape.

    Raises:
        UserError: missing or damaged file, or keys that differ, with the first of each kind.
    """
    path = Path(path)
    state = _read(path)
    wanted = network.state_dict()
    state = {
        name: value
        for name, value in state.items()
        if name in wanted or not name.startswith(CLASSIFIERS)
    }
    missing = sorted(set(wanted) - set(state))
    unexpected = sorted(set(state) - set(wanted))
    shapes = [
        f"{name} {tuple(state[name].shape)} for {tuple(wanted[name].shape)}"
        for name in sorted(set(wanted) & set(state))
        if state[name].shape != wanted[name].shape
    ]
    lists = (("missing", missing), ("unexpected", unexpected), ("shape", shapes))
    problems = [
        f"{len(names)} {kind}: {', '.join(names[:SHOWN])}" + (", ..." if len(names) > SHOWN else "")
        for kind, names in lists
        if names
    ]
    if problems:
        raise UserError(f"{path} does not fit this network ({'; '.join(problems)})")
    network.load_state_dict(state)


def _read(path: Path) -> dict[str, torch.Tensor]:
    if not path.is_file():
        raise UserError(f"{path}: no such weights file")
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # both readers raise many kinds for damaged files
        reason = (str(error) or type(error).__name__).splitlines()[0][:100]
        raise UserError(f"{path}: cannot be read as weights ({reason})") from None
    if isinstance(state, dict):
        for name in ("state_dict", "model"):
            if isinstance(state.get(name), dict):
                state = state[name]
    if not isinstance(state, dict) or not all(torch.is_tensor(v) for v in state.values()):
        raise UserError(f"{path}: not a file of named tensors")
    return state
