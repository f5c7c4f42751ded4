r"""Brute force: list every configuration of a tiny problem and add up.

A configuration is a tuple of segments ``(start, stop, label)`` that tiles ``0 .. T``; a labeling of a chain
is the case where every segment has length 1. The score of a configuration ``s_0 .. s_{m-1}`` is, straight
from the definition (paper 001, section 2.1),

.. math:: \sum_k \sum_{z:\ z = y_{k-|z|+1} .. y_k} w_z(u_k, v_k),

the sum over every segment and over every pattern that its label and the labels before it end with. The
answers at the end of the module work on ``Scored``, the list of ``(configuration, score)``, and on nothing
else.

Conventions
-----------
``T`` times, ``L`` labels, ``M`` longest segment, ``P`` patterns. Cost is ``O((2L)^T)``: for tests only.
A configuration of score ``-inf`` has probability 0 and stays in the list.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

BOS = -1
EOS = -2

Pattern = tuple[int, ...]
Segment = tuple[int, int, int]
Configuration = tuple[Segment, ...]
Scored = list[tuple[Configuration, float]]
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


# Configurations -----------------------------------------------------------------------------------


def labelings(n_times: int, n_labels: int) -> Iterator[Configuration]:
    """All ``L**T`` labelings, as segments of length 1."""
    for labels in itertools.product(range(n_labels), repeat=n_times):
        yield as_segments(labels)


def segmentations(n_times: int, n_labels: int, max_length: int) -> Iterator[Configuration]:
    """All ways to tile ``0 .. T`` with labelled segments of length ``1 .. M``."""

    def tile(start: int) -> Iterator[Configuration]:
        if start == n_times:
            yield ()
            return
        for stop in range(start + 1, min(start + max_length, n_times) + 1):
            for label in range(n_labels):
                for rest in tile(stop):
                    yield ((start, stop, label), *rest)

    return tile(0)


def as_segments(labels: Sequence[int]) -> Configuration:
    """The labeling ``y_0 .. y_{T-1}`` as segments of length 1."""
    return tuple((t, t + 1, int(y)) for t, y in enumerate(labels))


def label_sequence(config: Configuration) -> tuple[int, ...]:
    """The label of every time, length T."""
    return tuple(label for start, stop, label in config for _ in range(start, stop))


def matching_patterns(config: Configuration, patterns: Sequence[Pattern]) -> Iterator[tuple[int, int, int]]:
    """Yield ``(start, stop, z)`` for each segment and each pattern index ``z`` that reads its score there.

    A pattern matches at segment k if the labels up to k, with BOS before the first, end with it. A pattern
    that ends in EOS matches at the last segment, where its last real label is.
    """
    labels = [BOS]
    for k, (start, stop, label) in enumerate(config):
        labels.append(label)
        is_last = k == len(config) - 1
        for z, pattern in enumerate(patterns):
            if _ends_with(labels, pattern) or (is_last and _ends_with([*labels, EOS], pattern)):
                yield start, stop, z


def _ends_with(labels: Sequence[int], pattern: Pattern) -> bool:
    return len(pattern) <= len(labels) and tuple(labels[len(labels) - len(pattern) :]) == tuple(pattern)


# Scores by definition -----------------------------------------------------------------------------


def segment_score(config: Configuration, scores: npt.ArrayLike, patterns: Sequence[Pattern]) -> float:
    """Score of a segmentation; ``scores`` (T, M, P) is indexed by start, length - 1 and pattern."""
    w = np.asarray(scores, dtype=np.float64)
    return math.fsum(float(w[u, v - u - 1, z]) for u, v, z in matching_patterns(config, patterns))


def pattern_score(config: Configuration, scores: npt.ArrayLike, patterns: Sequence[Pattern]) -> float:
    """Score of a labeling; ``scores`` (T, P) is indexed by the position of the last label and pattern."""
    w = np.asarray(scores, dtype=np.float64)
    return math.fsum(float(w[u, z]) for u, _, z in matching_patterns(config, patterns))


def chain_score(
    config: Configuration,
    unary: npt.ArrayLike,
    transition: npt.ArrayLike,
    start: npt.ArrayLike | None = None,
    end: npt.ArrayLike | None = None,
) -> float:
    """``start[y_0] + sum_t unary[t, y_t] + sum_t transition[(t,) y_t, y_{t+1}] + end[y_{T-1}]``.

    Shapes: unary (T, L), transition (L, L) or (T-1, L, L), start and end (L,). The empty labeling scores 0.
    """
    y = label_sequence(config)
    n = len(y)
    if n == 0:
        return 0.0
    u = np.asarray(unary, dtype=np.float64)
    a = np.asarray(transition, dtype=np.float64)
    terms = [float(u[t, y[t]]) for t in range(n)]
    terms += [float(a[y[t], y[t + 1]] if a.ndim == 2 else a[t, y[t], y[t + 1]]) for t in range(n - 1)]
    if start is not None:
        terms.append(float(np.asarray(start)[y[0]]))
    if end is not None:
        terms.append(float(np.asarray(end)[y[-1]]))
    return math.fsum(terms)


def expand_parts(
    n_times: int,
    n_patterns: int,
    max_length: int,
    *,
    start: npt.ArrayLike | None = None,
    inside: npt.ArrayLike | None = None,
    end: npt.ArrayLike | None = None,
    length: npt.ArrayLike | None = None,
) -> FloatArray:
    """The full array (T, M, P) that additive parts stand for.

    ``w_z(u, v) = start[u, z] + sum_{u <= t < v} inside[t, z] + end[v-1, z] + length[v-u-1, z]``.
    Shapes: start (T, P) or (P,), inside and end (T, P), length (M, P). Entries of segments that leave the
    sequence are 0.
    """
    scores = np.zeros((n_times, max_length, n_patterns))
    for u in range(n_times):
        for v in range(u + 1, min(u + max_length, n_times) + 1):
            cell = scores[u, v - u - 1]
            if start is not None:
                s = np.asarray(start, dtype=np.float64)
                cell += s if s.ndim == 1 else s[u]
            if inside is not None:
                cell += np.asarray(inside, dtype=np.float64)[u:v].sum(axis=0)
            if end is not None:
                cell += np.asarray(end, dtype=np.float64)[v - 1]
            if length is not None:
                cell += np.asarray(length, dtype=np.float64)[v - u - 1]
    return scores


# Lists of scored configurations -------------------------------------------------------------------


def enumerate_chain(
    unary: npt.ArrayLike,
    transition: npt.ArrayLike,
    start: npt.ArrayLike | None = None,
    end: npt.ArrayLike | None = None,
) -> Scored:
    """Every labeling of a first-order chain with its score; shapes as in :func:`chain_score`."""
    n_times, n_labels = np.shape(unary)
    return [(c, chain_score(c, unary, transition, start, end)) for c in labelings(n_times, n_labels)]


def enumerate_patterns(scores: npt.ArrayLike, patterns: Sequence[Pattern], n_labels: int) -> Scored:
    """Every labeling with its score from patterns; ``scores`` (T, P)."""
    return [(c, pattern_score(c, scores, patterns)) for c in labelings(np.shape(scores)[0], n_labels)]


def enumerate_segments(scores: npt.ArrayLike, patterns: Sequence[Pattern], n_labels: int) -> Scored:
    """Every segmentation with its score from patterns; ``scores`` (T, M, P)."""
    n_times, max_length, _ = np.shape(scores)
    return [(c, segment_score(c, scores, patterns)) for c in segmentations(n_times, n_labels, max_length)]


def is_consistent(
    config: Configuration, labels: npt.ArrayLike | None = None, boundaries: npt.ArrayLike | None = None
) -> bool:
    """Whether a configuration agrees with what is known.

    Parameters
    ----------
    labels
        int (T,), -1 where unknown, or bool (T, L), the allowed labels.
    boundaries
        int (T,): 1 a segment ends at t (its stop is t + 1), 0 none does, -1 unknown.
    """
    if labels is not None:
        known = np.asarray(labels)
        for t, y in enumerate(label_sequence(config)):
            if not (known[t, y] if known.ndim == 2 else known[t] in (-1, y)):
                return False
    if boundaries is not None:
        ends = {stop - 1 for _, stop, _ in config}
        for t, value in enumerate(np.asarray(boundaries)):
            if value != -1 and bool(value) != (t in ends):
                return False
    return True


def constrain(scored: Scored, labels: npt.ArrayLike | None = None, boundaries: npt.ArrayLike | None = None) -> Scored:
    """The configurations that agree with what is known; see :func:`is_consistent`."""
    return [(config, score) for config, score in scored if is_consistent(config, labels, boundaries)]


# Answers ------------------------------------------------------------------------------------------


def log_partition(scored: Scored) -> float:
    """``log sum exp(score)``; ``-inf`` if nothing is possible."""
    top = max((score for _, score in scored), default=-math.inf)
    if top == -math.inf:
        return -math.inf
    return top + math.log(math.fsum(math.exp(score - top) for _, score in scored))


def probabilities(scored: Scored) -> list[float]:
    """The probability of each configuration, in the order of the list."""
    top = max((score for _, score in scored), default=-math.inf)
    if top == -math.inf:
        raise ValueError("no configuration is possible: every score is -inf")
    weights = [math.exp(score - top) for _, score in scored]
    total = math.fsum(weights)
    return [weight / total for weight in weights]


def tie_order(config: Configuration) -> tuple[tuple[int, int], ...]:
    """Sort key of equally good configurations, from the end backwards, smaller label, then shorter one."""
    return tuple((label, stop - start) for start, stop, label in reversed(config))


def best(scored: Scored) -> tuple[Configuration, float]:
    """The configuration of highest score, ties broken by :func:`tie_order`."""
    return min(scored, key=lambda item: (-item[1], tie_order(item[0])))


def kbest(scored: Scored, k: int) -> Scored:
    """The k configurations of highest score, best first, without the impossible ones."""
    possible = [item for item in scored if item[1] > -math.inf]
    return sorted(possible, key=lambda item: (-item[1], tie_order(item[0])))[:k]


def entropy(scored: Scored) -> float:
    """``-sum p log p`` in nats."""
    return -math.fsum(p * math.log(p) for p in probabilities(scored) if p > 0.0)


def label_marginals(scored: Scored, n_times: int, n_labels: int) -> FloatArray:
    """``P(y_t = y)``, shape (T, L)."""
    table = np.zeros((n_times, n_labels))
    for (config, _), p in zip(scored, probabilities(scored), strict=True):
        for t, y in enumerate(label_sequence(config)):
            table[t, y] += p
    return table


def transition_marginals(scored: Scored, n_times: int, n_labels: int) -> FloatArray:
    """``P(y_t = a, y_{t+1} = b)``, shape (T-1, L, L), no rows for T = 0."""
    table = np.zeros((max(n_times - 1, 0), n_labels, n_labels))
    for (config, _), p in zip(scored, probabilities(scored), strict=True):
        y = label_sequence(config)
        for t in range(n_times - 1):
            table[t, y[t], y[t + 1]] += p
    return table


def segment_marginals(scored: Scored, n_times: int, max_length: int, n_labels: int) -> FloatArray:
    """``P(the segment (u, u + d, y) is there)`` at ``[u, d - 1, y]``, shape (T, M, L)."""
    table = np.zeros((n_times, max_length, n_labels))
    for (config, _), p in zip(scored, probabilities(scored), strict=True):
        for start, stop, label in config:
            table[start, stop - start - 1, label] += p
    return table


def boundary_marginals(scored: Scored, n_times: int) -> FloatArray:
    """``P(a segment ends at t)``, that is with stop t + 1, shape (T,)."""
    table = np.zeros(n_times)
    for (config, _), p in zip(scored, probabilities(scored), strict=True):
        for _, stop, _ in config:
            table[stop - 1] += p
    return table


def pattern_marginals(scored: Scored, patterns: Sequence[Pattern], n_times: int, max_length: int) -> FloatArray:
    """``P(u, v, z | x)`` of paper 001 at ``[u, v - u - 1, z]``, shape (T, M, P).

    The probability that the segment (u, v) is there and that z reads its score at it.
    """
    table = np.zeros((n_times, max_length, len(patterns)))
    for (config, _), p in zip(scored, probabilities(scored), strict=True):
        for u, v, z in matching_patterns(config, patterns):
            table[u, v - u - 1, z] += p
    return table


class Parts(NamedTuple):
    """Gradient of ``log Z`` with respect to each additive part: start, inside, end (T, P), length (M, P)."""

    start: FloatArray
    inside: FloatArray
    end: FloatArray
    length: FloatArray


def part_gradients(scored: Scored, patterns: Sequence[Pattern], n_times: int, max_length: int) -> Parts:
    """Expected number of times each entry of each part is added to the score.

    Sum ``start`` over time for a start of shape (P,), which is shared by all positions.
    """
    size = len(patterns)
    parts = Parts(*(np.zeros((rows, size)) for rows in (n_times, n_times, n_times, max_length)))
    for (config, _), p in zip(scored, probabilities(scored), strict=True):
        for u, v, z in matching_patterns(config, patterns):
            parts.start[u, z] += p
            parts.inside[u:v, z] += p
            parts.end[v - 1, z] += p
            parts.length[v - u - 1, z] += p
    return parts


def config_of(value: Any) -> Configuration:
    """What a lattice returns (int array of labels, or list of segments) as a plain tuple of segments."""
    if isinstance(value, np.ndarray):
        return as_segments([int(y) for y in value])
    return tuple((int(start), int(stop), int(label)) for start, stop, label in value)
