"""JSON lines: a sequence a line, an object with tokens and perhaps labels, spans or levels of spans.

An array of such objects is read as well; answers are written as lines.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

from scansion.formats.answers import Answers, Asked
from scansion.formats.base import FormatError, lines
from scansion.formats.blocks import Block, Levels, Record, Spans, cut, gathered
from scansion.formats.reading import Reading
from scansion.formats.targets import spans_of

__all__ = ["annotate", "read", "read_objects", "write"]

SPANS = ATTRIBUTES = True

_LABELS = ("labels", "tags", "ner_tags", "spans", "levels")  # the ways to tell them


def read(stream: BinaryIO, path: str, reading: Reading) -> Iterator[Block]:
    """The sequences of a file, some at a time."""
    return gathered(read_objects(lines(stream, path), path, _key(reading)), path, reading)


def _key(reading: Reading) -> str | None:
    """The key of the labels, where it is given."""
    return str(reading.labels[0]) if len(reading.labels) == 1 and isinstance(reading.labels[0], str) else None


def read_objects(
    lines: Iterable[tuple[int, str]], path: str, key: str | None = None
) -> Iterator[tuple[int, list[Any], Any, dict[str, Any]]]:
    """Line, tokens, targets (labels, `Spans` or `Levels`; None) and the object of each sequence."""
    rest = ((number, line) for number, line in lines if line.strip())
    for number, line in rest:
        try:
            if line.lstrip().startswith("["):
                found = _loaded("\n".join([line, *(more for _, more in rest)]), "the file")
                entries = list(enumerate(found))
            else:
                entries = [(-1, _loaded(line, "the line"))]
        except ValueError as error:
            raise FormatError(path, number, str(error)) from None
        for i, entry in entries:
            try:
                yield number, _checked(entry)["tokens"], _targets(entry, key), entry
            except ValueError as error:
                raise FormatError(path, number, f"element {i}: {error}" if i >= 0 else str(error)) from None


def _loaded(text: str, what: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{what} is not JSON: {error}") from None


def _checked(entry: Any) -> dict[str, Any]:
    """An object with tokens."""
    if not isinstance(entry, dict) or not isinstance(entry.get("tokens"), list):
        raise ValueError('the line must be an object with a list of "tokens"')
    for i, token in enumerate(entry["tokens"]):
        cells = token if isinstance(token, list) else [token]
        if not isinstance(token, dict) and not (cells and all(isinstance(cell, str) for cell in cells)):
            raise ValueError(f"token {i} must be a string, a list of strings or an object, got {token!r:.60}")
        try:
            json.dumps(token, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ValueError(f"token {i} holds half a surrogate pair") from None
    return entry


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not a number of JSON")


def _targets(entry: dict[str, Any], wanted: str | None) -> Any:
    given = [key for key in (_LABELS if wanted is None else (wanted,)) if entry.get(key) is not None]
    if not given:
        return None
    if len(given) > 1:
        raise ValueError(f'the line has both "{given[0]}" and "{given[1]}"; give one, or name it with --labels')
    value, size = entry[given[0]], len(entry["tokens"])
    if not isinstance(value, list):
        raise ValueError(f'"{given[0]}" must be a list')
    if given[0] == "spans":
        return _spans(value, size)
    if given[0] == "levels":
        if not all(isinstance(level, list) for level in value):
            raise ValueError('"levels" must be a list of lists of spans')
        return Levels(_spans(level, size) for level in value)
    if len(value) != size:
        raise ValueError(f"there are {len(value)} labels for {size} tokens")
    return [_label(label, i) for i, label in enumerate(value)]


def _label(label: Any, i: int) -> Any:
    """A label, None for unknown, a set for one of several."""
    if isinstance(label, list) and label and all(isinstance(one, (str, int)) for one in label):
        return frozenset(label)
    if label is None or (isinstance(label, (str, int)) and not isinstance(label, bool)):
        return label
    raise ValueError(f"label {i} must be a string, a list of strings or null, got {label!r:.60}")


def _spans(value: list[Any], size: int) -> Spans:
    spans = Spans()
    for span in value:
        if isinstance(span, dict):
            span = [span.get("start"), span.get("stop", span.get("end")), span.get("label")]
        if not isinstance(span, list) or len(span) != 3 or not all(type(i) is int for i in span[:2]):
            raise ValueError(f"a span must be [start, stop, label], got {span!r:.60}")
        start, stop, label = span
        if not 0 <= start < stop <= size:
            raise ValueError(f"span {span!r:.60} does not lie within the {size} tokens")
        spans.append((start, stop, _label(label, start)))
    spans.sort(key=lambda span: span[:2])
    for one, other in zip(spans, spans[1:], strict=False):
        if one[1] > other[0]:
            raise ValueError(f"spans {list(one)!r:.60} and {list(other)!r:.60} overlap")
    return spans


# ---- writing ---------------------------------------------------------------------------------------------------------


def write(out: BinaryIO, record: Record, reading: Reading) -> None:
    """A sequence: an object with its tokens, what else it had, and its spans or labels."""
    if record.items is not None:
        tokens: list[Any] = list(map(dict, record.items))
    else:
        tokens = [row[0] if len(row) == 1 else row for row in record.cells or ()]
    result = {"tokens": tokens} | _without_labels(record.entry) | {"tokens": tokens}
    if record.spans:
        result |= _by_level([[[u, v, _listed(y)] for u, v, y in level] for level in record.spans])
    elif record.labels:
        result["labels"] = list(map(_listed, record.labels[0]))
    _put(out, result)


def annotate(out: BinaryIO, block: Block, answers: Answers, asked: Asked) -> None:
    """The objects with a model's answers in place of what they say of the labels."""
    if asked.compressed:
        for entry, trajectory in zip(block.objects, answers.trajectories(), strict=True):
            _put(out, entry | {"trajectory": trajectory})
        return
    several = answers.kbest(asked.kbest) if asked.kbest else None
    best = answers.best if several is None else [found[0][0] for found in several]
    probabilities: dict[str, list[Any]] = {}  # by level, sequence by sequence
    if asked.marginals:
        probabilities["probabilities"] = [cut(column.tolist(), answers.data.offsets) for column in answers.sure]
    if asked.all_marginals:
        names = [list(map(str, level.labels)) for level in answers.levels]
        probabilities["marginals"] = [
            cut([dict(zip(labels, row, strict=True)) for row in table.tolist()], answers.data.offsets)
            for labels, table in zip(names, answers.marginals, strict=True)
        ]
    wanted = _key(block.reading)
    for b, (entry, answer) in enumerate(zip(block.objects, best, strict=True)):
        told = _told(answers, answer)
        if "labels" in told:  # where labels were
            keys = [key for key in (_LABELS[:3] if wanted is None else (wanted,)) if key in entry]
            told = {keys[0] if keys else wanted or "labels": told["labels"]}
        result = (_without_labels(entry) if wanted is None else entry) | told
        if several is not None:
            result["alternatives"] = [_told(answers, other) | {"probability": p} for other, p in several[b]]
        for name, levels in probabilities.items():
            result[name] = [level[b] for level in levels] if len(levels) > 1 else levels[0][b]
        _put(out, result)


def _told(answers: Answers, answer: list[Any]) -> dict[str, Any]:
    """An answer as JSON has it: labels, spans, or levels of spans."""
    if not answers.segmental and answers.scheme is None:
        return {"labels": list(answer[0])}
    levels = answers.spans(answer, answers.scheme or "iob2")
    return _by_level([[list(span) for span in spans_of(level, answers.scheme)] for level in levels])


def _by_level(spans: list[Any]) -> dict[str, Any]:
    return {"levels": spans} if len(spans) > 1 else {"spans": spans[0]}


def _listed(label: Any) -> Any:
    """A label; one of several as a list."""
    return sorted(label) if isinstance(label, frozenset) else label


def _without_labels(entry: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if key not in _LABELS}


def _put(out: BinaryIO, entry: dict[str, Any]) -> None:
    out.write((json.dumps(entry, ensure_ascii=False) + "\n").encode())
