"""What the formats share: opening files, errors that name the line, what a line can hold."""

from __future__ import annotations

import codecs
import contextlib
import io
import os
import sys
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any, BinaryIO

from scansion.formats.reading import FORMATS, is_utf8

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
def open_binary(path: str, encoding: str = "utf-8") -> Iterator[BinaryIO]:
    """A file's text in UTF-8, unpacked if it is gzip's; "-" is standard input.

    Raises
    ------
    FormatError
        Where gzip data are damaged, or text is not in the encoding.
    OSError
        If it can not be opened.
    """
    with contextlib.ExitStack() as stack:
        # standard input is not closed
        raw: Any = sys.stdin.buffer if path == "-" else stack.enter_context(open(path, "rb"))
        stream: Any = raw if hasattr(raw, "peek") else io.BufferedReader(raw)
        if stream.peek(2)[:2] != b"\x1f\x8b":
            yield _in_utf8(stream, path, encoding)
            return
        import gzip
        import zlib

        try:
            unpacked: Any = stack.enter_context(gzip.GzipFile(fileobj=stream, mode="rb"))
            yield _in_utf8(unpacked, path, encoding)
        except (gzip.BadGzipFile, zlib.error, EOFError) as error:
            raise FormatError(path, None, f"the gzip data are damaged: {error}") from error


def _in_utf8(stream: Any, path: str, encoding: str) -> Any:
    return stream if is_utf8(encoding) else io.BufferedReader(_Recoded(stream, path, encoding))


class _Recoded(io.RawIOBase):
    """Text of another encoding as UTF-8, as it comes in."""

    def __init__(self, stream: Any, path: str, encoding: str) -> None:
        self._stream, self._path, self._encoding = stream, path, encoding
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._pending = b""
        self._line = 1

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill what can be filled by one read; 0 at the end."""
        ended = False
        while not self._pending and not ended:
            read = self._stream.read1(len(buffer))
            ended = not read
            try:
                text = self._decoder.decode(read, ended)
                self._pending = text.encode()
            except UnicodeError as error:
                before = error.object[: error.start] if isinstance(error, UnicodeDecodeError) else b""
                line = self._line + before.decode(self._encoding, "ignore").count("\n")
                raise FormatError(self._path, line, f"the line is not valid {self._encoding}") from None
            self._line += text.count("\n")
        given = self._pending[: len(buffer)]
        buffer[: len(given)] = given
        self._pending = self._pending[len(given) :]
        return len(given)


def lines(stream: BinaryIO, path: str) -> Iterator[tuple[int, str]]:
    """Numbers (from 1) and texts of the lines, without their ends."""
    for number, raw in enumerate(stream, 1):
        if number == 1:
            raw = without_mark(raw, path)
        try:
            text = raw.decode()
        except UnicodeDecodeError:
            remedy = "name its encoding, as in --encoding latin-1"
            raise FormatError(path, number, f"the line is not valid UTF-8: {remedy}") from None
        yield number, text.rstrip("\r\n")


def without_mark(start: bytes, path: str) -> bytes:
    """The beginning of a file without UTF-8's byte order mark; UTF-16's is an error."""
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise FormatError(path, 1, "the file is UTF-16: say so, --encoding utf-16")
    return start.removeprefix(b"\xef\xbb\xbf")
