"""Blocks of sequences: a file in pieces, so that memory does not grow with it.

A block knows its sequences' attributes (a `Dataset`), their words, and the labels that the file gives.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from scansion import _core
from scansion.data import Dataset, Vocabulary, encode
from scansion.features.templates import Template
from scansion.formats.base import FormatError, format_module, open_binary, shown
from scansion.formats.reading import Column, Reading

__all__ = [
    "Block",
    "Levels",
    "Record",
    "Spans",
    "column_index",
    "counted",
    "cut",
    "gathered",
    "plain_name",
    "read",
    "strings",
]

BLOCK_BYTES = 1 << 20
BLOCK_SEQUENCES = 1000

Codes = tuple[npt.NDArray[np.int32], list[str]]
Found = tuple[int, list[Any], Any, dict[str, Any] | None]
"""A sequence as it is read: line, tokens, what is said of the labels, and the object of JSON."""


class Spans(list[tuple[int, int, Any]]):
    """Spans (start, stop, label) of one sequence, in order, without overlaps."""


class Levels(list[Spans]):
    """Spans of several levels, the outermost first."""


@dataclass
class Record:
    """One sequence, to be written.

    Attributes
    ----------
    where : str
        File and line, for errors.
    cells : list of lists of str, or None
        Of each token, without the labels.
    items : list, or None
        Attributes of each token: dicts, or lists of (name, weight).
    labels : lists by level, one label a token
    spans : lists by level, or None
        The labels as spans, if these are to be written.
    entry : dict
        The object of JSON that it was.
    names, label_names : lists of str
        Of the cells and of the labels' columns, where these have names.
    number : int
        Its place among the sequences that are written.
    """

    where: str
    cells: list[list[str]] | None
    items: list[Any] | None
    labels: list[list[Any]]
    spans: list[Spans] | None
    entry: dict[str, Any]
    names: list[str] = field(default_factory=list)
    label_names: list[str] = field(default_factory=list)
    number: int = 0

    def __len__(self) -> int:
        return len(self.cells if self.cells is not None else self.items or ())


@dataclass
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
    targets : list, or None
        Per sequence what the file says of the labels (labels, `Spans` or `Levels`), None where it says nothing. None
        for all: the labels are columns.
    numbers : list of int
        The line where each sequence begins, for errors; empty for columns.
    names : list of str
        Names of the columns; empty: they have none.
    texts : list of str
        CoNLL-U: the lines as they are.
    opening : bool
        CSV: whether names are to be written before it.
    """

    path: str
    reading: Reading
    rows: _core.Columns | None = None
    items: list[Any] | None = None
    objects: Sequence[dict[str, Any]] = ()
    targets: list[Any] | None = None
    numbers: list[int] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    opening: bool = False

    def __len__(self) -> int:
        return len(self.rows) if self.rows is not None else len(self.items or ())

    @property
    def offsets(self) -> npt.NDArray[np.int64]:
        """Where each sequence begins among the tokens."""
        if self.rows is not None:
            return self.rows.offsets
        return np.concatenate([[0], np.cumsum([len(x) for x in self.items or ()], dtype=np.int64)])

    # ---- columns -----------------------------------------------------------------------------------------------

    def feature_columns(self, wanted: int) -> list[int]:
        """The columns of the file that a template of `wanted` columns reads."""
        assert self.rows is not None
        width, reading = self.rows.width, self.reading
        given = range(max(width, 0)) if reading.columns is None else reading.columns
        found = [self._column(c) for c in given]
        if len(self.rows) and wanted > len(found):
            there = f"there are {len(found)} columns, 0 to {len(found) - 1}"
            raise self._error(f"the template reads column {wanted - 1}, but {there}{self.hint}")
        return found[:wanted]

    @property
    def hint(self) -> str:
        """What the separator may be, where lines have but one column; else nothing."""
        if self.rows is None or self.rows.width != 1 or not self.rows.n_tokens:
            return ""
        cell = strings(self.rows.column(0))[0]
        found = next((c for c in "\t;,|" if c in cell and len(cell) > 1), None)
        if found is None:
            return ""
        return f" (lines have one column and hold {found!r}: is that the separator? Say --separator {found!r})"

    @property
    def label_columns(self) -> list[int]:
        """The columns of the labels, level by level; none in formats that hold them elsewhere."""
        return [self._column(c) for c in self.reading.labels] if self.targets is None else []

    def _column(self, column: Column) -> int:
        assert self.rows is not None
        return column_index(column, self.names, self.rows.width, self.path)

    def _error(self, message: str, line: int | None = None) -> FormatError:
        return FormatError(self.path, line, message)

    # ---- what the sequences are --------------------------------------------------------------------------------

    def line(self, b: int, t: int = 0) -> int | None:
        """The line where a sequence begins, or that of a token in it, for errors."""
        if self.numbers:
            return self.numbers[b] + (t if self.names and not self.texts else 0)
        return None if self.rows is None else self.rows.line(int(self.offsets[b]) + t) or None

    def dataset(self, template: Template | None, vocabulary: Vocabulary, frozen: bool) -> Dataset:
        """The attributes by number."""
        if self.rows is None:
            try:
                return encode(self.items or [], vocabulary, frozen=frozen)
            except (TypeError, ValueError) as error:
                raise self._error(str(error)) from None
        if template is None:
            raise self._error("the file has words and no attributes, and the model has no template to make them")
        columns = self.feature_columns(template.columns)
        return Dataset._trusted(*self.rows.expand(template.native, columns, vocabulary, frozen), vocabulary)

    def words(self) -> list[list[str]]:
        """A word for each token, to show: its first cell, or the first of its attributes."""
        if self.rows is None:
            return [[_first(token) for token in x] for x in self.items or ()]
        words = strings(self.rows.column(self.feature_columns(1)[0])) if self.rows.n_tokens else []
        return cut(words, self.offsets)

    # ---- what is said of the labels ----------------------------------------------------------------------------

    @property
    def depth(self) -> int:
        """Levels of the labels; FormatError unless all sequences have as many."""
        if self.targets is None:
            return len(self.reading.labels)
        counts = {len(given) if isinstance(given, Levels) else 1 for given in self.targets}
        if len(counts) > 1 or counts == {1}:
            raise self._error('a hierarchical model needs "levels", as many for each sequence', self.numbers[0])
        return counts.pop()

    def labels(self, level: int = 0) -> list[Any]:
        """Labels or `Spans` of a level, sequence by sequence, as the file has them; FormatError if it has none."""
        if self.targets is None:
            assert self.rows is not None
            if not len(self.rows):
                return []
            if level >= len(self.reading.labels):
                raise self._error(f"level {level} has no column of labels: name all with --labels")
            return cut(strings(self.rows.column(self._column(self.reading.labels[level]))), self.offsets)
        result = []
        for number, given in zip(self.numbers, self.targets, strict=True):
            if given is None:
                raise self._error('the sequence has no labels; give "labels", "spans" or "levels"', number)
            if isinstance(given, Levels) and level >= len(given):
                raise self._error(f"the sequence has {len(given)} levels, not {level + 1}", number)
            result.append(given[level] if isinstance(given, Levels) else given)
        return result

    def records(self, template: Template | None = None) -> list[Record]:
        """The sequences, to be written; template: with the attributes that it makes."""
        if not len(self):
            return []
        cells, items = None, self.items
        names: list[str] = []
        label_names: list[str] = []
        if self.rows is not None:
            taken = self.label_columns
            held = [*taken] if self.reading.group is None else [*taken, self._column(self.reading.group)]
            kept = [c for c in range(max(self.rows.width, 0)) if c not in held]
            columns = [strings(self.rows.column(c)) for c in kept]
            if self.names:
                names, label_names = [self.names[c] for c in kept], [self.names[c] for c in taken]
            if not columns:
                raise self._error("all columns are labels: there are no words")
            cells = cut(list(map(list, zip(*columns, strict=True))), self.offsets)
        if template is not None:
            data = self.dataset(template, Vocabulary(), frozen=False)
            items = cut(data.items(), data.offsets)
        columnar = [self.labels(level) for level in range(len(self.reading.labels))] if self.targets is None else []
        result = []
        for b in range(len(self)):
            given = self.targets[b] if self.targets is not None and self.reading.labels else None
            spans = list(given) if isinstance(given, Levels) else [given] if isinstance(given, Spans) else None
            labels = [level[b] for level in columnar] if given is None else [] if spans is not None else [given]
            where = shown(self.path) + (f":{self.numbers[b]}" if self.numbers else "")
            entry = self.objects[b] if self.objects else {}
            found = cells and cells[b], items and items[b]
            result.append(Record(where, *found, labels, spans, entry, names, label_names))
        return result


def plain_name(name: str) -> str:
    """A column's name without what differs from file to file."""
    return "_".join(name.lower().split())


def column_index(column: Column, names: Sequence[str], width: int, path: str) -> int:
    """The number of a column; FormatError if there is none."""
    if isinstance(column, str):
        same = [c for c, name in enumerate(names) if name == column]
        same = same or [c for c, name in enumerate(names) if plain_name(name) == plain_name(column)]
        if len(same) == 1:
            return same[0]
        there = f"the columns are {', '.join(names[:30])}" if names else "the columns have no names: give its number"
        raise FormatError(path, None, f"there {'are several columns' if same else 'is no column'} {column!r}; {there}")
    if not -width <= column < width:
        raise FormatError(path, None, f"there is no column {column}: the file has {counted(width, 'column')}")
    return column % width


def counted(n: int, what: str) -> str:
    """A number of things."""
    return f"{n} {what}" + ("" if n == 1 else "s")


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


# ---- reading ---------------------------------------------------------------------------------------------------------


def read(path: str, reading: Reading) -> Iterator[Block]:
    """A file's sequences in blocks, in the order of the file. Empty files have none.

    Raises
    ------
    FormatError
        Where the file is malformed, with the line.
    """
    with open_binary(path, reading.encoding) as stream:
        yield from format_module(reading.format).read(stream, path, reading)


def gathered(found: Iterable[Found], path: str, reading: Reading) -> Iterator[Block]:
    """Sequences some at a time; tokens that are cells become columns."""
    rest = iter(found)
    while some := list(islice(rest, BLOCK_SEQUENCES)):
        yield _block(some, path, reading)


def _block(found: list[Found], path: str, reading: Reading) -> Block:
    numbers, tokens, targets, entries = map(list, zip(*found, strict=True))
    block = Block(path, reading, None, tokens, [e for e in entries if e is not None], targets, numbers)
    kinds = {type(token) for x in tokens for token in x}
    if dict in kinds and len(kinds) > 1:
        raise FormatError(path, numbers[0], "some tokens have attributes and some are words: write all alike")
    if kinds <= {dict}:
        return block
    cells = [[[token] if isinstance(token, str) else token for token in x] for x in tokens]
    width = next((len(row) for rows in cells for row in rows), -1)
    for number, row in ((number, row) for number, rows in zip(numbers, cells, strict=True) for row in rows):
        if len(row) != width:
            raise FormatError(path, number, f"a token has {len(row)} cells where those before have {width}")
    block.rows, block.items = _core.Columns.from_rows(cells, width), None
    return block
