"""Encoded sequences as hierarchical models take them: attributes of tokens, and by level of spans.

Conventions: an item is a token or a span; its entries are attributes with values.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from scansion import _core
from scansion._checks import Floats, Ints
from scansion.data import Dataset
from scansion.data.dataset import _gather
from scansion.features.spans import Cells

__all__ = ["Entries", "NestedInputs"]

Numbers = npt.NDArray[np.int32]


class Entries(NamedTuple):
    """Attributes of n items.

    Attributes
    ----------
    offsets : int64 (n + 1,)
        Where each item begins among the entries.
    ids : int32 (entries,)
    values : float64 (entries,), or None where all are 1
    """

    offsets: Ints
    ids: Numbers
    values: Floats | None

    def expanded(self, items: Ints, columns: Ints, width: int) -> tuple[Ints, Floats]:
        """The entries of some items, each with a column: attribute * width + column, and the values."""
        counts = np.diff(self.offsets)[items]
        _, chosen = _gather(self.offsets, items)
        entry = self.ids[chosen] * np.int64(width) + np.repeat(columns, counts)
        return entry, np.ones(len(chosen)) if self.values is None else self.values[chosen]


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

    def __len__(self) -> int:
        return len(self.data)

    @property
    def tokens(self) -> Entries:
        """The tokens' attributes."""
        return Entries(self.data.token_offsets, self.data.ids, self.data.values)

    def spans(self, level: int, max_length: int) -> tuple[Ints, Entries]:
        """Spans of a level that have attributes, as row * M + length - 1 ascending (n,), and their attributes."""
        cells = self.cells[level]
        assert cells is not None
        row = np.repeat(self.data.offsets[:-1], np.diff(cells.offsets)) + cells.start
        place = row * max_length + cells.length - 1
        order = np.argsort(place, kind="stable")
        places, counts = np.unique(place, return_counts=True)
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return places, Entries(offsets, cells.ids[order], cells.values[order])

    @cached_property
    def native(self) -> _core.EncodedData:
        """For the native code."""
        data = self.data
        native = _core.EncodedData(data.offsets, data.token_offsets, data.ids, data.values)
        for k, cells in enumerate(self.cells):
            if cells is not None:
                native.set_cells(k, cells.offsets, cells.start, cells.length, cells.ids, cells.values)
        return native

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


def _taken(cells: Cells, sequences: Ints) -> Cells:
    offsets, entries = _gather(cells.offsets, sequences)
    return Cells(offsets, cells.start[entries], cells.length[entries], cells.ids[entries], cells.values[entries])
