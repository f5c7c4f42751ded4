"""Units of features: what they are divided by where an optimiser, and a penalty, should not see them.

A column of numbers may be given in metres or in millimetres, and far from 0. Columns that are standardised have a
penalty on the weight of the column less its mean, divided by its standard deviation, with an intercept for each label;
the model's weights are those of the column as it is, so that nothing needs to be known of this to use them. Of other
features the penalty stays, and the optimiser alone works with values of mean square 1. An indicator is its own unit.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from scansion._checks import Bools, Floats
from scansion.data import Dataset
from scansion.models.inputs import INTERCEPT, Inputs
from scansion.models.weights import Block, Model, find
from scansion.training.coordinates import Coordinates, Shift

__all__ = ["Units", "numeric", "units"]


class Units(NamedTuple):
    """Coordinates for the optimiser, and (W,) what a weight is multiplied by before it is penalised (None: 1)."""

    coordinates: Coordinates | None
    factor: Floats | None


def numeric(data: Dataset) -> Bools:
    """(A,) attributes of tokens that have other values than 0 and 1."""
    found = np.zeros(len(data.vocabulary), np.bool_)
    if data.values is not None:
        found[data.ids[(data.values != 0.0) & (data.values != 1.0)]] = True
    return found


def units(model: Model, inputs: Inputs) -> Units:
    """The units of a model's features in encoded sequences."""
    data, n = inputs.data, len(model.vocabulary)
    values = np.ones(len(data.ids)) if data.values is None else data.values
    size = _root_mean_square(np.bincount(data.ids, values**2, n), np.bincount(data.ids, minlength=n))
    mean, spread = np.zeros(n), size
    columns = inputs.columns
    if columns is not None:
        chosen = columns[: np.searchsorted(columns, n)]
        mean[chosen] = np.bincount(data.ids, values, n)[chosen] / data.n_tokens
        square = np.bincount(data.ids, values**2, n)[chosen] / data.n_tokens
        deviation = np.sqrt(np.maximum(square - mean[chosen] ** 2, 0.0))
        steady = deviation <= 1e-7 * np.sqrt(square)  # a constant: there is nothing to standardise
        mean[chosen[steady]] = 0.0
        spread[chosen] = np.where(steady, size[chosen], deviation)
    scale, factor = np.ones(model.n_weights), np.ones(model.n_weights)
    shifts = []
    for block, where in model.parts():
        if not len(block) or block.always:
            continue
        if block.tokens:
            scale[where] = 1.0 / spread[block.row]
            if columns is not None:
                factor[where] = np.where(np.isin(block.row, columns), spread[block.row], 1.0)
                shifts.append(_shift(model, block, where, mean))
        elif block.part == "length":
            scale[where] = 1.0 / _lengths(model, block)[block.row]
        elif inputs.spans[block.level] is not None:
            spans = inputs.spans[block.level]
            assert spans is not None
            rows = model.n_rows(block)
            total = np.bincount(spans.ids, spans.values**2, rows), np.bincount(spans.ids, minlength=rows)
            scale[where] = 1.0 / _root_mean_square(*total)[block.row]
    shift = Shift(*map(np.concatenate, zip(*shifts, strict=True))) if shifts else None
    coordinates = Coordinates(scale, shift)
    return Units(None if coordinates.plain else coordinates, factor if columns is not None else None)


def _root_mean_square(squares: Any, counts: Any) -> Floats:
    """Of what occurs; 1 where nothing does, or it is 0."""
    result = np.sqrt(squares / np.maximum(counts, 1))
    return np.where(result > 0.0, result, 1.0).astype(np.float64)


def _lengths(model: Model, block: Block) -> Floats:
    """(n,) root mean squares of functions of the length over the segments seen, where they are not 0."""
    level = model.levels[block.level]
    counts = np.ones(level.basis.shape[1])
    if level.length_counts is not None and level.length_counts.shape[1] == len(counts) and level.length_counts.any():
        counts = level.length_counts.sum(axis=0).astype(np.float64)
    return _root_mean_square(level.basis**2 @ counts, (level.basis != 0.0) @ counts)


def _shift(model: Model, block: Block, where: slice, mean: Floats) -> Shift:
    """From the intercepts of a block, the means of its columns with the same labels."""
    place = model.vocabulary.index(INTERCEPT)
    own = np.flatnonzero(block.row == place)
    moved = np.flatnonzero(mean[block.row] != 0.0)
    at, there = find(block.columns[own].astype(np.int64), block.columns[moved].astype(np.int64))
    return Shift(where.start + own[at[there]], where.start + moved[there], mean[block.row[moved[there]]])
