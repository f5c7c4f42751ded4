"""Expansion of feature templates, the specification: plain Python, one attribute at a time.

The rules are those of `scansion.features.templates`. It reads the text of a template by itself, and translates Wapiti's
expressions into Python's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["expand", "search"]

_MARKER = re.compile(r'%([xXtTmM])\[\s*(@?)\s*([+-]?\d+)\s*,\s*(\d+)\s*(?:,\s*"((?:[^"\\]|\\.)*)"\s*)?\]')

_TESTS = {
    "d": str.isdigit,
    "a": str.isalpha,
    "w": lambda c: c.isdigit() or c.isalpha(),
    "l": str.islower,
    "u": str.isupper,
    "p": lambda c: c.isprintable() and not c.isalnum() and not c.isspace(),
    "s": str.isspace,
}


def search(expression: str, text: str, exact: bool = False) -> str | None:
    """What an expression matches in a text, leftmost and greedy; None if it does not match.

    exact: as Wapiti does; stars are lazy, and classes hold characters of ASCII alone.
    """
    body, start, end = expression, "", ""
    if body.startswith("^"):
        body, start = body[1:], r"\A"
    if body.endswith("$") and not re.search(r"(?<!\\)(\\\\)*\\\$\Z", body):
        body, end = body[:-1], r"\Z"
    parts = []
    for item, repeat in re.findall(r"(\\?.)([*?]?)", body, re.DOTALL):
        letter = item[1:].lower()
        if item == ".":
            part = "."
        elif item[0] == "\\" and letter in _TESTS:
            # the class as a set of the text's own characters
            chosen = {c for c in text if (_TESTS[letter](c) and (c.isascii() or not exact)) != item[1].isupper()}
            part = "[" + "".join(map(re.escape, sorted(chosen))) + "]" if chosen else "(?!)"
        else:
            part = re.escape(item[-1])
        parts.append(f"(?:{part}){repeat}" + ("?" if exact and repeat == "*" else ""))
    found = re.search(start + "".join(parts) + end, text, re.DOTALL)
    return None if found is None else found[0]


def _lower(text: str, exact: bool) -> str:
    # one character for one: the only one whose lower case is two is U+0130, of which the first is taken
    return "".join(c.lower()[0] if c.isascii() or not exact else c for c in text)


def expand(text: str, rows: Sequence[Sequence[str]], wapiti: bool = False, exact: bool = False) -> list[list[str]]:
    """Attributes of each row of one sequence, in the order of the template's lines.

    Parameters
    ----------
    text : str
        The template.
    rows : sequence of sequences of str
        The cells of each token.
    wapiti : bool
        Wapiti's comments and border strings in place of CRF++'s.
    exact : bool
        Wapiti's repetitions and letters too.
    """
    border = "_x" if wapiti else "_B"
    lines = []
    for line in text.splitlines():
        line = line.split("#")[0].strip() if wapiti else "" if line.startswith("#") else line.strip()
        if line and not _MARKER.search(line):
            if line[0] in "*":
                line = "U" + line[1:]
            elif line[0] in "Bb":
                continue  # the label pairs themselves
        if line:
            lines.append(line)

    def number(k: int) -> str:
        return "#" if wapiti and k > 4 else str(k)

    def attributes(t: int) -> list[str]:
        def cell(marker: re.Match[str]) -> str:
            command, absolute, row, column, expression = marker.groups()
            at = t + int(row)
            if absolute:
                at = int(row) - 1 if int(row) > 0 else len(rows) + int(row)
            if at < 0:
                value = f"{border}-{number(-at)}"
            elif at >= len(rows):
                value = f"{border}+{number(at - len(rows) + 1)}"
            else:
                value = rows[at][int(column)]
            if command in "tT":
                return "true" if search(expression, value, exact) is not None else "false"
            if command in "mM":
                value = search(expression, value, exact) or ""
            return _lower(value, exact) if command.isupper() else value

        return [_MARKER.sub(cell, line) for line in lines]

    return [attributes(t) for t in range(len(rows))]
