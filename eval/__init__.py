"""Evaluation of embeddings: accuracy, threshold consistency, verification, in one pass.

from eval import evaluate
result = evaluate(embeddings, labels)
result.recall_at[1], result.opis
"""

from eval.evaluate import evaluate
from eval.result import DomainResult, EvaluationResult, Tar

__all__ = ["DomainResult", "EvaluationResult", "Tar", "evaluate"]
