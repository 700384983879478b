"""Embeddings of a whole index, in its order, each image once, by all processes together."""

from __future__ import annotations

import numpy as np
import torch

import datasets
from common.errors import UserError
from reproduce import agreement, distributed
from reproduce.config import RunConfig
from reproduce.inputs import Normalised, batches_of, loader, transforms
from reproduce.runtime import Runtime
from reproduce.sharding import join_shards, shard


@torch.no_grad()
def embed_index(
    model: Normalised,
    source: datasets.Source,
    index: datasets.Index,
    config: RunConfig,
    runtime: Runtime,
) -> np.ndarray:
    """Returns float32 embeddings (N, D), rows in the order of ``index.table``.

    The network runs in evaluation mode and full precision; its mode is put back afterwards. Each
    process embeds its shard, by the weights and statistics of rank 0; all get all rows.

    Raises:
        UserError: an image that cannot be read, in any process; names it.
    """
    device = runtime.torch_device()
    transform = transforms(source, config.data, model).test
    dataset = datasets.ImageDataset(source, index, transform)
    mine = shard(len(index), distributed.current())
    batches = loader(
        dataset, runtime, device, sampler=mine, batch_size=config.evaluation.batch_size
    )
    was_training = model.training
    model.eval()
    distributed.broadcast(model)
    rows = np.empty((len(mine), config.model.embedding_dim), dtype=np.float32)
    seen, trouble = 0, None
    try:
        for images, _, positions in batches_of(batches):
            embeddings = model(images.to(device, non_blocking=True)).float().cpu().numpy()
            rows[positions.numpy() - mine.start] = embeddings
            seen += len(positions)
    except UserError as error:
        trouble = error
    agreement.raise_together(trouble, device)
    model.train(was_training)
    assert seen == len(mine), "every image is embedded exactly once"
    return join_shards(rows, len(index), device)
