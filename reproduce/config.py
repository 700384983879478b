"""What a run is: typed, validated sections read from YAML. Unknown keys and impossible values fail.

A file may name others in ``base:``; their values are laid under its own, key by key, so that each
recipe states only what is special to it. ``--set section.key=value`` comes last and is printed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from common.errors import UserError

CONFIG_FOLDER = Path(__file__).parent / "configs"


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader, which also takes 1e-4 for a number (YAML 1.1 wants 1.0e-4)."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?[0-9]+[eE][-+]?[0-9]+$"), list("-+0123456789")
)


class Section(BaseModel):
    """Base of all sections: frozen, strictly typed, no unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class DataConfig(Section):
    """Which images, and on which of them the run is judged."""

    name: str
    options: dict[str, Any] = Field(default_factory=dict)
    image_size: int = Field(224, ge=8)
    resize: int | None = Field(None, ge=8, description="short side before the centre crop")
    crop_scale: tuple[float, float] = Field((0.08, 1.0), strict=False)
    mean_std: Literal["source", "model"] = "model"
    evaluate_on: Literal["test", "validation"] = "test"
    validation_fraction: float = Field(0.0, ge=0, lt=1, description="of the training classes")
    validation_seed: int = Field(0, ge=0)

    @model_validator(mode="after")
    def _validation_needs_classes(self) -> DataConfig:
        if self.evaluate_on == "validation" and self.validation_fraction == 0:
            raise ValueError("evaluate_on: validation needs validation_fraction > 0")
        return self


class ModelConfig(Section):
    """A backbone by name and its embedding head; ``options`` go to ``models.build``."""

    backbone: str
    embedding_dim: int = Field(512, ge=2)
    options: dict[str, Any] = Field(default_factory=dict)


class TCMConfig(Section):
    """The regulariser's settings (paper.md, Eq. 5)."""

    lambda_plus: float = Field(1.0, ge=0)
    lambda_minus: float = Field(1.0, ge=0)
    margin_plus: float = Field(0.9, ge=-1, le=1)
    margin_minus: float = Field(0.5, ge=-1, le=1)
    indicator: bool = True


class LossConfig(Section):
    """A base loss by name, with or without TCM added to it."""

    name: str
    options: dict[str, Any] = Field(default_factory=dict)
    tcm: TCMConfig | None = None
    simix: bool = False


class ScheduleConfig(Section):
    """Learning rate over the run. Milestones and step sizes are in epochs."""

    name: Literal["constant", "one_cycle", "cosine", "multi_step", "step", "polynomial"] = (
        "constant"
    )
    milestones: tuple[int, ...] = Field((), strict=False)
    step_size: int = Field(10, ge=1)
    gamma: float = Field(0.1, gt=0, le=1)
    power: float = Field(1.0, gt=0)
    warm_up_fraction: float = Field(0.3, gt=0, lt=1, description="one_cycle: share that rises")


class TrainConfig(Section):
    """The training loop's settings; learning-rate scales multiply ``learning_rate``."""

    epochs: int = Field(ge=0)
    steps_per_epoch: int | None = Field(None, ge=1, description="default: training images / batch")
    classes_per_batch: int = Field(ge=1)
    images_per_class: int = Field(ge=1)
    small_classes: Literal["repeat", "drop"] = "repeat"
    optimiser: Literal["adam", "adamw", "sgd"] = "adamw"
    learning_rate: float = Field(gt=0)
    weight_decay: float = Field(0.0, ge=0)
    momentum: float = Field(0.9, ge=0, lt=1)
    head_lr_scale: float = Field(1.0, gt=0)
    proxy_lr_scale: float = Field(1.0, gt=0)
    head_only_epochs: int = Field(0, ge=0, description="epochs in which the backbone is frozen")
    schedule: ScheduleConfig = ScheduleConfig()
    clip_value: float | None = Field(None, gt=0)
    clip_norm: float | None = Field(None, gt=0)
    chunk_size: int | None = Field(None, ge=1, description="two-pass gradients in such chunks")
    chunk_batch_statistics: bool = Field(False, description="accept BatchNorm that sees chunks")
    amp: Literal["off", "bf16", "fp16", "auto"] = "off"
    threads: int | None = Field(None, ge=1, description="CPU threads; fixed for bit-equal reruns")
    deterministic: bool = True
    checkpoint_minutes: float = Field(10.0, gt=0)
    selection: Literal["last", "validation", "oracle"] = "last"
    evaluate_every: int = Field(1, ge=1, description="epochs, where selection looks at scores")


class EvalConfig(Section):
    """The declared choices of evaluation (paper.md, rows marked "own")."""

    ks: tuple[int, ...] = Field((1, 2, 4, 8), strict=False)
    far_range: tuple[float, float] = Field((1e-2, 1e-1), strict=False)
    epsilon: float = Field(0.1, gt=0, le=0.5)
    c: float = Field(1.0, gt=0)
    distance: Literal["euclidean", "cosine", "poincare"] = "euclidean"
    grid_points: int = Field(1001, ge=1)
    batch_size: int = Field(256, ge=1)


class RunConfig(Section):
    """Everything that decides a run's outcome, and nothing else (no paths, workers or devices)."""

    data: DataConfig
    model: ModelConfig
    loss: LossConfig
    train: TrainConfig
    evaluation: EvalConfig = EvalConfig()
    seed: int = Field(0, ge=0)

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
