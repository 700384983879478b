"""Losses with the ecosystem's call: ``loss(embeddings, labels) -> scalar``."""

from losses.combined import CombinedLoss
from losses.recall_at_k import RecallAtKLoss
from losses.registry import LOSSES, build, module_of
from losses.simix import SiMix
from losses.tcm import TCMLoss

__all__ = ["LOSSES", "CombinedLoss", "RecallAtKLoss", "SiMix", "TCMLoss", "build", "module_of"]
