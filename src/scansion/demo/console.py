"""What the tour prints: wrapped to the terminal, bold only where the terminal can show it."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence

__all__ = ["Console"]

_WIDEST = 80
_NARROWEST = 40


class Console:
    """Prints headings, paragraphs, tables and fields.

    The width is the terminal's, from 40 to 80 columns; where the output is no terminal, 80, and there is no colour
    (nor with NO_COLOR set).
    """

    def __init__(self) -> None:
        self.terminal = sys.stdout.isatty()
        columns = shutil.get_terminal_size((_WIDEST, 24)).columns if self.terminal else _WIDEST
        self.width = max(_NARROWEST, min(_WIDEST, columns))
        self.colour = self.terminal and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"

    def bold(self, text: str) -> str:
        """The text, bold if that can be shown."""
        return f"\x1b[1m{text}\x1b[0m" if self.colour else text

    def line(self, text: str = "") -> None:
        """One line as it is."""
        print(text, flush=True)

    def heading(self, text: str) -> None:
        """A section begins."""
        wrapped = textwrap.wrap(text, self.width)
        self.line()
        for part in wrapped:
            self.line(self.bold(part))
        self.line("-" * max(map(len, wrapped)))

    def text(self, text: str, indent: str = "") -> None:
        """A paragraph."""
        for part in textwrap.wrap(
            " ".join(text.split()), self.width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
        ):
            self.line(part)

    def command(self, text: str) -> None:
        """A command, in several lines if it is too long for one."""
        parts = textwrap.wrap(text, self.width - 6, break_long_words=False, break_on_hyphens=False)
        for k, part in enumerate(parts):
            self.line("  " + ("  " if k else "") + part + (" \\" if k < len(parts) - 1 else ""))

    def pairs(self, rows: Iterable[tuple[str, str]], marked: Sequence[int] = ()) -> None:
        """Names with what belongs to them, wrapped, below names that leave no room; the marked ones stand out."""
        rows = list(rows)
        left = max((len(name) for name, _ in rows if len(name) <= self.width // 2), default=0)
        for i, (name, content) in enumerate(rows):
            mark = "> " if i in marked else "  "
            parts = textwrap.wrap(content, self.width - left - 4, break_on_hyphens=False) or [""]
            lines = [f"{mark}{name}", *(f"{'':{left + 4}}{part}" for part in parts)]
            if len(name) <= left:
                lines[:2] = [f"{mark}{name:{left}}  {parts[0]}"]
            for shown in lines:
                self.line(self.bold(shown) if i in marked else shown)

    def table(self, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """A table: the first column to the left, wrapped if need be, the others to the right."""
        widths = [max(len(row[i]) for row in [header, *rows]) for i in range(1, len(header))]
        left = min(max(len(row[0]) for row in [header, *rows]), max(12, self.width - sum(widths) - 2 * len(widths)))
        for n, row in enumerate([header, *rows]):
            names = textwrap.wrap(row[0], left, subsequent_indent="  ") or [""]
            cells = "".join(f"  {cell:>{width}}" for cell, width in zip(row[1:], widths, strict=True))
            for k, name in enumerate(names):
                line = f"{name:{left}}" + (cells if k == len(names) - 1 else "")
                self.line(self.bold(line) if n == 0 else line.rstrip())
