"""Units of features: what they are divided by where an optimiser, and a penalty, should not see them.

A column of numbers may be given in metres or in millimetres, and far from 0. Columns that are standardised have a
penalty on the weight of the column less its mean, divided by its standard deviation, with an intercept for each label;
the model's weights are those of the column as it is, so that nothing needs to be known of this to use them. Of other
features the penalty stays, and the optimiser alone works with values of mean square 1. An indicator is its own unit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from scansion._checks import Bools, Floats, Ints
from scansion.data import Dataset
from scansion.models.inputs import INTERCEPT, Inputs
from scansion.models.weights import Block, Model, find
from scansion.training.coordinates import Coordinates, Shift

__all__ = ["Moments", "Units", "moments", "numeric", "units"]


class Units(NamedTuple):
    """Coordinates for the optimiser, and (W,) what a weight is multiplied by before it is penalised (None: 1)."""

    coordinates: Coordinates | None
    factor: Floats | None


def numeric(data: Dataset) -> Bools:
    """(A,) attributes of tokens that have other values than 0 and 1."""
    found = np.zeros(len(data.vocabulary), np.bool_)
    for ids, values in _pieces(data):
        if values is not None:
            found[ids[(values != 0.0) & (values != 1.0)]] = True
    return found


_AT_ONCE = 1 << 20  # entries of a data set, which may be larger than memory


def _pieces(data: Any) -> Iterator[tuple[Any, Floats | None]]:
    """Numbers and values (None: all are 1) of the entries, some at a time."""
    for first in range(0, len(data.ids), _AT_ONCE):
        some = slice(first, first + _AT_ONCE)
        yield data.ids[some], None if data.values is None else data.values[some]


@dataclass
class Moments:
    """What units follow from; of several shards of the data, the sums.

    Attributes
    ----------
    tokens : int
    counts, sums, squares : (A,)
        How many entries an attribute has, the sum of their values and of their squares.
    spans : dict level -> (counts, squares)
        Likewise, of attributes of spans.
    columns : int64 (n,), or None
        Attributes that are standardised, ascending.
    """

    tokens: int
    counts: Floats
    sums: Floats
    squares: Floats
    spans: dict[int, tuple[Floats, Floats]]
    columns: Ints | None

    def __add__(self, other: Moments) -> Moments:
        spans = {k: (n + other.spans[k][0], squares + other.spans[k][1]) for k, (n, squares) in self.spans.items()}
        both = self.counts + other.counts, self.sums + other.sums, self.squares + other.squares
        return Moments(self.tokens + other.tokens, *both, spans, self.columns)


def moments(model: Model, inputs: Inputs) -> Moments:
    """The moments of a model's attributes in encoded sequences."""
    spans = {}
    for k, (level, found) in enumerate(zip(model.levels, inputs.spans, strict=True)):
        if found is not None:
            count, _, square = _sums(found, len(level.span_vocabulary))
            spans[k] = count, square
    return Moments(inputs.data.n_tokens, *_sums(inputs.data, len(model.vocabulary)), spans, inputs.columns)


def _sums(entries: Any, n: int) -> tuple[Floats, Floats, Floats]:
    """(n,) how often each number comes, the sums of its values and of their squares."""
    total = np.zeros((3, n))
    for ids, values in _pieces(entries):
        counts = np.bincount(ids, None, n)
        total[0] += counts
        total[1] += counts if values is None else np.bincount(ids, values, n)
        total[2] += counts if values is None else np.bincount(ids, values**2, n)
    return total[0], total[1], total[2]


def units(model: Model, seen: Moments) -> Units:
    """The units of a model's features in data of these moments."""
    n, columns = len(model.vocabulary), seen.columns
    size = _root_mean_square(seen.squares, seen.counts)
    mean, spread = np.zeros(n), size
    if columns is not None:
        chosen = columns[: np.searchsorted(columns, n)]
        mean[chosen] = seen.sums[chosen] / seen.tokens
        square = seen.squares[chosen] / seen.tokens
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
        elif block.level in seen.spans:
            count, squares = seen.spans[block.level]
            scale[where] = 1.0 / _root_mean_square(squares, count)[block.row]
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
