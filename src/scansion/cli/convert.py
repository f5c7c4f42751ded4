"""``scansion convert``: between formats and tag schemes, sequence by sequence."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from scansion.cli import UsageError
from scansion.cli.common import check_target, given_template, open_output
from scansion.cli.parser import labels_given
from scansion.data import Vocabulary
from scansion.features.templates import Template
from scansion.formats import Block, FormatError, Reading, format_of, read
from scansion.formats.base import shown
from scansion.formats.blocks import cut, strings
from scansion.formats.crfsuite import write_item
from scansion.formats.jsonlines import Levels, Spans
from scansion.formats.targets import OUTSIDE, detect
from scansion.schemes import convert, encode, segments

__all__ = ["run"]


@dataclass
class _Sequence:
    """One sequence on its way."""

    cells: list[list[str]] | None  # of each token, without the labels
    items: list[Any] | None  # attributes of each token: dicts, or (name, weight) pairs
    labels: list[list[Any]]  # by level, one a token
    spans: list[Spans] | None  # by level, if the file has spans
    entry: dict[str, Any]  # the object, if the file has objects
    where: str


def run(args: Any) -> int:
    """Convert a file."""
    template = given_template(args)
    source = args.source_format or format_of(args.source)
    target = args.target_format or format_of(args.target, source)
    reading = Reading(
        format=source,
        separator=args.separator or "",
        comment=args.comment or "",
        columns=args.columns,
        labels=() if args.no_labels else labels_given(args.labels) or (-1,),
    )
    if args.spans and target != "jsonl":
        raise UsageError("--spans goes with --to jsonl")
    if template is not None and target == "columns":
        raise UsageError("columns hold words, not attributes: a template goes with --to crfsuite or --to jsonl")
    if args.target != "-":
        check_target(args.target, args.source)
    scheme = None if args.from_scheme == "auto" else args.from_scheme
    write = {"columns": _columns, "crfsuite": _items, "jsonl": _object}[target]
    with open_output(args.target) as out:
        for block in read(args.source, reading):
            found = list(_sequences(block, template))
            if scheme is None and found and any(s.labels for s in found):
                scheme = detect([row for s in found for row in s.labels if not s.spans])
            for sequence in found:
                _rewrite(sequence, scheme or "iob2", args)
                out.write(write(sequence, args, scheme or "iob2").encode())
    return 0


def _sequences(block: Block, template: Template | None) -> Iterator[_Sequence]:
    count = len(block)
    if not count:
        return
    rows: list[list[list[str]]] | None = None
    held: list[list[list[Any]]] = [[] for _ in range(count)]
    spans: list[list[Spans] | None] = [None] * count
    if block.rows is not None:
        offsets, width = block.offsets, block.rows.width
        taken = {block._column(c) for c in block.reading.labels} if block.reading.format == "columns" else set()
        columns = [strings(block.rows.column(c)) for c in range(max(width, 0)) if c not in taken]
        if not columns:
            raise FormatError(block.path, None, "all columns are labels: there are no words")
        rows = cut([list(cells) for cells in zip(*columns, strict=True)], offsets)
    if block.reading.format == "columns":
        for level in range(len(block.reading.labels)):
            for b, labels in enumerate(block.labels(level)):
                held[b].append(labels)
    elif block.reading.labels:
        for b, given in enumerate(block.targets):
            if isinstance(given, Levels):
                spans[b] = list(given)
            elif isinstance(given, Spans):
                spans[b] = [given]
            elif given is not None:
                held[b] = [given]
    items: list[Any] | None = block.items
    if template is not None:
        if block.rows is None:
            raise UsageError("a template makes attributes of columns, but the file has attributes already")
        data = block.dataset(template, Vocabulary(), frozen=False)
        items = cut(data.items(), data.offsets)
    for b in range(count):
        where = f"{shown(block.path)}" + (f":{block.numbers[b]}" if block.numbers else "")
        yield _Sequence(
            rows[b] if rows is not None else None,
            items[b] if items is not None else None,
            held[b],
            spans[b],
            block.objects[b] if block.objects else {},
            where,
        )


def _size(sequence: _Sequence) -> int:
    return len(sequence.cells if sequence.cells is not None else sequence.items or ())


def _rewrite(sequence: _Sequence, scheme: str, args: Any) -> None:
    """Write spans as labels where labels are needed, and labels in the scheme that is wanted."""
    try:
        if sequence.spans is not None:
            wanted = args.to_scheme or "iob2"
            sequence.labels = [encode(level, _size(sequence), wanted, outside=OUTSIDE) for level in sequence.spans]
        elif args.to_scheme is not None:
            sequence.labels = [convert(level, scheme, args.to_scheme, outside=OUTSIDE) for level in sequence.labels]
    except ValueError as error:
        raise ValueError(f"{sequence.where}: {error}") from None


def _text(label: Any) -> str:
    """A label that may be unknown, or one of several, in a file of text."""
    if label is None:
        return "?"
    return "|".join(sorted(map(str, label))) if isinstance(label, frozenset) else str(label)


def _columns(sequence: _Sequence, args: Any, scheme: str) -> str:
    if sequence.cells is None:
        raise ValueError(
            f"{sequence.where}: the tokens have attributes and no words: they can not be written as columns"
        )
    separator = args.output_separator or " "
    lines = []
    for t, cells in enumerate(sequence.cells):
        row = [*cells, *(_text(level[t]) for level in sequence.labels)]
        for cell in row:
            if separator in cell or "\n" in cell or "\r" in cell or (not cell and len(row) == 1):
                raise ValueError(
                    f"{sequence.where}: {cell!r} can not stand in a column: choose another --output-separator"
                )
        lines.append(separator.join(row) + "\n")
    return "".join(lines) + "\n"


def _pairs(token: Any) -> list[tuple[str, float]]:
    """Attributes of a token, by python-crfsuite's rules if it is a dict."""
    from scansion.data import encode as number

    return number([[token]]).items()[0] if isinstance(token, dict) else list(token)


def _items(sequence: _Sequence, args: Any, scheme: str) -> str:
    items = sequence.items
    if items is None:
        # cells as attributes, named by their columns
        items = [[(f"{c}={cell}", 1.0) for c, cell in enumerate(cells)] for cells in sequence.cells or ()]
    if len(sequence.labels) > 1:
        raise ValueError(
            f"{sequence.where}: CRFsuite's text has one label a token, but there are {len(sequence.labels)} levels"
        )
    labels = sequence.labels[0] if sequence.labels else [""] * len(items)
    try:
        lines = [write_item(_text(y), _pairs(item)) + "\n" for y, item in zip(labels, items, strict=True)]
    except ValueError as error:
        raise ValueError(f"{sequence.where}: {error}") from None
    return "".join(lines) + "\n"


def _object(sequence: _Sequence, args: Any, scheme: str) -> str:
    entry = {k: v for k, v in sequence.entry.items() if k not in ("tokens", "labels", "spans", "levels")}
    cells = sequence.cells
    if sequence.items is not None:
        tokens: list[Any] = [dict(token) if not isinstance(token, dict) else token for token in sequence.items]
    else:
        tokens = [row[0] if len(row) == 1 else row for row in cells or ()]
    result: dict[str, Any] = {"tokens": tokens, **entry}
    plain: Callable[[Any], Any] = lambda y: sorted(y) if isinstance(y, frozenset) else y  # noqa: E731
    levels = sequence.spans
    if levels is None and (args.spans or len(sequence.labels) > 1):
        read = args.to_scheme or scheme
        outside = None if read == "plain" else OUTSIDE
        levels = [Spans(segments(level, read, outside=outside)) for level in sequence.labels]
    if levels is not None and (args.spans or len(levels) > 1 or args.to_scheme is None):
        found = [[[u, v, plain(y)] for u, v, y in level] for level in levels]
        result["levels" if len(found) > 1 else "spans"] = found if len(found) > 1 else found[0]
    elif sequence.labels:
        result["labels"] = [plain(y) for y in sequence.labels[0]]
    return json.dumps(result, ensure_ascii=False) + "\n"
