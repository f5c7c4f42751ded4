"""How files become sequences: what a model keeps of the files that it was trained on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

__all__ = ["FORMATS", "Reading"]

FORMATS = {
    "columns": (".txt", ".conll", ".conllu", ".tsv", ".csv", ".col", ".iob", ".bio"),
    "crfsuite": (".crfsuite", ".crf"),
    "jsonl": (".jsonl", ".ndjson", ".json"),
}
"""Formats and how their files' names end; each is a module of that name here, which reads and writes."""


class Reading(NamedTuple):
    """How files become sequences; stored with a model, so that tagging reads as training did.

    Attributes
    ----------
    format : {"columns", "crfsuite", "jsonl"}
    separator : str
        Between cells; empty for runs of spaces and tabs.
    comment : str
        Lines that begin so are passed over; empty: there are none.
    columns : tuple of int, or None
        The columns that the template counts 0, 1, ...; None: all of them.
    labels : tuple of int
        Columns of the labels, one for each level, the outermost first; negative ones count from the end.
    template, dialect : str, or None
        See `scansion.features.templates`. None: attributes are given in the file.
    scheme : str, or None
        How labels mark segments (`scansion.schemes`); None: labels are taken as they are.
    """

    format: str = "columns"
    separator: str = ""
    comment: str = ""
    columns: tuple[int, ...] | None = None
    labels: tuple[int, ...] = (-1,)
    template: str | None = None
    dialect: str | None = None
    scheme: str | None = None

    def to_json(self) -> dict[str, Any]:
        """As JSON's types."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in self._asdict().items()}

    @classmethod
    def from_json(cls, value: Any) -> Reading:
        """What `to_json` wrote; ValueError if it is something else. Nothing in a file is trusted."""
        from scansion.features.templates import DIALECTS
        from scansion.schemes import SCHEMES

        if not isinstance(value, Mapping) or set(value) != set(cls._fields):
            raise ValueError("how to read files is not told in the form expected")
        given = dict(value)
        for name in ("columns", "labels"):
            if given[name] is not None:
                if not isinstance(given[name], list) or not all(type(i) is int for i in given[name]):
                    raise ValueError(f"{name} must be a list of numbers, got {given[name]!r}")
                given[name] = tuple(given[name])
        strings = {name: given[name] for name in ("format", "separator", "comment", "template", "dialect", "scheme")}
        wrong = [name for name, text in strings.items() if not isinstance(text, str) and text is not None]
        known = {"format": FORMATS, "dialect": (*DIALECTS, None), "scheme": (*SCHEMES, None)}
        wrong += [name for name, choices in known.items() if given[name] not in choices]
        wrong += [name for name in ("separator", "comment", "labels") if given[name] is None]
        if wrong:
            raise ValueError(f"{wrong[0]} must not be {given[wrong[0]]!r}")
        return cls(**given)
