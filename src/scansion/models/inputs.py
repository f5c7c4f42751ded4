"""Encoded sequences as models take them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from scansion import _core
from scansion._checks import Ints
from scansion.data import Dataset, Vocabulary
from scansion.features.spans import SpanAttributes

__all__ = ["INTERCEPT", "Inputs", "columns_of", "with_intercept"]

INTERCEPT = "(intercept)"  # the attribute that every token has, of value 1


def columns_of(X: Any) -> int | None:
    """Columns of sequences that are arrays; None where they are something else, or come one by one.

    Raises
    ------
    ValueError
        If they differ.
    """
    if isinstance(X, np.ndarray):
        return int(X.shape[2]) if X.ndim == 3 else None
    if not isinstance(X, (list, tuple)):
        return None
    found: int | None = None
    for b, x in enumerate(X):
        if (isinstance(x, np.ndarray) and x.dtype.kind in "biuf") or hasattr(x, "tocsr"):
            if len(x.shape) == 2 and found is not None and x.shape[1] != found:
                raise ValueError(f"X[{b}] has {x.shape[1]} columns, but those before have {found}")
            found = int(x.shape[1]) if len(x.shape) == 2 else found
    return found


@dataclass(frozen=True, eq=False)
class Inputs:
    """Encoded sequences.

    Attributes
    ----------
    data : Dataset
        N tokens with their attributes.
    spans : tuple of K SpanAttributes or None
        Attributes of spans, by level.
    columns : int64 (n,), or None
        Attributes that are standardised, ascending (`scansion.models.units`); in training only.
    """

    data: Dataset
    spans: tuple[SpanAttributes | None, ...]

    columns: Ints | None = None

    def __len__(self) -> int:
        return len(self.data)

    def __reduce__(self) -> tuple[Any, ...]:
        return Inputs, (self.data, self.spans, self.columns)  # without what is native

    @cached_property
    def native(self) -> _core.EncodedData:
        """For the native code."""
        data = self.data
        native = _core.EncodedData(data.offsets, data.token_offsets, data.ids, data.values)
        for k, spans in enumerate(self.spans):
            if spans is not None:
                native.set_cells(k, spans.offsets, spans.start, spans.length, spans.ids, spans.values)
        return native

    def take(self, sequences: Ints) -> Inputs:
        """Some of the sequences, in the order given."""
        return Inputs(self.data.take(sequences), tuple(None if s is None else s.take(sequences) for s in self.spans))

    def blocks(self, tokens: int) -> Iterator[tuple[slice, Inputs]]:
        """Runs of sequences of about that many tokens, each with its rows in the whole."""
        offsets, first = self.data.offsets, 0
        while first < len(self):
            last = int(np.searchsorted(offsets, offsets[first] + tokens, side="right")) - 1
            last = min(max(last, first + 1), len(self))
            part = self if last - first == len(self) else self.take(np.arange(first, last))
            yield slice(int(offsets[first]), int(offsets[last])), part
            first = last


def with_intercept(data: Dataset, vocabulary: Vocabulary) -> Dataset:
    """The same with the attribute INTERCEPT, which is in the vocabulary, on every token."""
    number, stops = vocabulary.index(INTERCEPT), data.token_offsets[1:]
    ids = np.insert(data.ids, stops, number).astype(np.int32)
    values = None if data.values is None else np.insert(data.values, stops, 1.0)
    tokens = data.token_offsets + np.arange(len(data.token_offsets))
    return Dataset._trusted(data.offsets.copy(), tokens, ids, values, vocabulary)
