"""Semi-Markov conditional random fields of any order: segments with labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from scansion import _checks as checks
from scansion._checks import Ints
from scansion.data.dataset import cut
from scansion.models.flat_estimator import FlatEstimator
from scansion.models.parameters import documented, parameter
from scansion.segments import Segment

__all__ = ["SemiCRF"]


@documented
@dataclass(repr=False, eq=False)
class SemiCRF(FlatEstimator):
    """Semi-Markov conditional random field of any order.

    ``P(s | x) = exp(sum_k sum_i w_i f_i(x, s, k)) / Z`` over segmentations s; a feature f_i is tied to a pattern of the
    segment labels up to segment k and sees that whole segment (paper 001, equation 1).

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    classes_, attributes_, state_features_, transition_features_, pattern_features_, patterns_, length_counts_, \
levels_, size_
        What was learnt.
    training_log_ : list of dict
        One for each iteration: iteration, loss, gradient_norm, active, dev_score, seconds.
    loss_, n_iter_, message_
        The loss at the end, the number of iterations, and why training ended.

    Notes
    -----
    y is a list of ``(start, stop, label)`` per sequence (gaps are unknown), or a list of labels, adjacent equal ones
    being one segment. `predict` returns lists of `Segment`. A segment longer than `max_length` can not be predicted; in
    y it is an error, unless `long_segments="split"` cuts it.

    Examples
    --------
    >>> X = [[["w=the"], ["w=old"], ["w=man"]], [["w=the"], ["w=boats"]]]
    >>> y = [[(0, 2, "D"), (2, 3, "N")], [(0, 1, "D"), (1, 2, "N")]]
    >>> SemiCRF().fit(X, y).predict([[["w=the"], ["w=man"]]])
    [[Segment(start=0, stop=1, label='D'), Segment(start=1, stop=2, label='N')]]
    """

    max_length: int | Mapping[Any, int] | Literal["by label"] | None = parameter(
        None,
        'int, dict label -> int, "by label", or None',
        'Longest segment, of all labels or of each; None and "by label": for each label the longest of its own seen in '
        "training, and somewhat longer (`slack`) up to the longest of all. Labels that a dict does not name are taken "
        "from the data.",
    )
    _: KW_ONLY
    min_length: int | Mapping[Any, int] | Literal["by label"] | None = parameter(
        None,
        'int, dict label -> int, "by label", or None',
        "Shortest segment, likewise. None: 1.",
    )
    slack: float = parameter(
        0.25,
        "float",
        "By how much, as a share, segments may be longer or shorter than those of their label in training, where "
        "bounds are taken from there; by more for labels that are rare.",
    )
    all_possible_transitions: bool = parameter(
        True,
        "bool",
        "Also features (label, label) that do not occur in training: without one, a pair that was never seen costs "
        "nothing.",
    )
    repeats: bool | None = parameter(
        None,
        "bool, optional",
        "Whether a segment may have the label of the one before it. None: yes, unless y is nothing but complete "
        "lists of labels, of which equal neighbours form one segment, or complete segments of which none does so "
        "although there are many.",
    )
    attribute_parts: Mapping[str, Any] | None = parameter(
        None,
        "dict prefix -> part or parts, optional",
        'How attributes of tokens become features of segments: "inside" (summed over the segment), "start" (read '
        'at its first position), "end" (at its last), "inner" (summed over all but the first). Default: "inside", '
        'or "start" for attributes that `attribute_orders` ties to longer patterns alone. The longest prefix wins.',
    )
    length_features: Any = parameter(
        ("segment", "adaptive"),
        "tuple of kinds, or dict label -> kind or kinds",
        'Features of a segment\'s length with each label: "segment" (1 for each segment), indicators of ranges that '
        'hold about as many segments each ("adaptive", by label), of fixed ones ("bins"), of ranges whose first '
        'lengths are given (a tuple of numbers), the "length", its "log", or a family: "gamma", "negative binomial", '
        '"histogram".',
    )
    segment_features: Any = parameter(
        None,
        "callable or list of callables, optional",
        "``f(x, start, stop) -> dict`` (or list of strings) for each span of at most `max_length` tokens; see "
        "`scansion.features`. Not stored in model files: set it again after loading.",
    )
    long_segments: Literal["error", "split"] = parameter(
        "error",
        '{"error", "split"}',
        "What to do with segments in y that are longer than a given `max_length`.",
    )

    _segments: ClassVar[bool] = True
    _kind: ClassVar[str] = "semicrf"

    def _check_labels(self, labels: Sequence[Any]) -> None:
        heads = {label[:2] for label in labels if isinstance(label, str)}
        if "B-" in heads and heads & {"I-", "E-", "L-"}:
            checks.warn(
                "the labels look like tags (B-..., I-...), each of which is a label of its own here; for segments give "
                "y = [schemes.covered(schemes.segments(tags, 'iob2'), len(tags)) for tags in y], with "
                "scansion.schemes",
            )

    def _named(self, config: Any) -> list[Segment]:
        labels = self._model.labels
        return [Segment(u, v, labels[y]) for u, v, y in config]

    def _answers(self, batch: Any) -> list[Any]:
        steps, paths = _best(batch)
        labels = self._model.labels
        return cut([Segment(u, v, labels[y]) for u, v, y in steps.tolist()], paths)

    def _at_once(self, x: Any) -> list[Any] | None:
        tagger = self._model.tagger
        found = None if tagger is None else tagger.segments(x)
        return None if found is None else [Segment._make(one) for one in found]

    @property
    def length_counts_(self) -> dict[Any, Ints]:
        """Label -> (M,) how many of its segments in training had the length 1 .. M.

        Empty for a model from a file that was written without them.
        """
        level = self._model.level
        counts = level.length_counts
        return {} if counts is None else dict(zip(level.labels, counts.copy(), strict=True))

    def score(self, X: Any, y: Any) -> float:
        """Micro-averaged F1 of the segments: spans and labels must both be right.

        What is predicted where a label or a boundary is unknown does not count. Labels that the model does not know,
        and segments longer than it can predict, may occur in y: they are missed.
        """
        inputs = self._inputs(X)
        offsets = inputs.data.offsets
        known, _ = self._known(y, inputs, extend=True)
        if not known.level.segments()[2].any():
            raise ValueError("y holds no segment whose label and ends are known: there is nothing to compare with")
        found = self.ask(inputs, lambda batch: [_best(batch)])
        steps = np.concatenate([steps for steps, _ in found])
        counts = np.concatenate([np.diff(paths) for _, paths in found])
        guess = steps + np.repeat(offsets[:-1], counts)[:, None] * np.array([1, 1, 0])
        wanted, compared, right = known.level.matches(guess)
        return 2.0 * right / (wanted + compared)


def _best(batch: Any) -> tuple[Ints, Ints]:
    """Segments (n, 3) of the best segmentations of a batch, and where each one begins (B + 1,)."""
    steps, paths, firsts, _ = batch._core.best(batch.n_jobs)
    if (np.diff(firsts) == 0).any():
        batch.log_partition()  # says that there is none
    return steps, paths
