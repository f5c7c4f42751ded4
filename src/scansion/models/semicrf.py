"""Semi-Markov conditional random fields of any order: segments with labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from scansion.data import Dataset, Targets, Vocabulary, encode, encode_segments
from scansion.lattice import checks
from scansion.lattice.checks import Floats
from scansion.metrics import segment_scores
from scansion.models.base import FlatEstimator, _reusable
from scansion.models.flat import Cells
from scansion.segments import Segment

__all__ = ["SemiCRF"]

_BINS = (1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 50, 100, 200, 500, 1000)


class SemiCRF(FlatEstimator):
    """Semi-Markov conditional random field of any order.

    ``P(s | x) = exp(sum_k sum_i w_i f_i(x, s, k)) / Z`` over segmentations s; a feature f_i is tied to a pattern of the
    segment labels up to segment k and sees that whole segment (paper 001, equation 1).

    Parameters
    ----------
    order : int
        Longest dependency between segments: always-on features of the patterns of length 2 .. order + 1 of segment
        labels seen in training.
    max_length : int, optional
        Longest segment; None: the longest one seen in training.
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

    def __init__(
        self,
        order: int = 1,
        max_length: int | None = None,
        *,
        attribute_parts: Mapping[str, Any] | None = None,
        length_features: Any = (),
        segment_features: Any = None,
        long_segments: str = "error",
        algorithm: str = "lbfgs",
        c1: Any = 0.0,
        c2: Any = 1.0,
        max_iterations: int | None = None,
        min_freq: float = 0.0,
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

    def _encode_targets(self, y: Any, lengths: Any, labels: list[Any] | None) -> tuple[Targets, list[Any]]:
        fitted = getattr(self, "model_", None)
        longest = self.max_length if fitted is None or labels is None else fitted.max_length
        if longest is not None and self.long_segments == "split":
            y = [_split(target, checks.count("max_length", longest, 1)) for target in _reusable(y)]
        return encode_segments(y, lengths, labels, max_length=longest)

    def _longest(self, targets: Targets) -> int:
        if self.long_segments not in ("error", "split"):
            raise ValueError(f"long_segments must be 'error' or 'split', got {self.long_segments!r}")
        if self.max_length is not None:
            return checks.count("max_length", self.max_length, 1)
        if targets.longest < 1:
            raise ValueError("y holds no segment whose two ends are known: give max_length")
        return targets.longest

    def _basis(self, max_length: int) -> tuple[Floats, list[str]]:
        length = np.arange(1, max_length + 1, dtype=np.float64)
        wanted = (self.length_features,) if isinstance(self.length_features, str) else tuple(self.length_features)
        rows: list[Floats] = []
        names: list[str] = []
        for kind in wanted:
            if kind == "length":
                rows.append(length)
                names.append("length")
            elif kind == "log":
                rows.append(np.log(length))
                names.append("log(length)")
            elif kind == "bins":
                for low, high in zip(_BINS, (*_BINS[1:], np.inf), strict=True):
                    if low <= max_length:
                        rows.append(((length >= low) & (length < high)).astype(np.float64))
                        names.append(f"length >= {low}" + ("" if high == np.inf else f" and < {high}"))
            else:
                raise ValueError(f"length_features must be among 'bins', 'length', 'log', got {kind!r}")
        return (np.array(rows) if rows else np.zeros((0, max_length))), names

    def _cells(self, X: Any, data: Dataset, vocabulary: Vocabulary, frozen: bool, max_length: int) -> Cells | None:
        functions = self.segment_features
        if functions is None:
            if frozen and len(vocabulary):
                raise ValueError(
                    "the model was trained with segment_features: set this parameter to the same functions"
                )
            return None
        if isinstance(X, Dataset):
            raise ValueError("segment_features need the tokens themselves: give sequences, not an encoded Dataset")
        functions = [functions] if callable(functions) else list(functions)
        spans: list[tuple[int, int]] = []
        cuts = [0]
        items: list[Any] = []
        for x in X:
            x = x if hasattr(x, "__getitem__") else list(x)
            size = x.shape[0] if hasattr(x, "shape") else len(x)
            row = []
            for start in range(size):
                for stop in range(start + 1, min(size, start + max_length) + 1):
                    for f in functions:
                        item = f(x, start, stop)
                        if item:
                            spans.append((start, stop - start))
                            row.append(item)
            items.append(row)
            cuts.append(cuts[-1] + len(row))
        encoded = encode(items, vocabulary, frozen=frozen)
        counts = np.diff(encoded.token_offsets)
        where = np.repeat(np.array(spans, np.int32).reshape(-1, 2), counts, axis=0)
        values = np.ones(len(encoded.ids)) if encoded.values is None else encoded.values
        return Cells(
            np.ascontiguousarray(encoded.token_offsets[np.array(cuts)]),
            np.ascontiguousarray(where[:, 0]),
            np.ascontiguousarray(where[:, 1]),
            encoded.ids,
            values,
        )

    def _decode(self, config: Any) -> list[Segment]:
        labels = self._model.labels
        return [Segment(u, v, labels[y]) for u, v, y in config]

    def score(self, X: Any, y: Any) -> float:
        """Micro-averaged F1 of the segments: spans and labels must both be right."""
        y = [_segments_of(target) for target in _reusable(y)]
        guess = self.predict(X)
        if len(guess) != len(y):
            raise ValueError(f"X has {len(guess)} sequences, y has {len(y)}")
        return float(segment_scores(y, guess, scheme="plain").micro.f1)


def _segments_of(target: Any) -> list[Segment]:
    """Segments given as such, or as labels with adjacent equal ones forming one."""
    target = list(target)
    if target and isinstance(target[0], tuple) and len(target[0]) == 3:
        return [Segment(*segment) for segment in target]
    found: list[Segment] = []
    for t, label in enumerate(target):
        if found and found[-1].label == label:
            found[-1] = Segment(found[-1].start, t + 1, label)
        else:
            found.append(Segment(t, t + 1, label))
    return found


def _split(target: Any, longest: int) -> Any:
    """Cut segments longer than `longest` into pieces; a list of labels that has none stays as it is."""
    if target is None:
        return None
    target = list(target)
    whole = _segments_of(target)
    if all(s.stop - s.start <= longest for s in whole):
        return target
    return [
        Segment(start, min(start + longest, s.stop), s.label)
        for s in whole
        for start in range(s.start, s.stop, longest)
    ]
