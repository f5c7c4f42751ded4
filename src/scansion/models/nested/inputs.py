"""Encoded sequences as hierarchical models take them: sparse matrices of tokens, and by level of spans."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from scansion.data import Dataset
from scansion.data.dataset import _gather
from scansion.lattice.checks import Ints
from scansion.models.flat import Cells

__all__ = ["NestedInputs"]


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
    _whole: tuple[NestedInputs, Ints] | None = field(default=None, repr=False)  # what this is taken from, and its rows

    def __len__(self) -> int:
        return len(self.data)

    def matrix(self, columns: Ints | None = None) -> Any:
        """(N, A) attributes of the tokens, or some columns of it, as a SciPy CSR matrix; made once."""
        key = None if columns is None else columns.tobytes()
        if key not in self._cache:
            if self._whole is not None:
                whole, rows = self._whole
                self._cache[key] = whole.matrix(columns)[rows]
            elif columns is None:
                from scipy.sparse import csr_matrix

                data = self.data
                values = np.ones(len(data.ids)) if data.values is None else data.values
                shape = (data.n_tokens, len(data.vocabulary))
                self._cache[key] = csr_matrix((values, data.ids, data.token_offsets), shape=shape)
            else:
                self._cache[key] = self.matrix()[:, columns]
        return self._cache[key]

    def spans(self, level: int, max_length: int, attributes: int) -> tuple[Ints, Any]:
        """Spans of a level that have attributes, as row * M + length - 1 (n,), and their attributes, CSR (n, A)."""
        key = ("spans", level)
        if key not in self._cache:
            from scipy.sparse import csr_matrix

            cells = self.cells[level]
            assert cells is not None
            row = np.repeat(self.data.offsets[:-1], np.diff(cells.offsets)) + cells.start
            places, number = np.unique(row * max_length + cells.length - 1, return_inverse=True)
            shape = (len(places), attributes)
            self._cache[key] = places, csr_matrix((cells.values, (number.ravel(), cells.ids)), shape=shape)
        places, matrix = self._cache[key]
        return places, matrix

    def take(self, sequences: Ints) -> NestedInputs:
        """Some of the sequences, in the order given."""
        cells = tuple(None if c is None else _taken(c, sequences) for c in self.cells)
        _, rows = _gather(self.data.offsets, sequences)
        return NestedInputs(self.data.take(sequences), cells, _whole=(self, rows))

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
