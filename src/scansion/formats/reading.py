"""How files become sequences: what a model keeps of the files that it was trained on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

__all__ = ["FORMATS", "Reading"]

FORMATS = {
    "columns": (".txt", ".conll", ".col", ".iob", ".bio"),
    "csv": (".csv", ".tsv", ".tab"),
    "conllu": (".conllu",),
    "crfsuite": (".items", ".crfsuite", ".crf"),  # .crfsuite is what most call models
    "jsonl": (".jsonl", ".ndjson", ".json"),
}
"""Formats and how their files' names end; each is a module of that name here, which reads and writes."""


NAMED = ("csv", "conllu", "jsonl")
"""Formats whose columns, or labels, have names."""

Column = int | str
"""A column by its number, negative ones from the end, or by its name."""


def is_encoding(name: Any) -> bool:
    """Whether this is the name of an encoding of text."""
    try:
        "".encode(name)
    except (LookupError, TypeError, ValueError):
        return False
    return True


def is_utf8(encoding: str) -> bool:
    """Whether text in this encoding needs no recoding."""
    return encoding.lower().replace("_", "-") in ("utf-8", "utf8", "utf-8-sig")


class Reading(NamedTuple):
    """How files become sequences; stored with a model, so that tagging reads as training did.

    Attributes
    ----------
    format : {"columns", "csv", "conllu", "crfsuite", "jsonl"}
    separator : str
        Between cells; empty for runs of spaces and tabs, of CSV for the one that the file has.
    comment : str
        Lines that begin so are passed over; empty: there are none.
    columns : tuple of int or str, or None
        The columns that the template counts 0, 1, ...; None: all of them.
    labels : tuple of int or str
        Columns of the labels, one for each level, the outermost first; negative ones count from the end. Of JSON: the
        key, if it is a name.
    template, dialect : str, or None
        See `scansion.features.templates`. None: attributes are given in the file.
    scheme : str, or None
        How labels mark segments (`scansion.schemes`); None: labels are taken as they are.
    header : bool, or None
        CSV: whether the first row has the names of the columns; None: where that is clear.
    group : int or str, or None
        CSV: the column that is the same for the tokens of a sequence; None: blank rows separate them.
    encoding : str
        Of the text.
    """

    format: str = "columns"
    separator: str = ""
    comment: str = ""
    columns: tuple[Column, ...] | None = None
    labels: tuple[Column, ...] = (-1,)
    template: str | None = None
    dialect: str | None = None
    scheme: str | None = None
    header: bool | None = None
    group: Column | None = None
    encoding: str = "utf-8"

    def to_json(self) -> dict[str, Any]:
        """As JSON's types."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in self._asdict().items()}

    @classmethod
    def from_json(cls, value: Any) -> Reading:
        """What `to_json` wrote; ValueError if it is something else. Nothing in a file is trusted."""
        from scansion.features.templates import DIALECTS
        from scansion.schemes import SCHEMES

        added = {"header": None, "group": None, "encoding": "utf-8"}  # older files are without
        if not isinstance(value, Mapping) or set(added | dict(value)) != set(cls._fields):
            raise ValueError("how to read files is not told in the form expected")
        given = added | dict(value)
        for name in ("columns", "labels"):
            if given[name] is not None:
                if not isinstance(given[name], list) or not all(type(i) in (int, str) for i in given[name]):
                    raise ValueError(f"{name} must be a list of numbers or names, got {given[name]!r}")
                given[name] = tuple(given[name])
                if given.get("format") not in NAMED and not all(type(i) is int for i in given[name]):
                    raise ValueError(f"{name} must be a list of numbers, got {given[name]!r}")
        strings = {name: given[name] for name in ("format", "separator", "comment", "template", "dialect", "scheme")}
        wrong = [name for name, text in strings.items() if not isinstance(text, str) and text is not None]
        choices_of = {"format": FORMATS, "dialect": (*DIALECTS, None), "scheme": (*SCHEMES, None)}
        wrong += [name for name, choices in choices_of.items() if given[name] not in choices]
        wrong += [name for name in ("separator", "comment", "labels") if given[name] is None]
        kinds = {"header": (bool, type(None)), "group": (int, str, type(None))}
        wrong += [name for name, types in kinds.items() if type(given[name]) not in types]
        wrong += [] if is_encoding(given["encoding"]) else ["encoding"]
        if wrong:
            raise ValueError(f"{wrong[0]} must not be {given[wrong[0]]!r}")
        return cls(**given)
