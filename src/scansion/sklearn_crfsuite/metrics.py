"""sklearn-crfsuite's metrics, those of `scansion.metrics`."""

from __future__ import annotations

from typing import Any

from scansion.metrics import (
    flat_accuracy_score,
    flat_classification_report,
    flat_f1_score,
    flat_fbeta_score,
    flat_precision_score,
    flat_recall_score,
)

__all__ = [
    "flat_accuracy_score",
    "flat_classification_report",
    "flat_f1_score",
    "flat_fbeta_score",
    "flat_precision_score",
    "flat_recall_score",
    "sequence_accuracy_score",
]


def sequence_accuracy_score(y_true: Any, y_pred: Any) -> float:
    """Fraction of sequences with the right label everywhere; those of different lengths differ."""
    right = [list(true) == list(pred) for true, pred in zip(y_true, y_pred, strict=True)]
    return sum(right) / len(right) if right else 0.0
