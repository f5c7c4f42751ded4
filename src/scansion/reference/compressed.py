r"""Compressed inference (paper 004) on a first-order chain, in log space; and trajectories by enumeration.

With :math:`\psi_t(k, j)` the score of label k at t-1 followed by j at t (unary of t included), the trajectory
:math:`s_0 .. s_{c-1}` of a labelling being its labels with runs merged:

.. math::

    f_t(i) = e^{\psi_t(s_i, s_i)} f_{t-1}(i) + e^{\psi_t(s_{i-1}, s_i)} f_{t-1}(i-1), \qquad P(s) = f_{T-1}(c-1) / Z

    F_t(c, j) = e^{\psi_t(j, j)} F_{t-1}(c, j) + \sum_{k \ne j} e^{\psi_t(k, j)} F_{t-1}(c-1, k), \qquad
    P(\text{length } c) = \sum_j F_{T-1}(c, j) / Z

    B_t(r, j) = e^{\psi_{t+1}(j, j)} B_{t+1}(r, j) + \sum_{k \ne j} e^{\psi_{t+1}(j, k)} B_{t+1}(r-1, k)

    P(s_i = j, \text{length } c) = \sum_t \text{enter}_t(i, j)\, B_t(c-1-i, j) / Z

where enter is the sum over k in the recursion of F (equations 6 and 9 of the paper; it has no mirror table B and runs
one constrained sweep for each i and j). Cost ``O(C T L^2)``.

Conventions
-----------
unary (T, L), T >= 1; transition (L, L) or (T-1, L, L), row = from; start and end (L,) or None. Tables hold logarithms.
The functions on ``Scored`` lists work for chains (``merge=True``) and for segments, whose trajectory is the sequence of
segment labels as they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from scansion.reference.chain import _ends, _log_sum_exp, _steps
from scansion.reference.enumeration import Configuration, FloatArray, Scored, probabilities

Trajectory = tuple[int, ...]


def _scores(
    unary: npt.ArrayLike, transition: npt.ArrayLike, start: npt.ArrayLike | None, end: npt.ArrayLike | None
) -> tuple[FloatArray, FloatArray]:
    """Scores of the first label (L,) and of each step (T-1, L, L), with those of the end in the last."""
    u = np.array(unary, dtype=np.float64)
    u[0] += _ends(start, u.shape[1])
    u[-1] += _ends(end, u.shape[1])
    return u[0], _steps(transition, len(u)) + u[1:, None, :]


def _place_table(first: FloatArray, steps: FloatArray, longest: int) -> tuple[FloatArray, FloatArray]:
    """Logarithms of F_t(c, j) and enter_t(i, j), both (T, longest + 1, L); entering place i gives length i + 1."""
    n_labels = len(first)
    table = np.full((len(steps) + 1, longest + 1, n_labels), -np.inf)
    enter = np.full_like(table, -np.inf)
    enter[0, 0] = table[0, 1] = first
    for t, psi in enumerate(steps, start=1):
        stay = np.diag(psi)
        change = np.where(np.eye(n_labels, dtype=np.bool_), -np.inf, psi)
        for c in range(1, longest + 1):
            enter[t, c - 1] = _log_sum_exp(table[t - 1, c - 1][:, None] + change, axis=0)
            table[t, c] = np.logaddexp(stay + table[t - 1, c], enter[t, c - 1])
    return table, enter


def log_probability(
    trajectory: Trajectory,
    unary: npt.ArrayLike,
    transition: npt.ArrayLike,
    start: npt.ArrayLike | None = None,
    end: npt.ArrayLike | None = None,
) -> float:
    """Log probability of a trajectory without equal neighbours."""
    first, steps = _scores(unary, transition, start, end)
    s = np.array(trajectory)
    f = np.full(len(s), -np.inf)
    f[0] = first[s[0]]
    for psi in steps:
        entered = np.concatenate([[-np.inf], psi[s[:-1], s[1:]] + f[:-1]])
        f = np.logaddexp(psi[s, s] + f, entered)
    table, _ = _place_table(first, steps, len(steps) + 1)
    return float(f[-1] - _log_sum_exp(table[-1].ravel(), axis=0))


def lengths(
    unary: npt.ArrayLike,
    transition: npt.ArrayLike,
    start: npt.ArrayLike | None = None,
    end: npt.ArrayLike | None = None,
) -> FloatArray:
    """P(length c), shape (T + 1,)."""
    first, steps = _scores(unary, transition, start, end)
    table, _ = _place_table(first, steps, len(steps) + 1)
    by_length = _log_sum_exp(table[-1], axis=1)
    return np.exp(by_length - _log_sum_exp(by_length, axis=0))


def marginals(
    length: int,
    unary: npt.ArrayLike,
    transition: npt.ArrayLike,
    start: npt.ArrayLike | None = None,
    end: npt.ArrayLike | None = None,
) -> FloatArray:
    """P(s_i = j | length c), shape (c, L)."""
    first, steps = _scores(unary, transition, start, end)
    _, enter = _place_table(first, steps, length)
    after = np.full((length, len(first)), -np.inf)  # B_t(r, j)
    after[0] = 0.0
    total = enter[-1, :length] + after[::-1]
    for t in reversed(range(len(steps))):
        psi = steps[t]
        change = np.where(np.eye(len(first), dtype=np.bool_), -np.inf, psi)
        moved = np.full_like(after, -np.inf)
        moved[1:] = _log_sum_exp(change[None] + after[:-1, None, :], axis=2)
        after = np.logaddexp(np.diag(psi) + after, moved)
        total = np.logaddexp(total, enter[t, :length] + after[::-1])
    return np.asarray(np.exp(total - _log_sum_exp(total, axis=1)[:, None]))


# By enumeration -----------------------------------------------------------------------------------


def trajectory_of(config: Configuration, merge: bool) -> Trajectory:
    """The labels that a configuration goes through; merge: runs of equal ones are one."""
    out: list[int] = []
    for _, _, label in config:
        if not merge or not out or out[-1] != label:
            out.append(label)
    return tuple(out)


def trajectories(scored: Scored, merge: bool) -> dict[Trajectory, float]:
    """The probability of every trajectory that a configuration of the list has."""
    terms: dict[Trajectory, list[float]] = {}
    for (config, _), p in zip(scored, probabilities(scored), strict=True):
        terms.setdefault(trajectory_of(config, merge), []).append(p)
    return {s: math.fsum(p) for s, p in terms.items()}


def length_distribution(known: dict[Trajectory, float], longest: int) -> FloatArray:
    """P(length c), shape (longest + 1,)."""
    out = np.zeros(longest + 1)
    for s, p in known.items():
        if len(s) <= longest:
            out[len(s)] += p
    return out


def place_marginals(known: dict[Trajectory, float], length: int, n_labels: int) -> FloatArray:
    """P(s_i = j, length c), shape (c, L)."""
    out = np.zeros((length, n_labels))
    for s, p in known.items():
        if len(s) == length:
            out[np.arange(length), list(s)] += p
    return out


def place_starts(scored: Scored, trajectory: Trajectory, merge: bool, n_times: int) -> FloatArray:
    """P(place i starts at t | trajectory), shape (c, T)."""
    out = np.zeros((len(trajectory), n_times))
    for (config, _), p in zip(scored, probabilities(scored), strict=True):
        if trajectory_of(config, merge) == trajectory:
            for i, t in enumerate(_starts(config, merge)):
                out[i, t] += p
    return np.asarray(out / out[0].sum())


def _starts(config: Configuration, merge: bool) -> Iterable[int]:
    before = None
    for start, _, label in config:
        if not merge or label != before:
            yield start
        before = label
