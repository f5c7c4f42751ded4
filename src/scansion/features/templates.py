r"""Feature templates: CRF++'s template files and Wapiti's pattern files.

A line is literal text and markers; expanded at a token it gives one attribute. The first character says what the
attribute goes with: ``U`` the token's label, ``B`` the pair of labels, ``*`` both (Wapiti). A ``B`` without markers
stands for the label pairs themselves, a ``*`` without markers for ``U`` and ``B``.

=====================  ===========================================================================================
marker                 is replaced by
=====================  ===========================================================================================
``%x[row,col]``        the cell: `row` relative to the token, `col` from 0 on; ``@1`` the first token, ``@-1`` the last
``%t[row,col,"re"]``   "true" if the expression matches somewhere in the cell, else "false"
``%m[row,col,"re"]``   the part of the cell that the expression matches, nothing if it does not
``%X %T %M``           the same in lower case
=====================  ===========================================================================================

Expressions: ``.`` any character, ``\d`` digit, ``\a`` letter, ``\w`` either, ``\l`` lower case, ``\u`` upper case,
``\p`` punctuation, ``\s`` space, in upper case the complement; ``\`` before another character takes it literally; ``*``
and ``?`` repeat the character before, as often as they can; ``^`` at the beginning and ``$`` at the end are anchors.
Rows outside the sequence give ``_B-1``, ``_B+1``, ... (CRF++) or ``_x-1``, ..., ``_x-4``, and ``_x-#`` for all that
are further away (Wapiti).

It departs from Wapiti in this: classes and lower case know all letters of Unicode, there those of ASCII, and ``*``
repeats as often as it can, there as rarely. The dialect ``wapiti-exact`` does as Wapiti does; models of Wapiti have it.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any

__all__ = ["BUILT_IN", "DIALECTS", "Template"]

_MAX_ROW = 1000

DIALECTS = ("crf++", "wapiti", "wapiti-exact")

# of each dialect: what stands outside the sequence, and how many of these have a number
_BORDER = {"crf++": ("_B", _MAX_ROW), "wapiti": ("_x", 4), "wapiti-exact": ("_x", 4)}
_MARKER = re.compile(r'%([xXtTmM])\[\s*(@?)\s*([+-]?\d+)\s*,\s*(\d+)\s*(?:,\s*"((?:[^"\\]|\\.)*)"\s*)?\]')
_START = re.compile(r"%[xXtTmM]\[")
_ONLY_WAPITI = re.compile(r"^\s*[*ub]|%[XtTmM]\[|%x\[\s*@", re.MULTILINE)
_MAX_COLUMN = 10_000
_MAX_ITEMS = 1000

_KINDS = {"x": 0, "t": 1, "m": 2}
# as in native/template.hpp
_CLASSES = {"d": 1, "a": 2, "w": 1 | 2, "l": 4, "u": 8, "p": 16, "s": 32}
_ANY, _CLASS, _CHARACTER = range(3)
_NO_REGEX: tuple[list[Any], bool, bool] = ([], False, False)


# One line: its kind, and what the native code makes of it (None: the label pairs by themselves).
_Line = tuple[str, "tuple[list[tuple[Any, ...]], str] | None"]


class Template:
    r"""A template, checked.

    Parameters
    ----------
    text : str
        The lines of a template file.
    dialect : {"crf++", "wapiti", "wapiti-exact"}, optional
        Whose border strings and comments to use; None: Wapiti's if the text has something that only Wapiti knows.
    name : str
        What errors call it: ``name:line: message``.

    Attributes
    ----------
    text, dialect : str
    columns : int
        Number of columns that it needs: the largest one plus one.
    bigrams : bool
        Whether there is a line for label pairs.

    Examples
    --------
    >>> template = Template("U00:%x[-1,0]/%x[0,0]\nB")
    >>> template.dialect, template.columns, template.bigrams
    ('crf++', 1, True)
    """

    def __init__(self, text: str, dialect: str | None = None, name: str = "template") -> None:
        if dialect is not None and dialect not in DIALECTS:
            raise ValueError(f"dialect must be one of {', '.join(DIALECTS)}, got {dialect!r}")
        self.text = text
        self.name = name
        self.dialect = dialect or ("wapiti" if _ONLY_WAPITI.search(_without_comments(text)) else "crf++")
        self._wapiti = self.dialect != "crf++"
        self.columns = 0
        self._functions: dict[tuple[int, bool, int, str | None], int] = {}  # of a cell: kind, lower, column, expression
        self._lines: list[_Line] = []
        for number, raw in enumerate(text.removeprefix("\ufeff").splitlines(), 1):
            line = raw.split("#", 1)[0] if self._wapiti else "" if raw.startswith("#") else raw
            if line.strip():
                self._add(line.strip(), number)
        if not self._lines:
            raise ValueError(f"{name}: the template has no line that makes features")

    def __repr__(self) -> str:
        return f"Template of {len(self._lines)} lines ({self.dialect})"

    def _fail(self, number: int, message: str) -> ValueError:
        return ValueError(f"{self.name}:{number}: {message}")

    def _add(self, line: str, number: int) -> None:
        kind = line[0].upper() if self._wapiti else line[0]
        if kind not in ("U", "B") and not (kind == "*" and self._wapiti):
            wanted = "U, B or *" if self._wapiti else "U or B"
            raise self._fail(number, f"a line must begin with {wanted}, got {line[:40]!r}")
        if "\x00" in line:
            raise self._fail(number, "the line holds a NUL character")
        markers: list[tuple[Any, ...]] = []
        at = 0
        while True:
            found = _START.search(line, at)
            if found is None:
                break
            marker = _MARKER.match(line, found.start())
            if marker is None:
                shown = line[found.start() : found.start() + 40]
                raise self._fail(number, f'expected %x[row,col], %t[row,col,"..."] or %m[row,col,"..."], got {shown!r}')
            markers.append(self._marker(line[at : marker.start()], marker, number))
            at = marker.end()
        if markers:
            self._lines.append((kind, (markers, line[at:])))
            return
        if kind in ("U", "*"):
            self._lines.append(("U", ([], "U" + line[1:] if kind == "*" else line)))
        if kind in ("B", "*"):
            self._lines.append(("B", None))

    def _marker(self, before: str, marker: re.Match[str], number: int) -> tuple[Any, ...]:
        letter, absolute, row_text, column_text, regex = marker.groups()
        row, column = int(row_text), int(column_text)
        if abs(row) > _MAX_ROW or column >= _MAX_COLUMN:
            raise self._fail(number, f"{marker[0]!r} is too far away: rows go to {_MAX_ROW}, columns to {_MAX_COLUMN}")
        if absolute and row == 0:
            raise self._fail(number, f"{marker[0]!r}: @ counts from 1, or from -1 backwards")
        if (letter in "xX") != (regex is None):
            what = "takes no expression" if letter in "xX" else 'needs an expression, as in %t[0,0,"\\d"]'
            raise self._fail(number, f"{marker[0]!r}: %{letter} {what}")
        self.columns = max(self.columns, column + 1)
        if regex is not None:
            try:
                _compile(regex)
            except ValueError as error:
                raise self._fail(number, f"{marker[0]!r}: {error}") from None
        kind = _KINDS[letter.lower()]
        function = kind, letter.isupper() and kind != _KINDS["t"], column, regex
        return before, bool(absolute), row, self._functions.setdefault(function, len(self._functions))

    @property
    def bigrams(self) -> bool:
        """Whether there is a line for label pairs."""
        return any(kind != "U" for kind, _ in self._lines)

    @property
    def attribute_orders(self) -> dict[str, Any]:
        """For the parameter of this name: what the attributes go with, by the first letter of their names."""
        tied = {kind for kind, program in self._lines if program is not None}
        orders: dict[str, Any] = {"B": 1, "b": 1} if "B" in tied else {}
        return orders | ({"*": (0, 1)} if "*" in tied else {})

    @cached_property
    def native(self) -> Any:
        """The template for the native code."""
        from scansion import _core

        functions = [(*f[:3], _NO_REGEX if f[3] is None else _compile(f[3])) for f in self._functions]
        programs = [program for _, program in self._lines if program is not None]
        return _core.Template(functions, programs, *_BORDER[self.dialect], self.dialect == "wapiti-exact")


def _without_comments(text: str) -> str:
    return "\n".join("" if line.startswith("#") else line for line in text.splitlines())


def _compile(regex: str) -> tuple[list[Any], bool, bool]:
    """Items (kind, negated, classes, character, repeat) of an expression, and whether it has the anchors."""
    at_start = regex.startswith("^")
    at_end = False
    items: list[Any] = []
    i = 1 if at_start else 0
    while i < len(regex):
        c = regex[i]
        i += 1
        if c == "$" and i == len(regex):
            at_end = True
            break
        if c in "*?":
            if not items or items[-1][4]:
                raise ValueError(f"{c!r} repeats nothing in {regex!r}")
            items[-1] = (*items[-1][:4], c)
        elif c == "\\":
            if i == len(regex):
                raise ValueError(f"nothing follows the backslash at the end of {regex!r}")
            classes = _CLASSES.get(regex[i].lower())
            if classes is not None:
                items.append((_CLASS, regex[i].isupper(), classes, 0, ""))
            else:
                items.append((_CHARACTER, False, 0, ord(regex[i]), ""))
            i += 1
        else:
            items.append((_ANY if c == "." else _CHARACTER, False, 0, ord(c), ""))
    if len(items) > _MAX_ITEMS:
        raise ValueError(f"the expression is longer than {_MAX_ITEMS} characters")
    return items, at_start, at_end


# ---- templates for those who have none -----------------------------------------------------------------------------

_WORDS = """\
U00:%x[-2,0]
U01:%x[-1,0]
U02:%x[0,0]
U03:%x[1,0]
U04:%x[2,0]
U05:%x[-1,0]/%x[0,0]
U06:%x[0,0]/%x[1,0]
"""

_TAGS = """\
U10:%x[-2,1]
U11:%x[-1,1]
U12:%x[0,1]
U13:%x[1,1]
U14:%x[2,1]
U15:%x[-2,1]/%x[-1,1]
U16:%x[-1,1]/%x[0,1]
U17:%x[0,1]/%x[1,1]
U18:%x[1,1]/%x[2,1]
U20:%x[-2,1]/%x[-1,1]/%x[0,1]
U21:%x[-1,1]/%x[0,1]/%x[1,1]
U22:%x[0,1]/%x[1,1]/%x[2,1]
"""

_SPELLING = """\
U30:%X[0,0]
U31:%m[0,0,"^.?"]
U32:%m[0,0,"^.?.?"]
U33:%m[0,0,"^.?.?.?"]
U34:%m[0,0,"^.?.?.?.?"]
U35:%m[0,0,".?$"]
U36:%m[0,0,".?.?$"]
U37:%m[0,0,".?.?.?$"]
U38:%m[0,0,".?.?.?.?$"]
U40:%t[0,0,"\\u"]/%t[0,0,"\\d"]/%t[0,0,"\\p"]
U41:%t[0,0,"^\\u"]
U42:%t[0,0,"^\\u\\u*$"]
U43:%t[0,0,"^\\d\\d*$"]
U44:%t[0,0,"-"]
"""

_NEIGHBOURS = """\
U50:%X[-1,0]
U51:%X[1,0]
U52:%t[-1,0,"^\\u"]/%t[0,0,"^\\u"]/%t[1,0,"^\\u"]
U53:%m[-1,0,".?.?.?$"]
U54:%m[1,0,".?.?.?$"]
U55:%t[-1,0,"^\\u"]/%X[0,0]
U56:%t[0,0,"^\\u"]/%X[-1,0]
U57:%t[0,0,"^\\u"]/%X[1,0]
"""

#: Template texts by name: of words alone; for parts of speech (words and spelling); for chunks (words and a second
#: column, parts of speech); for names (words, spelling, capitals around).
BUILT_IN = {
    "words": _WORDS + "B\n",
    "pos": _WORDS + _SPELLING + "B\n",
    "chunk": _WORDS + _TAGS + "B\n",
    "ner": _WORDS + _SPELLING + _NEIGHBOURS + "B\n",
}
