"""Where and how a run executes, as opposed to what it is: nothing here changes its outcome."""

from __future__ import annotations

import os
import random
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch

import models.weights
from common.errors import UserError


@dataclass(frozen=True)
class Runtime:
    """Paths, device and helpers of one invocation.

    Attributes:
        weights: a file with the backbone's initial weights; its content is part of the run's hash.
        tensorboard: folder for TensorBoard's events, one folder a run; None writes none.
    """

    data_root: Path | None = None
    runs: Path = Path("runs")
    device: str = "auto"
    workers: int = 0
    progress: bool = True
    weights: Path | None = None
    tensorboard: Path | None = None

    @cached_property
    def weights_sha256(self) -> str | None:
        """Of the weights file, read once; None without one.

        Raises:
            UserError: there is no such file.
        """
        if self.weights is None:
            return None
        if not self.weights.is_file():
            raise UserError(f"--weights {self.weights}: there is no such file")
        return models.weights.sha256(self.weights)

    def torch_device(self) -> torch.device:
        """The device asked for; ``auto`` is CUDA where there is one.

        Raises:
            UserError: the device is not there, with what torch sees.
        """
        if self.device == "auto":
            return torch.device("cuda" if torch.cuda.is_available() else "cpu")
        try:
            device = torch.device(self.device)
            # Without a number it is this process's own GPU, which torchrun's start will choose.
            if device.type == "cuda" and device.index is None:
                torch.cuda.init()
            else:
                torch.empty(1, device=device)
        except (RuntimeError, AssertionError) as error:
            reason = str(error).splitlines()[0]
            raise UserError(f"--device {self.device}: {reason}; use cpu or cuda:0") from None
        return device


def prepare_process(
    seed: int, threads: int | None, deterministic: bool, tf32: bool = False
) -> None:
    """Seeds all generators and fixes threads and algorithms, for bit-equal runs on one machine.

    TF32 is off for matrix products and convolutions unless asked for: losses and metrics are
    declared float32.
    """
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    if threads is not None:
        torch.set_num_threads(threads)
    torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.backends.cudnn.allow_tf32 = tf32
    torch.backends.cudnn.benchmark = not deterministic
    if deterministic:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(deterministic, warn_only=True)
    # Only of use to find code that reads what it has not written; costs a tenth of a step on a CPU.
    torch.utils.deterministic.fill_uninitialized_memory = False
