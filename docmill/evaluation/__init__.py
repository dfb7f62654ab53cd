"""How well documents with known answers were read."""

from docmill.evaluation.dataset import Dataset, read_dataset
from docmill.evaluation.outcomes import DocumentOutcome, PageOutcome
from docmill.evaluation.report import EvaluationReport, FieldScore
from docmill.evaluation.scoring import score

__all__ = [
    "Dataset",
    "DocumentOutcome",
    "EvaluationReport",
    "FieldScore",
    "PageOutcome",
    "read_dataset",
    "score",
]
