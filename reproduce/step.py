"""One training step: embed, loss in float32, backward, clip, update; in one pass or in chunks."""

from __future__ import annotations

import torch
from torch import nn

from common.errors import UserError
from reproduce.config import TrainConfig
from reproduce.two_pass import two_pass_backward


class TrainingStep:
    """Called with a uint8 batch and its labels; returns the loss terms as Python numbers."""

    def __init__(self, model, loss, optimizer, schedule, settings: TrainConfig, device):
        self.model, self.loss = model, loss
        self.optimizer, self.schedule = optimizer, schedule
        self.settings, self.device = settings, device
        self.amp_dtype = _amp_dtype(settings.amp, device)
        self.scaler = torch.amp.GradScaler(device.type, enabled=self.amp_dtype is torch.float16)
        self._backbone = [p for p in model.backbone_parameters() if p.requires_grad]

    def start_epoch(self, epoch: int) -> None:
        """Training mode; the backbone rests during the configured head-only epochs."""
        self.model.train()
        self.loss.train()
        for parameter in self._backbone:
            parameter.requires_grad_(epoch >= self.settings.head_only_epochs)

    def __call__(self, images: torch.Tensor, labels: torch.Tensor) -> dict[str, float]:
        """One update on a batch of images (B, C, H, W) uint8 and labels (B,)."""
        images = images.to(self.device, non_blocking=True)
        labels = labels.to(self.device, non_blocking=True)
        self.optimizer.zero_grad(set_to_none=True)
        value = self._backward(images, labels)
        self.scaler.unscale_(self.optimizer)
        norm = self._clip()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.schedule.step()
        terms = {"loss": value, **self.loss.terms(), "gradient_norm": norm}
        return {name: float(number) for name, number in terms.items()}

    def embed(self, images: torch.Tensor) -> torch.Tensor:
        """Embeddings (B, D) of a uint8 batch, the network under autocast where AMP is on."""
        with torch.autocast(
            self.device.type, dtype=self.amp_dtype, enabled=self.amp_dtype is not None
        ):
            return self.model(images)

    def _backward(self, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        if self.settings.chunk_size is not None:
            return two_pass_backward(
                self.model,
                self.embed,
                lambda embeddings: self.loss(embeddings, labels),
                images,
                self.settings.chunk_size,
                scale=self.scaler.scale,
                batch_statistics=self.settings.chunk_batch_statistics,
            )
        value = self.loss(self.embed(images), labels)
        self.scaler.scale(value).backward()
        return value.detach()

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


def _amp_dtype(amp: str, device: torch.device) -> torch.dtype | None:
    """None is full precision. AMP is for CUDA: on a CPU ``auto`` is off and the others an error."""
    if amp == "off" or (amp == "auto" and device.type != "cuda"):
        return None
    if device.type != "cuda":
        raise UserError(f"train.amp={amp} needs a CUDA device; set train.amp=off or auto")
    if amp == "auto":
        return torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16
    return torch.bfloat16 if amp == "bf16" else torch.float16
