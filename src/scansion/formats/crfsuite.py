"""CRFsuite's text: a label and attributes with weights for each token, separated by tabs."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, BinaryIO

from scansion.data import encode
from scansion.formats.answers import Answers, Asked, Text
from scansion.formats.base import FormatError, lines
from scansion.formats.blocks import Block, Record, cut, gathered, strings
from scansion.formats.reading import Reading
from scansion.formats.targets import cell_of

__all__ = ["annotate", "read", "read_items", "write", "write_item"]

SPANS, ATTRIBUTES = False, True

_FIELD = re.compile(r"((?:[^:\\]|\\.?)*)(?::(.*))?", re.DOTALL)
_ESCAPE = re.compile(r"\\([:\\])")


def read(stream: BinaryIO, path: str, reading: Reading) -> Iterator[Block]:
    """The sequences of a file, some at a time."""
    return gathered(read_items(lines(stream, path), path), path, reading)


def read_items(lines: Iterable[tuple[int, str]], path: str) -> Iterator[tuple[int, list[Any], list[str], None]]:
    """Line, tokens (dicts attribute -> weight) and labels of each sequence."""
    tokens: list[dict[str, float]] = []
    labels: list[str] = []
    begin = 1
    for number, line in chain(lines, [(0, "")]):
        if not line.strip(" \t"):
            if tokens:
                yield begin, tokens, labels, None
                tokens, labels = [], []
            continue
        begin = begin if tokens else number
        label, *attributes = line.split("\t")
        token: dict[str, float] = {}
        for name, weight in (_attribute(text, path, number) for text in attributes if text):
            token[name] = token.get(name, 0.0) + weight  # repeated attributes add up
        tokens.append(token)
        labels.append(label)


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


def write(out: BinaryIO, record: Record, reading: Reading) -> None:
    """A sequence: of each token its label and its attributes; cells are attributes named by their columns."""
    items = record.items
    if items is None:
        items = [[(f"{c}={cell}", 1.0) for c, cell in enumerate(cells)] for cells in record.cells or ()]
    if len(record.labels) > 1:
        raise ValueError(
            f"{record.where}: CRFsuite's text has one label a token, but there are {len(record.labels)} levels"
        )
    labels = record.labels[0] if record.labels else [""] * len(items)
    try:
        text = [write_item(cell_of(y), _pairs(item)) + "\n" for y, item in zip(labels, items, strict=True)]
    except ValueError as error:
        raise ValueError(f"{record.where}: {error}") from None
    out.write(("".join(text) + "\n").encode())


def _pairs(token: Any) -> list[tuple[str, float]]:
    """Attributes of a token, by python-crfsuite's rules if it is a dict."""
    return encode([[token]]).items()[0] if isinstance(token, dict) else list(token)


def write_item(label: str, attributes: Iterable[tuple[str, float]]) -> str:
    """The line of a token."""
    fields = [label]
    for name, weight in attributes:
        escaped = name.replace("\\", "\\\\").replace(":", "\\:")
        fields.append(escaped if weight == 1.0 else f"{escaped}:{weight:.17g}")
    for field in fields:
        if "\t" in field or "\n" in field or "\r" in field:
            raise ValueError(f"{field!r} holds a tab or a line break, which CRFsuite's text can not hold")
    return "\t".join(fields)


def annotate(out: BinaryIO, block: Block, answers: Answers, asked: Asked) -> None:
    """What a model says of each token, without its attributes."""
    text = Text(block, "", "\t", ["\t"])
    if asked.kbest or asked.compressed:
        out.write(text.lines(answers, asked, [""] * answers.data.n_tokens).encode())
        return
    rows = cut(list(zip(*map(strings, text.columns(answers, asked)), strict=True)), answers.data.offsets)
    out.write("".join("".join("\t".join(row) + "\n" for row in part) + "\n" for part in rows).encode())
