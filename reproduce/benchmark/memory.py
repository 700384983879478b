"""Peak memory of a training step as the batch grows, in two passes over chunks and in one pass.

python -m reproduce.benchmark.memory [--device cpu] [--chunk 64] [--batches 256 1024 4096]

Inputs stay uint8 and are listed apart, as is what the loss takes for its matrices of the batch's
square; the rest is the network's, and has to stay flat in two passes.
"""

from __future__ import annotations

import argparse
import subprocess
import sys

import torch
from torch import nn

import losses
import models
from common.errors import UserError, run_cli
from reproduce import peak
from reproduce.optimise import optimiser, scheduler
from reproduce.sections import TrainConfig
from reproduce.step import TrainingStep

SIDE, DIM, IMAGES_PER_CLASS = 64, 128, 4
# Of the network alone, largest batch over smallest; a chunk is a chunk, the rest is noise.
BAR = 1.25


class Uint8Network(nn.Module):
    """The demo's network on uint8 images, with norms that do not see the batch."""

    def __init__(self) -> None:
        super().__init__()
        options = {"in_channels": 3, "image_size": SIDE, "norm": "group"}
        self.network = models.build("glyph_cnn", DIM, **options)
        self.backbone_parameters = self.network.backbone_parameters
        self.head_parameters = self.network.head_parameters

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Embeddings (B, DIM) of images (B, 3, SIDE, SIDE)."""
        return self.network(images / 255)


class SquareLoss(nn.Module):
    """A loss that takes no memory of its own."""

    def forward(self, embeddings: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Mean of the squared deviations from the first axis: embeddings (B, D) -> scalar."""
        return (embeddings[:, 0] - 1).square().mean()

    def terms(self) -> dict[str, torch.Tensor]:
        """None."""
        return {}

    def parameter_groups(self) -> dict[str, list[nn.Parameter]]:
        """None."""
        return {}


def peak_of_step(batch: int, chunk: int, loss_name: str, device: torch.device) -> int:
    """Bytes by which one step raises this process's peak, the images included."""
    settings = TrainConfig(
        epochs=1,
        classes_per_batch=batch // IMAGES_PER_CLASS,
        images_per_class=IMAGES_PER_CLASS,
        learning_rate=1e-3,
        chunk_size=chunk or None,
    )
    torch.manual_seed(0)
    model = Uint8Network().to(device)
    loss = (
        SquareLoss()
        if loss_name == "none"
        else losses.CombinedLoss(losses.RecallAtKLoss(), losses.TCMLoss())
    )
    optimizer = optimiser(model, loss, settings)
    schedule = scheduler(optimizer, settings.schedule, 10, 1)
    step = TrainingStep(model, loss, optimizer, schedule, settings, device, 0)
    step.start_epoch(0)
    labels = torch.arange(batch // IMAGES_PER_CLASS).repeat_interleave(IMAGES_PER_CLASS)
    # What the libraries set up once is not the batch's.
    step(torch.zeros(8, 3, SIDE, SIDE, dtype=torch.uint8), labels[:8])
    before = peak.reset(device)
    images = torch.randint(0, 256, (batch, 3, SIDE, SIDE), dtype=torch.uint8)
    step(images, labels)
    return peak.peak_bytes(device) - before


def main(argv: list[str]) -> int:
    """Prints a line for each batch size and the verdict; 1 if memory grows with the batch."""
    parser = argparse.ArgumentParser(prog="python -m reproduce.benchmark.memory")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--chunk", type=int, default=64, help="images in a chunk")
    parser.add_argument("--batches", type=int, nargs="+", default=[256, 1024, 4096])
    parser.add_argument("--peak-of", metavar="BATCH:CHUNK:LOSS", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if min(options.chunk, *options.batches) < 2 * IMAGES_PER_CLASS:
        raise UserError(f"--chunk and --batches: at least {2 * IMAGES_PER_CLASS} images")
    if options.peak_of:
        batch, chunk, loss = options.peak_of.split(":")
        print(peak_of_step(int(batch), int(chunk), loss, torch.device(options.device)))
        return 0

    def measured(batch: int, chunk: int, loss: str) -> float:
        case = ["--peak-of", f"{batch}:{chunk}:{loss}", "--device", options.device]
        command = [sys.executable, "-m", "reproduce.benchmark.memory", *case]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        return int(done.stdout) / 2**20

    print(f"{'MiB':<8}{'images':>10}{'network, chunks':>17}{'network, whole':>16}{'loss':>8}")
    network = {}
    for batch in options.batches:
        images = batch * 3 * SIDE**2 / 2**20
        chunked = measured(batch, options.chunk, "none")
        network[batch] = chunked - images
        whole = measured(batch, 0, "none") - images
        loss = measured(batch, options.chunk, "rank") - chunked
        print(f"{batch:<8}{images:>10.0f}{network[batch]:>17.0f}{whole:>16.0f}{loss:>8.0f}")
    growth = network[max(network)] / network[min(network)]
    verdict = "ok" if growth <= BAR else "MISSED"
    print(f"network in chunks, largest batch over smallest: {growth:.2f}x (bar {BAR}x) {verdict}")
    return 0 if growth <= BAR else 1


if __name__ == "__main__":
    sys.exit(run_cli(main))
