"""From data in parts to what an optimiser takes: `Estimator.problem` where each part is with a worker.

Attributes are encoded, features found and losses evaluated where the parts are. What comes to this process: the names
of attributes and the features that each part has, which are merged in the order of the parts, and y, which is read
here: labels, bounds and label patterns follow from all of it. So the model is that of the same data in one piece.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from scansion import _checks as checks
from scansion._checks import Bools, Floats, Ints
from scansion.data import Dataset, Knowledge, Vocabulary, encode
from scansion.data.partitions import Partitions
from scansion.features.spans import SpanAttributes, readable
from scansion.models.inputs import Inputs, columns_of, with_intercept
from scansion.models.units import Moments, moments, numeric
from scansion.models.weights import Level, carry_over
from scansion.training.shards import Sharded

if TYPE_CHECKING:
    from scansion.models.estimator import Estimator

__all__ = ["Shard", "problem"]


@dataclass
class _Part:
    """One part, encoded by itself; X where functions of spans will read it."""

    number: int
    data: Dataset
    arrays: bool
    columns: int | None
    X: Any


@dataclass
class _Summary:
    """What is told of a part: names of the attributes, lengths (B,), which attributes are numeric (A,)."""

    names: tuple[Any, Any]
    lengths: Ints
    numeric: Bools
    arrays: bool
    columns: int | None


class Shard:
    """The objective on one part. It may move between processes: what is native is made where it is asked."""

    def __init__(
        self, number: int, estimator: Estimator, model: Any, inputs: Inputs, known: Knowledge, weight: Floats | None
    ) -> None:
        self.given = number, estimator, model, inputs, known, weight
        self._lock = threading.Lock()
        self._objective: Any = None

    def __reduce__(self) -> tuple[Any, ...]:
        return Shard, self.given

    def checked(self) -> Moments:
        """Moments of the attributes; ValueError if what is known of a sequence is not possible."""
        number, estimator, model, inputs, known, _ = self.given

        def check() -> None:
            model.check_known(self._native(), known)
            estimator._check_partial(model, inputs, known)

        _in_part(number, check)
        return moments(model, inputs)

    def _native(self) -> Any:
        if self._objective is None:
            _, estimator, model, inputs, known, weight = self.given
            self._objective = estimator._tuned(model, model.objective(inputs, known, weight))
        return self._objective

    def log_loss(self, w: Floats, gradient: Floats, threads: int) -> float:
        """As in `Objective`."""
        with self._lock:
            return float(self._native().log_loss(w, gradient, threads))

    def margin_loss(self, w: Floats, gradient: Floats, threads: int) -> float:
        """As in `Objective`."""
        with self._lock:
            return float(self._native().margin_loss(w, gradient, threads))


def problem(estimator: Estimator, X: Partitions, y: Any, sample_weight: Any) -> tuple[Any, Sharded]:
    """The model with its first weights, and the objective over the parts."""
    from scansion.models.estimator import refuse

    if estimator.algorithm != "lbfgs":
        raise ValueError(f"algorithm must be 'lbfgs' where data come in parts, got {estimator.algorithm!r}")
    refuse(estimator, "data in parts")
    workers, n, selection = X.workers, len(X), estimator._selection()
    if n == 0:
        raise ValueError("X has no parts: there is nothing to learn from")
    plain = workers.share(estimator._plain())
    keep = any(selection.functions)
    parts = workers.apply(_encoded, range(n), X.parts, [keep] * n)
    told: list[_Summary] = workers.fetch(workers.apply(_summary, parts))
    X.columns = _same_columns([one.columns for one in told])
    sizes = [len(one.lengths) for one in told]
    lengths = np.concatenate([one.lengths for one in told])
    if len(lengths) == 0:
        raise ValueError("X is empty: there is nothing to learn from")
    weight = checks.weights(sample_weight, len(lengths))

    old = estimator._old(selection)
    vocabulary = Vocabulary() if old is None else old.vocabulary.copy()
    numbers = [_merged(one.names, vocabulary) for one in told]
    found = np.zeros(len(vocabulary), np.bool_)
    for one, places in zip(told, numbers, strict=True):
        found[places[one.numeric]] = True
    vocabulary, columns, intercept = estimator._columns(any(one.arrays for one in told), lambda: found, vocabulary)

    before = estimator._told_labels() if old is None else [level.labels for level in old.levels]
    known, labels = selection.encode(_all_of(y, sizes), lengths, before, selection.bounds(), extend=True)
    if known.trajectories is not None:
        b = int(np.argmax(np.diff(known.trajectories[0]) > 0))
        raise ValueError(f"y[{b}] is a Trajectory, which does not go with data in parts: fit on one machine")
    estimator._check_labels(labels[-1])
    levels = selection.levels(labels, known, old)
    spans: list[Any] = [(None,) * len(levels)] * n
    if keep:
        own = workers.share([replace(level, span_vocabulary=Vocabulary()) for level in levels])
        spans = workers.apply(_spans, parts, [plain] * n, [own] * n)
        names = workers.fetch(workers.apply(_span_names, spans))
        own_places = [
            [
                None if one is None else _merged(one, level.span_vocabulary)
                for one, level in zip(some, levels, strict=True)
            ]
            for some in names
        ]
        spans = workers.apply(_renumbered_spans, spans, own_places)
    given = workers.share((vocabulary, intercept, columns))
    inputs = workers.apply(_inputs, parts, numbers, spans, [given] * n)
    firsts = np.concatenate([[0], np.cumsum(sizes)])
    cuts = list(zip(firsts[:-1].tolist(), firsts[1:].tolist(), strict=True))
    knowledge = workers.apply(_same, [_between(known, a, b) for a, b in cuts])
    outline = selection.outline(known, levels, vocabulary)
    unseen = selection.without_example(known, levels)
    seen = workers.apply(_seen, range(n), [plain] * n, [workers.share(outline)] * n, inputs, knowledge, [unseen] * n)
    model = selection.completed(outline, known, list(chain.from_iterable(workers.fetch(seen))))
    if old is not None:
        carry_over(old, model)
    else:
        model.warn_of_symmetry(known)
    estimator._check_examples(model, known)
    weights = [None if weight is None else weight[a:b] for a, b in cuts]
    shards = workers.apply(Shard, range(n), [plain] * n, [workers.share(model)] * n, inputs, knowledge, weights)
    total = workers.fetch(workers.apply(Shard.checked, shards))
    return model, Sharded(workers, shards, len(lengths), sum(total[1:], total[0]))


# ---- here ----------------------------------------------------------------------------------------------------------


def _same_columns(found: list[int | None]) -> int | None:
    told = [(number, one) for number, one in enumerate(found) if one is not None]
    for number, one in told:
        if one != told[0][1]:
            raise ValueError(f"X in part {number} has {one} columns, but those before have {told[0][1]}")
    return told[0][1] if told else None


def _merged(names: tuple[Any, Any], vocabulary: Vocabulary) -> Ints:
    """Numbers of a part's attributes in the vocabulary of all, to which they are added."""
    return encode([[Vocabulary.from_arrays(*names).names()]], vocabulary).ids.astype(np.int64)


def _all_of(y: Any, sizes: list[int]) -> Any:
    """Y in one piece."""
    if not isinstance(y, Partitions):
        return y
    parts = [list(part) for part in y.workers.fetch(y.workers.apply(_same, y.parts))]
    if len(parts) != len(sizes):
        raise ValueError(f"y has {len(parts)} parts, but X has {len(sizes)}")
    for number, (part, size) in enumerate(zip(parts, sizes, strict=True)):
        if len(part) != size:
            raise ValueError(f"part {number} of y has {len(part)} sequences, but that of X has {size}")
    return list(chain.from_iterable(parts))


def _between(known: Knowledge, first: int, last: int) -> Knowledge:
    """What is known of the sequences first .. last - 1."""
    offsets = known.offsets[first : last + 1]
    rows = slice(int(offsets[0]), int(offsets[-1]))
    return known.rows(rows, offsets - offsets[0])


# ---- at the workers ------------------------------------------------------------------------------------------------


def _in_part(number: int, function: Callable[[], Any]) -> Any:
    """What the function returns; errors name the part."""
    try:
        return function()
    except (TypeError, ValueError) as error:
        raise type(error)(f"in part {number}: {error}") from error


def _same(value: Any) -> Any:
    return value


def _encoded(number: int, X: Any, keep: bool) -> _Part:
    """A part, encoded; errors name it."""
    from scansion.models.estimator import _has_arrays

    def read() -> _Part:
        sequences = readable(X) if keep else X if isinstance(X, Dataset) else list(X)
        return _Part(
            number, encode(sequences), _has_arrays(sequences), columns_of(sequences), sequences if keep else None
        )

    found: _Part = _in_part(number, read)
    return found


def _summary(part: _Part) -> _Summary:
    data = part.data
    return _Summary(data.vocabulary.to_arrays(), data.lengths, numeric(data), part.arrays, part.columns)


def _spans(part: _Part, estimator: Estimator, levels: list[Level]) -> tuple[Any, list[Level]]:
    """Attributes of spans by level, numbered by vocabularies of the part's own."""
    levels = [replace(level, span_vocabulary=Vocabulary()) for level in levels]
    found = _in_part(part.number, lambda: estimator._spans(part.X, estimator._selection(), levels, frozen=False))
    return found, levels


def _span_names(spans: tuple[Any, list[Level]]) -> list[Any]:
    return [None if one is None else level.span_vocabulary.to_arrays() for one, level in zip(*spans, strict=True)]


def _renumbered_spans(spans: tuple[Any, list[Level]], places: list[Any]) -> tuple[SpanAttributes | None, ...]:
    return tuple(
        None if one is None else replace(one, ids=numbers[one.ids].astype(np.int32))
        for one, numbers in zip(spans[0], places, strict=True)
    )


def _inputs(part: _Part, numbers: Ints, spans: Any, given: tuple[Vocabulary, bool, Ints | None]) -> Inputs:
    """A part numbered as the whole is."""
    vocabulary, intercept, columns = given
    data = part.data
    data = Dataset(data.offsets, data.token_offsets, numbers[data.ids], data.values, vocabulary)
    if intercept:
        data = with_intercept(data, vocabulary)
    return Inputs(data, spans, columns)


def _seen(
    number: int, estimator: Estimator, model: Any, inputs: Inputs, known: Knowledge, unseen: list[int]
) -> list[Any]:
    """Features of attributes that occur in a part."""
    selection = estimator._selection()
    found: list[Any] = _in_part(number, lambda: selection.occurring_here(model, inputs, known, unseen))
    return found
