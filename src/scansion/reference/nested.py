r"""Asymmetric inside-outside of the hierarchical semi-Markov CRF, in log space (papers 000 and 003).

A configuration is a tree of D levels: level 0 is one segment over everything, each segment of level d < D-1 is cut
into a chain of child segments at level d+1. With half-open spans [i, j),

.. math::
    D^d_s(i, j)      &= \text{weight of everything strictly inside an s-segment},\quad D^{D-1} = 1 \\
    \hat D^d_s(i, j) &= D^d_s(i, j)\, e^{R^d_s(i, j)} \\
    \alpha_{s,u}(i, j) &= \hat D_u(i, j) e^{I_{s,u}(i)}
        + \sum_{i<t<j} \hat D_u(t, j) \sum_v \alpha_{s,v}(i, t) e^{A_{s,v,u}(t-1)} \\
    D^d_s(i, j)      &= \sum_u \alpha_{s,u}(i, j) e^{E_{s,u}(j-1)},\qquad Z = \sum_s \hat D^0_s(0, T)

and outside, :math:`\Lambda^0_s(0, T) = 1`,

.. math::
    \lambda_{s,u}(i, j) &= \Lambda_s(i, j) e^{R_s(i, j)} e^{E_{s,u}(j-1)}
        + \sum_{t>j} \sum_v \lambda_{s,v}(i, t) \hat D_v(j, t) e^{A_{s,u,v}(j-1)} \\
    \Lambda_u(i, j) &= \sum_s \Big[ \lambda_{s,u}(i, j) e^{I_{s,u}(i)}
        + \sum_{t<i} \lambda_{s,u}(t, j) \sum_v \alpha_{s,v}(t, i) e^{A_{s,v,u}(i-1)} \Big]

(000, section 4, eqs. 40, 44, 47 and 51. Departs from the paper where it misprints: the inside mass of eq. 41 is the
child's, A has the child's level and I the parent's, and products over I and E run over the parent's ending times.)

Conventions
-----------
``persist[d]`` (T, M_d, S_d): start, length - 1, state; the root counts at [0, T - 1] only. ``transit[d - 1]``
(S_{d-1}, S_d, S_d) or (T-1, ...): parent, left child, right child, at index t the left child ends at t. ``init[d]``,
``end[d]`` (S_d, S_{d+1}) or (T, ...): at the parent's first and last time. ``children[d]`` bool (S_d, S_{d+1}).
Tables are logarithms indexed [i, j]. Cost O(T^3 S^3) per level whatever the bounds: a specification, not an engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from scansion.reference.enumeration import FloatArray

Known = dict[int, npt.ArrayLike]


@dataclass(frozen=True)
class Scores:
    """Scores of one sequence, complete: span scores R[d] (T+1, T+1, S_d), A[d] for d >= 1, I[d] and E[d] by time.

    ``A[d]`` (T, S_{d-1}, S_d, S_d), ``I[d]``, ``E[d]`` (T, S_d, S_{d+1}); what the topology forbids is -inf.
    """

    R: list[FloatArray]
    A: list[FloatArray]
    I: list[FloatArray]
    E: list[FloatArray]

    @property
    def n_times(self) -> int:
        """T."""
        return len(self.R[0]) - 1

    @property
    def n_levels(self) -> int:
        """D."""
        return len(self.R)


@dataclass(frozen=True)
class Marginals:
    """Posteriors by level: labels (T, S), boundaries (T,), segments (T, T, S); transit, init, end by time."""

    labels: list[FloatArray]
    boundaries: list[FloatArray]
    segments: list[FloatArray]
    transit: list[FloatArray]
    init: list[FloatArray]
    end: list[FloatArray]


def complete(
    persist: Sequence[npt.ArrayLike],
    transit: Sequence[npt.ArrayLike],
    init: Sequence[npt.ArrayLike],
    end: Sequence[npt.ArrayLike],
    children: Sequence[npt.ArrayLike] | None = None,
    labels: Known | None = None,
    boundaries: Known | None = None,
) -> Scores:
    """All scores by span and time; spans that leave the sequence, are too long or contradict what is known are -inf.

    ``labels[d]`` int (T,) with -1 or bool (T, S_d); ``boundaries[d]`` int (T,): 1 a segment of level d ends at t, 0
    none does, -1 unknown.
    """
    n_levels = len(persist)
    n_times = np.shape(persist[0])[0]
    R = []
    for d, given in enumerate(persist):
        scores = np.asarray(given, dtype=np.float64)
        table = np.full((n_times + 1, n_times + 1, scores.shape[2]), -np.inf)
        for i in range(n_times):
            for j in range(i + 1, min(n_times, i + scores.shape[1]) + 1):
                if d > 0 or (i, j) == (0, n_times):
                    table[i, j] = scores[i, j - i - 1]
        _forbid(table, (labels or {}).get(d), (boundaries or {}).get(d))
        R.append(table)

    def by_time(given: npt.ArrayLike, ndim: int, rows: int) -> FloatArray:
        array = np.asarray(given, dtype=np.float64)
        if array.ndim == ndim:
            array = np.broadcast_to(array, (rows, *array.shape))
        return array.copy()

    A = [np.empty(0)] + [by_time(a, 3, max(n_times - 1, 0)) for a in transit]
    I = [by_time(a, 2, n_times) for a in init]
    E = [by_time(a, 2, n_times) for a in end]
    if children is not None:
        for d in range(n_levels - 1):
            mask = np.asarray(children[d], dtype=np.bool_)
            I[d][:, ~mask] = -np.inf
            E[d][:, ~mask] = -np.inf
            A[d + 1][:, ~(mask[:, :, None] & mask[:, None, :])] = -np.inf
    return Scores(R, A, I, E)


def _forbid(table: FloatArray, labels: npt.ArrayLike | None, boundaries: npt.ArrayLike | None) -> None:
    n_times, size = len(table) - 1, table.shape[2]
    for i in range(n_times):
        for j in range(i + 1, n_times + 1):
            if boundaries is not None:
                ends = np.asarray(boundaries)
                if (ends[i : j - 1] == 1).any() or ends[j - 1] == 0 or (i > 0 and ends[i - 1] == 0):
                    table[i, j] = -np.inf
            if labels is not None:
                known = np.asarray(labels)
                if known.ndim == 1:
                    known = (known[:, None] == np.arange(size)) | (known[:, None] < 0)
                table[i, j, ~known[i:j].all(axis=0)] = -np.inf


def _add(x: FloatArray, axis: int | tuple[int, ...]) -> FloatArray:
    """Log sum exp over the axis; -inf where every term is."""
    top = np.max(x, axis=axis, keepdims=True, initial=-np.inf)
    safe = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        total = np.log(np.sum(np.exp(x - safe), axis=axis, keepdims=True)) + safe
    result: FloatArray = np.squeeze(total, axis=axis)
    return result


def _highest(x: FloatArray, axis: int | tuple[int, ...]) -> FloatArray:
    result: FloatArray = np.max(x, axis=axis, initial=-np.inf)
    return result


def inside(s: Scores, best: bool = False) -> tuple[list[FloatArray], list[FloatArray]]:
    """``Dh[d]`` (T+1, T+1, S_d) and ``al[d]`` (T+1, T+1, S_d, S_{d+1}); with `best`, max in place of sum."""
    add = _highest if best else _add
    n = s.n_times
    Dh: list[FloatArray] = [np.empty(0)] * s.n_levels
    al: list[FloatArray] = [np.empty(0)] * (s.n_levels - 1)
    Dh[-1] = s.R[-1]
    for d in reversed(range(s.n_levels - 1)):
        size, below = s.R[d].shape[2], s.R[d + 1].shape[2]
        D = np.full((n + 1, n + 1, size), -np.inf)
        al[d] = np.full((n + 1, n + 1, size, below), -np.inf)
        for i in range(n):
            for j in range(i + 1, n + 1):
                ways = [Dh[d + 1][i, j] + s.I[d][i]]
                for t in range(i + 1, j):
                    before = add(al[d][i, t][:, :, None] + s.A[d + 1][t - 1], axis=1)
                    ways.append(Dh[d + 1][t, j] + before)
                al[d][i, j] = add(np.stack(ways), axis=0)
                D[i, j] = add(al[d][i, j] + s.E[d][j - 1], axis=1)
        Dh[d] = D + s.R[d]
    return Dh, al


def log_partition(s: Scores) -> float:
    """``log Z``; -inf if nothing is possible, 0 for the empty sequence."""
    if s.n_times == 0:
        return 0.0
    return float(_add(inside(s)[0][0][0, s.n_times], axis=0))


def best_score(s: Scores) -> float:
    """The score of the best configuration (000, eqs. 58 to 61)."""
    if s.n_times == 0:
        return 0.0
    return float(_highest(inside(s, best=True)[0][0][0, s.n_times], axis=0))


def outside(s: Scores, Dh: list[FloatArray], al: list[FloatArray]) -> tuple[list[FloatArray], list[FloatArray]]:
    """``La[d]`` (T+1, T+1, S_d) and ``la[d]`` (T+1, T+1, S_d, S_{d+1})."""
    n = s.n_times
    La = [np.full(table.shape, -np.inf) for table in s.R]
    la = [np.full(table.shape, -np.inf) for table in al]
    La[0][0, n] = 0.0
    for d in range(s.n_levels - 1):
        for i in range(n):
            for j in reversed(range(i + 1, n + 1)):
                ways = [(La[d][i, j] + s.R[d][i, j])[:, None] + s.E[d][j - 1]]
                for t in range(j + 1, n + 1):
                    after = la[d][i, t] + Dh[d + 1][j, t]  # (S_d, S_{d+1}) by right child
                    ways.append(_add(after[:, None, :] + s.A[d + 1][j - 1], axis=2))
                la[d][i, j] = _add(np.stack(ways), axis=0)
        for i in range(n):
            for j in range(i + 1, n + 1):
                ways = [_add(la[d][i, j] + s.I[d][i], axis=0)]
                for t in range(i):
                    before = _add(al[d][t, i][:, :, None] + s.A[d + 1][i - 1], axis=1)
                    ways.append(_add(la[d][t, j] + before, axis=0))
                La[d + 1][i, j] = _add(np.stack(ways), axis=0)
    return La, la


def marginals(s: Scores) -> Marginals:
    """Posteriors of segments, labels, boundaries, transitions, initialisations and endings at every level."""
    n, levels = s.n_times, range(s.n_levels)
    sizes = [table.shape[2] for table in s.R]
    answer = Marginals(
        [np.zeros((n, size)) for size in sizes],
        [np.zeros(n) for _ in levels],
        [np.zeros((n, n, size)) for size in sizes],
        [np.zeros(a.shape) for a in s.A[1:]],
        [np.zeros(a.shape) for a in s.I],
        [np.zeros(a.shape) for a in s.E],
    )
    if n == 0:
        return answer
    Dh, al = inside(s)
    log_z = float(_add(Dh[0][0, n], axis=0))
    if log_z == -np.inf:
        raise ValueError("no configuration is possible: every score is -inf")
    La, la = outside(s, Dh, al)
    for d in levels:
        for i in range(n):
            for j in range(i + 1, n + 1):
                p = np.exp(Dh[d][i, j] + La[d][i, j] - log_z)
                answer.segments[d][i, j - i - 1] = p
                answer.labels[d][i:j] += p
                answer.boundaries[d][j - 1] += p.sum()
    for d in range(s.n_levels - 1):
        for i in range(n):
            for j in range(i + 1, n + 1):
                answer.init[d][i] += np.exp(s.I[d][i] + la[d][i, j] + Dh[d + 1][i, j] - log_z)
                whole = (La[d][i, j] + s.R[d][i, j])[:, None]
                answer.end[d][j - 1] += np.exp(s.E[d][j - 1] + whole + al[d][i, j] - log_z)
                for t in range(i + 1, j):  # left child ends at t - 1, right child is [t, j)
                    left = al[d][i, t][:, :, None]
                    right = (la[d][i, j] + Dh[d + 1][t, j])[:, None, :]
                    answer.transit[d][t - 1] += np.exp(s.A[d + 1][t - 1] + left + right - log_z)
    return answer
