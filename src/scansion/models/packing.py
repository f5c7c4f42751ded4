"""Flat models as named arrays and JSON metadata, the contents of their files (docs/model-file.md).

Features whose weight is 0, and attributes that are left with none, are not kept.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from scansion import _checks as checks
from scansion._checks import Floats
from scansion.data import Vocabulary
from scansion.model_file import ModelFileError
from scansion.models.flat import PARTS, FlatModel, Table

__all__ = ["check_labels", "json_value", "pack", "storable", "unpack"]

_LARGEST = 1e100  # a weight whose scores the lattices take


def check_labels(labels: Any) -> None:
    """Raise unless labels can stand in a file and come back equal."""
    for y in labels:
        if not isinstance(y, (str, int)) or isinstance(y, bool):
            raise TypeError(
                f"only str and int labels can be saved, got {y!r} of type {type(y).__name__}: convert the labels"
            )


def storable(value: Any) -> bool:
    """Whether a parameter can stand in a file."""
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return all(storable(v) for v in value)
    if isinstance(value, Mapping):
        return all(isinstance(k, str) and storable(v) for k, v in value.items())
    return value is None or isinstance(value, (str, bool, int)) or (isinstance(value, float) and math.isfinite(value))


def json_value(value: Any) -> Any:
    """The same in JSON's types: lists in place of tuples and arrays."""
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [json_value(v) for v in value]
    return {k: json_value(v) for k, v in value.items()} if isinstance(value, Mapping) else value


def pack(model: FlatModel) -> tuple[dict[str, Any], dict[str, Any]]:
    """A model as arrays and metadata."""
    check_labels(model.labels)
    longer = model.patterns[model.n_labels :]
    arrays: dict[str, Any] = {
        "patterns.symbols": np.array([y for p in longer for y in p], np.int32),
        "patterns.offsets": np.concatenate([[0], np.cumsum([len(p) for p in longer])]).astype(np.int64),
        "basis": model.basis,
    }
    weights = {name: model.weights[at : at + size] for name, at, size in model.blocks()}
    parts = [part for part in PARTS if part in model.tables]
    for title, vocabulary, tables in (
        ("attributes", model.vocabulary, {part: model.tables[part] for part in parts}),
        ("cell_attributes", model.cell_vocabulary, {"cells": model.cell_table}),
    ):
        kept = {}
        used = np.zeros(len(vocabulary), np.bool_)
        for name, (rows, pattern) in tables.items():
            keep = weights[name] != 0
            attribute = np.repeat(np.arange(len(rows) - 1), np.diff(rows))[keep]
            used[attribute] = True
            kept[name] = attribute, pattern[keep], weights[name][keep]
        number = np.cumsum(used) - 1
        for name, (attribute, pattern, values) in kept.items():
            counts = np.bincount(number[attribute], minlength=int(used.sum()))
            arrays[f"{name}.rows"] = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
            arrays[f"{name}.pattern"] = pattern.astype(np.int32)
            weights[name] = values
        arrays[f"{title}.text"], arrays[f"{title}.offsets"] = vocabulary.subset(np.flatnonzero(used)).to_arrays()
    if model.limits is not None:
        arrays["limits"] = model.limits
    if model.length_counts is not None:
        arrays["length_counts"] = model.length_counts
    arrays["weights"] = np.concatenate(list(weights.values()))
    metadata = {
        "labels": model.labels,
        "segments": model.segments,
        "max_length": model.max_length,
        "n_forbidden": model.n_forbidden,
        "n_silent": model.n_silent,
        "basis_names": model.basis_names,
        "parts": parts,
    }
    return arrays, metadata


def unpack(metadata: Mapping[str, Any], arrays: Mapping[str, Any], segments: bool) -> FlatModel:
    """The model that `pack` took apart; ModelFileError if the pieces do not fit: nothing in a file is trusted."""
    try:
        return _unpack(metadata, arrays, segments)
    except (KeyError, ValueError, TypeError, IndexError, OverflowError) as error:
        what = f"it has no {error}" if isinstance(error, KeyError) else error
        raise ModelFileError(f"the model file does not fit together: {what}. Save the model again.") from error


def _unpack(metadata: Mapping[str, Any], arrays: Mapping[str, Any], segments: bool) -> FlatModel:
    labels, parts, names = (_list(metadata, name) for name in ("labels", "parts", "basis_names"))
    check_labels(labels)
    if not labels or len(set(labels)) < len(labels):
        raise ValueError("its labels are not distinct, or there is none")
    if metadata["segments"] is not segments:
        raise ValueError("segments do not go with its kind")
    if any(part not in PARTS or (part != "start" and not segments) for part in parts):
        raise ValueError(f"there are no parts {parts}")
    n = len(labels)
    symbols = np.asarray(arrays["patterns.symbols"])
    checks.check_shape("patterns.symbols", symbols, ("n",))
    cuts = checks.offsets(arrays["patterns.offsets"], len(symbols), "patterns.symbols").tolist()
    flat = symbols.tolist()
    longer = tuple(tuple(flat[a:b]) for a, b in zip(cuts[:-1], cuts[1:], strict=True))
    vocabulary, cell_vocabulary = (_vocabulary(arrays, name) for name in ("attributes", "cell_attributes"))
    total = n + len(longer)
    tables = {part: _table(arrays, part, len(vocabulary), total) for part in parts}
    cell_table = _table(arrays, "cells", len(cell_vocabulary), n)
    max_length = checks.count("max_length", metadata["max_length"], 1)
    basis = checks.scores("basis", arrays["basis"], ("n", max_length))
    if len(names) != len(basis) or not np.isfinite(basis).all() or not all(isinstance(name, str) for name in names):
        raise ValueError("its basis of length features is not finite, or not named")
    if not segments and (max_length > 1 or len(basis) or len(cell_vocabulary)):
        raise ValueError("it has features of segments, but its kind has no segments")
    patterns = tuple((y,) for y in range(n)) + longer
    model = FlatModel(
        labels, vocabulary, patterns, segments, max_length, tables, basis, names, cell_vocabulary, cell_table
    )
    model.n_forbidden = checks.count("n_forbidden", metadata["n_forbidden"], 0)
    if model.n_forbidden > (len(longer) if segments else 0):
        raise ValueError(f"{model.n_forbidden} of {len(longer)} patterns are forbidden")
    model.n_silent = checks.count("n_silent", metadata.get("n_silent", 0), 0)
    if model.n_silent > (0 if segments else len(longer)):
        raise ValueError(f"{model.n_silent} of {len(longer)} patterns have no always-on feature")
    if "limits" in arrays:
        limits = checks.integers("limits", arrays["limits"], n if segments else 0, 1, max_length)
        model.limits = limits.astype(np.int32)
    if "length_counts" in arrays:
        size = n * max_length if segments else 0
        counts = checks.integers("length_counts", np.ravel(arrays["length_counts"]), size, 0, 2**53)
        model.length_counts = counts.astype(np.int64).reshape(n, max_length)
    model.weights = _weights(arrays, "weights", model.n_weights)
    model.automaton  # noqa: B018  (built now: patterns that are wrong are found here)
    return model


def _list(metadata: Mapping[str, Any], name: str) -> list[Any]:
    value = _mapping(metadata, f"what has {name}")[name]
    if not isinstance(value, list):
        raise TypeError(f"{name} is of type {type(value).__name__}, not a list")
    return value


def _mapping(value: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} is of type {type(value).__name__}, not an object")
    return value


def _vocabulary(arrays: Mapping[str, Any], name: str) -> Vocabulary:
    text, offsets = arrays[f"{name}.text"], arrays[f"{name}.offsets"]
    for part, array, dtype in (("text", text, np.uint8), ("offsets", offsets, np.int64)):
        checks.check_shape(f"{name}.{part}", array, ("n",))
        if array.dtype != dtype:
            raise TypeError(f"{name}.{part} has dtype {array.dtype}, not {np.dtype(dtype)}")
    return Vocabulary.from_arrays(text, offsets)


def _weights(arrays: Mapping[str, Any], name: str, n: int) -> Floats:
    weights = checks.scores(name, arrays[name], (n,))
    large = ~(np.abs(weights) <= _LARGEST)
    if large.any():
        at = checks.first(large)
        raise ValueError(
            f"{name}[{checks.show(at)}] = {weights[at]} is not a weight: it must lie within +-{_LARGEST:g}"
        )
    return weights


def _table(arrays: Mapping[str, Any], name: str, attributes: int, patterns: int) -> Table:
    pattern = np.asarray(arrays[f"{name}.pattern"])
    checks.check_shape(f"{name}.pattern", pattern, ("n",))
    rows = checks.offsets(arrays[f"{name}.rows"], len(pattern), f"{name}.pattern")
    if len(rows) != attributes + 1:
        raise ValueError(f"{name}.rows has {len(rows) - 1} rows for {attributes} attributes")
    checks.integers(f"{name}.pattern", pattern, len(pattern), 0, patterns - 1)
    inner = np.ones(len(pattern), np.bool_)
    inner[rows[:-1][np.diff(rows) > 0]] = False
    if (np.diff(pattern.astype(np.int64), prepend=-1)[inner] <= 0).any():
        raise ValueError(f"{name}.pattern does not ascend within each row")
    return rows, np.ascontiguousarray(pattern, dtype=np.int32)
