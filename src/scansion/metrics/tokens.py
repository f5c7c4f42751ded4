"""Scores of tokens, and of whole sequences."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from scansion import _checks as checks
from scansion.metrics.base import FloatArray, Sequences
from scansion.schemes import _as_list, _pairs

__all__ = [
    "flat_accuracy_score",
    "flat_classification_report",
    "flat_f1_score",
    "flat_fbeta_score",
    "flat_precision_score",
    "flat_recall_score",
    "sequence_accuracy_score",
]


def flat_accuracy_score(y_true: Sequences, y_pred: Sequences) -> float:
    """Fraction of tokens with the right label."""
    true, pred = _pairs(y_true, y_pred)
    right = [t == p for pair in zip(true, pred, strict=True) for t, p in zip(*pair, strict=True)]
    return sum(right) / len(right) if right else 0.0


def sequence_accuracy_score(y_true: Sequences, y_pred: Sequences) -> float:
    """Fraction of sequences with the right label everywhere."""
    true, pred = _pairs(y_true, y_pred)
    return sum(map(operator.eq, true, pred)) / len(true) if true else 0.0


def flat_precision_score(y_true: Sequences, y_pred: Sequences, **kwargs: Any) -> float | FloatArray:
    """Precision over tokens, F_0; for the parameters see `flat_fbeta_score`."""
    return flat_fbeta_score(y_true, y_pred, 0.0, **kwargs)


def flat_recall_score(y_true: Sequences, y_pred: Sequences, **kwargs: Any) -> float | FloatArray:
    """Recall over tokens, F_infinity; for the parameters see `flat_fbeta_score`."""
    return flat_fbeta_score(y_true, y_pred, np.inf, **kwargs)


def flat_f1_score(y_true: Sequences, y_pred: Sequences, **kwargs: Any) -> float | FloatArray:
    """F_1 over tokens; for the parameters see `flat_fbeta_score`."""
    return flat_fbeta_score(y_true, y_pred, 1.0, **kwargs)


def flat_fbeta_score(
    y_true: Sequences,
    y_pred: Sequences,
    beta: float,
    *,
    labels: Iterable[Any] | None = None,
    pos_label: Any = 1,
    average: str | None = "binary",
    sample_weight: Any = None,
    zero_division: float | str = "warn",
) -> float | FloatArray:
    """F_beta over tokens, with scikit-learn's parameters and results.

    Parameters
    ----------
    y_true, y_pred : lists of label lists
        Of equal lengths.
    beta : float
        Weight of recall against precision; 0 gives precision, infinity recall.
    labels : iterable, optional
        The labels to score, all by default.
    pos_label : label
        The label to score if `average` is "binary".
    average : {"binary", "micro", "macro", "weighted"} or None
        One of at most two labels; counts summed over labels; the mean over labels; the mean weighted by
        support; or None for an array with one score per label, in the order of `labels` (sorted by default).
    sample_weight : array-like (n_tokens,), optional
        Weight of each token, over all sequences.
    zero_division : {"warn", 0, 1, nan}
        The value of 0 / 0. "warn" is 0 with a `RuntimeWarning`; nan is left out of means.
    """
    if not checks.among(average, ("binary", "micro", "macro", "weighted", None)):
        raise ValueError(f"average is {average!r}; expected binary, micro, macro, weighted or None")
    if not (checks.is_number(beta) or checks.among(beta, (np.inf,))) or beta < 0:
        raise ValueError(f"beta is {beta!r}; it must be a number that is not negative")
    counts = _LabelCounts(y_true, y_pred, [pos_label] if average == "binary" else labels, sample_weight)
    if average == "binary" and len(counts.present) > 2:
        raise ValueError(f"average='binary' is for two labels, not {len(counts.present)}; choose another")
    if average == "binary" and len(counts.present - {pos_label}) == 2:
        raise ValueError(f"pos_label is {pos_label!r}, but the labels are {sorted(counts.present)}")
    return counts.score(beta, average, zero_division)


def flat_classification_report(
    y_true: Sequences,
    y_pred: Sequences,
    labels: Iterable[Any] | None = None,
    *,
    target_names: Sequence[str] | None = None,
    sample_weight: Any = None,
    digits: int = 2,
    output_dict: bool = False,
    zero_division: float | str = "warn",
) -> str | dict[str, Any]:
    """Precision, recall, F_1 and support of each label and on average, over tokens, as scikit-learn's.

    The line of micro averages is named "accuracy" if every label that occurs is among `labels`.

    Parameters
    ----------
    y_true, y_pred, labels, sample_weight, zero_division
        As for `flat_fbeta_score`.
    target_names : sequence of str, optional
        Names to show for the labels, in their order.
    digits : int
        Decimals of the text.
    output_dict : bool
        Return the numbers: name -> {"precision", "recall", "f1-score", "support"}.
    """
    digits = checks.count("digits", digits, 0, 100)
    checks.flag("output_dict", output_dict)
    counts = _LabelCounts(y_true, y_pred, labels, sample_weight)
    names = list(map(str, counts.labels if target_names is None else target_names))
    if len(names) != len(counts.labels):
        raise ValueError(f"target_names has {len(names)} names for {len(counts.labels)} labels")
    columns = ("precision", "recall", "f1-score", "support")
    scores = [np.atleast_1d(counts.score(beta, None, zero_division)) for beta in (0, np.inf, 1)]
    rows = [[name, *cells] for name, *cells in zip(names, *scores, counts.true, strict=True)]
    complete = counts.present <= set(counts.labels)
    for average in ("micro", "macro", "weighted"):
        name = "accuracy" if average == "micro" and complete else f"{average} avg"
        means = [counts.score(beta, average, zero_division) for beta in (0, np.inf, 1)]
        rows.append([name, *means, counts.true.sum()])
    if output_dict:
        table: dict[str, Any] = {row[0]: dict(zip(columns, map(float, row[1:]), strict=True)) for row in rows}
        return table | {"accuracy": table["accuracy"]["precision"]} if complete else table
    width = max(digits, *map(len, [*names, "weighted avg"]))
    lines = [f"{'':>{width}} " + "".join(f" {column:>9}" for column in columns), ""]
    for index, (name, *values, support) in enumerate(rows):
        cells = [*(f"{value:.{digits}f}" for value in values), str(support)]
        if complete and index == len(names):  # of the accuracy, one column is enough
            cells[:2] = "", ""
        lines.append(f"{name:>{width}} " + "".join(f" {cell:>9}" for cell in cells))
    lines.insert(-3, "")
    return "\n".join(lines) + "\n"


class _LabelCounts:
    """Counts of true, predicted and matching tokens, each an array (n_labels,)."""

    def __init__(self, y_true: Sequences, y_pred: Sequences, labels: Iterable[Any] | None, sample_weight: Any) -> None:
        true, pred = _pairs(y_true, y_pred)
        flat_true = [label for sequence in true for label in sequence]
        flat_pred = [label for sequence in pred for label in sequence]
        try:
            self.present = set(flat_true).union(flat_pred)
            self.labels = sorted(self.present) if labels is None else _as_list(labels)
        except TypeError:
            raise ValueError(f"labels must have a hash and an order; {_first_odd(true, pred)}") from None
        if len(set(self.labels)) < len(self.labels):
            raise ValueError(f"labels has repeats: {self.labels}")
        weight = checks.weights(sample_weight, len(flat_true))
        size = len(self.labels)
        code = {label: index for index, label in enumerate(self.labels)}
        # Labels that are not asked for share the code behind the last.
        codes_true = np.array([code.get(label, size) for label in flat_true], dtype=np.intp)
        codes_pred = np.array([code.get(label, size) for label in flat_pred], dtype=np.intp)
        hits = codes_true == codes_pred
        self.true = np.bincount(codes_true, weight, size + 1)[:size]
        self.pred = np.bincount(codes_pred, weight, size + 1)[:size]
        self.tp = np.bincount(codes_true[hits], None if weight is None else weight[hits], size + 1)[:size]

    def score(self, beta: float, average: str | None, zero_division: float | str) -> float | FloatArray:
        """F_beta; precision for beta = 0, recall for infinity."""
        if not checks.among(zero_division, ("warn", 0, 1)) and not (
            isinstance(zero_division, float) and math.isnan(zero_division)
        ):
            raise ValueError(f"zero_division is {zero_division!r}; expected 'warn', 0, 1 or nan")
        undefined = 0.0 if zero_division == "warn" else float(zero_division)
        tp, pred, true = self.tp, self.pred, self.true
        if average == "micro":
            tp, pred, true = (np.atleast_1d(count.sum()) for count in (tp, pred, true))
        square = float(beta) * float(beta)
        over, under = ((1 + square) * tp, square * true + pred) if square < np.inf else (tp, true)
        scores: FloatArray = np.full(len(under), undefined)
        np.divide(over, under, out=scores, where=under != 0)
        if zero_division == "warn" and not (under.size and under.all()):
            name = {0: "precision", np.inf: "recall"}.get(beta, "F-score")
            message = f"{name} is 0 / 0 for some label and taken as 0; zero_division=0 does so silently"
            checks.warn(message, RuntimeWarning)
        if average is None:
            return scores
        defined = ~np.isnan(scores)
        if not defined.any():
            return undefined
        weights = true[defined] if average == "weighted" and true[defined].any() else None
        return float(np.average(scores[defined], weights=weights))


def _first_odd(true: list[list[Any]], pred: list[list[Any]]) -> str:
    """Name the first label that has no hash, or not the type of the very first."""
    kind = next(type(label) for sequence in true for label in sequence)
    for name, sequences in (("y_true", true), ("y_pred", pred)):
        for index, sequence in enumerate(sequences):
            for position, label in enumerate(sequence):
                if type(label) is not kind or type(label).__hash__ is None:
                    return f"{name}[{index}][{position}] is {label!r}"
    return f"{true[0]!r} have not"
