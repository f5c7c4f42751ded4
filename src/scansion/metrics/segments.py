"""Scores of segments, as conlleval and seqeval report them."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any, NamedTuple

from scansion.metrics.base import Sequences
from scansion.metrics.tokens import flat_accuracy_score
from scansion.schemes import _holds_segments, _pairs, _segment_sets

__all__ = ["Score", "SegmentScores", "conlleval", "segment_scores"]


class Score(NamedTuple):
    """Counts and scores of segments; 0 / 0 is 0, as in conlleval. The support counts true segments."""

    tp: int
    fp: int
    fn: int
    precision: float
    recall: float
    f1: float
    support: int


@dataclass(frozen=True)
class SegmentScores:
    """Segment scores per label and on average; ``str()`` is conlleval's report.

    Attributes
    ----------
    labels : dict
        Label -> `Score`, in alphabetical order.
    micro, macro, weighted : Score
        Of the counts summed over labels; means of the labels' scores; means weighted by support.
    accuracy, n_tokens : float and int, or None
        Fraction of tokens with the right label, and their number; None if segments were given.
    """

    labels: dict[Any, Score]
    micro: Score
    macro: Score
    weighted: Score
    accuracy: float | None
    n_tokens: int | None

    @property
    def precision(self) -> float:
        """Of all labels together (micro), and so are `recall` and `f1`."""
        return self.micro.precision

    @property
    def recall(self) -> float:
        """See `precision`."""
        return self.micro.recall

    @property
    def f1(self) -> float:
        """See `precision`."""
        return self.micro.f1

    def __repr__(self) -> str:
        figures = f"precision={self.precision:.4f}, recall={self.recall:.4f}, f1={self.f1:.4f}"
        return f"SegmentScores({figures}, {self.micro.support} segments of {len(self.labels)} labels)"

    def __str__(self) -> str:
        total, tokens = self.micro, "" if self.n_tokens is None else f" {self.n_tokens} tokens with"
        found = f"found: {total.tp + total.fp} phrases; correct: {total.tp}."
        lines = [f"processed{tokens} {total.support} phrases; {found}"]
        if self.accuracy is None or self.n_tokens is None:
            lines.append(_percentages(total))
        elif self.n_tokens:
            right = round(self.accuracy * self.n_tokens)  # conlleval divides last
            lines.append(f"accuracy: {100 * right / self.n_tokens:6.2f}%; {_percentages(total)}")
        for label, score in self.labels.items():
            lines.append(f"{label!s:>17}: {_percentages(score)}  {score.tp + score.fp}")
        return "\n".join(lines) + "\n"


def segment_scores(y_true: Sequences, y_pred: Sequences, scheme: str = "iob2", **reading: Any) -> SegmentScores:
    """Precision, recall and F_1 of segments; one is right if its start, stop and label are.

    Parameters
    ----------
    y_true, y_pred : lists of sequences
        Each a list of labels, or of segments ``(start, stop, label)``.
    scheme, **reading
        How labels are read: `strict`, `suffix`, `delimiter`, `outside`, see `scansion.schemes.segments`.

    Examples
    --------
    >>> scores = segment_scores([["B-NP", "I-NP", "O", "B-VP"]], [["B-NP", "I-NP", "O", "B-NP"]])
    >>> scores.labels["NP"].recall, scores.micro.f1, scores.accuracy
    (1.0, 0.5, 0.75)
    """
    true, pred = _pairs(y_true, y_pred, equal=False)
    counts: dict[Any, list[int]] = {}
    for wanted, given in _segment_sets(true, pred, "y_pred", scheme, reading):
        for found, column in ((wanted & given, 0), (given - wanted, 1), (wanted - given, 2)):
            for segment in found:
                counts.setdefault(segment.label, [0, 0, 0])[column] += 1
    labels = {label: _score(*counts[label]) for label in sorted(counts, key=str)}
    micro = _score(*(sum(column) for column in zip([0, 0, 0], *counts.values(), strict=True)))
    averages = []
    for weights in ([1] * len(labels), [score.support for score in labels.values()]):
        means: dict[str, Any] = {}
        for name in ("precision", "recall", "f1"):
            values = [getattr(score, name) for score in labels.values()]
            means[name] = sum(map(operator.mul, values, weights)) / max(1, sum(weights))
        averages.append(micro._replace(**means))
    accuracy = n_tokens = None
    if not (_holds_segments(true) or _holds_segments(pred)):
        accuracy, n_tokens = flat_accuracy_score(true, pred), sum(map(len, true))
    return SegmentScores(labels, micro, averages[0], averages[1], accuracy, n_tokens)


def conlleval(y_true: Sequences, y_pred: Sequences, scheme: str = "conlleval", **reading: Any) -> str:
    """Report of the CoNLL-2000 evaluation script, as text; for the parameters see `segment_scores`.

    The script's rules know the tags B, I, E and O; give iobes or bilou as `scheme` for those.
    """
    return str(segment_scores(y_true, y_pred, scheme, **reading))


def _score(tp: int, fp: int, fn: int) -> Score:
    f1 = 2 * tp / (2 * tp + fp + fn or 1)
    return Score(tp, fp, fn, tp / (tp + fp or 1), tp / (tp + fn or 1), f1, tp + fn)


def _percentages(score: Score) -> str:
    # In conlleval's order of operations, so that the digits agree.
    precision, recall = (100 * score.tp / (score.tp + wrong or 1) for wrong in (score.fp, score.fn))
    f1 = 2 * precision * recall / (precision + recall or 1)
    return f"precision: {precision:6.2f}%; recall: {recall:6.2f}%; FB1: {f1:6.2f}"
