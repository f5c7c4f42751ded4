"""Labels of files as targets of models, and answers of models as labels of files.

A label of a file is a string; "?" is one that is not known, "A|B" one of several, where partial labels are asked for.
Models of segments take labels apart by their scheme; a token outside all segments is a segment of its own, "O".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from scansion import schemes
from scansion.data import Targets
from scansion.formats.base import FormatError
from scansion.formats.blocks import Block, Spans

__all__ = [
    "OUTSIDE",
    "cell_of",
    "constraints_of",
    "detect",
    "file_labels",
    "known_cells",
    "labels_of",
    "segment_constraints",
    "segments_of",
    "spans_of",
]

OUTSIDE = "O"
UNKNOWN = "?"


def known_cells(labels: Sequence[Any]) -> list[Any]:
    """Labels of which some may be unknown: "?" becomes None, "A|B" a set."""
    return [
        None if y == UNKNOWN else frozenset(y.split("|")) if isinstance(y, str) and "|" in y.strip("|") else y
        for y in labels
    ]


def cell_of(label: Any) -> str:
    """A label that may be unknown, or one of several, as a file of text has it."""
    if label is None:
        return UNKNOWN
    return "|".join(sorted(map(str, label))) if isinstance(label, frozenset) else str(label)


def labels_of(block: Block, partial: bool, scheme: str | None, level: int = 0) -> list[Any]:
    """What a block says of its sequences, as a list of labels for each; spans are written in the scheme."""
    result: list[Any] = []
    sizes = np.diff(block.offsets).tolist()
    for b, (given, size) in enumerate(zip(block.labels(level), sizes, strict=True)):
        if isinstance(given, Spans):
            try:
                result.append(schemes.encode(given, size, scheme or "iob2", outside=OUTSIDE))
            except ValueError as error:
                raise FormatError(block.path, block.line(b), str(error)) from None
        else:
            result.append(known_cells(given) if partial else given)
    return result


def segments_of(block: Block, scheme: str, level: int = 0, merge: bool = False) -> list[list[tuple[int, int, Any]]]:
    """What a block says of its sequences, as segments that cover them; merge: one for each stretch outside."""
    result = []
    for b, (given, size) in enumerate(zip(block.labels(level), np.diff(block.offsets).tolist(), strict=True)):
        spans: Iterable[tuple[int, int, Any]] = given
        if not isinstance(given, Spans):
            try:
                spans = schemes.segments(given, scheme, outside=None if scheme == "plain" else OUTSIDE)
            except ValueError as error:
                raise FormatError(block.path, block.line(b), f"in the sequence that begins here, {error}") from None
        result.append(covered(spans, size, merge))
    return result


def covered(spans: Iterable[tuple[int, int, Any]], size: int, merge: bool = False) -> list[tuple[int, int, Any]]:
    """The spans, and one for each token that they leave out, or (merge) for each stretch of such tokens."""
    result: list[tuple[int, int, Any]] = []

    def fill(start: int, stop: int) -> None:
        if merge and start < stop:
            result.append((start, stop, OUTSIDE))
        elif not merge:
            result.extend((t, t + 1, OUTSIDE) for t in range(start, stop))

    at = 0
    for start, stop, label in spans:
        fill(at, start)
        result.append((start, stop, label))
        at = stop
    fill(at, size)
    return result


def spans_of(segments: Iterable[tuple[int, int, Any]], scheme: str | None) -> list[tuple[int, int, Any]]:
    """Segments without what lies outside."""
    return [(u, v, y) for u, v, y in segments if y != OUTSIDE or scheme == "plain"]


def file_labels(segments: Iterable[tuple[int, int, Any]], size: int, scheme: str) -> list[Any]:
    """Segments of one sequence as the labels that a file has."""
    if scheme == "plain":
        return schemes.encode(segments, size, scheme)
    return schemes.encode(spans_of(segments, scheme), size, scheme, outside=OUTSIDE)


def detect(rows: Iterable[Sequence[Any]]) -> str:
    """The scheme of some label sequences; unknown labels are left out."""
    return schemes.detect([[y for y in row if isinstance(y, str)] for row in rows])


def constraints_of(block: Block, model: Any, scheme: str | None) -> Any:
    """What a block's labels say, in the form that a model's predictions are constrained by."""
    levels = model.levels_
    if not any(level.segments for level in levels):
        return labels_of(block, True, scheme)
    read = scheme or "plain"
    found = [
        segment_constraints(labels_of(block, True, scheme, k), read, level.labels) for k, level in enumerate(levels)
    ]
    if "levels" not in model.get_params():  # the model of one level, whose y is not by level
        return found[0]
    columns = []
    for k, (level, told) in enumerate(zip(levels, found, strict=True)):
        assert told.ends is not None
        names: list[Any] = [None if y < 0 else level.labels[y] for y in told.labels.tolist()]
        if told.allowed is not None:
            for t in np.flatnonzero((told.labels < 0) & ~told.allowed.all(axis=1)).tolist():
                names[t] = {level.labels[y] for y in np.flatnonzero(told.allowed[t])}
        ends: list[int | None] = [None if end < 0 else end for end in told.ends.tolist()]
        if k < len(levels) - 1 and read != "plain":  # above the bottom, neighbours outside are one segment
            for t in range(len(names) - 1):
                ends[t] = 0 if names[t] == names[t + 1] == OUTSIDE else ends[t]
        columns.append((names, ends))
    cuts = block.offsets.tolist()
    return [
        [{"labels": names[a:b], "boundaries": ends[a : b - 1] + [1] * (b > a)} for names, ends in columns]
        for a, b in zip(cuts[:-1], cuts[1:], strict=True)
    ]


def segment_constraints(rows: Sequence[Sequence[Any]], scheme: str, labels: Sequence[Any]) -> Targets:
    """What partly known tags say of segments: the label of each token, and of each boundary whether there is one.

    Parameters
    ----------
    rows : one list per sequence
        A tag, None, or a frozenset of tags for each token.
    scheme : str
    labels : the model's
    """
    number = {label: i for i, label in enumerate(labels)}
    roles = schemes._ROLES.get(scheme, {})

    def parts(tag: Any, where: str) -> tuple[str, int]:
        """Role ("O" outside, "" for plain labels) and number of a tag."""
        kind = tag
        role = ""
        if tag == OUTSIDE and scheme != "plain":
            role = "O"
        elif scheme != "plain":
            head, kind = schemes._split(str(tag), False, "-")
            role = roles.get(head, "?")
        if kind not in number or role == "?":
            raise ValueError(f"{where}: {tag!r} is not a label of the model; it has {', '.join(map(str, labels[:20]))}")
        return role, number[kind]

    codes: list[int] = []
    ends: list[int] = []
    sets: dict[int, list[int]] = {}
    known, complete = [], []
    for b, row in enumerate(rows):
        read: list[tuple[str, int] | None] = []
        for t, tag in enumerate(row):
            where = f"sequence {b}, token {t}"
            if isinstance(tag, frozenset):
                sets[len(codes) + t] = [parts(one, where)[1] for one in sorted(tag, key=str)]
            read.append(None if tag is None or isinstance(tag, frozenset) else parts(tag, where))
        for t, here in enumerate(read):
            after = read[t + 1] if t + 1 < len(read) else ("O", -1)
            codes.append(-1 if here is None else here[1])
            ends.append(_boundary(here, after))
        known.append(any(here is not None for here in read) or any(isinstance(tag, frozenset) for tag in row))
        complete.append(all(here is not None for here in read))
    allowed = None
    if sets:
        allowed = np.ones((len(codes), len(labels)), np.bool_)
        for t, code in enumerate(codes):
            if code >= 0 or t in sets:
                allowed[t] = False
                allowed[t, sets.get(t, [code])] = True
    return Targets(
        labels=np.array(codes, np.int32),
        allowed=allowed,
        ends=np.array(ends, np.int8),
        complete=np.array(complete, np.bool_),
        known=np.array(known, np.bool_),
        longest=0,
    )


def _boundary(here: tuple[str, int] | None, after: tuple[str, int] | None) -> int:
    """1 if a segment ends between two tokens, 0 if none does, -1 if that is not known."""
    if here is not None and here[0] in ("O", "E", "S"):
        return 1
    if after is not None and after[0] in ("O", "B", "S"):
        return 1
    if here is None or after is None:
        return -1
    return int(here[1] != after[1])
