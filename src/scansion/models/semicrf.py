"""Semi-Markov conditional random fields of any order: segments with labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from scansion import _checks as checks
from scansion._checks import Floats, Ints
from scansion.data import Targets, Vocabulary, encode_segments
from scansion.features.lengths import length_basis
from scansion.features.spans import Cells, functions, readable, span_cells
from scansion.lattice.patterns import Pattern
from scansion.models.base import FlatEstimator
from scansion.models.build import known_segments, matches
from scansion.models.learner import cut
from scansion.segments import Segment

__all__ = ["SemiCRF"]


class SemiCRF(FlatEstimator):
    """Semi-Markov conditional random field of any order.

    ``P(s | x) = exp(sum_k sum_i w_i f_i(x, s, k)) / Z`` over segmentations s; a feature f_i is tied to a pattern of the
    segment labels up to segment k and sees that whole segment (paper 001, equation 1).

    Parameters
    ----------
    order : int
        Longest dependency between segments: always-on features of the patterns of length 2 .. order + 1 of segment
        labels seen in training.
    max_length : int, "by label", or None
        Longest segment; None: the longest one seen in training; "by label": for each label the longest of its own.
    repeats : bool, optional
        Whether a segment may have the label of the one before it. None: yes, unless y is nothing but complete lists of
        labels, of which equal neighbours form one segment.
    attribute_parts : dict prefix -> part or parts, optional
        How attributes of tokens become features of segments: "inside" (summed over the segment), "start" (read at its
        first position), "end" (at its last), "inner" (summed over all but the first). Default: "inside", or "start" for
        attributes that `attribute_orders` ties to longer patterns alone. The longest prefix wins.
    length_features : tuple of {"bins", "length", "log"}
        Features of a segment's length with each label: indicators of ranges, the length, its logarithm.
    segment_features : callable or list of callables, optional
        ``f(x, start, stop) -> dict`` (or list of strings) for each span of at most `max_length` tokens; see
        `scansion.features`. Not stored in model files: set it again after loading.
    long_segments : {"error", "split"}
        What to do with segments in y that are longer than a given `max_length`.
    order, algorithm, c1, c2, and all others
        As in `CRF`.

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

    _segments = True
    _kind = "semicrf"
    bias_order = None

    def __init__(
        self,
        order: int = 1,
        max_length: int | str | None = None,
        *,
        repeats: bool | None = None,
        attribute_parts: Mapping[str, Any] | None = None,
        length_features: Any = (),
        segment_features: Any = None,
        long_segments: str = "error",
        algorithm: str = "lbfgs",
        c1: Any = 0.0,
        c2: Any = 1.0,
        max_iterations: int | None = None,
        min_freq: Any = 0.0,
        all_possible_states: bool = False,
        all_possible_transitions: bool = False,
        patterns: Any = None,
        attribute_orders: Mapping[str, Any] | None = None,
        num_memories: int = 6,
        epsilon: float = 1e-5,
        period: int = 10,
        delta: float = 1e-5,
        linesearch: str = "MoreThuente",
        max_linesearch: int = 20,
        calibration_eta: float = 0.1,
        calibration_rate: float = 2.0,
        calibration_samples: int = 1000,
        calibration_candidates: int = 10,
        calibration_max_trials: int = 20,
        pa_type: int = 1,
        c: float = 1.0,
        error_sensitive: bool = True,
        averaging: bool = True,
        n_jobs: int | None = 1,
        random_state: int | None = None,
        verbose: bool = False,
        warm_start: bool = False,
        patience: int = 10,
    ) -> None:
        self.max_length = max_length
        self.repeats = repeats
        self.attribute_parts = attribute_parts
        self.length_features = length_features
        self.segment_features = segment_features
        self.long_segments = long_segments
        self.order = order
        self.algorithm = algorithm
        self.c1 = c1
        self.c2 = c2
        self.max_iterations = max_iterations
        self.min_freq = min_freq
        self.all_possible_states = all_possible_states
        self.all_possible_transitions = all_possible_transitions
        self.patterns = patterns
        self.attribute_orders = attribute_orders
        self.num_memories = num_memories
        self.epsilon = epsilon
        self.period = period
        self.delta = delta
        self.linesearch = linesearch
        self.max_linesearch = max_linesearch
        self.calibration_eta = calibration_eta
        self.calibration_rate = calibration_rate
        self.calibration_samples = calibration_samples
        self.calibration_candidates = calibration_candidates
        self.calibration_max_trials = calibration_max_trials
        self.pa_type = pa_type
        self.c = c
        self.error_sensitive = error_sensitive
        self.averaging = averaging
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start
        self.patience = patience

    def _check(self) -> None:
        if self.long_segments not in ("error", "split"):
            raise ValueError(f"long_segments must be 'error' or 'split', got {self.long_segments!r}")
        if self.repeats not in (None, True, False):
            raise ValueError(f"repeats must be True, False or None, got {self.repeats!r}")
        self._limit()
        self._basis(1)
        self._functions()

    def _limit(self) -> int | None:
        if self.max_length is None or self.max_length == "by label":
            return None
        if isinstance(self.max_length, str):
            raise ValueError(f"max_length must be a number, None or 'by label', got {self.max_length!r}")
        return checks.count("max_length", self.max_length, 1)

    def _bounds(
        self, targets: Targets, offsets: Ints, labels: list[Any], max_length: int
    ) -> tuple[Sequence[Pattern], npt.NDArray[np.int32] | None]:
        merged = targets.merged and bool(targets.complete.all())
        repeats = not merged if self.repeats is None else bool(self.repeats)
        start, stop, known = known_segments(targets)
        label, length = targets.labels[start], stop - start
        if not repeats:
            # neighbours within a sequence: the boundary between them is not a sequence's end
            same = (label[1:] == label[:-1]) & known[1:] & known[:-1] & ~np.isin(start[1:], offsets)
            if same.any():
                name = labels[int(label[1:][same][0])]
                raise ValueError(f"repeats is False, but in y a segment {name!r} follows another of that label")
        limits = None
        if self.max_length == "by label":
            limits = np.full(len(labels), max_length, np.int32)
            for y in np.unique(label[label >= 0]).tolist():
                limits[y] = length[label == y].max()  # of some, an end is unknown: they are as long at least
        return (() if repeats else [(y, y) for y in range(len(labels))]), limits

    def _targets(
        self, y: Any, lengths: Any, labels: list[Any] | None, max_length: int | None, extend: bool = False
    ) -> tuple[Targets, list[Any]]:
        split = self.long_segments == "split"
        targets, names = encode_segments(y, lengths, labels, extend=extend, max_length=None if split else max_length)
        if split and max_length is not None and targets.longest > max_length:
            targets = _split(targets, max_length)
        return targets, names

    def _basis(self, max_length: int) -> tuple[Floats, list[str]]:
        return length_basis(self.length_features, max_length)

    def _functions(self) -> list[Callable[..., Any]]:
        return functions("segment_features", self.segment_features)

    def _readable(self, X: Any) -> Any:
        return readable(X) if self._functions() else X

    def _cells(self, X: Any, vocabulary: Vocabulary, max_length: int, frozen: bool) -> Cells | None:
        chosen = self._functions()
        if frozen and not len(vocabulary):
            return None
        if not chosen:
            if frozen:
                raise ValueError(
                    "the model was trained with segment_features: set this parameter to the same functions"
                )
            return None
        return span_cells(X, chosen, vocabulary, max_length, frozen)

    def _named(self, config: Any) -> list[Segment]:
        labels = self._model.labels
        return [Segment(u, v, labels[y]) for u, v, y in config]

    def _answers(self, batch: Any) -> list[Any]:
        steps, paths = _best(batch)
        labels = self._model.labels
        return cut([Segment(u, v, labels[y]) for u, v, y in steps.tolist()], paths)

    @property
    def length_counts_(self) -> dict[Any, Ints]:
        """Label -> (M,) how many of its segments in training had the length 1 .. M.

        Empty for a model from a file that was written without them.
        """
        counts = self._model.length_counts
        return {} if counts is None else dict(zip(self._model.labels, counts.copy(), strict=True))

    def score(self, X: Any, y: Any) -> float:
        """Micro-averaged F1 of the segments: spans and labels must both be right.

        What is predicted where a label or a boundary is unknown does not count. Labels that the model does not know,
        and segments longer than it can predict, may occur in y: they are missed.
        """
        inputs = self._inputs(X)
        offsets = inputs.data.offsets
        targets, _ = encode_segments(y, inputs.data.lengths, self._model.labels, extend=True)
        if not known_segments(targets)[2].any():
            raise ValueError("y holds no segment whose label and ends are known: there is nothing to compare with")
        found = self._ask(inputs, lambda batch: [_best(batch)])
        steps = np.concatenate([steps for steps, _ in found])
        counts = np.concatenate([np.diff(paths) for _, paths in found])
        guess = steps + np.repeat(offsets[:-1], counts)[:, None] * np.array([1, 1, 0])
        wanted, compared, right = matches(targets, guess)
        return 2.0 * right / (wanted + compared)


def _best(batch: Any) -> tuple[Ints, Ints]:
    """Segments (n, 3) of the best segmentations of a batch, and where each one begins (B + 1,)."""
    steps, paths, firsts = batch._core.best(batch.n_jobs)
    if (np.diff(firsts) == 0).any():
        batch.log_partition()  # says that there is none
    return steps, paths


def _split(targets: Targets, longest: int) -> Targets:
    """Cut runs of positions that are known to be in one segment after each `longest` of them."""
    assert targets.ends is not None
    begins = np.ones(len(targets.ends), np.bool_)
    begins[1:] = targets.ends[:-1] != 0
    at = np.arange(len(begins))
    inside = at - np.maximum.accumulate(np.where(begins, at, 0))
    ends = np.where((targets.ends == 0) & (inside % longest == longest - 1), 1, targets.ends).astype(np.int8)
    return replace(targets, ends=ends, longest=longest, merged=False)
