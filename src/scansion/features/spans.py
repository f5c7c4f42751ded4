"""Attributes of whole segments: what a user's function says of every span."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from scansion._checks import Floats, Ints
from scansion.data import Dataset, Vocabulary, encode

__all__ = ["Cells", "functions", "readable", "span_cells"]

Numbers = npt.NDArray[np.int32]


@dataclass
class Cells:
    """Attributes of whole segments: for entry e, attribute ids[e] with values[e] on [start, start + length)."""

    offsets: Ints
    start: Numbers
    length: Numbers
    ids: Numbers
    values: Floats

    def take(self, first: int, last: int) -> Cells:
        """Those of the sequences first .. last - 1."""
        rows = slice(int(self.offsets[first]), int(self.offsets[last]))
        offsets = self.offsets[first : last + 1] - rows.start
        return Cells(offsets, self.start[rows], self.length[rows], self.ids[rows], self.values[rows])


def functions(name: str, given: Any) -> list[Callable[..., Any]]:
    """A function of spans, a list of such, or None, as a list."""
    found = [] if given is None else [given] if callable(given) else given
    if not isinstance(found, (list, tuple)) or not all(callable(f) for f in found):
        raise ValueError(f"{name} must be a function f(x, start, stop) or a list of such, got {given!r}")
    return list(found)


def readable(X: Any) -> Any:
    """X in a form that can be read more than once."""
    if isinstance(X, Dataset):
        raise ValueError("segment_features need the tokens themselves: give sequences, not an encoded Dataset")
    if isinstance(X, (str, bytes, Mapping)) or not isinstance(X, Iterable):
        return X  # encode says what is wrong with it
    return [x if hasattr(x, "__getitem__") or not isinstance(x, Iterable) else list(x) for x in X]


def span_cells(
    X: Any, functions: Sequence[Callable[..., Any]], vocabulary: Vocabulary, max_length: int, frozen: bool
) -> Cells:
    """What the functions say of all spans of at most `max_length` tokens."""
    starts, lengths, cuts = array("i"), array("i"), [0]

    def spans() -> Iterator[list[Any]]:
        for x in X:
            size = x.shape[0] if hasattr(x, "shape") else len(x)
            items = []
            for start in range(size):
                for stop in range(start + 1, min(size, start + max_length) + 1):
                    for f in functions:
                        item = f(x, start, stop)
                        if item:
                            starts.append(start)
                            lengths.append(stop - start)
                            items.append(item)
            cuts.append(cuts[-1] + len(items))
            yield items

    encoded = encode(spans(), vocabulary, frozen=frozen)
    counts = np.diff(encoded.token_offsets)
    return Cells(
        np.ascontiguousarray(encoded.token_offsets[np.array(cuts)]),
        np.repeat(np.array(starts, np.int32), counts),
        np.repeat(np.array(lengths, np.int32), counts),
        encoded.ids,
        np.ones(len(encoded.ids)) if encoded.values is None else encoded.values,
    )
