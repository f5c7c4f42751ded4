"""Features of whole segments for `SemiCRF`: what cannot be read off single tokens.

A segment feature is a function ``f(x, start, stop) -> dict`` (or list of strings) of a sequence and a half-open span;
python-crfsuite's item rules make attributes of what it returns. These are ready-made ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

__all__ = ["Gazetteer", "SegmentText"]


def _text(token: Any, key: str | None) -> str:
    if isinstance(token, str):
        return token
    if isinstance(token, Mapping):
        if key is None or key not in token:
            raise ValueError(f"a token has no {key!r} to take its text from; it has {', '.join(map(str, token))}")
        return str(token[key])
    for item in token:
        if isinstance(item, str) and key is not None and item.startswith(key):
            return item[len(key) :]
    raise ValueError(f"a token has no attribute that starts with {key!r} to take its text from: {token!r}")


class SegmentText:
    """The words of a whole segment as one attribute, ``text:the united states``.

    Parameters
    ----------
    key : str
        Where a token's word is: the key of a dict token, or the prefix of a string attribute (``"w[0]="``).
    lower : bool
        Ignore case.
    longest : int
        Longer segments get no such attribute.
    """

    def __init__(self, key: str = "w", *, lower: bool = False, longest: int = 8) -> None:
        from scansion import _checks as checks  # it needs NumPy, which the command's help does without

        checks.flag("lower", lower)
        self.key = key
        self.lower = lower
        self.longest = checks.count("longest", longest, 0)

    def words(self, x: Sequence[Any], start: int, stop: int) -> tuple[str, ...]:
        """The segment's words."""
        words = tuple(_text(token, self.key) for token in x[start:stop])
        return tuple(w.lower() for w in words) if self.lower else words

    def __call__(self, x: Sequence[Any], start: int, stop: int) -> list[str]:
        """The attributes of a span."""
        if stop - start > self.longest:
            return []
        return ["text:" + " ".join(self.words(x, start, stop))]


class Gazetteer(SegmentText):
    """Whether the words of a whole segment are an entry of a list: attribute ``in:name``.

    Parameters
    ----------
    name : str
    entries : iterable of str or of sequences of str
        A string is split at white space.
    key, lower
        As in `SegmentText`.
    """

    def __init__(self, name: str, entries: Iterable[Any], key: str = "w", *, lower: bool = False) -> None:
        super().__init__(key, lower=lower)
        split = [tuple(e.split()) if isinstance(e, str) else tuple(e) for e in entries]
        for i, words in enumerate(split):
            if not all(isinstance(word, str) for word in words):
                raise TypeError(f"entries[{i}] = {words!r} must be a string, or words")
        self.entries = {tuple(w.lower() for w in e) if lower else e for e in split}
        self.longest = max(map(len, self.entries), default=0)
        self.name = name

    def __call__(self, x: Sequence[Any], start: int, stop: int) -> list[str]:
        """The attributes of a span."""
        if stop - start > self.longest:
            return []
        return [f"in:{self.name}"] if self.words(x, start, stop) in self.entries else []
