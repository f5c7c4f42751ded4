"""Bibliographic references with labelled fields, and features of their tokens.

``references.txt`` holds the references as text with marks around the fields; tokens, fields and the parts of fields
follow from it by the rules below, which ``docs/demo.md`` states in full.

Conventions: a reference of T tokens has two levels of segments, ``(start, stop, label)``, half-open, each covering
``0 .. T`` without gaps; every part lies inside one field.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from importlib.resources import files
from typing import NamedTuple

from scansion.segments import Segment

__all__ = ["FIELDS", "PARTS", "Reference", "attributes", "parse", "references", "tokens_of"]

_NAMES = ("family", "given", "organisation", "and", "others", "role")
PARTS: dict[str, tuple[str, ...]] = {
    "key": ("key",),
    "author": _NAMES,
    "editor": _NAMES,
    "title": ("title", "subtitle"),
    "journal": ("journal",),
    "book": ("book",),
    "series": ("series",),
    "volume": ("volume",),
    "number": ("number",),
    "pages": ("pages",),
    "publisher": ("publisher",),
    "place": ("place",),
    "date": ("year", "month", "day"),
    "note": ("note",),
    "link": ("link",),
}
"""The parts that each field may have."""
FIELDS = tuple(PARTS)

_MONTHS = "january february march april may june july august september october november december"
_SEASONS = "spring summer autumn fall winter"
MONTHS = frozenset(_MONTHS.split()) | {m[:3] for m in _MONTHS.split()} | {"sept"} | frozenset(_SEASONS.split())
_AND = frozenset(("and", "&", "und"))
_OTHERS = frozenset(("et", "al", "others"))
_ROLE = frozenset("in ed eds editor editors edited by trans transl translated translator translators".split())

_TOKEN = re.compile(
    r"""(?: https?://[^\s{}]*[^\s.,;){}]    # an address, without the full stop of the sentence
        | (?: doi: | arXiv: ) [^\s{}]*[^\s.,;{}]
        | 10\.\d{4,}/[^\s{}]*[^\s.,;{}]     # a DOI
        | (?: [^\W\d_a-zß-ÿ] \. -? )+ (?! [a-z])  # initials: J.-P.
        | \w+ (?: ['’/–-] \w+ )*             # words, numbers, ranges
        | [^\w\s]                            # each mark by itself
        )""",
    re.VERBOSE,
)
_MARKUP = re.compile(r"\{(?P<open>\w+)\s+|(?P<close>\})|(?P<star>\*)?(?P<token>" + _TOKEN.pattern + ")", re.VERBOSE)
_OPENING = frozenset("([“‘«")


class Reference(NamedTuple):
    """One reference: what the estimators take as an x and a y.

    Attributes
    ----------
    tokens : list of str, length T
    levels : (fields, parts)
        Two lists of `Segment`, root side first: the form of y for `HierarchicalCRF`; ``levels[0]`` is that for
        `SemiCRF`.
    style : str
        The style that it is written in.
    """

    tokens: list[str]
    levels: tuple[list[Segment], list[Segment]]
    style: str

    @property
    def fields(self) -> list[str]:
        """The field of each token: the form of y for `CRF`."""
        return [s.label for s in self.levels[0] for _ in range(s.start, s.stop)]

    @property
    def parts(self) -> list[str]:
        """The part of each token."""
        return [s.label for s in self.levels[1] for _ in range(s.start, s.stop)]


def tokens_of(text: str) -> list[str]:
    """The tokens of a reference: words, initials, numbers and ranges, addresses; each other mark by itself."""
    return _TOKEN.findall(text)


def references() -> list[Reference]:
    """The references that come with the package, in the order of the file (by style)."""
    text = files("scansion.demo").joinpath("references.txt").read_text(encoding="utf-8")
    return list(parse(text))


def parse(text: str) -> Iterator[Reference]:
    """References out of text in the form of ``references.txt``; a line that breaks the rules raises `ValueError`."""
    style = None
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if line.startswith("=="):
            style = line.strip("= ")
        elif line and not line.startswith("#"):
            if style is None:
                raise ValueError(f"line {number}: a reference before the first '== style'")
            try:
                yield _reference(line, style)
            except ValueError as error:
                raise ValueError(f"line {number}: {error}") from None


def _reference(line: str, style: str) -> Reference:
    tokens: list[str] = []
    fields: list[Segment] = []
    parts: list[Segment] = []
    field: str | None = None
    part: str | None = None
    start = 0
    told: list[str | None] = []  # parts that the text names, for each token of the field
    end = 0
    for found in _MARKUP.finditer(line):
        if line[end : found.start()].strip():
            raise ValueError(f"cannot read {line[end : found.start()].strip()!r}")
        end = found.end()
        if found["open"]:
            if field is None:
                field, start, told = found["open"], len(tokens), []
                if field not in PARTS:
                    raise ValueError(f"{field!r} is not one of the fields {', '.join(FIELDS)}")
            elif part is None:
                part = found["open"]
                if part not in PARTS[field]:
                    raise ValueError(f"{part!r} is not one of the parts of {field!r}: {', '.join(PARTS[field])}")
            else:
                raise ValueError(f"'{{{found['open']}' inside '{{{part}': there are two levels only")
        elif found["close"]:
            if part is not None:
                part = None
            elif field is not None and len(tokens) > start:
                fields.append(Segment(start, len(tokens), field))
                parts.extend(_parts(field, tokens[start:], told, start))
                field = None
            else:
                raise ValueError("a '}' that closes nothing, or an empty field")
        else:
            if field is None:
                raise ValueError(f"{found['token']!r} stands outside the fields")
            if found["star"] and field not in ("author", "editor"):
                raise ValueError(f"'*{found['token']}': only authors and editors have family names")
            tokens.append(found["token"])
            told.append("family" if found["star"] else part)
    if field is not None:
        raise ValueError(f"'{{{field}' is not closed")
    return Reference(tokens, (fields, parts), style)


def _parts(field: str, tokens: list[str], told: list[str | None], start: int) -> Iterator[Segment]:
    """The parts of one field: what the text names, else what the word says; marks go with the word before them."""
    labels: list[str | None] = []
    after_colon = False
    for token, name in zip(tokens, told, strict=True):
        labels.append(name or (_part(field, token, after_colon) if _is_word(token) else None))
        after_colon = after_colon or token == ":"
    for i, token in enumerate(tokens):  # closing marks with what comes before
        if labels[i] is None and token not in _OPENING and i > 0:
            labels[i] = labels[i - 1]
    for i in reversed(range(len(tokens))):  # opening ones, and those at the head, with what comes after
        if labels[i] is None:
            labels[i] = labels[i + 1] if i + 1 < len(tokens) else labels[i - 1]
    names = field in ("author", "editor")
    first = 0
    for i in range(1, len(tokens) + 1):
        cut = i == len(tokens) or labels[i] != labels[i - 1]
        if cut or (names and tokens[i - 1] == "," and labels[i] != "organisation"):
            label = labels[first]
            if label is None:
                raise ValueError(f"the field {field!r} holds no word: {' '.join(tokens)!r}")
            yield Segment(start + first, start + i, label)
            first = i


def _is_word(token: str) -> bool:
    return token == "&" or any(c.isalnum() for c in token)


def _part(field: str, token: str, after_colon: bool) -> str:
    word = token.lower()
    if field in ("author", "editor"):
        return "and" if word in _AND else "others" if word in _OTHERS else "role" if word in _ROLE else "given"
    if field == "date":
        return "month" if word in MONTHS else "day" if word.isdigit() and len(word) < 3 else "year"
    if field == "title":
        return "subtitle" if after_colon else "title"
    return field


# ---- features ------------------------------------------------------------------------------------------------------

_KINDS = (
    ("address", re.compile(r"https?://|doi:|arXiv:|10\.\d{4,}/")),
    ("year", re.compile(r"(1[4-9]|20)\d\d[a-z]?$")),
    ("digits", re.compile(r"\d+$")),
    ("range", re.compile(r"\d+[-–]\d+$")),
    ("mixed", re.compile(r"(?=.*\d)\w")),
    ("initials", re.compile(r"(\w\.-?)+$")),
    ("capitals", re.compile(r"[^\W\d_a-zß-ÿ]+$")),
    ("capital", re.compile(r"[^\W\d_a-zß-ÿ]")),
    ("lower", re.compile(r"\w")),
)
_QUOTES = {"“": 1, "”": -1}


def kind(token: str) -> str:
    """What a token looks like: a year, digits, initials, a capitalised word, ...; a mark is its own kind."""
    if token.lower() in MONTHS:
        return "month"
    return next((name for name, pattern in _KINDS if pattern.match(token)), token)


def attributes(tokens: Sequence[str]) -> list[list[str]]:
    """Attributes of each token: its word, kind, prefix and suffix, the neighbours', and where it stands.

    The names before ``=`` say which: ``w``, ``k``, ``pre``, ``suf`` with the neighbour's distance in brackets, ``at``
    (the tenth of the reference), ``in`` (quotation marks, brackets).
    """
    T = len(tokens)
    words = [t.lower() for t in tokens]
    kinds = [kind(t) for t in tokens]
    result = []
    quoted = bracketed = 0
    for i, (token, word) in enumerate(zip(tokens, words, strict=True)):
        quoted = max(0, quoted + _QUOTES.get(token, 0))
        bracketed = max(0, bracketed + (token in "([") - (i > 0 and tokens[i - 1] in ")]"))
        items = [f"w={word}", f"k={kinds[i]}", f"at={10 * i // T}"]
        if _is_word(token):
            items += [f"pre={word[:3]}", f"suf={word[-3:]}"]
        if quoted:
            items.append("in=quotes")
        if bracketed:
            items.append("in=brackets")
        for d in (-2, -1, 1, 2):
            j = i + d
            if 0 <= j < T:
                items.append(f"k[{d:+}]={kinds[j]}")
                if abs(d) == 1:
                    items.append(f"w[{d:+}]={words[j]}")
            elif j in (-1, T):
                items.append(f"w[{d:+}]=<end>")
        if 0 < i < T - 1:
            items.append(f"k[-1..+1]={kinds[i - 1]} {kinds[i]} {kinds[i + 1]}")
        result.append(items)
    return result
