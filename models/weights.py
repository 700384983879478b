"""Weights from a local file, strictly matched; no code in the file is ever executed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors.torch import load_file
from torch import nn

from common.errors import UserError

# Classifiers are not part of a backbone; files carry them under these names.
CLASSIFIERS = ("fc.", "head.", "head_dist.", "classifier.", "last_linear.")
SHOWN = 4


class Origin(NamedTuple):
    """Where a backbone's initial weights come from, to be stored with a run.

    Attributes:
        name: ``random``, a timm tag, or a file's name.
        sha256: of the file that was read; None for random weights and where timm read them.
    """

    name: str
    sha256: str | None = None


RANDOM = Origin("random")


def load_file_into(network: nn.Module, path: str | Path) -> Origin:
    """Loads a ``.safetensors``, ``.pth`` or ``.pt`` file into a network without classifier.

    Classifier entries that the network does not have are left out; all else must match, name by
    name and shape by shape.

    Raises:
        UserError: missing or damaged file, or keys that differ, with the first of each kind.
    """
    path = Path(path)
    load_state(network, read_state(path), str(path))
    return Origin(path.name, sha256(path))


def read_state(path: Path) -> dict[str, torch.Tensor]:
    """Named tensors of a file, from under ``state_dict`` or ``model`` where it has such a key.

    Raises:
        UserError: missing or damaged file, or one that holds anything but tensors.
    """
    if not path.is_file():
        raise UserError(f"{path}: no such weights file; pass --weights an existing one")
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
        raise UserError(f"{path}: not a file of named tensors; save model.state_dict()")
    return dict(state)


def load_state(network: nn.Module, state: Mapping[str, torch.Tensor], where: str) -> None:
    """Loads named tensors into a network, strictly; ``where`` is named in the error.

    Raises:
        UserError: missing or unexpected names, other shapes; the first of each kind are listed.
    """
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
        raise UserError(
            f"{where} does not fit this network ({'; '.join(problems)}); "
            "take the file of this backbone, or the backbone of this file"
        )
    network.load_state_dict(state)


def sha256(path: Path) -> str:
    """Hexadecimal SHA-256 of a file's bytes."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
