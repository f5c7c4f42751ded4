"""The segment, a labelled half-open span of a sequence; and answers by level."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

__all__ = ["ByLevel", "Segment"]


class Segment(NamedTuple):
    """A run of positions ``start, ..., stop - 1`` that share one label.

    Equal to, and unpacked like, the plain tuple ``(start, stop, label)``.
    """

    start: int
    stop: int
    label: Any


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
