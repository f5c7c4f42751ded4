"""The segment, a labelled half-open span of a sequence; lists of them as arrays; and answers by level."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from scansion._checks import Ints

__all__ = ["ByLevel", "Segment", "checked_segments", "segments_of"]


class Segment(NamedTuple):
    """A run of positions ``start, ..., stop - 1`` that share one label.

    Equal to, and unpacked like, the plain tuple ``(start, stop, label)``.
    """

    start: int
    stop: int
    label: Any


def segments_of(steps: Ints) -> list[Segment]:
    """Segments from rows of start, stop and label."""
    return [Segment(u, v, y) for u, v, y in steps.tolist()]


def checked_segments(
    given: Any, length: int, name: str, n_labels: int, max_length: int | None, level: int | None = None
) -> Ints:
    """Segments that cover a sequence, as rows (n, 3) of start, stop and label; ValueError says what is wrong with them.

    level: that of nested segments, for messages.
    """
    try:
        rows = [(operator.index(u), operator.index(v), operator.index(y)) for u, v, y in given]
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a list of segments (start, stop, label), got {given!r}") from None
    at = 0
    for i, (u, v, y) in enumerate(rows):
        if u != at or v <= u or v > length:
            raise ValueError(
                f"{name}[{i}] = {(u, v, y)} must start at {at}, where the one before stops, and stop after it within "
                f"the length {length}"
            )
        if max_length is not None and v - u > max_length:
            longest = f"max_length {max_length}" if level is None else f"level {level} allows, {max_length}"
            raise ValueError(f"{name}[{i}] = {(u, v, y)} is longer than {longest}")
        if not 0 <= y < n_labels:
            what = "label" if level is None else "state"
            raise ValueError(f"{name}[{i}] = {(u, v, y)}: {what} {y} is out of range 0..{n_labels - 1}")
        at = v
    if at != length:
        raise ValueError(f"{name} covers positions 0..{at}, but the sequence has length {length}")
    return np.array(rows, np.int64).reshape(-1, 3)


class ByLevel(list[Any]):
    """One entry per level, the top level first; also found by the level's name, as in ``answer["step"]``.

    Attributes
    ----------
    names : list of str
    """

    def __init__(self, entries: Iterable[Any] = (), names: Iterable[str] = ()) -> None:
        super().__init__(entries)
        self.names = list(names)

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, str):
            return super().__getitem__(key)
        try:
            return super().__getitem__(self.names.index(key))
        except ValueError:
            raise KeyError(f"there is no level {key!r}; the levels are {', '.join(self.names)}") from None

    def items(self) -> list[tuple[str, Any]]:
        """(name, entry) of each level."""
        return list(zip(self.names, self, strict=True))
