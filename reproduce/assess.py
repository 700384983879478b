"""What a run is judged on: its images, their evaluation, and the numbers that a table shows."""

from __future__ import annotations

import math

import numpy as np
import torch

import datasets
from common.errors import UserError
from datasets.equalise import equalise
from eval import EvaluationResult, evaluate
from reproduce.config import RunConfig


def split(
    config: RunConfig, index: datasets.Index
) -> tuple[datasets.Index, datasets.Index, datasets.Index | None]:
    """(training, evaluated, validation or None) images; validation classes are not trained on."""
    training = index.subset(split="train")
    validation = None
    if config.data.validation_fraction > 0:
        training, validation = index.split_classes(
            config.data.validation_fraction, config.data.validation_seed
        )
        if config.evaluation.equalise_domains:
            validation = equalise(validation, split="train")
    if config.data.evaluate_on == "validation":
        return training, validation, validation
    test = index.subset(split="test")
    return training, equalise(test) if config.evaluation.equalise_domains else test, validation


def require_pairs(config: RunConfig, index: datasets.Index) -> None:
    """Raises UserError if ``index`` cannot be evaluated: to be known before training, not after."""
    sizes = np.bincount(index.label_codes)
    if (sizes >= 2).sum() < 2:
        raise UserError(
            f"{index.name}: evaluation needs two classes of two images or more, but "
            f"{int((sizes >= 2).sum())} of {len(sizes)} classes have as many; bring more images"
        )
    pairs = int(sizes.sum() ** 2 - (sizes**2).sum()) // 2
    for far in config.evaluation.tar_at:
        if math.floor(round(far * pairs, 6)) == 0:
            raise UserError(
                f"evaluation.tar_at: FAR {far:g} needs {math.ceil(1 / far):,} cross-class pairs, "
                f"the {len(index):,} images that are evaluated make {pairs:,}; "
                "set evaluation.tar_at=[] or higher rates"
            )


def evaluate_images(
    config: RunConfig,
    embeddings: np.ndarray,
    index: datasets.Index,
    device: torch.device,
    tar_at: tuple[float, ...] = (),
) -> EvaluationResult:
    """Evaluates embeddings (N, D), rows as in ``index``, by the configuration's choices.

    Results by domain come with it where the index has several.

    Raises:
        UserError: see :func:`eval.evaluate`.
    """
    settings = config.evaluation
    domains = index.table["domain"].to_numpy()
    return evaluate(
        torch.from_numpy(embeddings).to(device),
        index.table["label"].to_numpy(),
        ks=settings.ks,
        far_range=settings.far_range,
        epsilon=settings.epsilon,
        c=settings.c,
        distance=settings.distance,
        curvature=settings.curvature,
        domains=domains if len(set(domains)) > 1 else None,
        grid_points=settings.grid_points,
        tar_at=tar_at,
        threads=config.train.threads,
    )


def metrics(result: EvaluationResult) -> dict[str, float]:
    """The scalar columns of a results row: accuracies from 0 to 1, OPIS raw (not times 1e3)."""
    row = {f"recall_at_{k}": value for k, value in result.recall_at.items()}
    row |= {"map_at_r": result.map_at_r, "opis": result.opis, "epsilon_opis": result.epsilon_opis}
    row |= {"opis_floor": result.opis_floor, "opis_corrected": result.opis_corrected}
    row |= {"opis_far": result.opis_far, "d_min": result.d_min, "d_max": result.d_max}
    row |= {f"tar_at_far_{far:g}": tar.tar for far, tar in result.tar_at.items()}
    counts = ("n_images", "n_classes", "left_out_queries", "left_out_classes")
    row |= {name: getattr(result, name) for name in counts}
    if result.domains:
        row["opis_across_domains"] = result.opis_across_domains
        for name, domain in result.domains.items():
            row |= {f"{name}_recall_at_1": domain.recall_at[1]}
            row |= {f"{name}_opis": domain.opis}
    return {name: value if isinstance(value, int) else float(value) for name, value in row.items()}
