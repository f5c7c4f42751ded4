"""CRFsuite's text: a label and attributes with weights for each token, separated by tabs."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from typing import Any

from scansion.formats.base import FormatError

__all__ = ["escaped", "read_items", "write_item"]

_FIELD = re.compile(r"((?:[^:\\]|\\.?)*)(?::(.*))?", re.DOTALL)
_ESCAPE = re.compile(r"\\([:\\])")


def read_items(lines: Iterable[tuple[int, str]], path: str) -> Iterator[tuple[int, list[Any], list[str], None]]:
    """Line, tokens (dicts attribute -> weight) and labels of each sequence."""
    tokens: list[dict[str, float]] = []
    labels: list[str] = []
    begin = 1
    for number, line in lines:
        if not line.strip(" \t"):
            if tokens:
                yield begin, tokens, labels, None
                tokens, labels = [], []
            continue
        if not tokens:
            begin = number
        label, *attributes = line.split("\t")
        token: dict[str, float] = {}
        for attribute in attributes:
            if not attribute:
                continue
            name, weight = _attribute(attribute, path, number)
            token[name] = token.get(name, 0.0) + weight  # repeated attributes add up
        tokens.append(token)
        labels.append(label)
    if tokens:
        yield begin, tokens, labels, None


def _attribute(text: str, path: str, number: int) -> tuple[str, float]:
    found = _FIELD.fullmatch(text)
    assert found is not None
    name, weight = found.groups()
    if weight is None:
        return _ESCAPE.sub(r"\1", name), 1.0
    try:
        value = float(weight)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise FormatError(
            path,
            number,
            f"attribute {text[:60]!r} has the weight {weight[:40]!r}, which is no number; a colon in a name is \\:",
        )
    return _ESCAPE.sub(r"\1", name), value


def escaped(name: str) -> str:
    """An attribute's name as the file has it."""
    return name.replace("\\", "\\\\").replace(":", "\\:")


def write_item(label: str, attributes: Iterable[tuple[str, float]]) -> str:
    """The line of a token."""
    fields = [escaped(name) if weight == 1.0 else f"{escaped(name)}:{weight:.17g}" for name, weight in attributes]
    for field in (label, *fields):
        if "\t" in field or "\n" in field or "\r" in field:
            raise ValueError(f"{field!r} holds a tab or a line break, which CRFsuite's text can not hold")
    return "\t".join([label, *fields])
