"""Colours of labels: eight hues that stay apart under the common colour deficiencies, then the same ones hatched.

Text never stands on a hue but on its tint, and a label's name stands beside its colour everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["DARK", "HUES", "LIGHT", "OUTSIDE", "Palette", "css", "style"]

Color = tuple[str, str]

# (hue, tint) of each label in turn, on white and on near-black
LIGHT: tuple[Color, ...] = (
    ("#4338a8", "#dddbf0"),
    ("#d95f94", "#f8e0ea"),
    ("#22796c", "#d3e5e2"),
    ("#a8923a", "#efead6"),
    ("#7a1248", "#e8d0dc"),
    ("#3f8fd6", "#dbeaf8"),
    ("#1d4f2c", "#d4ded6"),
    ("#7a4d12", "#e7dccd"),
)
DARK: tuple[Color, ...] = (
    ("#8f7df0", "#35325a"),
    ("#f0979f", "#55383f"),
    ("#66e6d2", "#214d49"),
    ("#d9d08a", "#4b4936"),
    ("#d6509f", "#4c2440"),
    ("#86bdf5", "#2f445a"),
    ("#3f9a55", "#1f3d2b"),
    ("#d08420", "#4b361c"),
)
OUTSIDE: tuple[Color, Color] = ("#9aa3ad", "#eef0f2"), ("#6d7783", "#262b33")
HUES = len(LIGHT)

_OUTSIDE_NAMES = ("O", "")


class Palette:
    """The number that each label has, and with it its colour: the same label looks the same on the whole page.

    Parameters
    ----------
    labels : iterable
        In the order in which hues are given out; "O" is grey.
    """

    def __init__(self, labels: Iterable[object] = ()) -> None:
        self._number: dict[str, int] = {}
        for label in labels:
            self.add(label)

    def add(self, label: object) -> int:
        """The number of a label, a new one if it has none; -1 for what is outside of segments."""
        name = str(label)
        if name in _OUTSIDE_NAMES:
            return -1
        return self._number.setdefault(name, len(self._number))

    def css(self, label: object) -> str:
        """Style classes of a label."""
        return css(self.add(label))

    @property
    def labels(self) -> list[str]:
        """The labels that have a colour, by number."""
        return list(self._number)


def css(number: int) -> str:
    """Style classes of a label's number."""
    if number < 0:
        return "k out"
    return f"k k{number % HUES}" + (" hatch" if number // HUES % 2 else "")


def style() -> str:
    """The rules of these classes."""

    def rule(name: str, light: Color, dark: Color) -> str:
        hue, tint = (f"light-dark({a}, {b})" for a, b in zip(light, dark, strict=True))
        return f".scansion .{name} {{ --hue: {hue}; --tint: {tint}; }}\n"

    pairs = enumerate(zip(LIGHT, DARK, strict=True))
    return rule("k", *OUTSIDE) + "".join(rule(f"k{i}", light, dark) for i, (light, dark) in pairs)
