"""Evaluation of embeddings: accuracy, threshold consistency, verification, in one pass.

from eval import evaluate
result = evaluate(embeddings, labels)
result.recall_at[1], result.opis
"""

from eval.evaluate import evaluate
from eval.one_threshold import one_threshold
from eval.result import DomainResult, EvaluationResult, Tar
from eval.verification import verify, verify_pairs

__all__ = [
    "DomainResult",
    "EvaluationResult",
    "Tar",
    "evaluate",
    "one_threshold",
    "verify",
    "verify_pairs",
]
