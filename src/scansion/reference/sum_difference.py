r"""The Sum-Difference algorithm for variable-order chains (paper 002, algorithms 1, 2, 4 and 5), mended.

``P_t`` = {empty} + labels + every pattern that fires at t + the prefixes that later positions need: z firing at t' puts
its first ``|z| - (t' - t)`` symbols into ``P_t``. ``suf_t(z)`` = longest proper suffix of z in ``P_t``, ``pre(z)`` = z
without its last symbol, in ``P_{t-1}``; ``W_t(z) = W_t(suf_t(z)) + w_t(z)``, ``W_t(empty) = 0``.

- ``alpha_t(z) = exp(W_t(z)) (gamma_{t-1}(pre z) - sum over z' with suf_t(z') = z of gamma_{t-1}(pre z'))``
- ``gamma_t(z) = alpha_t(z) + sum over z' with suf_t(z') = z of gamma_t(z')``, ``Z = gamma_T(empty)``
- ``beta_t(z) = delta_t(z) + beta_t(suf_t(z))``, ``beta_t(empty) = delta_t(empty)``
- ``delta_{t-1}(q) = sum over z with pre z = q of beta_t(z) e^{W_t(z)} - beta_t(suf z) e^{W_t(suf z)}``, without the
  second term where suf z is empty
- ``sigma_t(z) = alpha_t(z) beta_t(z) + sum over z' with suf_t(z') = z of sigma_t(z')``, ``P(z at t) = sigma_t(z) / Z``

Departs from the paper as errata 1 to 3 of docs/notation.md say. BOS is a symbol before position 0, EOS the only label
of one more position at the end; a pattern that closes with EOS reads its score at T - 1.

Everything is in plain floating point: no scaling, and differences cancel as they will. Cost O(sum of |P_t| squared).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from scansion.reference.enumeration import BOS, EOS, FloatArray, Pattern

__all__ = ["best_labels", "pattern_sets", "sum_difference"]


def _fits(z: Pattern, t: int) -> bool:
    """Whether a string of symbols can end at position t."""
    return len(z) == t + 2 if z[0] == BOS else len(z) <= t + 1


def pattern_sets(fires: npt.ArrayLike, patterns: Sequence[Pattern], n_labels: int) -> list[set[Pattern]]:
    """``P_0 .. P_{T-1}``, and the set of the end if a pattern closes with EOS (algorithm 1); fires (T, P)."""
    on = np.asarray(fires, dtype=np.bool_)
    T = len(on)
    closing = any(z[-1] == EOS for z in patterns)
    sets: list[set[Pattern]] = [{(), *((y,) for y in range(n_labels))} for _ in range(T)]
    if closing:
        sets.append({(), (EOS,)})
    for t in range(T):
        for i, pattern in enumerate(patterns):
            end = pattern[-1] == EOS
            at = T if end else t
            if not on[t, i] or (end and t < T - 1) or not _fits(pattern, at):
                continue
            for back in range(len(pattern)):
                if at - back >= 0 and pattern[: len(pattern) - back] != (BOS,):
                    sets[at - back].add(pattern[: len(pattern) - back])
    return sets


def _suffix(z: Pattern, among: set[Pattern]) -> Pattern:
    return next(z[i:] for i in range(1, len(z) + 1) if z[i:] in among)


def _structure(scores: FloatArray, on: Any, patterns: Sequence[Pattern], n_labels: int, allowed: Any) -> Any:
    """Sets, each in ascending order (suffixes first), suffixes and W."""
    T = len(scores)
    index = {z: i for i, z in enumerate(patterns)}
    result = []
    for t, among in enumerate(pattern_sets(on, patterns, n_labels)):
        order = sorted(among - {()}, key=lambda z: (len(z), z))
        suffix = {z: _suffix(z, among) for z in order}
        weight: dict[Pattern, float] = {(): 0.0}
        row = min(t, T - 1)
        for z in order:
            own = float(scores[row, index[z]]) if z in index and on[row, index[z]] else 0.0
            if t < T and allowed is not None and len(z) == 1 and not allowed[t][z[0]]:
                own = -math.inf
            weight[z] = weight[suffix[z]] + own
        result.append((order, suffix, weight))
    return result


def sum_difference(
    scores: npt.ArrayLike,
    patterns: Sequence[Pattern],
    n_labels: int,
    fires: npt.ArrayLike | None = None,
    allowed: npt.ArrayLike | None = None,
) -> tuple[float, FloatArray]:
    """Log Z and the posteriors (T, P) of the patterns where they fire; T > 0.

    Parameters
    ----------
    scores
        (T, P).
    fires
        bool (T, P): where a pattern has a feature; elsewhere its score is not read. None: everywhere.
    allowed
        bool (T, L) labels. None: all.
    """
    values = np.asarray(scores, dtype=np.float64)
    on = np.ones(values.shape, np.bool_) if fires is None else np.asarray(fires, np.bool_)
    T = len(values)
    steps = _structure(values, on, patterns, n_labels, None if allowed is None else np.asarray(allowed))
    start = {(): 1.0, (BOS,): 1.0}
    gammas: list[dict[Pattern, float]] = [start]
    alphas: list[dict[Pattern, float]] = []
    for order, suffix, weight in steps:
        before = gammas[-1]
        alpha = {z: before.get(z[:-1], 0.0) for z in order} | {(): 0.0}
        for z in order:
            alpha[suffix[z]] -= before.get(z[:-1], 0.0)
        alpha[()] = 0.0
        for z in order:
            alpha[z] *= math.exp(weight[z])
        gamma = dict(alpha)
        for z in reversed(order):
            gamma[suffix[z]] += gamma[z]
        alphas.append(alpha)
        gammas.append(gamma)
    total = gammas[-1][()]
    posteriors = np.zeros(values.shape)
    index = {z: i for i, z in enumerate(patterns)}
    delta: dict[Pattern, float] = {(): 1.0}
    for t in range(len(steps) - 1, -1, -1):
        order, suffix, weight = steps[t]
        beta = {(): delta.get((), 0.0)}
        earlier: dict[Pattern, float] = {}
        for z in order:
            s = suffix[z]
            beta[z] = delta.get(z, 0.0) + beta[s]
            term = beta[z] * math.exp(weight[z]) - (0.0 if s == () else beta[s] * math.exp(weight[s]))
            earlier[z[:-1]] = earlier.get(z[:-1], 0.0) + term
        sigma = {z: alphas[t][z] * beta[z] for z in order} | {(): 0.0}
        row = min(t, T - 1)
        for z in reversed(order):
            sigma[suffix[z]] += sigma[z]
            if z in index and on[row, index[z]]:
                posteriors[row, index[z]] = sigma[z] / total
        delta = earlier
    return math.log(total) if total > 0 else -math.inf, posteriors


def best_labels(
    scores: npt.ArrayLike,
    patterns: Sequence[Pattern],
    n_labels: int,
    fires: npt.ArrayLike | None = None,
    allowed: npt.ArrayLike | None = None,
) -> tuple[list[int], float]:
    """A best labelling and its score (algorithms 4 and 5); arguments as in `sum_difference`.

    ``p_t(z)`` is the best score of a history whose longest pattern in ``P_t`` is z. For the label y that closes z, the
    predecessor is the best among those whose longest suffix among ``{pre z' : z' in P_t closes with y}`` is pre z.
    """
    values = np.asarray(scores, dtype=np.float64)
    on = np.ones(values.shape, np.bool_) if fires is None else np.asarray(fires, np.bool_)
    steps = _structure(values, on, patterns, n_labels, None if allowed is None else np.asarray(allowed))
    best: dict[Pattern, tuple[float, list[int]]] = {(BOS,): (0.0, [])}
    for order, _, weight in steps:
        closing: dict[int, set[Pattern]] = {}
        for z in order:
            closing.setdefault(z[-1], set()).add(z[:-1])
        found: dict[Pattern, tuple[float, list[int]]] = {}
        for y, prefixes in closing.items():
            for history, (score, labels) in best.items():
                z = (*next(history[i:] for i in range(len(history) + 1) if history[i:] in prefixes), y)
                candidate = (score + weight[z], [*labels, y])
                if candidate[0] > -math.inf and (z not in found or candidate[0] > found[z][0]):
                    found[z] = candidate
        best = found
    score, labels = max(best.values(), key=lambda pair: pair[0])
    return labels[: len(values)], score
