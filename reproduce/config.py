"""What a run is: typed, validated sections read from YAML. Unknown keys and impossible values fail.

A file may name others in ``base:``; their values are laid under its own, key by key, so that each
recipe states only what is special to it. ``--set section.key=value`` comes last and is printed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import Field, ValidationError, model_validator

from common.errors import UserError
from reproduce.sections import (
    DataConfig,
    EvalConfig,
    LossConfig,
    ModelConfig,
    Section,
    TrainConfig,
)

CONFIG_FOLDER = Path(__file__).parent / "configs"


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader, which also takes 1e-4 for a number (YAML 1.1 wants 1.0e-4)."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?[0-9]+[eE][-+]?[0-9]+$"), list("-+0123456789")
)


class RunConfig(Section):
    """Everything that decides a run's outcome, and nothing else (no paths, workers or devices)."""

    data: DataConfig
    model: ModelConfig
    loss: LossConfig
    train: TrainConfig
    evaluation: EvalConfig = EvalConfig()
    seed: int = Field(0, ge=0)

    @model_validator(mode="after")
    def _check(self) -> RunConfig:
        if self.train.selection == "validation" and self.data.validation_fraction == 0:
            raise ValueError("train.selection=validation needs data.validation_fraction above 0")
        if self.evaluation.distance == "poincare":
            options = self.model.options
            if options.get("head") != "hyperbolic":
                raise ValueError("evaluation.distance=poincare needs model.options.head=hyperbolic")
            if options.get("curvature", 0.1) != self.evaluation.curvature:
                raise ValueError("evaluation.curvature is not model.options.curvature")
        return self

    def with_values(self, values: Mapping[str, Any]) -> RunConfig:
        """A validated copy with dotted keys replaced, for instance ``{"loss.tcm": {}}``."""
        tree = self.model_dump(mode="json")
        for key, value in values.items():
            _set(tree, key, value)
        return parse(tree, "configuration")


def load(name: str | Path, overrides: Iterable[str] = ()) -> RunConfig:
    """Reads ``configs/<name>.yaml`` (or a path that ends in .yaml) and applies ``a.b=value`` texts.

    Raises:
        UserError: missing or broken file, unknown key, wrong type, impossible value; names the key.
    """
    path = Path(name)
    if path.suffix != ".yaml":
        path = CONFIG_FOLDER / f"{name}.yaml"
    tree = _read_tree(path, ())
    for text in overrides:
        key, separator, value = text.partition("=")
        if not separator or not key:
            raise UserError(f"--set {text}: write it as section.key=value")
        _set(tree, key.strip(), _parse_yaml(value, f"--set {text}"))
    return parse(tree, str(path))


def parse(tree: Any, where: str) -> RunConfig:
    """Validates a plain tree of values; ``where`` is named in the error."""
    try:
        return RunConfig.model_validate(tree)
    except ValidationError as error:
        problems = []
        for item in error.errors()[:5]:
            key = ".".join(str(part) for part in item["loc"]) or "(whole file)"
            text = "unknown key" if item["type"] == "extra_forbidden" else item["msg"]
            problems.append(f"{key}: {text}")
        raise UserError(f"{where}: " + "; ".join(problems)) from None


def dump(config: RunConfig) -> str:
    """The resolved configuration as YAML; :func:`load` reads it back to an equal object."""
    return yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False)


def _read_tree(path: Path, seen: tuple[Path, ...]) -> dict:
    path = path.resolve()
    if path in seen:
        raise UserError(f"{path}: base files name each other in a circle; remove one 'base' key")
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot read this configuration ({error})") from None
    tree = _parse_yaml(text, str(path))
    if not isinstance(tree, dict):
        raise UserError(f"{path}: a configuration is a mapping of sections, e.g. 'train:'")
    bases = tree.pop("base", [])
    merged: dict = {}
    for base in [bases] if isinstance(bases, str) else bases:
        merged = _merge(merged, _read_tree(path.parent / f"{base}.yaml", (*seen, path)))
    return _merge(merged, tree)


def _parse_yaml(text: str, where: str) -> Any:
    try:
        return _Loader(text).get_single_data()
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise UserError(f"{where}: not valid YAML ({' '.join(str(error).split())})") from None


def _merge(under: dict, over: dict) -> dict:
    merged = dict(under)
    for key, value in over.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = _merge(merged[key], value) if both else value
    return merged


def _set(tree: dict, key: str, value: Any) -> None:
    *parents, last = key.split(".")
    for parent in parents:
        if tree.get(parent) is None:
            tree[parent] = {}
        tree = tree[parent]
        if not isinstance(tree, dict):
            raise UserError(f"{key}: {parent} is a single value, it has no keys below it")
    tree[last] = value
