"""Whether two sets of predictions differ by more than chance."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scansion.metrics.base import FloatArray, Sequences
from scansion.schemes import _pairs, _segment_sets

__all__ = ["RandomizationTest", "randomization_test"]


class RandomizationTest(NamedTuple):
    """Result of `randomization_test`; the difference is the score of A minus that of B."""

    p_value: float
    difference: float


def randomization_test(
    y_true: Sequences,
    pred_a: Sequences,
    pred_b: Sequences,
    score: str | Callable[[list[Any], list[Any]], float] = "f1",
    n: int = 9999,
    seed: int | np.random.Generator = 0,
    *,
    scheme: str = "iob2",
    **reading: Any,
) -> RandomizationTest:
    """Approximate randomization test of the difference in score between two systems.

    If they are equally good, it makes no difference which of them gave which answer. Each of `n` trials swaps
    the two answers to every sequence with probability 1/2. The significance level is at most
    p' = (n_c + 1) / (n + 1), n_c being the number of trials whose absolute difference is at least the
    observed one. O(n N) for N sequences.

    Parameters
    ----------
    y_true, pred_a, pred_b : lists of sequences
        The truth and the two systems' answers.
    score : "f1" or callable
        Micro F_1 of segments, fast; or a function of (y_true, y_pred), called twice a trial.
    n, seed : int
        Number of trials; the same seed (or `numpy.random.Generator` in the same state), the same result.
    scheme, **reading
        How "f1" reads labels, see `segment_scores`.

    Notes
    -----
    Departs from Cuong, Ye, Lee and Chieu (2014), section 3, who count greater differences only: like Noreen
    it counts ties, without which p' is no upper bound. Whole sequences are swapped, since the labels in one
    depend on each other.

    References
    ----------
    Noreen (1989), Computer-intensive Methods for Testing Hypotheses.
    Yeh (2000), More accurate tests for the statistical significance of result differences.
    """
    if n < 0:
        raise ValueError(f"n is {n}; it must not be negative")
    true, a = _pairs(y_true, pred_a, "pred_a", equal=False)
    _, b = _pairs(true, pred_b, "pred_b", equal=False)
    differences: Callable[[NDArray[np.bool_]], FloatArray]
    if callable(score):
        differences = partial(_differences_by_call, score, true, a, b)
    elif score == "f1":
        counts: list[FloatArray] = []
        for pred, name in ((a, "pred_a"), (b, "pred_b")):
            sets = _segment_sets(true, pred, name, scheme, reading)
            rows = [(2 * len(t & p), len(t) + len(p)) for t, p in sets]
            counts.append(np.array(rows, dtype=np.float64).reshape(-1, 2))
        differences = partial(_differences_of_f1, counts[0], counts[1])
    else:
        raise ValueError(f"score is {score!r}; expected 'f1' or a function of (y_true, y_pred)")
    observed = float(differences(np.zeros((1, len(true)), dtype=bool))[0])
    # The tolerance keeps ties that a sum in another order has torn apart.
    bound = abs(observed) - 1e-12 * max(1.0, abs(observed))
    rng = np.random.default_rng(seed)
    chunk = max(1, 2**20 // max(1, len(true)))  # trials at a time: 8 MB of random numbers
    n_c = 0
    for first in range(0, n, chunk):
        swaps = rng.random((min(chunk, n - first), len(true))) < 0.5
        n_c += int(np.count_nonzero(np.abs(differences(swaps)) >= bound))
    return RandomizationTest((n_c + 1) / (n + 1), observed)


def _differences_by_call(
    score: Callable[[list[Any], list[Any]], float],
    true: list[Any],
    a: list[Any],
    b: list[Any],
    swaps: NDArray[np.bool_],
) -> FloatArray:
    result = np.empty(len(swaps))
    for trial, swap in enumerate(swaps):
        left, right = ([y if s else x for x, y, s in zip(*ab, swap, strict=True)] for ab in ((a, b), (b, a)))
        result[trial] = score(true, left) - score(true, right)
    return result


def _differences_of_f1(a: FloatArray, b: FloatArray, swaps: NDArray[np.bool_]) -> FloatArray:
    """By counts (N, 2) per sequence: twice the matches, and the segments of both sides."""
    moved = swaps.astype(np.float64) @ (b - a)  # (n_trials, 2), whole numbers, exact
    left, right = (a.sum(axis=0) + moved).T, (b.sum(axis=0) - moved).T
    result: FloatArray = left[0] / np.maximum(1, left[1]) - right[0] / np.maximum(1, right[1])
    return result
