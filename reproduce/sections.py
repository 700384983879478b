"""The sections of a configuration: names, types, ranges, and pairs that exclude each other."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator


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
    batch_strategy: Literal["mixed", "dataset_size", "balanced", "round_robin"] = Field(
        "mixed", description="domains in a batch, see datasets.domain_sampler"
    )
    broken: Literal["error", "skip"] = Field("error", description="missing and damaged images")
    evaluate_on: Literal["test", "validation"] = "test"
    validation_fraction: float = Field(0.0, ge=0, lt=1, description="of the training classes")
    validation_seed: int = Field(0, ge=0)

    @model_validator(mode="after")
    def _check(self) -> DataConfig:
        if self.evaluate_on == "validation" and self.validation_fraction == 0:
            raise ValueError("evaluate_on: validation needs validation_fraction > 0")
        if self.broken == "skip" and "broken" in self.options:
            raise ValueError("broken: skip and options.broken say it twice; leave out the latter")
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
    warm_up_steps: int = Field(0, ge=0, description="linear rise from 0, on top of the schedule")

    @model_validator(mode="after")
    def _check(self) -> ScheduleConfig:
        if self.name == "one_cycle" and self.warm_up_steps:
            raise ValueError("one_cycle rises by warm_up_fraction; leave out warm_up_steps")
        return self


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
    decay_norms: bool = Field(True, description="weight decay on norm layers and biases, too")
    momentum: float = Field(0.9, ge=0, lt=1)
    adam_epsilon: float = Field(1e-8, gt=0)
    head_lr_scale: float = Field(1.0, gt=0)
    proxy_lr_scale: float = Field(1.0, gt=0)
    hierarchy_lr_scale: float = Field(1.0, gt=0, description="HIER's hierarchical proxies")
    head_only_epochs: int = Field(0, ge=0, description="epochs in which the backbone is frozen")
    schedule: ScheduleConfig = ScheduleConfig()
    clip_value: float | None = Field(None, gt=0)
    clip_norm: float | None = Field(None, gt=0)
    chunk_size: int | None = Field(None, ge=1, description="two-pass gradients in such chunks")
    chunk_batch_statistics: bool = Field(
        False, description="accept BatchNorm that sees a chunk, or one process's slice, alone"
    )
    sync_batch_norm: bool = Field(False, description="BatchNorm over all processes; needs CUDA")
    amp: Literal["off", "bf16", "fp16", "auto"] = "off"
    tf32: bool = Field(False, description="TF32 matrix products and convolutions on CUDA")
    channels_last: bool = False
    compile: bool = Field(False, description="the network through torch.compile")
    threads: int | None = Field(None, ge=1, description="CPU threads; fixed for bit-equal reruns")
    deterministic: bool = True
    checkpoint_minutes: float = Field(10.0, gt=0)
    selection: Literal["last", "validation", "oracle"] = "last"
    evaluate_every: int = Field(1, ge=1, description="epochs, where selection looks at scores")

    @model_validator(mode="after")
    def _check(self) -> TrainConfig:
        if self.sync_batch_norm and self.chunk_size is not None:
            raise ValueError(
                "sync_batch_norm cannot see a batch that chunk_size cuts; use a network without "
                "training-mode BatchNorm, or leave one of the two out"
            )
        return self


class EvalConfig(Section):
    """The declared choices of evaluation (paper.md, rows marked "own")."""

    ks: tuple[int, ...] = Field((1, 2, 4, 8), strict=False)
    far_range: tuple[float, float] = Field((1e-2, 1e-1), strict=False)
    epsilon: float = Field(0.1, gt=0, le=0.5)
    c: float = Field(1.0, gt=0)
    distance: Literal["euclidean", "cosine", "poincare"] = "euclidean"
    curvature: float = Field(0.1, gt=0, description="of the ball, where distance is poincare")
    grid_points: int = Field(1001, ge=1)
    tar_at: tuple[float, ...] = Field((1e-3,), strict=False, description="FARs")
    equalise_domains: bool = Field(
        False, description="as many test images of every class in all domains"
    )
    batch_size: int = Field(256, ge=1)

    @model_validator(mode="after")
    def _check(self) -> EvalConfig:
        if 1 not in self.ks:
            raise ValueError("ks must hold 1: every table and the selection rules need R@1")
        return self
