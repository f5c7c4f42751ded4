r"""Forward-backward of a first-order chain: in log space, and batched in NumPy.

.. math::

    \alpha_0(y) = s(y) + u_0(y), \qquad
    \alpha_{t+1}(b) = u_{t+1}(b) + \log \sum_a e^{\alpha_t(a) + A_t(a, b)}, \qquad
    \log Z = \log \sum_y e^{\alpha_{T-1}(y) + e(y)}

    \beta_{T-1}(y) = e(y), \qquad \beta_t(a) = \log \sum_b e^{A_t(a, b) + u_{t+1}(b) + \beta_{t+1}(b)}

Paper 001 with ``M = 1`` and patterns of length 1 and 2. Cost ``O(T L^2)``.

Conventions
-----------
unary (T, L); transition (L, L) or (T-1, L, L), row = from, column = to; start and end (L,). The batched
functions take unary (B, T, L), B sequences of one length T >= 1, and share the other arrays.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from scansion.reference.enumeration import FloatArray, IntArray


class ChainMarginals(NamedTuple):
    """log_partition: float or (B,); labels ([B,] T, L); transitions ([B,] T-1, L, L)."""

    log_partition: FloatArray
    labels: FloatArray
    transitions: FloatArray


def _log_sum_exp(scores: FloatArray, axis: int) -> FloatArray:
    return np.asarray(np.logaddexp.reduce(scores, axis=axis), dtype=np.float64)


def _ends(value: npt.ArrayLike | None, n_labels: int) -> FloatArray:
    return np.zeros(n_labels) if value is None else np.asarray(value, dtype=np.float64)


def _steps(transition: npt.ArrayLike, n_times: int) -> FloatArray:
    """The transition scores of every step, (T-1, L, L)."""
    a = np.asarray(transition, dtype=np.float64)
    return a if a.ndim == 3 else np.broadcast_to(a, (max(n_times - 1, 0), *a.shape))


def forward(unary: npt.ArrayLike, transition: npt.ArrayLike, start: npt.ArrayLike | None = None) -> FloatArray:
    r""":math:`\alpha_t(y)`, shape (T, L), T >= 1."""
    u = np.asarray(unary, dtype=np.float64)
    a = _steps(transition, len(u))
    alpha = np.empty_like(u)
    alpha[0] = _ends(start, u.shape[1]) + u[0]
    for t in range(len(u) - 1):
        alpha[t + 1] = u[t + 1] + _log_sum_exp(alpha[t][:, None] + a[t], axis=0)
    return alpha


def backward(unary: npt.ArrayLike, transition: npt.ArrayLike, end: npt.ArrayLike | None = None) -> FloatArray:
    r""":math:`\beta_t(y)`, shape (T, L), T >= 1."""
    u = np.asarray(unary, dtype=np.float64)
    a = _steps(transition, len(u))
    beta = np.empty_like(u)
    beta[-1] = _ends(end, u.shape[1])
    for t in reversed(range(len(u) - 1)):
        beta[t] = _log_sum_exp(a[t] + (u[t + 1] + beta[t + 1])[None, :], axis=1)
    return beta


def log_partition(
    unary: npt.ArrayLike,
    transition: npt.ArrayLike,
    start: npt.ArrayLike | None = None,
    end: npt.ArrayLike | None = None,
) -> float:
    """``log Z``; 0 for the empty sequence."""
    n_times, n_labels = np.shape(unary)
    if n_times == 0:
        return 0.0
    return float(_log_sum_exp(forward(unary, transition, start)[-1] + _ends(end, n_labels), axis=0))


def forward_backward(
    unary: npt.ArrayLike,
    transition: npt.ArrayLike,
    start: npt.ArrayLike | None = None,
    end: npt.ArrayLike | None = None,
) -> ChainMarginals:
    r"""Marginals of labels and of neighbouring labels.

    .. math::

        P(y_t = a) = e^{\alpha_t(a) + \beta_t(a)} / Z, \qquad
        P(y_t = a, y_{t+1} = b) = e^{\alpha_t(a) + A_t(a, b) + u_{t+1}(b) + \beta_{t+1}(b)} / Z
    """
    u = np.asarray(unary, dtype=np.float64)
    n_times, n_labels = u.shape
    if n_times == 0:
        return ChainMarginals(np.zeros(()), np.zeros((0, n_labels)), np.zeros((0, n_labels, n_labels)))
    a = _steps(transition, n_times)
    alpha = forward(u, a, start)
    beta = backward(u, a, end)
    log_z = _log_sum_exp(alpha[-1] + beta[-1], axis=0)
    if log_z == -np.inf:
        raise ValueError("no configuration is possible: every score is -inf")
    labels = np.exp(alpha + beta - log_z)
    transitions = np.exp(alpha[:-1, :, None] + a + (u[1:] + beta[1:])[:, None, :] - log_z)
    return ChainMarginals(log_z, labels, transitions)


def batched_forward_backward(
    unary: npt.ArrayLike,
    transition: npt.ArrayLike,
    start: npt.ArrayLike | None = None,
    end: npt.ArrayLike | None = None,
    *,
    transitions: bool = True,
) -> ChainMarginals:
    """Many sequences of one length at once: the best that plain NumPy does, as a baseline of benchmarks.

    One matrix product per time over all B sequences, in linear space and rescaled at each time, so that paths
    whose weight is below e^-700 of the best one at some time are lost (:func:`forward_backward` keeps them).

    Parameters
    ----------
    unary
        (B, T, L), T >= 1.
    transition
        (L, L) or (T-1, L, L), shared.
    transitions
        Whether to compute the pair marginals, B (T-1) L L numbers; else that field is empty (B, 0, L, L).
    """
    u = np.asarray(unary, dtype=np.float64)
    n_batch, n_times, n_labels = u.shape
    a = np.asarray(transition, dtype=np.float64)
    shift_a = a.max(axis=(-2, -1), keepdims=True) if a.size else np.zeros_like(a)
    weights = np.broadcast_to(np.exp(a - shift_a), (n_times - 1, n_labels, n_labels))
    ends = u.copy()
    ends[:, 0] += _ends(start, n_labels)
    ends[:, -1] += _ends(end, n_labels)
    shift_u = ends.max(axis=2, keepdims=True)
    emission = np.exp(ends - shift_u)

    alpha = np.empty_like(emission)
    scale = np.empty((n_batch, n_times, 1))
    row = emission[:, 0]
    for t in range(n_times):
        if t > 0:
            row = (alpha[:, t - 1] @ weights[t - 1]) * emission[:, t]
        scale[:, t] = row.sum(axis=1, keepdims=True)
        alpha[:, t] = row / scale[:, t]
    message = np.ones((n_batch, n_labels))
    labels = np.empty_like(alpha)
    pairs = np.empty((n_batch, n_times - 1 if transitions else 0, n_labels, n_labels))
    labels[:, -1] = alpha[:, -1]
    for t in reversed(range(n_times - 1)):
        right = emission[:, t + 1] * message / scale[:, t + 1]
        if transitions:
            pairs[:, t] = alpha[:, t, :, None] * weights[t] * right[:, None, :]
        message = right @ weights[t].T
        labels[:, t] = alpha[:, t] * message
    shift_steps = np.broadcast_to(shift_a.reshape(-1), (n_times - 1,)).sum() if n_times > 1 else 0.0
    log_z = np.log(scale).sum(axis=(1, 2)) + shift_u.sum(axis=(1, 2)) + shift_steps
    return ChainMarginals(log_z, labels, pairs)


def batched_viterbi(
    unary: npt.ArrayLike,
    transition: npt.ArrayLike,
    start: npt.ArrayLike | None = None,
    end: npt.ArrayLike | None = None,
) -> tuple[IntArray, FloatArray]:
    """Best labelings (B, T) and their scores (B,) of many sequences; unary (B, T, L), T >= 1."""
    u = np.asarray(unary, dtype=np.float64)
    n_batch, n_times, n_labels = u.shape
    a = _steps(transition, n_times)
    rows = np.arange(n_batch)
    back = np.empty((n_times, n_batch, n_labels), dtype=np.int64)
    delta = u[:, 0] + _ends(start, n_labels)
    for t in range(1, n_times):
        steps = delta[:, :, None] + a[t - 1]
        back[t] = steps.argmax(axis=1)
        delta = u[:, t] + steps.max(axis=1)
    delta = delta + _ends(end, n_labels)
    best = np.empty((n_batch, n_times), dtype=np.int64)
    best[:, -1] = delta.argmax(axis=1)
    for t in range(n_times - 1, 0, -1):
        best[:, t - 1] = back[t, rows, best[:, t]]
    return best, delta[rows, best[:, -1]]
