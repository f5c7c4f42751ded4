"""Wapiti's model files: text of strings with their lengths before them, and weights in hexadecimal.

A model holds the patterns, the L labels, the observations, which are expanded patterns, and the weights that are not 0
by number. Observations have numbers of weights one after another: those that begin with u one for each label, with b
one for each label and next label, with * the former and then the latter.
"""

from __future__ import annotations

import re

import numpy as np

from scansion._checks import Floats, Ints
from scansion.models.crf import CRF
from scansion.models.foreign.assemble import decoded, strings, templated

__all__ = ["read"]

_MODEL = re.compile(rb"#mdl#(?:(\d{1,9})#)?(\d{1,18})\n")
_READER = re.compile(rb"#rdr#(\d{1,9})/(\d{1,9})(?:/-?\d{1,9})?\n")
_STRINGS = re.compile(rb"#qrk#(\d{1,18})\n")
_LENGTH = re.compile(rb"(\d{1,9}):")
_WEIGHT = re.compile(rb"(\d{1,18})=([-+0-9a-fA-FxXpP.]{1,40})\n?")


class _Cursor:
    """A place in a file; ValueError where something else stands there than should."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def match(self, expression: re.Pattern[bytes], name: str) -> re.Match[bytes]:
        """What matches here, and go behind it."""
        found = expression.match(self.data, self.at)
        if found is None:
            raise ValueError(f"{name} should stand at byte {self.at}, but do not")
        self.at = found.end()
        return found

    def strings(self, count: int, name: str) -> list[bytes]:
        """So many strings, each "length:content," in a line."""
        if count > len(self.data) - self.at:
            raise ValueError(f"there cannot be {count} {name} in {len(self.data)} bytes")
        found = []
        for _ in range(count):
            size = int(self.match(_LENGTH, name)[1])
            text = self.data[self.at : self.at + size]
            self.at += size
            if self.data[self.at : self.at + 1] != b",":
                raise ValueError(f"{name} have a string without an end at byte {self.at}")
            self.at += 2
            found.append(text)
        return found


def read(data: bytes, encoding: str | None = None) -> CRF:
    """The model in a file; ValueError if it is damaged."""
    cursor = _Cursor(data)
    kind, active = cursor.match(_MODEL, "kind and number of weights").groups()
    if kind is not None and int(kind) == 1:
        raise ValueError("it is a maximum entropy Markov model, not a CRF")
    patterns = cursor.strings(int(cursor.match(_READER, "the patterns")[1]), "the patterns")
    labels = cursor.strings(int(cursor.match(_STRINGS, "the labels")[1]), "the labels")
    observations = cursor.strings(int(cursor.match(_STRINGS, "the observations")[1]), "the observations")
    cuts = np.concatenate([[0], np.cumsum([len(observation) for observation in observations])]).astype(np.int64)
    text = np.frombuffer(b"".join(observations), np.uint8)
    if (np.diff(cuts) == 0).any():
        raise ValueError("an observation has no name")
    first = text[cuts[:-1]]
    single, double = (np.isin(first, np.frombuffer(letters, np.uint8)) for letters in (b"u*", b"b*"))
    if not (single | double).all():
        raise ValueError("an observation begins with none of u, b and *")
    n = len(labels)
    starts = np.concatenate([[0], np.cumsum(single * n + double * (n * n))]).astype(np.int64)
    weights = _weights(cursor, int(active), int(starts[-1]))
    firsts = np.where(single, starts[:-1], -1), np.where(double, starts[:-1] + single * n, -1)
    template, names = strings(patterns, encoding), strings(labels, encoding)
    return templated("Wapiti", "wapiti-exact", template, names, decoded(text, cuts, encoding), firsts, weights)


def _weights(cursor: _Cursor, count: int, size: int) -> tuple[Ints, Floats]:
    """Numbers and values of the weights that are not 0."""
    if count > len(cursor.data) - cursor.at:
        raise ValueError(f"there cannot be {count} weights in the {len(cursor.data) - cursor.at} bytes left")
    numbers, values = np.empty(count, np.int64), np.empty(count)
    for i in range(count):
        found = cursor.match(_WEIGHT, "the weights")
        numbers[i] = int(found[1])
        values[i] = float.fromhex(found[2].decode("ascii"))
    if count and int(numbers.max()) >= size:
        raise ValueError(f"it has a weight {int(numbers.max())}, but there are {size}")
    return numbers, values
