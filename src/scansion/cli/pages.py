"""Sequences of files for pages: what a model says, beside the truth where the file tells it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from scansion.formats.answers import Answers, Tagger
from scansion.formats.base import FormatError
from scansion.formats.blocks import Block
from scansion.formats.targets import OUTSIDE, detect, labels_of, spans_of
from scansion.schemes import segments

__all__ = ["HTML_LIMIT", "entries", "possible_labels", "truth_of"]

HTML_LIMIT = 200


def possible_labels(tagger: Tagger, level: int) -> set[str]:
    """The labels that a model can give in a file of its scheme."""
    names = {str(label) for label in tagger.levels[level].labels}
    if not tagger.segmental or tagger.scheme in (None, "plain"):
        return names
    return names | {f"{role}-{name}" for role in "BIESLU" for name in names} | {OUTSIDE}


def truth_of(block: Block, tagger: Tagger) -> list[list[Any]] | None:
    """Labels of a block by level, if the file has such labels: all are of those that the model can give."""
    try:
        found = [labels_of(block, False, tagger.scheme, k) for k in range(len(tagger.levels))]
    except FormatError:
        return None
    for k, rows in enumerate(found):
        known = possible_labels(tagger, k)
        if not all(str(y) in known for row in rows for y in row):
            return None
    return found


def entries(block: Block, answers: Answers, chosen: list[int], truth: list[list[Any]] | None) -> list[Any]:
    """Some sequences of a block, for a page: the best answers, and the marginals of the lowest level."""
    from scansion.display import Sequence

    if not chosen:
        return []
    some = answers.take(chosen)
    labels = [str(y) for y in some.levels[-1].labels]
    scheme = some.scheme or detect([labels])
    tables = np.split(some.marginals[-1], some.data.offsets[1:-1])
    words = block.words()
    result = []
    for b, found, table, ruled in zip(chosen, some.kbest(3), tables, some.without_rules(), strict=True):
        read = [
            ([[(u, v, str(y)) for u, v, y in spans_of(level, scheme)] for level in some.spans(answer, scheme)], p)
            for answer, p in found
        ]
        other = None
        if ruled is not None:
            answer, broken = ruled
            spans = [[(u, v, str(y)) for u, v, y in spans_of(one, scheme)] for one in some.spans(answer, scheme)]
            other = (spans, broken)
        if truth is None:
            entry = Sequence(words[b], read[0][0], None, table, labels, read[1:] or None)
            result.append(replace(entry, without_rules=other))
            continue
        given: list[list[Any]] = []
        names: list[str] = []
        for k, level in enumerate(read[0][0]):
            true = segments(list(map(str, truth[k][b])), scheme, outside=None if scheme == "plain" else OUTSIDE)
            given += [level, [(u, v, str(y)) for u, v, y in true]]  # the last is shown first
            of = f" {some.levels[k].name}" if len(some.levels) > 1 else ""
            names += [f"predicted{of}", f"truth{of}"]
        result.append(replace(Sequence(words[b], given, names, table, labels), without_rules=other))
    return result
