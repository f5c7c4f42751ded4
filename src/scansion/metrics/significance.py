"""Whether two sets of predictions differ by more than chance."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scansion import _checks as checks
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
    unit: Literal["sequence", "segment"] = "sequence",
    one_sided: bool = False,
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
    unit : {"sequence", "segment"}
        What is swapped: whole answers or, of "f1", each segment that only one of the systems has (Yeh 2000).
    one_sided : bool
        Count the trials with a greater difference of the observed sign, not those of either sign and ties.
    scheme, **reading
        How "f1" reads labels, see `segment_scores`.

    Notes
    -----
    Departs from Cuong, Ye, Lee and Chieu (2014), section 3: like Noreen it counts ties, without which p' is no upper
    bound, and differences of both signs; and whole sequences are swapped, since the labels in one depend on each other,
    so that segments are no independent evidence. ``unit="segment", one_sided=True`` gives p' as they have it, which is
    much smaller.

    References
    ----------
    Noreen (1989), Computer-intensive Methods for Testing Hypotheses.
    Yeh (2000), More accurate tests for the statistical significance of result differences.
    """
    n = checks.count("n", n, 0)
    if not checks.among(unit, ("sequence", "segment")):
        raise ValueError(f"unit is {unit!r}; expected 'sequence' or 'segment'")
    if unit == "segment" and not checks.among(score, ("f1",)):
        raise ValueError("unit='segment' goes with score='f1': another score has no segments to swap")
    true, a = _pairs(y_true, pred_a, "pred_a", equal=False)
    _, b = _pairs(true, pred_b, "pred_b", equal=False)
    differences: Callable[[NDArray[np.bool_]], FloatArray]
    units = len(true)
    if callable(score):
        differences = partial(_differences_by_call, score, true, a, b)
    elif checks.among(score, ("f1",)):
        sets = [_segment_sets(true, pred, name, scheme, reading) for pred, name in ((a, "pred_a"), (b, "pred_b"))]
        counts = (_by_sequence if unit == "sequence" else _by_segment)(sets[0], sets[1])
        differences = partial(_differences_of_f1, *counts)
        units = len(counts[0])
    else:
        raise ValueError(f"score is {score!r}; expected 'f1' or a function of (y_true, y_pred)")
    observed = float(differences(np.zeros((1, units), dtype=bool))[0])
    # The tolerance keeps ties that a sum in another order has torn apart.
    slack = 1e-12 * max(1.0, abs(observed))
    rng = checks.generator(seed)
    chunk = max(1, 2**20 // max(1, units))  # trials at a time: 8 MB of random numbers
    n_c = 0
    for first in range(0, n, chunk):
        found = differences(rng.random((min(chunk, n - first), units)) < 0.5)
        if one_sided and observed != 0.0:
            more = found * np.sign(observed) > abs(observed) + slack
        else:
            more = np.abs(found) >= abs(observed) - slack
        n_c += int(np.count_nonzero(more))
    return RandomizationTest((n_c + 1) / (n + 1), observed)


Sets = list[tuple[set[Any], set[Any]]]  # by sequence: true and predicted segments


def _by_sequence(a: Sets, b: Sets) -> tuple[FloatArray, FloatArray]:
    """Twice the matches, and the segments of both sides, of each sequence (N, 2), by A and by B."""
    rows = ([(2 * len(t & p), len(t) + len(p)) for t, p in sets] for sets in (a, b))
    left, right = (np.array(one, dtype=np.float64).reshape(-1, 2) for one in rows)
    return left, right


def _by_segment(a: Sets, b: Sets) -> tuple[FloatArray, FloatArray]:
    """The same, of what both have, and of each segment that only one has."""
    common, left, right = np.zeros(2), [], []
    for (true, p), (_, q) in zip(a, b, strict=True):
        common += 2 * len(true & p & q), len(true) + len(p & q)
        for segment in sorted(p ^ q, key=repr):
            row = (2.0 * (segment in true), 1.0)
            left.append(row if segment in p else (0.0, 0.0))
            right.append(row if segment in q else (0.0, 0.0))
    return np.array([tuple(common), *left]), np.array([tuple(common), *right])


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
    """By counts (N, 2) of what is swapped: twice the matches, and the segments of both sides."""
    moved = swaps.astype(np.float64) @ (b - a)  # (n_trials, 2), whole numbers, exact
    left, right = (a.sum(axis=0) + moved).T, (b.sum(axis=0) - moved).T
    result: FloatArray = left[0] / np.maximum(1, left[1]) - right[0] / np.maximum(1, right[1])
    return result
