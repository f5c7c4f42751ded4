"""Weights to start from: what counting gives, and the identity where columns are scores of the labels.

Counts make a generative model of the training data: with naive Bayes emissions ``log P(a | y) / P(a)``, transitions
``log P(y' | y)`` and durations, log probabilities of smoothed counts. As weights they are a start for the optimiser and
a baseline: a fit that ends worse than it is wrong. Attributes overlap, which naive Bayes does not know; so emissions
are multiplied by the number, out of a few, that makes the loss smallest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from scansion._checks import Floats, Ints
from scansion.data import Knowledge
from scansion.models.inputs import INTERCEPT, Inputs
from scansion.models.nested_model import CLIQUES
from scansion.models.occurrences import Occurrences, token_entries
from scansion.models.weights import Block, find

__all__ = ["alike", "counted", "identity", "scaled", "sharpness"]

_SMOOTHING = 0.5  # added to every count
_FACTORS = (1.0, 0.5, 0.25, 0.1, 0.03)
sharpness = 4.0 ** np.arange(-4, 5)  # of scores, in their standard deviations


def scaled(parts: tuple[Floats, Floats], factors: Any, loss: Callable[[Floats], float]) -> tuple[Floats, float]:
    """Weights ``fixed + factor * free`` of the factor whose loss is smallest, and that loss."""
    fixed, free = parts
    losses = [loss(fixed + factor * free) for factor in factors]
    best = int(np.nanargmin(losses))
    return fixed + factors[best] * free, losses[best]


def counted(model: Any, inputs: Inputs, known: Knowledge, loss: Callable[[Floats], float]) -> tuple[Floats, float]:
    """(W,) weights from counts of what is known, and their loss."""
    fixed, free = np.zeros(model.n_weights), np.zeros(model.n_weights)
    for block, where in model.parts():
        if not len(block) or block.part == "span":
            continue
        if block.part == "length":
            fixed[where] = _lengths(model, block)
        elif block.always:
            fixed[where] = _transitions(model, block, known)
        elif block.tokens and block.part not in CLIQUES:
            free[where] = _emissions(model, block, inputs, known)
    return scaled((fixed, free), _FACTORS, loss)


def _places(model: Any, block: Block, known: Knowledge) -> tuple[Ints, Ints]:
    """Tokens where a part of a known label is read, and the label."""
    if known.levels[block.level].ends is None:  # a chain
        numbers = known.levels[block.level].numbers
        at = np.flatnonzero(numbers >= 0)
        return at, numbers[at].astype(np.int64)
    return Occurrences(known, [level.size for level in model.levels]).of(block.level, block.part)


def _emissions(model: Any, block: Block, inputs: Inputs, known: Knowledge) -> Floats:
    """Of indicators, log P(a | y) / P(a); of columns, linear discriminants: (mean of y - mean) / variance."""
    data, size = inputs.data, model.levels[block.level].size
    at, label = _places(model, block, known)
    n_label = np.bincount(label, minlength=size).astype(np.float64)
    key, value = token_entries(data, at, label, size)
    n = model.n_rows(block)
    sums = np.bincount(key, value, n * size).reshape(n, size)
    squares = np.bincount(key, value**2, n * size).reshape(n, size).sum(axis=1)
    total, every = sums.sum(axis=1), max(float(len(at)), 1.0)
    share = (n_label + _SMOOTHING) / (every + _SMOOTHING * size)
    with np.errstate(divide="ignore", invalid="ignore"):
        table = np.log((np.maximum(sums, 0.0) + _SMOOTHING) / (np.maximum(total, 0.0) + _SMOOTHING * size)[:, None])
    table -= np.log(share)
    place = model.vocabulary.index(INTERCEPT)
    if place >= 0:
        table[place] = np.log(share)
    if inputs.columns is not None:
        columns = inputs.columns
        mean = total[columns] / every
        variance = np.maximum(squares[columns] / every - mean**2, 1e-12 * (squares[columns] / every) + 1e-300)
        by_label = (sums[columns] + _SMOOTHING * mean[:, None]) / (n_label + _SMOOTHING)
        table[columns] = (by_label - mean[:, None]) / variance[:, None]
        if place >= 0:
            table[place] -= ((by_label**2 - mean[:, None] ** 2) / (2.0 * variance[:, None])).sum(axis=0)
    single = block.columns < size
    return np.where(single, table[block.row, np.minimum(block.columns, size - 1)], 0.0)


def _transitions(model: Any, block: Block, known: Knowledge) -> Floats:
    """Logarithms of P(next | label) of pairs; under a parent, of triples; of first labels, P(first | parent)."""
    if block.part == "ending":
        return np.zeros(len(block))
    if block.part in CLIQUES:
        _, column = Occurrences(known, [level.size for level in model.levels]).of(block.level, block.part)
        shape = model.shape(block.level, block.part)
        counts = np.bincount(column, minlength=int(np.prod(shape))).reshape(-1, shape[-1]) + _SMOOTHING
        shares: Floats = np.log(counts / counts.sum(axis=1, keepdims=True)).ravel()
        return shares[block.columns]
    size = model.n_labels
    start, _, told = known.level.segments()
    label = known.level.numbers[start].astype(np.int64)
    next_to = told[1:] & told[:-1] & ~np.isin(start[1:], known.offsets)
    pairs = (label[:-1] * size + label[1:])[next_to]
    counts = np.bincount(pairs, minlength=size * size).reshape(size, size) + _SMOOTHING
    log_p = np.log(counts / counts.sum(axis=1, keepdims=True))
    names = [model.patterns[z] for z in block.columns.tolist()]
    return np.array([log_p[p] if len(p) == 2 and min(p) >= 0 else 0.0 for p in names])


def _lengths(model: Any, block: Block) -> Floats:
    """Smoothed log shares of the lengths of each label, as near as its functions of the length come."""
    level, result = model.levels[block.level], np.zeros(len(block))
    counts = level.length_counts
    if counts is None or counts.shape[1] != level.basis.shape[1]:
        return result
    for y in range(level.size):
        mine = np.flatnonzero(block.columns == y)
        if len(mine) and counts[y].any():
            smooth = counts[y] + _SMOOTHING / counts.shape[1]
            root, functions = np.sqrt(smooth), level.basis[block.row[mine]]
            wanted = np.log(smooth / smooth.sum())
            result[mine] = np.linalg.lstsq((functions * root).T, root * wanted, rcond=1e-8)[0]
    return result


def identity(model: Any, k: int, scores_of: Any, inputs: Inputs) -> Floats:
    """(W,) 1 / standard deviation where an attribute of tokens is the score of the label of level k, else 0."""
    level = model.levels[k]
    number = {label: i for i, label in enumerate(level.labels)}
    named = scores_of.items() if isinstance(scores_of, Mapping) else ((str(i), y) for i, y in enumerate(scores_of))
    wanted = [(model.vocabulary.index(name), number[label]) for name, label in named if label in number]
    wanted = [(row, column) for row, column in wanted if row >= 0]
    if not wanted:
        raise ValueError(f"scores_of must name labels, column by column, got {scores_of!r}")
    values = inputs.data.values
    chosen = np.isin(inputs.data.ids, [row for row, _ in wanted])
    spread = float(np.std(values[chosen])) if values is not None and chosen.any() else 1.0
    part = "inside" if model.segments else "start"
    weights = np.zeros(model.n_weights)
    for block, where in model.parts():
        if block.level == k and block.part == part and block.tokens:
            width = model.n_columns(block)
            keys = np.array(sorted(row * width + column for row, column in wanted), np.int64)
            place, there = find(block.row * width + block.columns, keys)
            weights[where.start + place[there]] = 1.0 / (spread or 1.0)
    return weights


def alike(model: Any, centre: Floats) -> Floats:
    """(W,) 1 for the features of attributes that are scores of labels, as the centre tells, else 0."""
    found = np.zeros(model.n_weights)
    for block, where in model.parts():
        if block.tokens:
            rows = np.unique(block.row[centre[where] != 0.0])
            found[where] = np.isin(block.row, rows)
    return found
