"""The segment: a labelled, half-open span of a sequence."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["Segment"]


class Segment(NamedTuple):
    """A run of positions ``start, ..., stop - 1`` that share one label.

    Equal to, and unpacked like, the plain tuple ``(start, stop, label)``.
    """

    start: int
    stop: int
    label: Any
