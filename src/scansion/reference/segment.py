r"""Forward-backward over the pattern automaton, in log space (paper 001, sections 2.2 to 2.4).

States are the prefixes of patterns that a later score may still depend on:

- ``P`` = {empty} + all labels + all proper prefixes of patterns;
- ``next(p, y)`` = longest suffix of ``p y`` in ``P``;
- ``Psi(u, v, p y)`` = sum of ``w_z(u, v)`` over the patterns z that are suffixes of ``p y``.

With BOS in some pattern the walk starts in the state ``(BOS,)`` instead of the empty one, so ``(BOS, a)`` is
one more prefix among others. A pattern ``z EOS`` is a suffix of ``p y`` closed by the end of the sequence:
its score is part of ``Psi(u, v, p y)`` if ``v = T``, and only then.

Departs from the paper: the backward variables live on ``P`` rather than on ``P Y``, because arcs ``(p, y)``
are kept and ``next(p, y)`` determines every later score.

Conventions
-----------
``psi`` (T, M, S, L): ``psi[u, d - 1, p, y] = Psi(u, u + d, p y)``, ``-inf`` where ``u + d > T``. ``S = |P|``.
A chain is ``M = 1``. ``alpha`` and ``beta`` are logarithms, (T + 1, S), row j = everything before / after the
boundary j. Cost ``O(T M S L)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from scansion.reference.enumeration import (
    BOS,
    EOS,
    Configuration,
    FloatArray,
    IntArray,
    Pattern,
    is_consistent,
)


@dataclass(frozen=True)
class Automaton:
    """The pattern automaton.

    Attributes
    ----------
    states
        ``P``, sorted by length; ``states[0]`` is the empty prefix.
    start
        Index of the state before the first segment.
    next
        (S, L), ``next[p, y]`` = index of the longest suffix of ``p y`` in ``P``.
    matches
        bool (S, L, P), pattern z is a suffix of ``p y``.
    closes
        bool (S, L, P), pattern z is a suffix of ``p y EOS``.
    """

    states: tuple[Pattern, ...]
    start: int
    next: IntArray
    matches: npt.NDArray[np.bool_]
    closes: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Marginals:
    """Posterior probabilities: patterns (T, M, P), segments (T, M, L), labels (T, L), boundaries (T,)."""

    patterns: FloatArray
    segments: FloatArray
    labels: FloatArray
    boundaries: FloatArray


def pattern_automaton(patterns: Sequence[Pattern], n_labels: int) -> Automaton:
    """Build ``P``, ``next`` and the table of matching patterns, by definition."""
    prefixes: set[Pattern] = {()} | {(y,) for y in range(n_labels)}
    for pattern in patterns:
        body = tuple(pattern[:-1]) if pattern[-1] == EOS else tuple(pattern)
        prefixes.update(body[:n] for n in range(len(body)))
    states = tuple(sorted(prefixes, key=lambda p: (len(p), p)))
    index = {state: i for i, state in enumerate(states)}

    def longest_suffix(history: Pattern) -> int:
        return next(index[history[i:]] for i in range(len(history) + 1) if history[i:] in index)

    def is_suffix(pattern: Pattern, history: Pattern) -> bool:
        return len(pattern) <= len(history) and history[len(history) - len(pattern) :] == tuple(pattern)

    shape = (len(states), n_labels, len(patterns))
    step = np.zeros(shape[:2], dtype=np.int64)
    matches = np.zeros(shape, dtype=np.bool_)
    closes = np.zeros(shape, dtype=np.bool_)
    for p, state in enumerate(states):
        for y in range(n_labels):
            history = (*state, y)
            step[p, y] = longest_suffix(history)
            for z, pattern in enumerate(patterns):
                matches[p, y, z] = is_suffix(pattern, history)
                closes[p, y, z] = is_suffix(pattern, (*history, EOS))
    return Automaton(states, longest_suffix((BOS,)), step, matches, closes)


def arc_scores(
    automaton: Automaton,
    scores: npt.ArrayLike,
    labels: npt.ArrayLike | None = None,
    boundaries: npt.ArrayLike | None = None,
) -> FloatArray:
    """``Psi`` for every arc (paper 001, section 2.2); inconsistent segments are ``-inf``.

    Parameters
    ----------
    scores
        (T, M, P), start, length - 1, pattern.
    labels, boundaries
        What is known, as in :func:`scansion.reference.enumeration.is_consistent`.

    Returns
    -------
    psi
        (T, M, S, L).
    """
    w = np.asarray(scores, dtype=np.float64)
    n_times, max_length, _ = w.shape
    n_states, n_labels = automaton.next.shape
    psi = np.full((n_times, max_length, n_states, n_labels), -np.inf)
    for u in range(n_times):
        for d in range(1, min(max_length, n_times - u) + 1):
            used = automaton.matches | automaton.closes if u + d == n_times else automaton.matches
            cell = np.where(used, w[u, d - 1], 0.0).sum(axis=-1)
            for y in range(n_labels):
                if not _segment_is_consistent(u, u + d, y, labels, boundaries):
                    cell[:, y] = -np.inf
            psi[u, d - 1] = cell
    return psi


def _segment_is_consistent(
    u: int, v: int, y: int, labels: npt.ArrayLike | None, boundaries: npt.ArrayLike | None
) -> bool:
    """Known labels inside agree, no known end lies strictly inside, and no end of it is known to be none."""
    if labels is not None and not is_consistent(((0, v - u, y),), np.asarray(labels)[u:v]):
        return False
    if boundaries is None:
        return True
    known = np.asarray(boundaries)
    return not ((known[u : v - 1] == 1).any() or known[v - 1] == 0 or (u > 0 and known[u - 1] == 0))


def forward(automaton: Automaton, psi: FloatArray) -> FloatArray:
    """Forward variables, as logarithms, shape (T+1, S).

    ``alpha(j, p') = sum over d and (p, y) with next(p, y) = p' of Psi(j-d, j, p y) alpha(j-d, p)``.
    """
    n_times, max_length, n_states, n_labels = psi.shape
    alpha = np.full((n_times + 1, n_states), -np.inf)
    alpha[0, automaton.start] = 0.0
    for j in range(1, n_times + 1):
        for d in range(1, min(max_length, j) + 1):
            for y in range(n_labels):
                arcs = alpha[j - d] + psi[j - d, d - 1, :, y]
                np.logaddexp.at(alpha[j], automaton.next[:, y], arcs)
    return alpha


def backward(automaton: Automaton, psi: FloatArray) -> FloatArray:
    """Backward variables, as logarithms, shape (T+1, S).

    ``beta(j, p) = sum over d and y of Psi(j, j+d, p y) beta(j+d, next(p, y))``, ``beta(T, p) = 1``.
    """
    n_times, max_length, n_states, n_labels = psi.shape
    beta = np.full((n_times + 1, n_states), -np.inf)
    beta[n_times] = 0.0
    for j in reversed(range(n_times)):
        for d in range(1, min(max_length, n_times - j) + 1):
            for y in range(n_labels):
                arcs = psi[j, d - 1, :, y] + beta[j + d, automaton.next[:, y]]
                beta[j] = np.logaddexp(beta[j], arcs)
    return beta


def log_partition(automaton: Automaton, psi: FloatArray) -> float:
    """``log Z = log sum_p alpha(T, p)``."""
    return float(np.logaddexp.reduce(forward(automaton, psi)[-1]))


def arc_posteriors(automaton: Automaton, psi: FloatArray) -> FloatArray:
    """``alpha(u, p) Psi(u, v, p y) beta(v, next(p, y)) / Z`` for every arc, shape (T, M, S, L)."""
    n_times, max_length, n_states, n_labels = psi.shape
    alpha = forward(automaton, psi)
    beta = backward(automaton, psi)
    log_z = np.logaddexp.reduce(alpha[-1])
    if log_z == -np.inf:
        raise ValueError("no configuration is possible: every score is -inf")
    posterior = np.zeros_like(psi)
    for u in range(n_times):
        for d in range(1, min(max_length, n_times - u) + 1):
            arcs = alpha[u][:, None] + psi[u, d - 1] + beta[u + d][automaton.next]
            posterior[u, d - 1] = np.exp(arcs - log_z)
    return posterior


def marginals(automaton: Automaton, psi: FloatArray) -> Marginals:
    """``P(u, v, z | x)`` and its relatives (paper 001, section 2.3).

    The arc posteriors, summed over the arcs whose ``p y`` ends in z (patterns), or in y (segments).
    """
    n_times, max_length, _, n_labels = psi.shape
    arcs = arc_posteriors(automaton, psi)
    segments = arcs.sum(axis=2)
    patterns = np.einsum("udpy,pyz->udz", arcs, automaton.matches.astype(np.float64))
    labels = np.zeros((n_times, n_labels))
    boundaries = np.zeros(n_times)
    for u in range(n_times):
        for d in range(1, min(max_length, n_times - u) + 1):
            if u + d == n_times:
                patterns[u, d - 1] += np.einsum("py,pyz->z", arcs[u, d - 1], automaton.closes.astype(np.float64))
            labels[u : u + d] += segments[u, d - 1]
            boundaries[u + d - 1] += segments[u, d - 1].sum()
    return Marginals(patterns, segments, labels, boundaries)


def entropy(automaton: Automaton, psi: FloatArray) -> float:
    """Entropy in nats, by the chain rule over segments.

    ``H = -sum over arcs of P(arc) log P(arc | state)``, with ``P(d, y | u, p) = Psi(u, u+d, p y)
    beta(u+d, next(p, y)) / beta(u, p)``. Equal to ``log Z - E[score]``, which loses its digits to
    cancellation where scores are large.
    """
    n_times, max_length, _, _ = psi.shape
    beta = backward(automaton, psi)
    arcs = arc_posteriors(automaton, psi)
    total = 0.0
    for u in range(n_times):
        for d in range(1, min(max_length, n_times - u) + 1):
            reached = arcs[u, d - 1] > 0.0
            onward = psi[u, d - 1] + beta[u + d][automaton.next]
            step = np.where(reached, onward, 0.0) - np.where(reached, beta[u][:, None], 0.0)
            total -= float((arcs[u, d - 1] * step).sum())
    return total


def viterbi(automaton: Automaton, psi: FloatArray) -> tuple[Configuration, float]:
    """The best configuration and its score (paper 001, section 2.4).

    ``delta(j, p') = max over d and (p, y) with next(p, y) = p' of Psi(j-d, j, p y) delta(j-d, p)``. Ties:
    from the end backwards, smaller label first, then shorter segment. Several states may explain equally good
    continuations, so the walk back keeps the set of all of them.
    """
    n_times, max_length, n_states, n_labels = psi.shape
    delta = np.full((n_times + 1, n_states), -np.inf)
    delta[0, automaton.start] = 0.0
    for j in range(1, n_times + 1):
        for d in range(1, min(max_length, j) + 1):
            for y in range(n_labels):
                np.maximum.at(delta[j], automaton.next[:, y], delta[j - d] + psi[j - d, d - 1, :, y])
    score = float(delta[-1].max())
    if score == -np.inf:
        raise ValueError("no configuration is possible: every score is -inf")

    config: list[tuple[int, int, int]] = []
    stop = n_times
    alive = {p for p in range(n_states) if delta[-1, p] == score}
    while stop > 0:
        label, d, alive = min(
            (
                (y, d, sources)
                for y in range(n_labels)
                for d in range(1, min(max_length, stop) + 1)
                if (
                    sources := {
                        p
                        for p in range(n_states)
                        if (q := int(automaton.next[p, y])) in alive
                        and delta[stop - d, p] + psi[stop - d, d - 1, p, y] == delta[stop, q]
                    }
                )
            ),
            key=lambda step: step[:2],
        )
        config.append((stop - d, stop, label))
        stop -= d
    return tuple(reversed(config)), score
