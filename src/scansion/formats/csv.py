"""CSV and TSV as spreadsheets write them: a token a row.

There may be names of the columns, and one column that says which rows belong together. The separator is given, or
follows from the file's ending and its first line. A quote begins a cell that may hold separators, line ends and doubled
quotes; between tabs only if the cell ends in a quote, since tokens of CoNLL's files are quotes as well.
"""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, BinaryIO

from scansion import _core
from scansion.formats import blocks
from scansion.formats.answers import Answers, Asked, Text
from scansion.formats.base import FormatError, lines
from scansion.formats.blocks import Block, Record, cut, strings
from scansion.formats.reading import Column, Reading
from scansion.formats.targets import cell_of

__all__ = ["annotate", "read", "write"]

SPANS = ATTRIBUTES = False

# what headers call the columns of labels, of words and of sequences
LABELS = ("label", "labels", "tag", "tags", "ner_tag", "ner_tags", "ner", "bio", "iob", "y")
WORDS = ("word", "words", "token", "tokens", "form", "text", "lemma", "pos", "pos_tag", "upos", "xpos")
GROUPS = (
    "sentence_id",
    "sentence",
    "sentence_#",
    "sent_id",
    "sequence_id",
    "sequence",
    "seq_id",
    "document_id",
    "doc_id",
    "group",
)

_QUOTED = re.compile(r'"(?:[^"]|"")+"')
_NUMBER = re.compile(r"\s*[-+]?(\d+[.,]?\d*|[.,]\d+)([eE][-+]?\d+)?\s*")


# ---- reading ---------------------------------------------------------------------------------------------------------


def read(stream: BinaryIO, path: str, reading: Reading) -> Iterator[Block]:
    """The sequences of a file, some at a time; the reading of the blocks says what was found out about the file."""
    passed = reading.comment
    numbered = ((n, text) for n, text in lines(stream, path) if not passed or not text.startswith(passed))
    first = next(((n, text) for n, text in numbered if text.strip()), None)
    if first is None:
        return
    separator = reading.separator or _separator(first[1], path)
    if len(separator) != 1:
        raise FormatError(path, None, f"CSV has one character between cells, not {separator!r}: take --format columns")
    rows = _rows(itertools.chain([first], numbered), separator, path)
    begin = [next(rows)]
    names: list[str] = []
    second = next(rows, None)
    if second is not None:
        begin.append(second)
    if _has_header(reading, [row for _, row in begin]):
        names = [name.strip() for name in begin.pop(0)[1]]
    rest = itertools.chain(begin, rows)
    width = len(first_row) if (first_row := names or begin[0][1]) else 0
    reading = _found(reading._replace(separator=separator, header=bool(names)), names, width, path)
    group = None if reading.group is None else blocks.column_index(reading.group, names, width, path)
    opening = True
    sequences = _sequences(rest, group, width, path)
    while some := list(itertools.islice(sequences, blocks.BLOCK_SEQUENCES)):
        cells = _core.Columns.from_rows([rows for _, rows in some], width)
        yield Block(path, reading, cells, numbers=[n for n, _ in some], names=names, opening=opening)
        opening = False
    if opening:  # names alone
        yield Block(path, reading, _core.Columns.from_rows([], width), names=names, opening=True)


def _separator(line: str, path: str) -> str:
    """The one that a file's ending stands for, or that its first line holds most often."""
    name = path[:-3] if path.lower().endswith(".gz") else path
    if name.lower().endswith((".tsv", ".tab")):
        return "\t"
    bare = _QUOTED.sub("", line)
    return max(",;\t", key=bare.count)


def _rows(numbered: Iterable[tuple[int, str]], separator: str, path: str) -> Iterator[tuple[int, list[str]]]:
    """Lines and cells of the rows; none where a row is blank."""
    if separator == "\t":
        for number, text in numbered:
            cells = [c[1:-1].replace('""', '"') if _QUOTED.fullmatch(c) else c for c in text.split("\t")]
            yield number, cells if any(cells) else []
        return
    at = 0

    def texts() -> Iterator[str]:
        nonlocal at
        for number, text in numbered:
            at = number
            yield text + "\n"

    rows = csv.reader(texts(), delimiter=separator, strict=True)
    while True:
        begin = at + 1
        try:
            cells = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            remedy = "a cell that begins with a quote ends with one, and quotes inside it are doubled"
            raise FormatError(path, begin, f"{error}: {remedy}") from None
        yield begin, cells if any(cells) else []


def _known(name: str, names: Sequence[str]) -> bool:
    return blocks.plain_name(name) in names


def _has_header(reading: Reading, rows: list[list[str]]) -> bool:
    """Whether the first row has the columns' names: as told, by names that are asked for, or where it is clear."""
    if reading.header is not None:
        return reading.header
    asked = (*reading.labels, *(reading.columns or ()), reading.group)
    if any(isinstance(column, str) for column in asked):
        return True
    first = [cell.strip() for cell in rows[0]]
    if not all(first) or len(set(first)) < len(first) or any(map(_NUMBER.fullmatch, first)):
        return False
    known = sum(_known(name, (*LABELS, *WORDS, *GROUPS)) for name in first)
    return known > 1 or (known == 1 and any(map(_NUMBER.fullmatch, rows[-1])))


def _found(reading: Reading, names: list[str], width: int, path: str) -> Reading:
    """The reading with columns by name where there are names, and what these say of columns that were not given."""

    def first(known: Sequence[str]) -> Column | None:
        return next((name for name in names if _known(name, known)), None)

    def named(column: Column) -> Column:
        inside = isinstance(column, int) and -width <= column < width
        return names[column] if names and inside and isinstance(column, int) else column

    group = first(GROUPS) if reading.group is None else named(reading.group)
    labels, told = reading.labels, reading.labels != (-1,)
    if not told and (label := first(LABELS)) is not None:
        labels, told = (label,), True
    labels = tuple(map(named, labels))
    columns = reading.columns
    if columns is None and (group is not None or (names and told)):
        taken = [group, *labels] if names and told else [group]
        there = [column for column in taken if column is not None and (column in names or isinstance(column, int))]
        held = {blocks.column_index(column, names, width, path) for column in there}
        columns = tuple(names[c] if names else c for c in range(width) if c not in held)
    elif columns is not None:
        columns = tuple(map(named, columns))
    return reading._replace(group=group, labels=labels, columns=columns)


def _sequences(
    rows: Iterable[tuple[int, list[str]]], group: int | None, width: int, path: str
) -> Iterator[tuple[int, list[list[str]]]]:
    """Line and rows of each sequence: between blank rows, and where the group changes; an empty one stays the same."""
    found: list[list[str]] = []
    begin, current = 0, ""
    for number, cells in rows:
        if cells and len(cells) != width:
            raise FormatError(path, number, f"the row has {blocks.counted(len(cells), 'column')}, not {width}")
        key = cells[group] if cells and group is not None else ""
        if found and (not cells or (key and key != current)):
            yield begin, found
            found = []
        current = key or current
        if cells:
            begin = begin if found else number
            found.append(cells)
    if found:
        yield begin, found


# ---- writing ---------------------------------------------------------------------------------------------------------


def _text(rows: Iterable[Sequence[Any]], separator: str) -> bytes:
    out = io.StringIO()
    if separator == "\t":
        for row in rows:
            cells = [str(cell) for cell in row]
            for i, cell in enumerate(cells):
                if any(c in cell for c in "\t\n\r"):
                    raise ValueError(f"{cell!r} holds a tab or a line end, which TSV can not hold: write CSV")
                if _QUOTED.fullmatch(cell):
                    cells[i] = '"' + cell.replace('"', '""') + '"'
            out.write("\t".join(cells) + "\n")
    else:
        csv.writer(out, delimiter=separator, lineterminator="\n").writerows(rows)
    return out.getvalue().encode()


def write(out: BinaryIO, record: Record, reading: Reading) -> None:
    """A sequence: its number, the cells, then the labels of each level; names of the columns before the first."""
    if record.items and record.cells is None:
        raise ValueError(f"{record.where}: the tokens have attributes and no words: they can not be written as CSV")
    cells, separator = record.cells or [], reading.separator or ","
    if record.number == 0:
        width = len(cells[0]) if cells else 1
        names = record.names or ["word", *(f"column{c}" for c in range(1, width))]
        several = len(record.labels) > 1
        labels = record.label_names or [f"label{k}" if several else "label" for k in range(len(record.labels))]
        out.write(_text([["sentence_id", *names, *labels]], separator))
    rows = ([record.number + 1, *row, *(cell_of(y[t]) for y in record.labels)] for t, row in enumerate(cells))
    out.write(_text(rows, separator))


def annotate(out: BinaryIO, block: Block, answers: Answers | None, asked: Asked) -> None:
    """The rows with what a model says of them in further columns."""
    rows, reading = block.rows, block.reading
    assert rows is not None
    if asked.compressed:
        if answers is not None:
            out.write(Text(block, "", "", ()).lines(answers, asked, ()).encode())
        return
    several = len(answers.levels) > 1 if answers is not None else False
    names = [f"predicted_{level.name}" for level in answers.levels] if answers and several else ["predicted"]
    added: list[list[Any]] = []
    if asked.kbest:
        names = ["rank", "probability", *names]
    elif answers is not None:
        added = [strings(column) for column in answers.columns()]
        if asked.marginals:
            names += [name.replace("predicted", "probability") for name in names]
            added += [[f"{p:.6f}" for p in column.tolist()] for column in answers.sure]
        if asked.all_marginals:
            for table, level in zip(answers.marginals, answers.levels, strict=True):
                names += [f"P({level.name}={y})" if several else f"P({y})" for y in level.labels]
                added += [[f"{p:.6f}" for p in column.tolist()] for column in table.T]
    if block.opening and block.names:
        out.write(_text([[*block.names, *names]], reading.separator))
    if answers is None:
        return
    cells = cut(list(zip(*(strings(rows.column(c)) for c in range(rows.width)), strict=True)), block.offsets)
    found = answers.kbest(asked.kbest) if asked.kbest else None
    extra = cut(list(zip(*added, strict=True)), block.offsets)
    for b, sequence in enumerate(cells):
        written: list[list[Any]] = []
        if found is None:
            written = [[*row, *more] for row, more in zip(sequence, extra[b], strict=True)]
        else:
            for rank, (answer, p) in enumerate(found[b]):
                told = zip(*answers.rows(answer, len(sequence)), strict=True)
                written += [[*row, rank, f"{p:.6f}", *ys] for row, ys in zip(sequence, told, strict=True)]
        if reading.group is None and not (block.opening and b == 0):
            out.write(b"\n")
        out.write(_text(written, reading.separator))
