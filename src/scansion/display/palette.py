"""Colours of labels: eight hues that stay apart under the common colour deficiencies, then the same ones hatched.

The hues themselves, light and dark, are in ``page.css`` (``--hue-0`` and so on); text never stands on a hue but on its
tint, and a label's name stands beside its colour everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

__all__ = ["HUES", "Palette"]

HUES = 8
_OUTSIDE = ("O", "")


class Palette:
    """The class of style sheets that each label has: the same label looks the same on the whole page.

    Parameters
    ----------
    labels : iterable
        In the order in which hues are given out; "O" is grey.
    """

    def __init__(self, labels: Iterable[Any] = ()) -> None:
        self._number: dict[str, int] = {}
        for label in labels:
            self.add(label)

    def add(self, label: Any) -> int:
        """The number of a label, a new one if it has none; -1 for what is outside of segments."""
        name = str(label)
        if name in _OUTSIDE:
            return -1
        return self._number.setdefault(name, len(self._number))

    def css(self, label: Any) -> str:
        """Style classes of a label."""
        return css(self.add(label))

    @property
    def labels(self) -> Sequence[str]:
        """The labels that have a colour, by number."""
        return list(self._number)


def css(number: int) -> str:
    """Style classes of a label's number."""
    if number < 0:
        return "k out"
    return f"k k{number % HUES}" + (" hatch" if number // HUES % 2 else "")
