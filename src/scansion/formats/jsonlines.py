"""JSON lines: a sequence a line, an object with tokens and perhaps labels, spans or levels of spans."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from scansion.formats.base import FormatError

__all__ = ["Levels", "Spans", "read_objects"]


class Spans(list[tuple[int, int, Any]]):
    """Spans (start, stop, label) of one sequence, in order, without overlaps."""


class Levels(list[Spans]):
    """Spans of several levels, the outermost first."""


def read_objects(lines: Iterable[tuple[int, str]], path: str) -> Iterator[tuple[int, list[Any], Any, dict[str, Any]]]:
    """Line, tokens, targets (labels, `Spans` or `Levels`; None) and the object of each sequence."""
    for number, line in lines:
        if not line.strip():
            continue
        try:
            entry = json.loads(line, parse_constant=_refuse)
        except (ValueError, RecursionError) as error:
            raise FormatError(path, number, f"the line is not JSON: {error}") from None
        if not isinstance(entry, dict) or not isinstance(entry.get("tokens"), list):
            raise FormatError(path, number, 'the line must be an object with a list of "tokens"')
        tokens = entry["tokens"]
        for i, token in enumerate(tokens):
            _check_token(token, i, path, number)
        yield number, tokens, _targets(entry, len(tokens), path, number), entry


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not a number of JSON")


def _check_token(token: Any, i: int, path: str, number: int) -> None:
    cells = token if isinstance(token, list) else [token]
    if isinstance(token, dict) or (cells and all(isinstance(cell, str) for cell in cells)):
        try:
            json.dumps(token, ensure_ascii=False).encode()
            return
        except UnicodeEncodeError:
            raise FormatError(path, number, f"token {i} holds half a surrogate pair") from None
    raise FormatError(path, number, f"token {i} must be a string, a list of strings or an object, got {token!r:.60}")


def _targets(entry: dict[str, Any], size: int, path: str, number: int) -> Any:
    given = [key for key in ("labels", "spans", "levels") if entry.get(key) is not None]
    if not given:
        return None
    if len(given) > 1:
        raise FormatError(path, number, f'the line has both "{given[0]}" and "{given[1]}"; give one')
    value = entry[given[0]]
    if not isinstance(value, list):
        raise FormatError(path, number, f'"{given[0]}" must be a list')
    if given[0] == "spans":
        return _spans(value, size, path, number)
    if given[0] == "levels":
        if not all(isinstance(level, list) for level in value):
            raise FormatError(path, number, '"levels" must be a list of lists of spans')
        return Levels(_spans(level, size, path, number) for level in value)
    if len(value) != size:
        raise FormatError(path, number, f"there are {len(value)} labels for {size} tokens")
    return [_label(label, i, path, number) for i, label in enumerate(value)]


def _label(label: Any, i: int, path: str, number: int) -> Any:
    """A label, None for unknown, a set for one of several."""
    if isinstance(label, list) and label and all(isinstance(one, (str, int)) for one in label):
        return frozenset(label)
    if label is None or (isinstance(label, (str, int)) and not isinstance(label, bool)):
        return label
    raise FormatError(path, number, f"label {i} must be a string, a list of strings or null, got {label!r:.60}")


def _spans(value: list[Any], size: int, path: str, number: int) -> Spans:
    spans = Spans()
    for span in value:
        if isinstance(span, dict):
            span = [span.get("start"), span.get("stop", span.get("end")), span.get("label")]
        if not isinstance(span, list) or len(span) != 3 or not all(type(i) is int for i in span[:2]):
            raise FormatError(path, number, f"a span must be [start, stop, label], got {span!r:.60}")
        start, stop, label = span
        if not 0 <= start < stop <= size:
            raise FormatError(path, number, f"span {span!r:.60} does not lie within the {size} tokens")
        spans.append((start, stop, _label(label, start, path, number)))
    spans.sort(key=lambda span: span[:2])
    for one, other in zip(spans, spans[1:], strict=False):
        if one[1] > other[0]:
            raise FormatError(path, number, f"spans {list(one)!r:.60} and {list(other)!r:.60} overlap")
    return spans
