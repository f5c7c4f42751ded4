"""Models of the references, and their scores: each reference is answered by a model that has not seen it.

A CRF labels tokens, ``B-title`` where a title begins and ``I-title`` inside; all answers are turned into segments,
``(start, stop, label)``.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from scansion.demo.bibliography import Reference, attributes
from scansion.metrics import flat_accuracy_score, segment_scores
from scansion.models import CRF, HierarchicalCRF, SemiCRF
from scansion.schemes import encode, segments

__all__ = ["Answers", "Folds", "Scores", "chain", "fitted", "hide", "labels_of", "mean", "nested", "scores", "semi"]

C2 = 0.1  # the same penalty in all models
LONGEST = 32  # tokens of a field

Answer = list[Any]
Targets = Callable[[Sequence[int]], tuple[list[int], list[Any]]]
"""Of the references that may be learnt from, by number, those that are, and their y."""


def chain(iterations: int, jobs: int, **others: Any) -> CRF:
    """A first-order CRF over the labels of tokens, which say where segments begin."""
    return CRF(c2=C2, max_iterations=iterations, n_jobs=jobs, **others)


def semi(iterations: int, jobs: int) -> SemiCRF:
    """A second-order SemiCRF over fields: it sees whole fields, their lengths, and three fields in a row."""
    return SemiCRF(
        order=2,
        max_length=LONGEST,
        repeats=False,
        attribute_parts={"": ("inside", "start", "end")},
        length_features=("bins",),
        c2=C2,
        max_iterations=iterations,
        n_jobs=jobs,
    )


def nested(iterations: int, jobs: int) -> HierarchicalCRF:
    """Fields and their parts at once: two levels, without a bound on the length of segments."""
    return HierarchicalCRF(
        ["field", "part"],
        max_length="free",
        attribute_parts=dict.fromkeys(("field", "part"), ("inside", "start", "end")),
        c2=C2,
        max_iterations=iterations,
        n_jobs=jobs,
    )


def fitted(model: Any, X: Sequence[Any], y: Sequence[Any]) -> Any:
    """The model, fitted. `fit` takes Ctrl-C as the end of training; here it is the end of all."""
    model.fit(X, y)
    if "interrupted" in str(getattr(model, "message_", "")).lower():
        raise KeyboardInterrupt
    return model


# ---- scores --------------------------------------------------------------------------------------------------------


class Scores(NamedTuple):
    """Shares of what is right: of the tokens' labels; F1 of the segments; of whole references."""

    tokens: float
    segments: float
    whole: float

    def cells(self) -> list[str]:
        """As a table shows them."""
        return [f"{100 * value:.1f}" for value in self]


def labels_of(answer: Sequence[tuple[int, int, Any]]) -> list[Any]:
    """The label of each token."""
    return [label for start, stop, label in answer for _ in range(start, stop)]


def scores(truth: Sequence[Answer], predicted: Sequence[Answer]) -> Scores:
    """Scores of predicted segments."""
    whole = sum(list(a) == list(b) for a, b in zip(truth, predicted, strict=True)) / len(truth)
    tokens = flat_accuracy_score([labels_of(a) for a in truth], [labels_of(b) for b in predicted])
    return Scores(tokens, segment_scores(truth, predicted).micro.f1, whole)


def mean(several: Sequence[Scores]) -> Scores:
    """The mean of scores."""
    return Scores(*(sum(values) / len(several) for values in zip(*several, strict=True)))


# ---- tests ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Answers:
    """For each reference the answer of the model that has not seen it, and that model."""

    predicted: list[Any]
    models: list[Any]
    seconds: float


class Folds:
    """References cut into `n` folds: every n-th reference of the file, so that each fold has all styles.

    Attributes
    ----------
    references : list of Reference
    X : list of the references' attributes
    truth : list of their fields, as segments
    """

    def __init__(self, references: Sequence[Reference], n: int) -> None:
        self.references = list(references)
        self.n = n
        self.X = [attributes(r.tokens) for r in self.references]
        self.truth: list[Answer] = [r.levels[0] for r in self.references]

    def answers(self, make: Callable[[], Any], targets: Targets) -> Answers:
        """Fit one model for each fold on the others, and predict."""
        begin = time.perf_counter()
        predicted: list[Any] = [None] * len(self.X)
        models: list[Any] = [None] * len(self.X)
        for fold in range(self.n):
            others = [i for i in range(len(self.X)) if i % self.n != fold]
            tested = list(range(fold, len(self.X), self.n))
            chosen, y = targets(others)
            model = fitted(make(), [self.X[i] for i in chosen], y)
            for i, answer in zip(tested, model.predict([self.X[i] for i in tested]), strict=True):
                labels = bool(answer) and isinstance(answer[0], str)  # of tokens
                predicted[i], models[i] = segments(answer, "iob2") if labels else answer, model
        return Answers(predicted, models, time.perf_counter() - begin)

    def _targets(self, form: Callable[[Reference], Any]) -> Targets:
        return lambda others: (list(others), [form(self.references[i]) for i in others])

    def labels(self, level: int) -> Targets:
        """For `CRF`: labels of the tokens."""
        return self._targets(lambda reference: encode(reference.levels[level], len(reference.tokens)))

    def segments(self) -> Targets:
        """For `SemiCRF`: fields."""
        return self._targets(lambda reference: reference.levels[0])

    def trees(self) -> Targets:
        """For `HierarchicalCRF`: fields and their parts."""
        return self._targets(lambda reference: list(reference.levels))


def hide(y: Sequence[Sequence[Any]], complete: float, known: float, seed: int) -> list[list[Any]]:
    """Labels with gaps (None): a share `complete` of the sequences stays as it is, of the others a share `known`."""
    rng = random.Random(seed)
    whole = set(rng.sample(range(len(y)), round(complete * len(y))))
    return [
        list(labels) if b in whole else [label if rng.random() < known else None for label in labels]
        for b, labels in enumerate(y)
    ]
