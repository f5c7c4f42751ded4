"""Scores of frames and their segments, as action segmentation reports them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from scansion import _checks as checks
from scansion.metrics.base import Sequences
from scansion.metrics.segments import Score, _score
from scansion.metrics.tokens import flat_accuracy_score, flat_recall_score
from scansion.metrics.trajectories import compress, edit_distance_score
from scansion.schemes import _as_list, _checked, _holds_segments, _pairs, encode, segments
from scansion.segments import Segment

__all__ = ["ActionScores", "action_scores", "boundary_f1_score", "overlap_scores", "relaxed_accuracy_score"]


@dataclass(frozen=True)
class ActionScores:
    """Scores as papers on action segmentation report them, in percent; see `action_scores`.

    Attributes
    ----------
    accuracy : float
        Frames with the right label ("Acc", "MoF").
    mean_accuracy : float
        Mean over labels of the frames of this label that are found ("MoC").
    edit : float
        `edit_distance_score` of the sequences of segments.
    f1 : dict
        Overlap in percent -> F_1 of `overlap_scores`, "F1@10" and so on.
    """

    accuracy: float
    mean_accuracy: float
    edit: float
    f1: dict[int, float]

    def __str__(self) -> str:
        f1 = "  ".join(f"F1@{overlap} {value:.1f}" for overlap, value in self.f1.items())
        return f"{f1}  edit {self.edit:.1f}  accuracy {self.accuracy:.1f}  over labels {self.mean_accuracy:.1f}"


def action_scores(
    y_true: Sequences, y_pred: Sequences, overlaps: Sequence[int] = (10, 25, 50), ignore: Iterable[Any] = ()
) -> ActionScores:
    """F1@10, 25 and 50, edit score and accuracies, as action segmentation reports them.

    Parameters
    ----------
    y_true, y_pred : lists of sequences
        Each a list of labels, one a frame, or of segments ``(start, stop, label)`` that cover it.
    overlaps : sequence of int
        In percent.
    ignore : iterable
        Labels of the background: their segments do not count (they do in the accuracies).

    Examples
    --------
    >>> print(action_scores(["aaabbb"], ["aabbbb"]))
    F1@10 100.0  F1@25 100.0  F1@50 100.0  edit 100.0  accuracy 83.3  over labels 83.3

    References
    ----------
    Lea, Flynn, Vidal, Reiter and Hager (2017), Temporal convolutional networks for action segmentation and detection.
    """
    left_out = set(ignore)
    true, pred = _frames(y_true), _frames(y_pred, "y_pred")
    _pairs(true, pred)
    kept = [[[y for y in compress(row) if y not in left_out] for row in side] for side in (true, pred)]
    recalls = flat_recall_score(true, pred, average=None, labels=sorted({y for row in true for y in row}, key=str))
    return ActionScores(
        100 * flat_accuracy_score(true, pred),
        100 * float(np.mean(recalls)) if np.size(recalls) else 0.0,
        edit_distance_score(kept[0], kept[1], merge=False),
        {overlap: 100 * overlap_scores(true, pred, overlap / 100, left_out).f1 for overlap in overlaps},
    )


def overlap_scores(y_true: Sequences, y_pred: Sequences, overlap: float = 0.5, ignore: Iterable[Any] = ()) -> Score:
    """Precision, recall and F_1 of segments that need not fit exactly: F1@k for overlap = k / 100.

    A predicted segment belongs to the true one of its label that it overlaps most, by intersection over union (the
    earlier of equals). It is right if that is at least `overlap` and no earlier segment was right by it. Counts are
    summed over sequences.

    Parameters
    ----------
    y_true, y_pred : lists of sequences
        As for `action_scores`; segments may leave gaps.
    overlap : float
        Above 0 up to 1.
    ignore : iterable
        Labels whose segments do not count.
    """
    if not checks.is_number(overlap) or not 0 < overlap <= 1:
        raise ValueError(f"overlap is {overlap}; it must lie above 0 and be at most 1")
    left_out = set(ignore)
    true, pred = _pairs(y_true, y_pred, equal=False)
    tp = fp = fn = 0
    for wanted, given in zip(_spans(true, "y_true"), _spans(pred, "y_pred"), strict=True):
        wanted, given = ([s for s in side if s.label not in left_out] for side in (wanted, given))
        hit = [False] * len(wanted)
        for start, stop, label in given:
            best, at = 0.0, -1
            for i, (u, v, y) in enumerate(wanted):
                if y == label and (common := min(stop, v) - max(start, u)) > 0:
                    share = common / (max(stop, v) - min(start, u))
                    best, at = (share, i) if share > best else (best, at)
            if best >= overlap and not hit[at]:
                hit[at] = True
                tp += 1
            else:
                fp += 1
        fn += hit.count(False)
    return _score(tp, fp, fn)


def relaxed_accuracy_score(y_true: Sequences, y_pred: Sequences, tolerance: int) -> float:
    """Fraction of frames whose label is the true one of some frame at most `tolerance` away: boundaries are relaxed."""
    checks.count("tolerance", tolerance, 0)
    true, pred = _frames(y_true), _frames(y_pred, "y_pred")
    _pairs(true, pred)
    right = total = 0
    for wanted, given in zip(true, pred, strict=True):
        total += len(wanted)
        right += sum(y in wanted[max(0, t - tolerance) : t + tolerance + 1] for t, y in enumerate(given))
    return right / total if total else 0.0


def boundary_f1_score(y_true: Sequences, y_pred: Sequences, tolerance: int = 0) -> float:
    """F_1 of the places where labels change, whatever the labels are.

    A predicted boundary is right if a true one that no other was matched with is at most `tolerance` frames away; going
    from left to right, each takes the first that is left, which matches as many as can be.
    """
    checks.count("tolerance", tolerance, 0)
    true, pred = _pairs(y_true, y_pred, equal=False)
    tp = wanted = given = 0
    for left, right in zip(_spans(true, "y_true"), _spans(pred, "y_pred"), strict=True):
        a, b = ([segment.start for segment in side[1:]] for side in (left, right))
        wanted, given, i = wanted + len(a), given + len(b), 0
        for at in b:
            while i < len(a) and a[i] < at - tolerance:
                i += 1
            if i < len(a) and a[i] <= at + tolerance:
                tp, i = tp + 1, i + 1
    return _score(tp, given - tp, wanted - tp).f1


def _spans(sequences: list[list[Any]], name: str) -> list[list[Segment]]:
    """Segments of sequences of labels, or of segments."""
    if not _holds_segments(sequences):
        return [segments(row, "plain") for row in sequences]
    found = []
    for index, row in enumerate(sequences):
        try:
            found.append(_checked(row, None))
        except ValueError as error:
            raise ValueError(f"{name}[{index}]: {error}") from None
    return found


def _frames(sequences: Sequences, name: str = "y_true") -> list[list[Any]]:
    """Labels of sequences, one a frame."""
    rows = list(map(_as_list, sequences))
    if not _holds_segments(rows):
        return rows
    spans = _spans(rows, name)
    return [encode(row, row[-1].stop if row else 0, "plain") for row in spans]
