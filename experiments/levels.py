"""Labels at several levels: what the experiments with hierarchical models share.

A column is one label per time step. The columns of one sequence, upper level first, are a tuple.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from typing import Any

import scansion
from scansion.schemes import segments
from scansion.segments import Segment

__all__ = ["ProductChain", "nested_runs", "runs", "spread", "summary"]

Column = Sequence[Any]


def runs(column: Column) -> list[Segment]:
    """Runs of equal labels."""
    return segments(column, "plain")


def nested_runs(columns: Sequence[Column]) -> list[list[Segment]]:
    """Segments of each level: runs of equal labels, cut wherever a level above changes."""
    result = []
    seen: list[tuple[Any, ...]] = [() for _ in columns[0]]
    for column in columns:
        seen = [(*above, label) for above, label in zip(seen, column, strict=True)]
        result.append([Segment(s.start, s.stop, s.label[-1]) for s in runs(seen)])
    return result


def spread(parts: Iterable[tuple[int, int, Any]]) -> list[Any]:
    """The label of each time step, given segments that leave no gap."""
    return [label for start, stop, label in parts for _ in range(start, stop)]


def summary(given: Sequence[float | None]) -> str | None:
    """The mean, with the range if there are several; None if there is no number."""
    values = [value for value in given if value is not None]
    if not values:
        return None
    mean = f"{statistics.mean(values):.2f}"
    return mean if len(values) == 1 else f"{mean} ({min(values):.2f} .. {max(values):.2f})"


class ProductChain:
    """A linear chain over combinations of the labels of all levels: exact inference in a grid of levels.

    Every combination seen in training is a label of its own, so weights are not shared between combinations. Unknown
    labels are None, at each level by itself; a combination is learnt from only where some sequence tells all of it.
    """

    def __init__(self, **parameters: Any) -> None:
        self.parameters = parameters

    def fit(self, X: Sequence[Any], y: Sequence[Sequence[Column]]) -> ProductChain:
        told = {labels for columns in y for labels in zip(*columns, strict=True) if None not in labels}
        self.products = sorted(told)
        self.model = scansion.CRF(**self.parameters).fit(X, [self._allowed(columns) for columns in y])
        return self

    def predict(
        self, X: Sequence[Any], given: Sequence[Sequence[Column]] | None = None, decode: Any = "viterbi"
    ) -> list[list[list[Any]]]:
        """Columns of each sequence; `given` are columns that hold None where nothing is known."""
        constraints = None if given is None else [self._allowed(columns) for columns in given]
        answers = self.model.predict(X, constraints=constraints, decode=decode)
        return [[list(column) for column in zip(*answer, strict=True)] for answer in answers]

    def _allowed(self, columns: Sequence[Column]) -> list[Any]:
        """For each time step the combination, the set of those that agree with what is told, or None."""
        result: list[Any] = []
        for labels in zip(*columns, strict=True):
            if None not in labels:
                result.append(labels)
            elif all(label is None for label in labels):
                result.append(None)
            else:
                result.append({p for p in self.products if all(a in (None, b) for a, b in zip(labels, p, strict=True))})
        return result
