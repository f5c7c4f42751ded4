"""Blocks of sequences, format by format: a file in pieces, so that memory does not grow with it.

A block knows its sequences' attributes (a `Dataset`), their words, and the labels that the file gives.
"""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from scansion import _core
from scansion.data import Dataset, Vocabulary, encode
from scansion.features.templates import Template
from scansion.formats.base import FormatError, lines, open_binary, without_mark
from scansion.formats.reading import Reading

__all__ = ["Block", "cut", "read", "strings"]

BLOCK_BYTES = 1 << 20
BLOCK_SEQUENCES = 1000

Codes = tuple[npt.NDArray[np.int32], list[str]]


class Block:
    """Some sequences of a file.

    Attributes
    ----------
    path : str
    reading : Reading
    rows : _core.Columns, or None
        The cells; None where attributes are given.
    items : list, or None
        Tokens as attributes, where these are given.
    objects : list of dict
        The lines of JSON; empty for other formats.
    targets : list
        Per sequence what a file of items or JSON says of the labels, None where it says nothing.
    numbers : list of int
        The line where each sequence begins, for errors; empty for columns.
    """

    def __init__(
        self,
        path: str,
        reading: Reading,
        rows: _core.Columns | None = None,
        items: list[Any] | None = None,
        objects: Sequence[dict[str, Any]] = (),
        targets: Sequence[Any] = (),
        numbers: Sequence[int] = (),
    ) -> None:
        self.path = path
        self.reading = reading
        self.rows = rows
        self.items = items
        self.objects = objects
        self.targets = targets
        self.numbers = numbers

    def __len__(self) -> int:
        return len(self.rows) if self.rows is not None else len(self.items or ())

    @property
    def offsets(self) -> npt.NDArray[np.int64]:
        """Where each sequence begins among the tokens."""
        if self.rows is not None:
            return self.rows.offsets
        return np.concatenate([[0], np.cumsum([len(x) for x in self.items or ()], dtype=np.int64)])

    def feature_columns(self, wanted: int) -> list[int]:
        """The columns of the file that a template of `wanted` columns reads."""
        assert self.rows is not None
        width, reading = self.rows.width, self.reading
        given = range(max(width, 0)) if reading.columns is None else reading.columns
        found = [self._column(c) for c in given]
        if len(self.rows) and wanted > len(found):
            raise FormatError(
                self.path,
                None,
                f"the template reads column {wanted - 1}, but there are {len(found)} columns, 0 to {len(found) - 1}",
            )
        return found[:wanted]

    def _column(self, index: int) -> int:
        assert self.rows is not None
        width = self.rows.width
        if not -width <= index < width:
            raise FormatError(self.path, None, f"there is no column {index}: the file has {width} columns")
        return index % width

    def line(self, b: int, t: int = 0) -> int | None:
        """The line of a token, or of its sequence, for errors."""
        if len(self.numbers):
            return self.numbers[b]
        return None if self.rows is None else self.rows.line(int(self.offsets[b]) + t) or None

    def dataset(self, template: Template | None, vocabulary: Vocabulary, frozen: bool) -> Dataset:
        """The attributes by number."""
        if self.rows is None:
            try:
                return encode(self.items or [], vocabulary, frozen=frozen)
            except (TypeError, ValueError) as error:
                raise FormatError(self.path, None, str(error)) from None
        if template is None:
            raise FormatError(
                self.path, None, "the file has words and no attributes, and the model has no template to make them"
            )
        columns = self.feature_columns(template.columns)
        return Dataset._trusted(*self.rows.expand(template.native, columns, vocabulary, frozen), vocabulary)

    def words(self) -> list[list[str]]:
        """A word for each token, to show: its first cell, or the first of its attributes."""
        if self.rows is not None:
            column = self.feature_columns(1)[0] if self.rows.n_tokens else 0
            return (
                cut(strings(self.rows.column(column)), self.offsets)
                if self.rows.n_tokens
                else [[] for _ in range(len(self))]
            )
        return [[_first(token) for token in x] for x in self.items or ()]

    def labels(self, level: int = 0) -> list[list[Any]]:
        """The labels of a level, sequence by sequence, as the file has them; FormatError if it has none."""
        if self.reading.format == "columns":
            assert self.rows is not None
            if not len(self.rows):
                return []
            return cut(strings(self.rows.column(self._column(self.reading.labels[level]))), self.offsets)
        for number, target in zip(self.numbers, self.targets, strict=True):
            if target is None:
                raise FormatError(self.path, number, 'the sequence has no labels; give "labels", "spans" or "levels"')
        return list(self.targets)


def strings(codes: Codes) -> list[str]:
    """A column's cells."""
    numbers, names = codes
    table = np.empty(len(names), object)
    table[:] = names
    result: list[str] = table[numbers].tolist()
    return result


def cut(rows: Sequence[Any], offsets: npt.NDArray[np.int64]) -> list[list[Any]]:
    """Rows of all sequences as one list for each."""
    cuts = offsets.tolist()
    return [list(rows[a:b]) for a, b in zip(cuts[:-1], cuts[1:], strict=True)]


def _first(token: Any) -> str:
    name = next(iter(token), "")
    if isinstance(token, dict) and isinstance(token.get(name), str):
        return str(token[name])
    return str(name)


def read(path: str, reading: Reading) -> Iterator[Block]:
    """A file's sequences in blocks, in the order of the file. Empty files have none.

    Raises
    ------
    FormatError
        Where the file is malformed, with the line.
    """
    with open_binary(path) as stream:
        if reading.format == "columns":
            yield from _columns(stream, path, reading)
        elif reading.format == "crfsuite":
            from scansion.formats.crfsuite import read_items

            yield from _gathered(read_items(lines(stream, path), path), path, reading)
        else:
            from scansion.formats.jsonlines import read_objects

            yield from _gathered(read_objects(lines(stream, path), path), path, reading)


def _is_file(stream: BinaryIO) -> bool:
    try:
        return stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except OSError:  # nothing of the operating system's
        return False


def _columns(stream: BinaryIO, path: str, reading: Reading) -> Iterator[Block]:
    width, line, pending, size = -1, 1, b"", BLOCK_BYTES
    first = True
    # from a pipe, what is there: whoever writes it slowly need not wait for a whole block
    fetch = stream.read1 if isinstance(stream, io.BufferedReader) and not _is_file(stream) else stream.read
    while True:
        chunk = fetch(size)
        if first:
            chunk, first = without_mark(chunk, path), False
        pending += chunk
        # a sequence longer than a block: read on, more and more at a time
        end = _core.last_blank_line(pending) if chunk else len(pending)
        size = BLOCK_BYTES if end else 2 * size
        if end:
            text, pending = pending[:end], pending[end:]
            try:
                rows = _core.Columns.parse(text, reading.separator, reading.comment, width, line)
            except ValueError as error:
                if len(error.args) != 2:
                    raise
                raise FormatError(path, *error.args) from None
            width = rows.width
            line += rows.n_lines
            yield Block(path, reading, rows)
        if not chunk:
            return


def _gathered(
    read: Iterator[tuple[int, Any, Any, dict[str, Any] | None]], path: str, reading: Reading
) -> Iterator[Block]:
    """Sequences (line, tokens, targets, object) some at a time; tokens that are cells become columns."""
    gathered: list[tuple[int, Any, Any, dict[str, Any] | None]] = []
    for entry in read:
        gathered.append(entry)
        if len(gathered) == BLOCK_SEQUENCES:
            yield _block(gathered, path, reading)
            gathered = []
    if gathered:
        yield _block(gathered, path, reading)


def _block(gathered: list[tuple[int, Any, Any, dict[str, Any] | None]], path: str, reading: Reading) -> Block:
    numbers = [number for number, _, _, _ in gathered]
    tokens = [x for _, x, _, _ in gathered]
    targets = [target for _, _, target, _ in gathered]
    objects = [entry for _, _, _, entry in gathered if entry is not None]
    kinds = {type(token) for x in tokens for token in x}
    if dict in kinds or reading.format == "crfsuite":
        if len(kinds) > 1:
            raise FormatError(path, numbers[0], "some tokens have attributes and some are words: write all alike")
        return Block(path, reading, None, tokens, objects, targets, numbers)
    width = -1
    cells = []
    for number, x in zip(numbers, tokens, strict=True):
        rows = [[token] if isinstance(token, str) else token for token in x]
        for row in rows:
            width = len(row) if width < 0 else width
            if len(row) != width:
                raise FormatError(path, number, f"a token has {len(row)} cells where those before have {width}")
        cells.append(rows)
    return Block(path, reading, _core.Columns.from_rows(cells, width), None, objects, targets, numbers)
