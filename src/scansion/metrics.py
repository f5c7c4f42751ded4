"""Scores of predicted label sequences, segments and trajectories.

Conventions
-----------
- `y_true` and `y_pred` are lists of sequences in the same order. A sequence is a list of labels, one per
  token; the segment scores also take lists of ``(start, stop, label)``.
- tp, fp, fn count true positives, false positives and false negatives::

      precision = tp / (tp + fp)    recall = tp / (tp + fn)
      F_beta = (1 + beta^2) tp / ((1 + beta^2) tp + beta^2 fn + fp)

  (van Rijsbergen 1979, Information Retrieval, chapter 7).
- Scores lie in [0, 1], those of trajectories in [0, 100] as in their paper. Without any sequence or token,
  accuracies and trajectory scores are 0.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scansion.schemes import _as_list, _checked, _holds_segments, _pairs, _segment_sets, detect, encode, segments
from scansion.segments import Segment

# fmt: off
__all__ = [
    "ActionScores", "RandomizationTest", "Score", "Scorer", "SegmentScores", "action_scores", "boundary_f1_score",
    "compress", "conlleval", "edit_distance", "edit_distance_score", "exact_match_score", "flat_accuracy_score",
    "flat_classification_report", "flat_f1_score", "flat_fbeta_score", "flat_precision_score", "flat_recall_score",
    "overlap_scores", "randomization_test", "relaxed_accuracy_score", "scorer", "segment_scores",
    "sequence_accuracy_score",
]
# fmt: on

FloatArray = NDArray[np.float64]
Sequences = Iterable[Iterable[Any]]


# ---- tokens --------------------------------------------------------------------------------------
def flat_accuracy_score(y_true: Sequences, y_pred: Sequences) -> float:
    """Fraction of tokens with the right label."""
    true, pred = _pairs(y_true, y_pred)
    right = [t == p for pair in zip(true, pred, strict=True) for t, p in zip(*pair, strict=True)]
    return sum(right) / len(right) if right else 0.0


def sequence_accuracy_score(y_true: Sequences, y_pred: Sequences) -> float:
    """Fraction of sequences with the right label everywhere."""
    true, pred = _pairs(y_true, y_pred)
    return sum(map(operator.eq, true, pred)) / len(true) if true else 0.0


def flat_precision_score(y_true: Sequences, y_pred: Sequences, **kwargs: Any) -> float | FloatArray:
    """Precision over tokens, F_0; for the parameters see `flat_fbeta_score`."""
    return flat_fbeta_score(y_true, y_pred, 0.0, **kwargs)


def flat_recall_score(y_true: Sequences, y_pred: Sequences, **kwargs: Any) -> float | FloatArray:
    """Recall over tokens, F_infinity; for the parameters see `flat_fbeta_score`."""
    return flat_fbeta_score(y_true, y_pred, np.inf, **kwargs)


def flat_f1_score(y_true: Sequences, y_pred: Sequences, **kwargs: Any) -> float | FloatArray:
    """F_1 over tokens; for the parameters see `flat_fbeta_score`."""
    return flat_fbeta_score(y_true, y_pred, 1.0, **kwargs)


def flat_fbeta_score(
    y_true: Sequences,
    y_pred: Sequences,
    beta: float,
    *,
    labels: Iterable[Any] | None = None,
    pos_label: Any = 1,
    average: str | None = "binary",
    sample_weight: Any = None,
    zero_division: float | str = "warn",
) -> float | FloatArray:
    """F_beta over tokens, with scikit-learn's parameters and results.

    Parameters
    ----------
    y_true, y_pred : lists of label lists
        Of equal lengths.
    beta : float
        Weight of recall against precision; 0 gives precision, infinity recall.
    labels : iterable, optional
        The labels to score, all by default.
    pos_label : label
        The label to score if `average` is "binary".
    average : {"binary", "micro", "macro", "weighted"} or None
        One of at most two labels; counts summed over labels; the mean over labels; the mean weighted by
        support; or None for an array with one score per label, in the order of `labels` (sorted by default).
    sample_weight : array-like (n_tokens,), optional
        Weight of each token, over all sequences.
    zero_division : {"warn", 0, 1, nan}
        The value of 0 / 0. "warn" is 0 with a `RuntimeWarning`; nan is left out of means.
    """
    if average not in ("binary", "micro", "macro", "weighted", None):
        raise ValueError(f"average is {average!r}; expected binary, micro, macro, weighted or None")
    if not beta >= 0:
        raise ValueError(f"beta is {beta!r}; it must not be negative")
    counts = _LabelCounts(y_true, y_pred, [pos_label] if average == "binary" else labels, sample_weight)
    if average == "binary" and len(counts.present) > 2:
        raise ValueError(f"average='binary' is for two labels, not {len(counts.present)}; choose another")
    if average == "binary" and len(counts.present - {pos_label}) == 2:
        raise ValueError(f"pos_label is {pos_label!r}, but the labels are {sorted(counts.present)}")
    return counts.score(beta, average, zero_division)


def flat_classification_report(
    y_true: Sequences,
    y_pred: Sequences,
    labels: Iterable[Any] | None = None,
    *,
    target_names: Sequence[str] | None = None,
    sample_weight: Any = None,
    digits: int = 2,
    output_dict: bool = False,
    zero_division: float | str = "warn",
) -> str | dict[str, Any]:
    """Precision, recall, F_1 and support of each label and on average, over tokens, as scikit-learn's.

    The line of micro averages is named "accuracy" if every label that occurs is among `labels`.

    Parameters
    ----------
    y_true, y_pred, labels, sample_weight, zero_division
        As for `flat_fbeta_score`.
    target_names : sequence of str, optional
        Names to show for the labels, in their order.
    digits : int
        Decimals of the text.
    output_dict : bool
        Return the numbers: name -> {"precision", "recall", "f1-score", "support"}.
    """
    counts = _LabelCounts(y_true, y_pred, labels, sample_weight)
    names = list(map(str, counts.labels if target_names is None else target_names))
    if len(names) != len(counts.labels):
        raise ValueError(f"target_names has {len(names)} names for {len(counts.labels)} labels")
    columns = ("precision", "recall", "f1-score", "support")
    scores = [np.atleast_1d(counts.score(beta, None, zero_division)) for beta in (0, np.inf, 1)]
    rows = [[name, *cells] for name, *cells in zip(names, *scores, counts.true, strict=True)]
    complete = counts.present <= set(counts.labels)
    for average in ("micro", "macro", "weighted"):
        name = "accuracy" if average == "micro" and complete else f"{average} avg"
        means = [counts.score(beta, average, zero_division) for beta in (0, np.inf, 1)]
        rows.append([name, *means, counts.true.sum()])
    if output_dict:
        table: dict[str, Any] = {row[0]: dict(zip(columns, map(float, row[1:]), strict=True)) for row in rows}
        return table | {"accuracy": table["accuracy"]["precision"]} if complete else table
    width = max(digits, *map(len, [*names, "weighted avg"]))
    lines = [f"{'':>{width}} " + "".join(f" {column:>9}" for column in columns), ""]
    for index, (name, *values, support) in enumerate(rows):
        cells = [*(f"{value:.{digits}f}" for value in values), str(support)]
        if complete and index == len(names):  # of the accuracy, one column is enough
            cells[:2] = "", ""
        lines.append(f"{name:>{width}} " + "".join(f" {cell:>9}" for cell in cells))
    lines.insert(-3, "")
    return "\n".join(lines) + "\n"


class _LabelCounts:
    """Counts of true, predicted and matching tokens, each an array (n_labels,)."""

    def __init__(self, y_true: Sequences, y_pred: Sequences, labels: Iterable[Any] | None, sample_weight: Any) -> None:
        true, pred = _pairs(y_true, y_pred)
        flat_true = [label for sequence in true for label in sequence]
        flat_pred = [label for sequence in pred for label in sequence]
        try:
            self.present = set(flat_true).union(flat_pred)
            self.labels = sorted(self.present) if labels is None else _as_list(labels)
        except TypeError:
            raise ValueError(f"labels must have a hash and an order; {_first_odd(true, pred)}") from None
        if len(set(self.labels)) < len(self.labels):
            raise ValueError(f"labels has repeats: {self.labels}")
        weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        if weight is not None and weight.shape != (len(flat_true),):
            raise ValueError(f"sample_weight has shape {weight.shape}; expected ({len(flat_true)},)")
        size = len(self.labels)
        code = {label: index for index, label in enumerate(self.labels)}
        # Labels that are not asked for share the code behind the last.
        codes_true = np.array([code.get(label, size) for label in flat_true], dtype=np.intp)
        codes_pred = np.array([code.get(label, size) for label in flat_pred], dtype=np.intp)
        hits = codes_true == codes_pred
        self.true = np.bincount(codes_true, weight, size + 1)[:size]
        self.pred = np.bincount(codes_pred, weight, size + 1)[:size]
        self.tp = np.bincount(codes_true[hits], None if weight is None else weight[hits], size + 1)[:size]

    def score(self, beta: float, average: str | None, zero_division: float | str) -> float | FloatArray:
        """F_beta; precision for beta = 0, recall for infinity."""
        if zero_division not in ("warn", 0, 1) and zero_division == zero_division:
            raise ValueError(f"zero_division is {zero_division!r}; expected 'warn', 0, 1 or nan")
        undefined = 0.0 if zero_division == "warn" else float(zero_division)
        tp, pred, true = self.tp, self.pred, self.true
        if average == "micro":
            tp, pred, true = (np.atleast_1d(count.sum()) for count in (tp, pred, true))
        over, under = ((1 + beta**2) * tp, beta**2 * true + pred) if beta < np.inf else (tp, true)
        scores: FloatArray = np.full(len(under), undefined)
        np.divide(over, under, out=scores, where=under != 0)
        if zero_division == "warn" and not (under.size and under.all()):
            name = {0: "precision", np.inf: "recall"}.get(beta, "F-score")
            message = f"{name} is 0 / 0 for some label and taken as 0; zero_division=0 does so silently"
            warnings.warn(message, RuntimeWarning, stacklevel=3)
        if average is None:
            return scores
        defined = ~np.isnan(scores)
        if not defined.any():
            return undefined
        weights = true[defined] if average == "weighted" and true[defined].any() else None
        return float(np.average(scores[defined], weights=weights))


def _first_odd(true: list[list[Any]], pred: list[list[Any]]) -> str:
    """Name the first label that has no hash, or not the type of the very first."""
    kind = next(type(label) for sequence in true for label in sequence)
    for name, sequences in (("y_true", true), ("y_pred", pred)):
        for index, sequence in enumerate(sequences):
            for position, label in enumerate(sequence):
                if type(label) is not kind or type(label).__hash__ is None:
                    return f"{name}[{index}][{position}] is {label!r}"
    return f"{true[0]!r} have not"


# ---- segments ------------------------------------------------------------------------------------
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


# ---- trajectories --------------------------------------------------------------------------------
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


# ---- action segmentation -------------------------------------------------------------------------
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
    if not 0 < overlap <= 1:
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
    if tolerance < 0:
        raise ValueError(f"tolerance is {tolerance}; it must not be negative")
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
    if tolerance < 0:
        raise ValueError(f"tolerance is {tolerance}; it must not be negative")
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


# ---- scorers for scikit-learn --------------------------------------------------------------------
class Scorer:
    """A score of an estimator's predictions, ``scorer(estimator, X, y)``; made by `scorer`."""

    def __init__(self, name: str, options: dict[str, Any]) -> None:
        self.name, self.options = name, options

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        """The score of ``estimator.predict(X)``; higher is better."""
        return float(_SCORERS[self.name](list(y), list(estimator.predict(X)), **self.options))

    def __repr__(self) -> str:
        return f"scorer({', '.join([repr(self.name), *(f'{k}={v!r}' for k, v in self.options.items())])})"


def scorer(name: str, **options: Any) -> Scorer:
    """A scorer by name, for ``scoring=`` of scikit-learn's ``cross_val_score`` and ``GridSearchCV``, also in dicts.

    Parameters
    ----------
    name : str
        "segment_f1", "segment_precision", "segment_recall" (`segment_scores`, micro), "accuracy" (tokens),
        "sequence_accuracy", "flat_f1", "flat_precision", "flat_recall" (tokens, weighted mean over labels), "edit",
        "exact_match" (trajectories), "f1@10", "f1@25", "f1@50" (`overlap_scores`), "relaxed_accuracy", "boundary_f1".
    **options
        Passed on to the score: `scheme` of segments (guessed from y unless given), `average`, `labels`, `tolerance`.

    Examples
    --------
    >>> scorer("segment_f1", scheme="iob2")
    scorer('segment_f1', scheme='iob2')
    """
    if name not in _SCORERS:
        raise ValueError(f"unknown score {name!r}; known: {', '.join(_SCORERS)}")
    return Scorer(name, options)


def _by_segments(true: list[Any], pred: list[Any], *, which: str, scheme: str | None = None, **reading: Any) -> float:
    if scheme is None:
        scheme = "plain" if _holds_segments(list(map(_as_list, true))) else detect(true)
    return float(getattr(segment_scores(true, pred, scheme, **reading), which))


def _by_tokens(y_true: list[Any], y_pred: list[Any], *, beta: float, **options: Any) -> float:
    given: dict[str, Any] = {"average": "weighted", "zero_division": 0} | options
    return float(flat_fbeta_score(_frames(y_true), _frames(y_pred, "y_pred"), beta, **given))


def _by_overlap(y_true: list[Any], y_pred: list[Any], *, overlap: float, **options: Any) -> float:
    return overlap_scores(y_true, y_pred, overlap, **options).f1


def _on_frames(score: Callable[..., float]) -> Callable[..., float]:
    return lambda y_true, y_pred, **options: score(_frames(y_true), _frames(y_pred, "y_pred"), **options)


_SCORERS: dict[str, Callable[..., float]] = {
    "segment_f1": partial(_by_segments, which="f1"),
    "segment_precision": partial(_by_segments, which="precision"),
    "segment_recall": partial(_by_segments, which="recall"),
    "accuracy": _on_frames(flat_accuracy_score),
    "sequence_accuracy": _on_frames(sequence_accuracy_score),
    "flat_f1": partial(_by_tokens, beta=1.0),
    "flat_precision": partial(_by_tokens, beta=0.0),
    "flat_recall": partial(_by_tokens, beta=np.inf),
    "edit": _on_frames(edit_distance_score),
    "exact_match": _on_frames(exact_match_score),
    "f1@10": partial(_by_overlap, overlap=0.1),
    "f1@25": partial(_by_overlap, overlap=0.25),
    "f1@50": partial(_by_overlap, overlap=0.5),
    "relaxed_accuracy": relaxed_accuracy_score,
    "boundary_f1": boundary_f1_score,
}


# ---- significance --------------------------------------------------------------------------------
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
