"""Embeddings of a whole index, in its order, each image once."""

from __future__ import annotations

import numpy as np
import torch

import datasets
from reproduce.config import RunConfig
from reproduce.inputs import Normalised, loader, transforms
from reproduce.runtime import Runtime


@torch.no_grad()
def embed_index(
    model: Normalised,
    source: datasets.Source,
    index: datasets.Index,
    config: RunConfig,
    runtime: Runtime,
) -> np.ndarray:
    """Returns float32 embeddings (N, D), rows in the order of ``index.table``.

    The network runs in evaluation mode and full precision; its mode is put back afterwards.
    """
    device = runtime.torch_device()
    transform = transforms(source, config.data, model).test
    dataset = datasets.ImageDataset(source, index, transform)
    batches = loader(dataset, runtime, device, batch_size=config.evaluation.batch_size)
    was_training = model.training
    model.eval()
    rows = np.empty((len(index), config.model.embedding_dim), dtype=np.float32)
    seen = 0
    for images, _, positions in batches:
        rows[positions.numpy()] = model(images.to(device, non_blocking=True)).float().cpu().numpy()
        seen += len(positions)
    model.train(was_training)
    assert seen == len(index), "every image is embedded exactly once"
    return rows
