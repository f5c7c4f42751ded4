r"""Levels that y says nothing of: where learning them starts, and whether it led anywhere.

Labels that nothing tells apart have equal gradients: from equal weights they never come to differ. So each start
guesses them. Tokens are described by what surrounds them (their attributes, the known labels of the levels above and
below, and which of these follow each other, averaged over a window) and clustered; the guess is counted as if it were
known (`scansion.models.starts`), and learning goes on from there with these labels unknown. Windows and clusters differ
from start to start, and the loss decides.

Conventions: N tokens, S labels at the level, d numbers that describe a token.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from scansion import _checks as checks
from scansion._checks import Bools, Floats, Ints
from scansion.data import Knowledge, Known
from scansion.models.inputs import Inputs
from scansion.models.units import numeric

__all__ = ["guesses", "warn_of_unlearnt"]

_WINDOWS = (4, 1, 8, 2, 16)  # tokens on either side, of one start after another
_NUMBERS = 32  # d
_TOKENS = 20_000  # that centres are found by
_ROUNDS = 20  # of k-means
_SEQUENCES = 200  # that are looked at afterwards


def guesses(model: Any, inputs: Inputs, known: Knowledge, count: int, seed: int) -> Iterator[Knowledge]:
    """What is known, completed by a guess of the hidden levels; so many guesses."""
    last = np.zeros(int(known.offsets[-1]), np.bool_)
    last[known.offsets[1:][np.diff(known.offsets) > 0] - 1] = True
    for number in range(count):
        rng = np.random.default_rng([seed, number])
        found = list(known.levels)
        for k in model.hidden:
            level, one = model.levels[k], found[k]
            above = last if k == 0 else (found[k - 1].ends == 1)  # it must end here
            below = None if k + 1 == len(found) else found[k + 1].ends
            around = _described(inputs, [found[j] for j in (k - 1, k + 1) if 0 <= j < len(found)], rng)
            half = 0 if level.max_length == 1 else _WINDOWS[number % len(_WINDOWS)]
            if not model.possible[k]["transition"].any():  # one segment in each above it
                may_end = above
            else:
                may_end = np.ones_like(last) if below is None else (below != 0)
                around = _smooth(around, known.offsets, half)
            label = _labels(around, may_end, level.size, rng)
            label = np.where(one.numbers >= 0, one.numbers, label).astype(np.int32)
            ends = np.append(label[1:] != label[:-1], True) | above if level.max_length != 1 else np.ones_like(last)
            ends = np.where(one.ends >= 0, one.ends, ends).astype(np.int8)
            found[k] = replace(one, labels=label, ends=ends, allowed=None)
        yield Knowledge(tuple(found), known.offsets)


def _described(inputs: Inputs, beside: list[Known], rng: np.random.Generator) -> Floats:
    """(N, d) random projections of the attributes and of the labels beside the level, each of variance 1."""
    data = inputs.data
    values = np.ones(len(data.ids)) if data.values is None else data.values.copy()
    wide = numeric(data)
    if wide.any():
        n, size = max(1, data.n_tokens), len(wide)
        mean = np.bincount(data.ids, values, size) / n
        spread = np.sqrt(np.maximum(np.bincount(data.ids, values**2, size) / n - mean**2, 1e-300))
        values /= np.where(wide, spread, 1.0)[data.ids]
    token = np.repeat(np.arange(data.n_tokens), np.diff(data.token_offsets))
    parts = [_projected(token, data.ids, values, len(wide), data.n_tokens, rng)]
    for one in beside:
        at = np.flatnonzero(one.numbers >= 0)
        size = int(one.numbers.max(initial=0)) + 1
        parts.append(_projected(at, one.numbers[at], np.ones(len(at)), size, data.n_tokens, rng))
        # what follows what
        at = at[(at > 0) & ~np.isin(at, data.offsets)]
        at = at[(one.numbers[at - 1] >= 0) & (one.numbers[at - 1] != one.numbers[at])]
        pair = one.numbers[at - 1].astype(np.int64) * size + one.numbers[at]
        parts.append(_projected(at, pair, np.ones(len(at)), size * size, data.n_tokens, rng))
    total: Floats = np.sum(parts, axis=0)
    return total


def _projected(token: Ints, column: Any, values: Floats, size: int, n: int, rng: np.random.Generator) -> Floats:
    """(N, d) a sparse table times random numbers, of mean 0 and total variance 1."""
    table, found = rng.normal(size=(size, _NUMBERS)), np.zeros((n, _NUMBERS))
    for d in range(_NUMBERS):
        found[:, d] = np.bincount(token, values * table[column, d], minlength=n)
    found -= found.mean(axis=0)
    return found / max(float(np.sqrt((found**2).sum(axis=1).mean())), 1e-12)


def _smooth(around: Floats, offsets: Ints, half: int) -> Floats:
    """(N, d) means over so many tokens on either side, within the sequence."""
    sums = np.concatenate([np.zeros((1, around.shape[1])), np.cumsum(around, axis=0)])
    sequence = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    at = np.arange(len(around))
    first, last = np.maximum(at - half, offsets[sequence]), np.minimum(at + half + 1, offsets[sequence + 1])
    means: Floats = (sums[last] - sums[first]) / (last - first)[:, None]
    return means


def _labels(around: Floats, may_end: Bools, size: int, rng: np.random.Generator) -> Ints:
    """(N,) clusters of what lies between places where a segment may end."""
    unit = np.concatenate([[0], np.cumsum(may_end[:-1])])
    means = np.stack([np.bincount(unit, column) for column in around.T], axis=1) / np.bincount(unit)[:, None]
    label: Ints = _clusters(means, size, rng)[unit]
    return label


def _clusters(points: Floats, size: int, rng: np.random.Generator) -> Ints:
    """(n,) the cluster of each point, by k-means from distant points of the sample."""
    sample = points if len(points) <= _TOKENS else points[rng.choice(len(points), _TOKENS, replace=False)]
    centres = sample[[int(rng.integers(len(sample)))]]
    while len(centres) < size:
        far = _distances(sample, centres).min(axis=1)
        total = far.sum()
        chosen = rng.choice(len(sample), p=far / total) if total > 0.0 else rng.integers(len(sample))
        centres = np.vstack([centres, sample[chosen]])
    for _ in range(_ROUNDS):
        nearest = _distances(sample, centres).argmin(axis=1)
        for c in np.unique(nearest):
            centres[c] = sample[nearest == c].mean(axis=0)
    found: Ints = _distances(points, centres).argmin(axis=1)
    return found


def _distances(points: Floats, centres: Floats) -> Floats:
    """(n, S) squared, never below 0."""
    found: Floats = (points**2).sum(axis=1)[:, None] - 2.0 * points @ centres.T + (centres**2).sum(axis=1)
    return np.maximum(found, 0.0)


def warn_of_unlearnt(model: Any, inputs: Inputs, known: Knowledge, n_jobs: int) -> None:
    """Warn of levels whose labels came out alike, or hardly ever come, in the first sequences."""
    some = np.arange(min(len(inputs), _SEQUENCES))
    part = inputs.take(some)
    batch = model.batch(part, n_jobs).under(model.held(known.take(some)))
    found = batch.marginals().labels
    for k in model.hidden:
        level, share = model.levels[k], found[k + 1]
        if level.size < 2 or not len(share):
            continue
        if np.ptp(share, axis=0).max() < 0.1:
            checks.warn(
                f"nothing was learnt of the hidden level {level.name!r}: its labels have the same probabilities "
                "everywhere. What y says of other levels does not depend on them: give the level attributes that "
                "change along a sequence, a topology, a smaller c2, or a few labels",
            )
            continue
        rare: Bools = share.mean(axis=0) < 0.01
        if rare.any():
            names = ", ".join(repr(level.labels[i]) for i in np.flatnonzero(rare))
            checks.warn(
                f"of the hidden level {level.name!r} the labels {names} are hardly ever used: ask for fewer labels, or "
                "for more restarts",
            )
