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
from scansion.data.dataset import gather

__all__ = ["SpanAttributes", "functions", "readable", "span_attributes"]

Numbers = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class SpanAttributes:
    """Attributes of spans: entry e is attribute ids[e] with values[e] on [start, start + length) of its sequence.

    Attributes
    ----------
    offsets : int64 (B + 1,)
        Where each sequence begins among the entries.
    start, length, ids : int32 (entries,)
    values : float64 (entries,)
    """

    offsets: Ints
    start: Numbers
    length: Numbers
    ids: Numbers
    values: Floats

    def take(self, sequences: Ints) -> SpanAttributes:
        """Those of some sequences, in the order given."""
        offsets, entries = gather(self.offsets, sequences)
        return SpanAttributes(
            offsets, self.start[entries], self.length[entries], self.ids[entries], self.values[entries]
        )


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


def span_attributes(
    X: Any, functions: Sequence[Callable[..., Any]], vocabulary: Vocabulary, max_length: int, frozen: bool
) -> SpanAttributes:
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
                        if item is None or item is False or (hasattr(item, "__len__") and not len(item)):
                            continue
                        starts.append(start)
                        lengths.append(stop - start)
                        items.append(item)
            cuts.append(cuts[-1] + len(items))
            yield items

    encoded = encode(spans(), vocabulary, frozen=frozen)
    counts = np.diff(encoded.token_offsets)
    return SpanAttributes(
        np.ascontiguousarray(encoded.token_offsets[np.array(cuts)]),
        np.repeat(np.array(starts, np.int32), counts),
        np.repeat(np.array(lengths, np.int32), counts),
        encoded.ids,
        np.ones(len(encoded.ids)) if encoded.values is None else encoded.values,
    )
