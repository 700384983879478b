"""The files that a finished run leaves in its folder, each written whole."""

from __future__ import annotations

import numpy as np
import pandas as pd
from safetensors.torch import save_file

import datasets
from common.atomic import atomic_path
from eval import EvaluationResult
from reproduce.store import RunFolder
from reproduce.train import Trained


def save_outcome(
    folder: RunFolder,
    trained: Trained,
    embeddings: np.ndarray,
    index: datasets.Index,
    result: EvaluationResult,
) -> None:
    """Weights (network and loss), embeddings (N, D) of ``index``, utility curves, history."""
    tensors = {f"model.{name}": value for name, value in trained.model.state_dict().items()}
    tensors |= {f"loss.{name}": value for name, value in trained.loss.state_dict().items()}
    with atomic_path(folder.weights) as temporary:
        save_file({k: v.detach().cpu().contiguous() for k, v in tensors.items()}, temporary)
    columns = {name: index.table[name].to_numpy(dtype=str) for name in ("label", "domain", "key")}
    with atomic_path(folder.embeddings) as temporary:
        np.savez(
            temporary,
            embeddings=embeddings,
            labels=columns["label"],
            domains=columns["domain"],
            keys=columns["key"],
        )
    with atomic_path(folder.curves) as temporary:
        np.savez(
            temporary,
            thresholds=result.thresholds,
            utility=result.utility.astype(np.float32),
            classes=np.asarray(result.classes, dtype=str),
        )
    with atomic_path(folder.history) as temporary:
        pd.DataFrame(trained.history).to_csv(temporary, index=False)
