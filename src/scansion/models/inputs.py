"""Encoded sequences as models take them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from scansion import _core
from scansion._checks import Ints
from scansion.data import Dataset
from scansion.features.spans import SpanAttributes

__all__ = ["Inputs"]


@dataclass(frozen=True, eq=False)
class Inputs:
    """Encoded sequences.

    Attributes
    ----------
    data : Dataset
        N tokens with their attributes.
    spans : tuple of K SpanAttributes or None
        Attributes of spans, by level.
    """

    data: Dataset
    spans: tuple[SpanAttributes | None, ...]

    def __len__(self) -> int:
        return len(self.data)

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
