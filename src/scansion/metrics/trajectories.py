"""Scores of trajectories: the labels that a sequence goes through, and not where."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from scansion.metrics.base import Sequences
from scansion.schemes import _as_list, _pairs, segments

__all__ = ["compress", "edit_distance", "edit_distance_score", "exact_match_score"]


def compress(labels: Iterable[Any]) -> list[Any]:
    """Trajectory of a label sequence: each run of equal labels becomes one.

    Examples
    --------
    >>> compress("aabbba")
    ['a', 'b', 'a']
    """
    return [segment.label for segment in segments(labels, "plain")]


def edit_distance(a: Iterable[Any], b: Iterable[Any]) -> int:
    """Fewest insertions, deletions and substitutions that turn `a` into `b`.

    D[i, j] = min(D[i-1, j-1] + [a_i != b_j], D[i-1, j] + 1, D[i, j-1] + 1), row by row; the last term, which
    runs along the row, is a running minimum of D[i, j] - j. O(len(a) len(b)).
    Wagner and Fischer (1974), The string-to-string correction problem.
    """
    code: dict[Any, int] = {}
    coded = [np.array([code.setdefault(x, len(code)) for x in _as_list(s)], dtype=np.intp) for s in (a, b)]
    short, long = sorted(coded, key=len)
    steps = np.arange(len(long) + 1)
    row = steps
    for label in short:
        diagonal = row[:-1] + (long != label)
        row = row + 1
        row[1:] = np.minimum(row[1:], diagonal)
        row = np.minimum.accumulate(row - steps) + steps
    return int(row[-1])


def edit_distance_score(y_true: Sequences, y_pred: Sequences, *, merge: bool = True) -> float:
    """Edit distance score of trajectories, EDS.

    EDS = 100 - 100 / N sum_n edit_distance(pred_n, true_n) / max(len(pred_n), len(true_n)), where two empty
    trajectories have distance 0.

    Parameters
    ----------
    y_true, y_pred : lists of label lists
        Label sequences or trajectories; lengths may differ.
    merge : bool
        Compress both sides first, which leaves trajectories without repeats as they are.

    References
    ----------
    Polatkan and Tuzel (2011), Compressed inference for probabilistic sequential models, section 4.
    """
    pairs = _trajectories(y_true, y_pred, merge)
    lost = sum(edit_distance(p, t) / max(len(p), len(t), 1) for t, p in pairs)
    return 100 - 100 * lost / len(pairs) if pairs else 0.0


def exact_match_score(y_true: Sequences, y_pred: Sequences, *, merge: bool = True) -> float:
    """Percentage of trajectories that are right from end to end; see `edit_distance_score`."""
    pairs = _trajectories(y_true, y_pred, merge)
    return 100 * sum(t == p for t, p in pairs) / len(pairs) if pairs else 0.0


def _trajectories(y_true: Sequences, y_pred: Sequences, merge: bool) -> list[tuple[list[Any], list[Any]]]:
    if not isinstance(merge, (bool, np.bool_)):
        raise ValueError(f"merge must be True or False, got {merge!r}")
    pairs = zip(*_pairs(y_true, y_pred, equal=False), strict=True)
    return [(compress(t), compress(p)) for t, p in pairs] if merge else list(pairs)
