"""What looks wrong about data and models though nothing fails: said aloud, in a sentence with a remedy each."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from scansion.cli.common import note
from scansion.data.targets import is_segment
from scansion.formats.base import shown
from scansion.formats.blocks import Block, counted, strings

__all__ = ["in_block", "in_model", "in_targets", "unknown_labels", "warn"]

_NUMBER = re.compile(r"[-+]?\d+([.,]\d+)?")


def warn(found: Iterable[str]) -> None:
    """Say each on standard error."""
    for sentence in found:
        note(f"warning: {sentence}")


def in_block(block: Block, template: Any = None) -> Iterator[str]:
    """About the first sequences of a file; template: what they are read with for training."""
    if block.rows is None or not block.rows.n_tokens:
        return
    if block.hint:
        yield f"{shown(block.path)}:{block.hint}"
    if template is None or not template.columns:
        return
    column = block.feature_columns(1)[0]
    cells = set(strings(block.rows.column(column)))
    if len(cells) > 2 and all(map(_NUMBER.fullmatch, cells)):
        name = repr(block.names[column]) if block.names else column
        yield f"{shown(block.path)}: column {name} holds numbers alone and is taken for words; see --columns, --group"


def in_targets(y: Sequence[Any], tokens: int, path: str) -> Iterator[str]:
    """About what is to be learnt: one target a sequence, in any form that `fit` takes."""
    if len(y) == 1:
        remedy = "blank lines separate sequences, or a column that --group names"
        yield f"{shown(path)} is one sequence of {counted(tokens, 'token')}: {remedy}"
    labels: Counter[Any] = Counter()
    for target in y:
        labels.update(_labels(target))
    named = [label for label in labels if label is not None]
    if len(named) == 1:
        yield f"all tokens have the label {named[0]!r}: is it the right column (--labels)?"
    if labels[""]:
        yield f"{counted(labels[''], 'label')} are empty"


def _labels(target: Any) -> Iterator[Any]:
    """The labels of a target: one a token, of segments, or of segments by level."""
    for entry in target:
        if isinstance(entry, tuple) or is_segment(entry):
            yield entry[2]
        elif isinstance(entry, list):
            yield from _labels(entry)
        else:
            yield entry


def in_model(model: Any) -> Iterator[str]:
    """About what was learnt."""
    if model.size_ == 0:
        yield "no weight was learnt: the penalties (--c1, --c2) or --min-freq leave nothing"
    if model.max_iterations is not None and model.n_iter_ >= model.max_iterations > 0 and "limit" in model.message_:
        yield f"training ended at --max-iterations {model.max_iterations}, before it had converged"


def unknown_labels(rows: Iterable[Sequence[Any]], known: Iterable[Any], path: str) -> Iterator[str]:
    """About labels of a file that a model does not know."""
    there = {str(label) for label in known}
    counts = Counter(str(y) for row in rows for y in row if str(y) not in there)
    if counts:
        some = ", ".join(f"{label!r} ({n})" for label, n in counts.most_common(5))
        more = f" and {len(counts) - 5} more" if len(counts) > 5 else ""
        yield f"{shown(path)}: the model does not know the labels {some}{more}: it can not find them"
