"""One training step: embed, loss in float32, backward, clip, update; in one pass or in chunks."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import nn

from common.errors import UserError
from reproduce import distributed
from reproduce.build import spread
from reproduce.sections import TrainConfig
from reproduce.two_pass import two_pass_backward

# Below this loss scale float16 has failed: gradients stay infinite whatever the scale.
LEAST_SCALE = 1e-3


class NotFiniteError(Exception):
    """A number of the step is NaN or infinite; the message names which, with its value."""


class TrainingStep:
    """Called with this process's uint8 batch and labels; returns the terms of the whole batch.

    Random numbers of step n depend on (seed, n) alone: those of the loss are the same in all
    processes, which compute it on the whole batch; those of the network (dropout) differ by rank.
    A resumed run therefore draws what it would have drawn.

    Args:
        model: the network, placed on ``device``.
        loss: on the same device.
        optimizer, schedule: over the parameters of both; the schedule counts the steps.
        settings: the configuration's ``train``.
        seed: of the run.
    """

    def __init__(
        self, model, loss, optimizer, schedule, settings: TrainConfig, device: torch.device, seed
    ):
        self.model, self.loss = model, loss
        self.optimizer, self.schedule = optimizer, schedule
        self.settings, self.device, self.seed = settings, device, seed
        self.amp_dtype = amp_dtype(settings.amp, device)
        self.scaler = torch.amp.GradScaler(device.type, enabled=self.amp_dtype is torch.float16)
        self._backbone = [p for p in model.backbone_parameters() if p.requires_grad]
        # Frozen BatchNorm stays in evaluation mode; the others are judged as in training.
        model.train()
        self.network = spread(model, settings)

    def start_epoch(self, epoch: int) -> None:
        """Training mode; the backbone rests during the configured head-only epochs."""
        self.model.train()
        self.loss.train()
        for parameter in self._backbone:
            parameter.requires_grad_(epoch >= self.settings.head_only_epochs)

    def __call__(self, images: torch.Tensor, labels: torch.Tensor) -> dict[str, float]:
        """One update on a batch of images (b, C, H, W) uint8 and labels (b,).

        Raises:
            NotFiniteError: embeddings, a term of the loss or the gradients are not finite.
        """
        torch.manual_seed(self._seed(1 + distributed.current().rank))
        layout = torch.channels_last if self.settings.channels_last else torch.preserve_format
        images = images.to(self.device, non_blocking=True, memory_format=layout)
        labels = distributed.gather_labels(labels.to(self.device, non_blocking=True))
        self.optimizer.zero_grad(set_to_none=True)
        value = self._backward(images, labels)
        distributed.average_gradients(self.loss)
        self.scaler.unscale_(self.optimizer)
        norm = self._clip()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.schedule.step()
        terms = {"loss": value, **self.loss.terms(), "gradient_norm": norm}
        terms = {name: float(number) for name, number in terms.items()}
        self._require_finite(terms)
        return terms

    def embed(self, images: torch.Tensor) -> torch.Tensor:
        """Embeddings (b, D) of a uint8 batch, the network under autocast where AMP is on."""
        with torch.autocast(
            self.device.type, dtype=self.amp_dtype, enabled=self.amp_dtype is not None
        ):
            return self.network(images)

    def _backward(self, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        if self.settings.chunk_size is not None:
            return two_pass_backward(
                self.network,
                self.embed,
                lambda embeddings: self._whole_loss(embeddings, labels),
                images,
                self.settings.chunk_size,
                scale=self.scaler.scale,
                batch_statistics=self.settings.chunk_batch_statistics,
            )
        value = self._whole_loss(self.embed(images), labels)
        self.scaler.scale(value).backward()
        return value.detach()

    def _whole_loss(self, embeddings: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """The loss of all processes' embeddings, which travel in float32."""
        if embeddings.dtype != torch.float64:
            embeddings = embeddings.float()
        embeddings = distributed.gather(embeddings)
        if not torch.isfinite(embeddings).all():
            raise NotFiniteError("embeddings are NaN or infinite")
        devices = [self.device] if self.device.type == "cuda" else []
        with torch.random.fork_rng(devices):
            torch.manual_seed(self._seed(0))
            return self.loss(embeddings, labels)

    def _seed(self, stream: int) -> int:
        sequence = np.random.SeedSequence([self.seed, self.schedule.last_epoch, stream])
        return int(sequence.generate_state(1, np.uint64)[0] >> 1)

    def _require_finite(self, terms: dict[str, float]) -> None:
        bad = {name: value for name, value in terms.items() if not math.isfinite(value)}
        if self.scaler.is_enabled() and set(bad) == {"gradient_norm"}:
            # The scaler has left this step out and lowers its scale.
            bad = bad if self.scaler.get_scale() < LEAST_SCALE else {}
        if bad:
            raise NotFiniteError(", ".join(f"{name} is {value}" for name, value in bad.items()))

    def _clip(self) -> torch.Tensor:
        """Clips as configured and returns the norm of all gradients before clipping."""
        parameters = [
            parameter for group in self.optimizer.param_groups for parameter in group["params"]
        ]
        gradients = [p.grad for p in parameters if p.grad is not None]
        norm = nn.utils.get_total_norm(gradients)
        if self.settings.clip_value is not None:
            nn.utils.clip_grad_value_(parameters, self.settings.clip_value)
        if self.settings.clip_norm is not None:
            nn.utils.clip_grad_norm_(parameters, self.settings.clip_norm)
        return norm


def amp_dtype(amp: str, device: torch.device) -> torch.dtype | None:
    """The dtype of autocast; None is full precision. ``auto`` is off on CPUs.

    Raises:
        UserError: float16 on a CPU.
    """
    if amp == "off" or (amp == "auto" and device.type != "cuda"):
        return None
    if amp == "auto":
        return torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16
    if amp == "fp16" and device.type != "cuda":
        raise UserError("train.amp=fp16 needs a CUDA device; set train.amp=off, auto or bf16")
    return torch.bfloat16 if amp == "bf16" else torch.float16
