"""Encoded sequences as hierarchical models take them: attributes of tokens, and by level of spans.

Conventions: an item is a token or a span; its entries are attributes with values. A feature is an attribute with a
column: `Table` lists the columns that each attribute has.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from scansion import _core
from scansion._checks import Floats, Ints
from scansion.data import Dataset
from scansion.data.dataset import gather
from scansion.features.spans import SpanAttributes as Cells

__all__ = ["Entries", "NestedInputs", "Table"]

Numbers = npt.NDArray[np.int32]


class Table(NamedTuple):
    """The features of attributes: those of a have the columns ``columns[rows[a]:rows[a + 1]]``, of `width` in all."""

    rows: Ints
    columns: Numbers
    width: int

    @classmethod
    def of(cls, index: Ints, attributes: int, width: int) -> Table:
        """From attribute * width + column, ascending."""
        rows = np.searchsorted(index, np.arange(attributes + 1) * width)
        return cls(rows.astype(np.int64), (index % width).astype(np.int32), width)


@dataclass(frozen=True, eq=False)
class Entries:
    """Attributes of n items.

    Attributes
    ----------
    offsets : int64 (n + 1,)
        Where each item begins among the entries.
    ids : int32 (entries,)
    values : float64 (entries,), or None where all are 1
    attributes : int
        A, the number of attributes.
    """

    offsets: Ints
    ids: Numbers
    values: Floats | None
    attributes: int

    @cached_property
    def _by_attribute(self) -> tuple[Ints, Ints, Floats | None]:
        """Entries in the order of their attributes: where each begins (A + 1,), items and values."""
        order = np.argsort(self.ids, kind="stable")
        counts = np.bincount(self.ids, minlength=self.attributes)
        items = np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))
        return (
            np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            np.ascontiguousarray(items[order]),
            None if self.values is None else np.ascontiguousarray(self.values[order]),
        )

    def scores(self, table: Table, weights: Floats, n_jobs: int) -> Floats:
        """(n, width) summed weights of each item's features, times their values."""
        out = np.empty((len(self.offsets) - 1, table.width))
        weights = np.ascontiguousarray(weights)
        _core.token_scores(self.offsets, self.ids, self.values, table.rows, table.columns, weights, out, n_jobs)
        return out

    def counts(self, table: Table, counts: Floats, n_jobs: int) -> Floats:
        """(features,) summed values of the features; counts (n, width): how often each column counts at each item."""
        out = np.empty(len(table.columns))
        counts = np.ascontiguousarray(counts)
        _core.token_counts(*self._by_attribute, table.rows, table.columns, counts, out, n_jobs)
        return out

    def expanded(self, items: Ints, columns: Ints, width: int) -> tuple[Ints, Ints, Floats]:
        """The entries of some items, each with a column.

        Returns
        -------
        number : which of the items an entry belongs to
        entry : attribute * width + column
        value
        """
        counts = np.diff(self.offsets)[items]
        _, chosen = gather(self.offsets, items)
        entry = self.ids[chosen] * np.int64(width) + np.repeat(columns, counts)
        value = np.ones(len(chosen)) if self.values is None else self.values[chosen]
        return np.repeat(np.arange(len(items)), counts), entry, value


@dataclass(frozen=True, eq=False)
class NestedInputs:
    """Encoded sequences.

    Attributes
    ----------
    data : Dataset
        N tokens with A attributes.
    cells : tuple of K Cells or None
        Attributes of spans, by level.
    """

    data: Dataset
    cells: tuple[Cells | None, ...]
    _cache: dict[Any, Any] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.data)

    @property
    def tokens(self) -> Entries:
        """The tokens' attributes."""
        if "tokens" not in self._cache:
            data = self.data
            self._cache["tokens"] = Entries(data.token_offsets, data.ids, data.values, len(data.vocabulary))
        found: Entries = self._cache["tokens"]
        return found

    @property
    def following(self) -> Entries:
        """At each token the attributes of the next one in its sequence, at the last none."""
        if "following" not in self._cache:
            data, n = self.data, self.data.n_tokens
            last = np.zeros(n, np.bool_)
            last[data.offsets[1:][np.diff(data.offsets) > 0] - 1] = True
            next_one = np.flatnonzero(~last) + 1
            counts = np.zeros(n, np.int64)
            counts[~last] = np.diff(data.token_offsets)[next_one]
            _, chosen = gather(data.token_offsets, next_one)
            offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
            values = None if data.values is None else data.values[chosen]
            self._cache["following"] = Entries(offsets, data.ids[chosen], values, len(data.vocabulary))
        found: Entries = self._cache["following"]
        return found

    def spans(self, level: int, max_length: int, attributes: int) -> tuple[Ints, Entries]:
        """Spans of a level that have attributes, as row * M + length - 1 ascending (n,), and their attributes."""
        if level not in self._cache:
            cells = self.cells[level]
            assert cells is not None
            row = np.repeat(self.data.offsets[:-1], np.diff(cells.offsets)) + cells.start
            place = row * max_length + cells.length - 1
            order = np.argsort(place, kind="stable")
            places, counts = np.unique(place, return_counts=True)
            offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
            entries = Entries(offsets, cells.ids[order], cells.values[order], attributes)
            self._cache[level] = places, entries
        found: tuple[Ints, Entries] = self._cache[level]
        return found

    def take(self, sequences: Ints) -> NestedInputs:
        """Some of the sequences, in the order given."""
        cells = tuple(None if c is None else _taken(c, sequences) for c in self.cells)
        return NestedInputs(self.data.take(sequences), cells)

    def blocks(self, tokens: int) -> Iterator[tuple[slice, NestedInputs]]:
        """Runs of sequences of about that many tokens, each with its rows in the whole."""
        offsets, first = self.data.offsets, 0
        while first < len(self):
            last = int(np.searchsorted(offsets, offsets[first] + tokens, side="right")) - 1
            last = min(max(last, first + 1), len(self))
            part = self if last - first == len(self) else self.take(np.arange(first, last))
            yield slice(int(offsets[first]), int(offsets[last])), part
            first = last


def _taken(cells, sequences):
    return cells.take(sequences)


def nested(inputs):
    return inputs if isinstance(inputs, NestedInputs) else NestedInputs(inputs.data, inputs.spans)
