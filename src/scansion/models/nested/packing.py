"""Hierarchical models as named arrays and JSON metadata, the contents of their files (docs/model-file.md).

Features whose weight is 0, and attributes that are left with none, are not kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from scansion import _checks as checks
from scansion._checks import Bools, Floats, Ints
from scansion.data import level_names
from scansion.model_file import ModelFileError
from scansion.models.nested.model import CLIQUES, Block, Level, NestedModel
from scansion.models.nested.parameters import ATTRIBUTE_PARTS
from scansion.models.packing import _list, _mapping, _vocabulary, _weights, check_labels

__all__ = ["pack", "unpack"]

_PARTS = (*ATTRIBUTE_PARTS, "length", "span")
_MOST_ENTRIES = 2**62


def pack(model: NestedModel) -> tuple[dict[str, Any], dict[str, Any]]:
    """A model as arrays and metadata."""
    for level in model.levels:
        check_labels(level.labels)
    kept = [(block, where, model.weights[where] != 0) for block, where in model.parts()]
    arrays: dict[str, Any] = {}
    tokens = _used((b, keep) for b, _, keep in kept if b.tokens)
    arrays["attributes.text"], arrays["attributes.offsets"] = model.vocabulary.subset(tokens).to_arrays()
    spans: dict[int, Ints] = {}
    for k, level in enumerate(model.levels):
        spans[k] = _used((b, keep) for b, _, keep in kept if b.part == "span" and b.level == k)
        text, offsets = level.cell_vocabulary.subset(spans[k]).to_arrays()
        arrays[f"{k}.spans.text"], arrays[f"{k}.spans.offsets"] = text, offsets
        arrays[f"{k}.basis"] = level.basis
        if level.length_counts is not None:
            arrays[f"{k}.length_counts"] = level.length_counts
        arrays[f"{k}.children"] = model.children[k]
        for part in CLIQUES:
            arrays[f"{k}.{part}.possible"] = model.possible[k][part]
    blocks = []
    for i, (block, where, keep) in enumerate(kept):
        index = block.index[keep]
        if block.tokens or block.part == "span":
            numbers = tokens if block.tokens else spans[block.level]
            index = np.searchsorted(numbers, index // block.width) * block.width + index % block.width
        arrays[f"block{i}.index"] = index.astype(np.int64)
        arrays[f"block{i}.weights"] = model.weights[where][keep]
        blocks.append({"level": block.level, "part": block.part, "always": block.always})
    metadata = {
        "levels": [
            {
                "name": level.name,
                "labels": level.labels,
                "max_length": level.max_length,
                "basis_names": level.basis_names,
            }
            for level in model.levels
        ],
        "blocks": blocks,
    }
    return arrays, metadata


def _used(blocks: Any) -> Ints:
    """Rows of blocks that have features to keep, ascending."""
    rows = [block.index[keep] // block.width for block, keep in blocks]
    return np.unique(np.concatenate([*rows, np.zeros(0, np.int64)])).astype(np.int64)


def unpack(metadata: Mapping[str, Any], arrays: Mapping[str, Any]) -> NestedModel:
    """The model that `pack` took apart; ModelFileError if the pieces do not fit: nothing in a file is trusted."""
    try:
        return _unpack(metadata, arrays)
    except (KeyError, ValueError, TypeError, IndexError, OverflowError, AttributeError) as error:
        what = f"it has no {error}" if isinstance(error, KeyError) else error
        raise ModelFileError(f"the model file does not fit together: {what}. Save the model again.") from error


def _unpack(metadata: Mapping[str, Any], arrays: Mapping[str, Any]) -> NestedModel:
    described = _list(metadata, "levels")
    level_names([_mapping(level, f"level {k}")["name"] for k, level in enumerate(described)])
    vocabulary = _vocabulary(arrays, "attributes")
    levels = [_level(level, arrays, k) for k, level in enumerate(described)]
    children: list[Bools] = []
    possible: list[dict[str, Bools]] = []
    model = NestedModel(levels, vocabulary, children, possible, [])
    for k in range(len(levels)):
        children.append(_mask(arrays, f"{k}.children", model.shape(k, "initialisation")))
        possible.append({part: _mask(arrays, f"{k}.{part}.possible", model.shape(k, part)) for part in CLIQUES})
        inside = children[k][:, :, None] & children[k][:, None, :]
        if (possible[k]["transition"] & ~inside).any():
            raise ValueError(f"transitions of level {levels[k].name!r} are possible that its topology excludes")
    weights: list[Floats] = []
    for i, described_block in enumerate(_list(metadata, "blocks")):
        block, values = _block(described_block, arrays, i, model)
        if block.key in {other.key for other in model.blocks}:
            raise ValueError(f"block {i} is there twice")
        model.blocks.append(block)
        weights.append(values)
    model.weights = np.concatenate([*weights, np.zeros(0)])
    return model


def _level(described: Any, arrays: Mapping[str, Any], k: int) -> Level:
    labels, names = _list(described, "labels"), _list(described, "basis_names")
    check_labels(labels)
    if not labels or len(set(labels)) < len(labels):
        raise ValueError(f"the labels of level {k} are not distinct, or there is none")
    longest = described["max_length"]
    if longest is not None:
        longest = checks.count("max_length", longest, 1)
    basis = checks.scores("basis", arrays[f"{k}.basis"], ("n", 1 if longest is None else longest))
    if len(names) != len(basis) or not np.isfinite(basis).all() or not all(isinstance(name, str) for name in names):
        raise ValueError(f"the length features of level {k} are not finite, or not named")
    spans = _vocabulary(arrays, f"{k}.spans")
    if longest is None and len(spans):
        raise ValueError(f"level {k} has features of spans, but no longest segment")
    counts = arrays.get(f"{k}.length_counts")
    if counts is not None:
        counts = np.asarray(counts)
        checks.check_shape("length_counts", counts, (len(labels), "M" if longest is None else longest))
        counts = checks.integers("length_counts", counts.ravel(), counts.size, 0, 2**53).reshape(counts.shape)
    return Level(described["name"], labels, longest, basis, names, spans, counts)


def _mask(arrays: Mapping[str, Any], name: str, shape: tuple[int, ...]) -> Bools:
    mask = np.asarray(arrays[name])
    checks.check_shape(name, mask, shape)
    if mask.dtype != np.bool_:
        raise ValueError(f"{name} must be boolean, got {mask.dtype}")
    return mask


def _block(described: Any, arrays: Mapping[str, Any], i: int, model: NestedModel) -> tuple[Block, Floats]:
    part, always, level = (_mapping(described, f"block {i}")[name] for name in ("part", "always", "level"))
    if part not in _PARTS or not isinstance(always, bool) or (always and part not in CLIQUES):
        raise ValueError(f"block {i} is of a part {part!r} that does not exist")
    if checks.count("level", level, 0) >= len(model.levels):
        raise ValueError(f"block {i} is of level {level}, but there are {len(model.levels)}")
    width = int(np.prod(model.shape(level, part), dtype=object))
    index = np.asarray(arrays[f"block{i}.index"])
    empty = Block(level, part, always, width, np.zeros(0, np.int64))
    rows = model.rows(empty)
    if rows * width > _MOST_ENTRIES:
        raise ValueError(f"block {i} is too large")
    index = checks.integers(f"block{i}.index", index, index.size, 0, rows * width - 1)
    if (np.diff(index) <= 0).any():
        raise ValueError(f"block{i}.index does not ascend")
    return Block(level, part, always, width, index), _weights(arrays, f"block{i}.weights", len(index))
