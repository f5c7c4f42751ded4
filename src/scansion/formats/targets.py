"""Labels of files as targets of models, and answers of models as labels of files.

A label of a file is a string; "?" is one that is not known, "A|B" one of several, where partial labels are asked for.
Models of segments take labels apart by their scheme; a token outside all segments is a segment of its own, "O".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from scansion import schemes
from scansion.formats.base import FormatError
from scansion.formats.blocks import Block, Spans

__all__ = [
    "OUTSIDE",
    "cell_of",
    "constraints_of",
    "detect",
    "file_labels",
    "known_cells",
    "known_tags",
    "labels_of",
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
        result.append(schemes.covered(spans, size, OUTSIDE, merge))
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
    """What a block's labels say of a model's answers."""
    from scansion.data import encode_labels, encode_levels  # most files are tagged without

    levels, read = model.levels_, scheme or "plain"
    rows = [labels_of(block, True, scheme, k) for k in range(len(levels))]
    labels, lengths = [level.labels for level in levels], np.diff(block.offsets)
    if not model.segments_:
        return encode_labels(rows[0], lengths, labels[0])[0]
    columns = list(map(known_tags, rows, [read] * len(levels), labels))
    for told in (told for column in columns[:-1] for told in column if read != "plain"):
        names, boundaries = told["labels"], told["boundaries"]
        for t in range(len(names) - 1):  # above the bottom, neighbours outside are one segment
            boundaries[t] = 0 if names[t] == names[t + 1] == OUTSIDE else boundaries[t]
    bounds = [level.max_length for level in levels]
    return encode_levels(zip(*columns, strict=True), lengths, [v.name for v in levels], labels, max_lengths=bounds)[0]


def known_tags(rows: Sequence[Sequence[Any]], scheme: str, labels: Sequence[Any]) -> list[dict[str, list[Any]]]:
    """What tags say of each sequence, "labels" and "boundaries", as `scansion.data.encode_levels` reads it."""
    known = set(labels)

    def parts(tag: Any, where: str) -> tuple[str, Any]:
        """Role ("O" outside, "" for plain labels) and label of a tag."""
        role, label = "", tag
        if scheme != "plain" and tag == OUTSIDE:
            role = "O"
        elif scheme != "plain":
            head, label = schemes._split(str(tag), False, "-")
            role = schemes._ROLES.get(scheme, {}).get(head, "?")
        if label not in known or role == "?":
            raise ValueError(f"{where}: {tag!r} is not a label of the model; it has {', '.join(map(str, labels[:20]))}")
        return role, label

    result = []
    for b, row in enumerate(rows):
        names: list[Any] = []
        read: list[tuple[str, Any] | None] = []
        for t, tag in enumerate(row):
            where = f"sequence {b}, token {t}"
            if isinstance(tag, frozenset):
                names.append({parts(one, where)[1] for one in sorted(tag, key=str)})
                read.append(None)
            else:
                read.append(None if tag is None else parts(tag, where))
                names.append(read[-1] and read[-1][1])
        pairs = zip(read, [*read, ("O", None)][1:], strict=True)
        result.append({"labels": names, "boundaries": [_boundary(here, after) for here, after in pairs]})
    return result


def _boundary(here: tuple[str, Any] | None, after: tuple[str, Any] | None) -> int | None:
    """1 if a segment ends between two tokens, 0 if none does, None if that is not known."""
    if here is not None and here[0] in ("O", "E", "S"):
        return 1
    if after is not None and after[0] in ("O", "B", "S"):
        return 1
    return None if here is None or after is None else int(here[1] != after[1])
