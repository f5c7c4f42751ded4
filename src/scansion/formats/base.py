"""What the formats share: opening files, errors that name the line, what a line can hold."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any, BinaryIO

from scansion.formats.reading import FORMATS

__all__ = ["FormatError", "check_cells", "format_module", "format_of", "lines", "open_binary", "shown", "without_mark"]


class FormatError(ValueError):
    """A file is malformed; the message is ``file:line: what is wrong``.

    Parameters
    ----------
    path : str
        The file, "-" for standard input.
    line : int or None
    message : str
    """

    def __init__(self, path: str, line: int | None, message: str) -> None:
        super().__init__(f"{shown(path)}{'' if line is None else f':{line}'}: {message}")
        self.path, self.line, self.message = path, line, message

    def __reduce__(self) -> tuple[Any, ...]:
        return FormatError, (self.path, self.line, self.message)


def shown(path: str) -> str:
    """A path as messages show it."""
    return "<stdin>" if path == "-" else path


def format_of(path: str, otherwise: str = "columns") -> str:
    """The format that a file's name stands for: .jsonl, .crfsuite, .txt; `otherwise` if it tells nothing."""
    name = path[:-3] if path.lower().endswith(".gz") else path
    ending = os.path.splitext(name)[1].lower()
    return next((form for form, endings in FORMATS.items() if ending in endings), otherwise)


def format_module(name: str) -> Any:
    """The module of a format.

    It has ``read(stream, path, reading)``, which gives blocks; ``write(out, record, reading)`` for one sequence;
    ``annotate(out, block, answers, asked)`` for a block with what a model says of it; and ``SPANS`` and ``ATTRIBUTES``,
    whether files hold spans, and attributes of tokens.
    """
    return import_module(f"scansion.formats.{name}")


def check_cells(cells: Iterable[str], separators: Iterable[str], where: str, remedy: str, empty: bool = True) -> None:
    """Raise if a cell can not stand in a line: it has a separator or a line end, or is empty where it must not be."""
    unfit = ("\n", "\r", *separators)
    for cell in cells:
        if any(part in cell for part in unfit) or not (cell or empty):
            raise ValueError(f"{where}: {cell!r} can not stand in a column: {remedy}")


@contextlib.contextmanager
def open_binary(path: str) -> Iterator[BinaryIO]:
    """A file's bytes, unpacked if they are gzip's; "-" is standard input.

    Raises
    ------
    FormatError
        Where gzip data are damaged.
    OSError
        If it can not be opened.
    """
    with contextlib.ExitStack() as stack:
        # standard input is not closed
        raw: Any = sys.stdin.buffer if path == "-" else stack.enter_context(open(path, "rb"))
        stream: Any = raw if hasattr(raw, "peek") else io.BufferedReader(raw)
        if stream.peek(2)[:2] != b"\x1f\x8b":
            yield stream
            return
        import gzip
        import zlib

        try:
            unpacked: Any = stack.enter_context(gzip.GzipFile(fileobj=stream, mode="rb"))
            yield unpacked
        except (gzip.BadGzipFile, zlib.error, EOFError) as error:
            raise FormatError(path, None, f"the gzip data are damaged: {error}") from error


def lines(stream: BinaryIO, path: str) -> Iterator[tuple[int, str]]:
    """Numbers (from 1) and texts of the lines, without their ends."""
    for number, raw in enumerate(stream, 1):
        if number == 1:
            raw = without_mark(raw, path)
        try:
            text = raw.decode()
        except UnicodeDecodeError:
            raise FormatError(
                path, number, "the line is not valid UTF-8; convert the file, with iconv for instance"
            ) from None
        yield number, text.rstrip("\r\n")


def without_mark(start: bytes, path: str) -> bytes:
    """The beginning of a file without UTF-8's byte order mark; UTF-16's is an error."""
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise FormatError(path, 1, "the file is UTF-16; convert it to UTF-8, with iconv for instance")
    return start.removeprefix(b"\xef\xbb\xbf")
