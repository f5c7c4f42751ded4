"""Scores by name, for scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from scansion.metrics.actions import _frames, boundary_f1_score, overlap_scores, relaxed_accuracy_score
from scansion.metrics.segments import segment_scores
from scansion.metrics.tokens import flat_accuracy_score, flat_fbeta_score, sequence_accuracy_score
from scansion.metrics.trajectories import edit_distance_score, exact_match_score
from scansion.schemes import _as_list, _holds_segments, detect

__all__ = ["Scorer", "scorer"]


class Scorer:
    """A score of an estimator's predictions, ``scorer(estimator, X, y)``; made by `scorer`."""

    def __init__(self, name: str, options: dict[str, Any]) -> None:
        self.name, self.options = name, options

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        """The score of ``estimator.predict(X)``; higher is better."""
        return float(_SCORERS[self.name](list(y), list(estimator.predict(X)), **self.options))

    def __repr__(self) -> str:
        return f"scorer({', '.join([repr(self.name), *(f'{k}={v!r}' for k, v in self.options.items())])})"


def scorer(name: str, **options: Any) -> Scorer:
    """A scorer by name, for ``scoring=`` of scikit-learn's ``cross_val_score`` and ``GridSearchCV``, also in dicts.

    Parameters
    ----------
    name : str
        "segment_f1", "segment_precision", "segment_recall" (`segment_scores`, micro), "accuracy" (tokens),
        "sequence_accuracy", "flat_f1", "flat_precision", "flat_recall" (tokens, weighted mean over labels), "edit",
        "exact_match" (trajectories), "f1@10", "f1@25", "f1@50" (`overlap_scores`), "relaxed_accuracy", "boundary_f1".
    **options
        Passed on to the score: `scheme` of segments (guessed from y unless given), `average`, `labels`, `tolerance`.

    Examples
    --------
    >>> scorer("segment_f1", scheme="iob2")
    scorer('segment_f1', scheme='iob2')
    """
    if name not in _SCORERS:
        raise ValueError(f"unknown score {name!r}; known: {', '.join(_SCORERS)}")
    return Scorer(name, options)


def _by_segments(true: list[Any], pred: list[Any], *, which: str, scheme: str | None = None, **reading: Any) -> float:
    if scheme is None:
        scheme = "plain" if _holds_segments(list(map(_as_list, true))) else detect(true)
    return float(getattr(segment_scores(true, pred, scheme, **reading), which))


def _by_tokens(y_true: list[Any], y_pred: list[Any], *, beta: float, **options: Any) -> float:
    given: dict[str, Any] = {"average": "weighted", "zero_division": 0} | options
    return float(flat_fbeta_score(_frames(y_true), _frames(y_pred, "y_pred"), beta, **given))


def _by_overlap(y_true: list[Any], y_pred: list[Any], *, overlap: float, **options: Any) -> float:
    return overlap_scores(y_true, y_pred, overlap, **options).f1


def _on_frames(score: Callable[..., float]) -> Callable[..., float]:
    return lambda y_true, y_pred, **options: score(_frames(y_true), _frames(y_pred, "y_pred"), **options)


_SCORERS: dict[str, Callable[..., float]] = {
    "segment_f1": partial(_by_segments, which="f1"),
    "segment_precision": partial(_by_segments, which="precision"),
    "segment_recall": partial(_by_segments, which="recall"),
    "accuracy": _on_frames(flat_accuracy_score),
    "sequence_accuracy": _on_frames(sequence_accuracy_score),
    "flat_f1": partial(_by_tokens, beta=1.0),
    "flat_precision": partial(_by_tokens, beta=0.0),
    "flat_recall": partial(_by_tokens, beta=np.inf),
    "edit": _on_frames(edit_distance_score),
    "exact_match": _on_frames(exact_match_score),
    "f1@10": partial(_by_overlap, overlap=0.1),
    "f1@25": partial(_by_overlap, overlap=0.25),
    "f1@50": partial(_by_overlap, overlap=0.5),
    "relaxed_accuracy": relaxed_accuracy_score,
    "boundary_f1": boundary_f1_score,
}
