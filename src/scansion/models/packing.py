"""Models as named arrays and JSON metadata, the contents of their files (docs/model-file.md).

Features of attributes whose weight is 0, and attributes that are left with none, are not kept. What is read is checked
piece by piece: nothing in a file is trusted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from scansion import _checks as checks
from scansion._checks import Bools, Ints
from scansion.data import Vocabulary
from scansion.model_file import ModelFile, ModelFileError
from scansion.models.weights import Block, Level, row_offsets
from scansion.rules.expressions import Rule
from scansion.rules.learn import Proposal

__all__ = ["json_value", "pack", "storable", "unpack"]

_LAYOUT = 2


def storable(value: Any) -> bool:
    """Whether a parameter can stand in a file."""
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.tolist()
    if isinstance(value, (Rule, Proposal)):
        return True
    if isinstance(value, (list, tuple)):
        return all(storable(v) for v in value)
    if isinstance(value, Mapping):
        return all(isinstance(k, str) and storable(v) for k, v in value.items())
    return value is None or isinstance(value, (str, bool, int)) or (isinstance(value, float) and math.isfinite(value))


def json_value(value: Any) -> Any:
    """The same in JSON's types: lists in place of tuples and arrays, text in place of rules."""
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.tolist()
    if isinstance(value, (Rule, Proposal)):
        return str(value)
    if isinstance(value, (list, tuple)):
        return [json_value(v) for v in value]
    return {k: json_value(v) for k, v in value.items()} if isinstance(value, Mapping) else value


# ---- writing -------------------------------------------------------------------------------------------------------


def pack(model: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """A model as arrays and metadata."""
    for level in model.levels:
        _check_labels(level.labels)
    kept = []
    for block, where in model.parts():
        weights = model.weights[where]
        keep = np.arange(len(block)) if block.part in model.whole_parts else np.flatnonzero(weights)
        kept.append((block, block.row[keep], block.columns[keep], weights[keep]))
    arrays: dict[str, Any] = {}
    tokens = _used(row for block, row, _, _ in kept if block.tokens)
    arrays["attributes.text"], arrays["attributes.offsets"] = model.vocabulary.subset(tokens).to_arrays()
    spans = []
    for k, level in enumerate(model.levels):
        spans.append(_used(row for block, row, _, _ in kept if block.part == "span" and block.level == k))
        text, offsets = level.span_vocabulary.subset(spans[k]).to_arrays()
        arrays[f"{k}.spans.text"], arrays[f"{k}.spans.offsets"] = text, offsets
        arrays[f"{k}.basis"] = level.basis
        for name in ("limits", "shortest", "length_counts"):
            if getattr(level, name) is not None:
                arrays[f"{k}.{name}"] = getattr(level, name)
    for i, (block, row, columns, _) in enumerate(kept):
        rows = tokens if block.tokens else spans[block.level] if block.part == "span" else None
        n = model.n_rows(block) if rows is None else len(rows)
        arrays[f"block{i}.rows"] = row_offsets(row if rows is None else np.searchsorted(rows, row), n)
        arrays[f"block{i}.columns"] = columns
    arrays["weights"] = np.concatenate([np.zeros(0), *(weights for _, _, _, weights in kept)])
    fields = ("name", "labels", "max_length", "basis_names")
    metadata = {
        "layout": _LAYOUT,
        "levels": [{name: getattr(level, name) for name in fields} for level in model.levels],
        "blocks": [{"level": b.level, "part": b.part, "always": b.always} for b, _, _, _ in kept],
    }
    more_arrays, more = model.packed_structure()
    return {**arrays, **more_arrays}, {**metadata, **more}


def _check_labels(labels: Any) -> None:
    """Raise unless labels can stand in a file and come back equal."""
    for y in labels:
        if not isinstance(y, (str, int)) or isinstance(y, bool):
            raise TypeError(
                f"only str and int labels can be saved, got {y!r} of type {type(y).__name__}: convert the labels"
            )


def _used(rows: Any) -> Ints:
    """Rows that have features to keep, ascending."""
    return np.unique(np.concatenate([np.zeros(0, np.int64), *rows])).astype(np.int64)


# ---- reading -------------------------------------------------------------------------------------------------------


def unpack(stored: ModelFile, structured: Callable[[Contents, list[Level], Vocabulary], Any]) -> Any:
    """The model that `pack` took apart; ModelFileError if the pieces do not fit.

    structured: from the contents of the file, levels and vocabulary to the model without features.
    """
    try:
        contents = Contents(stored)
        vocabulary = contents.vocabulary("attributes")
        levels = [_level(contents, described, k) for k, described in enumerate(contents.list("levels"))]
        model = structured(contents, levels, vocabulary)
        for i, described in enumerate(contents.list("blocks")):
            block = _block(contents, described, i, model)
            if block.key in {other.key for other in model.blocks}:
                raise ValueError(f"block {i} is there twice")
            model.check_block(block)
            model.blocks.append(block)
        model.weights = checks.scores("weights", contents.array("weights"), (model.n_weights,))
        large = ~(np.abs(model.weights) <= checks.MOST_WEIGHT)
        if large.any():
            at = int(np.argmax(large))
            raise ValueError(f"weights[{at}] = {model.weights[at]} does not lie within +-{checks.MOST_WEIGHT:g}")
        return model
    except (KeyError, ValueError, TypeError, IndexError, OverflowError, AttributeError) as error:
        what = "a piece of it has another type than it should have"
        if isinstance(error, (KeyError, ValueError)):  # ours; the others are Python's
            what = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        raise ModelFileError(f"the model file does not fit together: {what}. Save the model again.") from error


class Contents:
    """Arrays and metadata of a file, of which each is checked when it is taken."""

    def __init__(self, stored: ModelFile) -> None:
        self.metadata, self.arrays = stored.metadata, stored.arrays
        if self.metadata.get("layout") != _LAYOUT:
            from scansion.models.older_files import renewed

            self.metadata, self.arrays = renewed(stored)

    def list(self, name: str, of: Any = None) -> list[Any]:
        """A list of the metadata, or of a part of them."""
        value = (self.metadata if of is None else of)[name]
        if not isinstance(value, list):
            raise ValueError(f"{name} is of type {type(value).__name__}, not a list")
        return value

    def array(self, name: str) -> Any:
        """An array."""
        return np.asarray(self.arrays[name])

    def integers(self, name: str, low: int, high: int) -> Ints:
        """A 1-D array of integers in low .. high."""
        array = self.array(name)
        return checks.integers(name, array, array.size, low, high)

    def mask(self, name: str, shape: tuple[int, ...]) -> Bools:
        """An array of booleans."""
        mask: Bools = self.array(name)
        checks.check_shape(name, mask, shape)
        if mask.dtype != np.bool_:
            raise ValueError(f"{name} must be boolean, got {mask.dtype}")
        return mask

    def vocabulary(self, name: str) -> Vocabulary:
        """A vocabulary."""
        text, offsets = self.array(f"{name}.text"), self.array(f"{name}.offsets")
        for part, array, dtype in (("text", text, np.uint8), ("offsets", offsets, np.int64)):
            checks.check_shape(f"{name}.{part}", array, ("n",))
            if array.dtype != dtype:
                raise ValueError(f"{name}.{part} has dtype {array.dtype}, not {np.dtype(dtype)}")
        return Vocabulary.from_arrays(text, offsets)


def _level(contents: Contents, described: Any, k: int) -> Level:
    labels, names = contents.list("labels", described), contents.list("basis_names", described)
    _check_labels(labels)
    if not labels or len(set(labels)) < len(labels):
        raise ValueError(f"the labels of level {k} are not distinct, or there is none")
    if not isinstance(described["name"], str):
        raise ValueError(f"the name of level {k} is not a string")
    longest = described["max_length"]
    if longest is not None:
        longest = checks.count("max_length", longest, 1)
    basis = checks.scores("basis", contents.array(f"{k}.basis"), ("n", 1 if longest is None else longest))
    if len(names) != len(basis) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"the length features of level {k} are not named")
    if not (np.abs(basis) <= 2**53).all():
        raise ValueError(f"a length feature of level {k} does not lie within +-2^53")
    spans = contents.vocabulary(f"{k}.spans")
    if longest is None and len(spans):
        raise ValueError(f"level {k} has features of spans, but no longest segment")
    level = Level(described["name"], labels, longest, basis, names, spans)
    for name in ("limits", "shortest"):
        if f"{k}.{name}" in contents.arrays:
            bounds = contents.integers(f"{k}.{name}", 1, 1 if longest is None else longest)
            checks.check_shape(name, bounds, (len(labels),))
            setattr(level, name, bounds.astype(np.int32))
    if f"{k}.length_counts" in contents.arrays:
        counts = contents.array(f"{k}.length_counts")
        checks.check_shape("length_counts", counts, (len(labels), "M" if longest is None else longest))
        flat = checks.integers("length_counts", counts.ravel(), counts.size, 0, 2**53)
        level.length_counts = flat.reshape(counts.shape)
    return level


def _block(contents: Contents, described: Any, i: int, model: Any) -> Block:
    level, part, always = described["level"], described["part"], described["always"]
    if checks.count("level", level, 0) >= len(model.levels) or not isinstance(always, bool):
        raise ValueError(f"block {i} is of level {level}, but there are {len(model.levels)}")
    empty = Block(level, part, always, np.zeros(1, np.int64), np.zeros(0, np.int32))
    if not isinstance(part, str) or (part, always) not in model.block_kinds():
        raise ValueError(f"block {i} is of a part {part!r} that does not exist")
    columns = contents.integers(f"block{i}.columns", 0, model.n_columns(empty) - 1)
    rows = checks.offsets(contents.array(f"block{i}.rows"), len(columns), f"block{i}.columns")
    if len(rows) != model.n_rows(empty) + 1:
        raise ValueError(f"block{i}.rows has {len(rows) - 1} rows, but there are {model.n_rows(empty)}")
    inner = np.ones(len(columns), np.bool_)
    inner[rows[:-1][np.diff(rows) > 0]] = False
    if (np.diff(columns, prepend=-1)[inner] <= 0).any():
        raise ValueError(f"block{i}.columns does not ascend within each row")
    return Block(level, part, always, rows, columns.astype(np.int32))
