"""Columns of text, CoNLL's: one token a line, its cells side by side; blank lines between sequences."""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Iterator
from typing import BinaryIO

from scansion import _core
from scansion.formats import blocks
from scansion.formats.answers import Answers, Asked, Text
from scansion.formats.base import FormatError, check_cells, without_mark
from scansion.formats.blocks import Block, Record
from scansion.formats.reading import Reading
from scansion.formats.targets import cell_of

__all__ = ["annotate", "read", "write"]

SPANS = ATTRIBUTES = False


def read(stream: BinaryIO, path: str, reading: Reading) -> Iterator[Block]:
    """The sequences of a file, some at a time."""
    width, line, pending, size = -1, 1, b"", blocks.BLOCK_BYTES
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
        size = blocks.BLOCK_BYTES if end else 2 * size
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


def _is_file(stream: BinaryIO) -> bool:
    try:
        return stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except OSError:  # nothing of the operating system's
        return False


def write(out: BinaryIO, record: Record, reading: Reading) -> None:
    """A sequence: the cells, then the labels of each level."""
    if record.items and record.cells is None:
        raise ValueError(f"{record.where}: the tokens have attributes and no words: they can not be written as columns")
    separator = reading.separator or " "
    lines = []
    for t, token in enumerate(record.cells or ()):
        cells = [*token, *(cell_of(level[t]) for level in record.labels)]
        check_cells(cells, [separator], record.where, "choose another --output-separator", empty=len(cells) > 1)
        lines.append(separator.join(cells) + "\n")
    out.write(("".join(lines) + "\n").encode())


def annotate(out: BinaryIO, block: Block, answers: Answers | None, asked: Asked) -> None:
    """The lines as they are, with what a model says of them in further columns."""
    rows = block.rows
    assert rows is not None
    if answers is None:
        out.write(rows.annotate([], [], ""))
        return
    given = block.reading.separator
    separator = given or ("\t" if rows.has_tab() or rows.width == 1 else " ")
    text = Text(block, separator, separator, [given] if given else [" ", "\t"], empty=bool(given))
    if asked.kbest or asked.compressed:
        out.write(text.lines(answers, asked, rows.row_texts()).encode())
        return
    added = text.columns(answers, asked)
    out.write(rows.annotate([codes for codes, _ in added], [names for _, names in added], separator))
