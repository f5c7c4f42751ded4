"""Compressed inference: questions about trajectories, labels without their transition points (paper 004).

The trajectory of a labelling is its sequence of labels with runs of equal labels merged, ``s s j j j w`` -> ``s j w``;
that of a segmentation is the sequence of its segment labels as they are (neighbours may be equal there). A trajectory
has as many *places* as labels. Sums run over all configurations that have a trajectory, so every probability here
counts all ways to place the transitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from scansion import _checks as checks
from scansion import _core
from scansion._checks import Bools, Floats, Ints
from scansion.data.knowledge import Knowledge, Known
from scansion.lattice.base import FlatBatch
from scansion.lattice.cores import DenseCore, PatternCore
from scansion.lattice.patterns import PatternAutomaton

__all__ = ["BestTrajectories", "Compressed", "Labels"]

Labels = tuple[int, ...]

_NO_LIMIT = 2**62  # prefixes
_ANY_LENGTH = 2**31 - 1


@dataclass(frozen=True)
class BestTrajectories(Sequence[tuple[Labels, float]]):
    """The k most probable trajectories, as a sequence of (trajectory, probability), best first.

    Attributes
    ----------
    trajectories : list of tuples of int
    probabilities : (n,)
        Fewer than k where fewer are possible, or where the budget ended the search.
    proven : bool
        These are the k most probable ones. Always true without a budget.
    bound : float
        No trajectory that is not listed is more probable than this.
    expanded : int
        Prefixes that the search took up.
    """

    trajectories: list[Labels]
    probabilities: Floats
    proven: bool
    bound: float
    expanded: int

    def __len__(self) -> int:
        return len(self.trajectories)

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return [self[j] for j in range(len(self))[i]]
        return self.trajectories[i], float(self.probabilities[i])


class Compressed:
    """The distribution over trajectories of one lattice: see `Lattice.compressed`.

    Every answer is exact. With T positions, A ways into the nodes of a position (L^2 for a first-order chain), S states
    and lengths up to C: lengths take O(C T A) time, and O(C S) memory beside the lattice's own table; marginals of
    length c O(c T A) time and O(c T S) memory. Probabilities below 1e-300 come out as 0; `log_probability` has no such
    limit.

    Parameters
    ----------
    batch : Batch
        Of one lattice.
    max_length : int, optional
        Longest trajectory that `lengths`, `predict` and `best` look at; None: all.
    """

    def __init__(self, batch: FlatBatch[Any, Any], max_length: int | None = None) -> None:
        self._batch = batch
        self._core: DenseCore | PatternCore = batch._core.groups()[0][1]  # under rules, that of their product
        self._merge = batch._merges
        self._limit = _limit(max_length)
        batch.log_partition()  # says so if nothing is possible
        self._lengths: Floats | None = None

    @property
    def n_labels(self) -> int:
        """Number of labels L."""
        return self._core.n_labels

    @property
    def max_length(self) -> int:
        """Longest trajectory looked at, C: at most the length T of the sequence."""
        return min(self._limit, self._size)

    @property
    def _size(self) -> int:
        return int(self._core.offsets[1])

    def __repr__(self) -> str:
        return f"Compressed(length {self._size}, {self.n_labels} labels, trajectories up to {self.max_length})"

    def _repr_html_(self) -> str | None:
        """Lengths and the most probable trajectories, for notebooks; None: the plain form serves."""
        from scansion.display.notebook import compressed_html

        return compressed_html(self)

    @property
    def lengths(self) -> Floats:
        """(C + 1,) probability of each length c; the rest, if any, belongs to longer trajectories."""
        if self._lengths is None:
            out = np.zeros(self.max_length + 1)
            self._core.native.compressed_lengths(self._merge, out)
            self._lengths = out
        return self._lengths.copy()

    def marginals(self, length: int) -> Floats:
        """(c, L) probability of each label at each place, given that the trajectory has length c.

        Departs from the paper, which runs a constrained sweep for each place and label: two sweeps give them all.
        """
        c = checks.count("length", length, 0)
        if c > self._size or (c == 0) != (self._size == 0):
            raise ValueError(f"length {c} is impossible: a sequence of length {self._size} has no such trajectory")
        joint = np.zeros((c, self.n_labels))
        if c == 0:
            return joint
        self._core.native.compressed_marginals(self._merge, joint)
        total = joint.sum(axis=1, keepdims=True)
        if not (total > 1e-290).all():
            raise ValueError(f"length {c} has probability 0, or one below 1e-290: nothing can be said given it")
        return np.asarray(joint / total)

    def predict(self, raw: bool = False) -> Labels:
        """The most likely length, then the trajectory of that length with the most places expected to be right.

        It is one that can occur. Places are judged by their marginals, so the answer may be improbable as a whole;
        `best` asks for the whole.

        Parameters
        ----------
        raw : bool
            The paper's labelling: the most likely label at each place by itself. It need not be a trajectory that can
            occur (neighbours on a chain may be equal); where it is one, both are the same.
        """
        return predict_all(self._batch, self._limit, raw)[0]

    def best(self, k: int = 1, budget: int | None = None) -> BestTrajectories:
        """The k most probable trajectories, by best-first search over prefixes (the paper leaves this open).

        The probability that a trajectory starts with a prefix bounds all that it can become. Quick where few
        trajectories have most of the mass; the number of prefixes can grow exponentially where none has.

        Parameters
        ----------
        k : int
        budget : int, optional
            Most prefixes to take up, O(T L) time each. When it ends the search, the best trajectories met are
            returned, `proven` says whether they are the best of all, and `bound` what may have been missed.
        """
        return best_all(self._batch, checks.count("k", k, 1), budget, self._limit)[0]

    def sample(self, n: int, rng: Any = None) -> list[Labels]:
        """Draw n trajectories exactly and independently; rng: NumPy Generator, seed or None."""
        configs = self._batch.sample(n, rng)[0]
        if not self._merge:
            return [tuple(segment.label for segment in config) for config in configs]
        return [compress(config) for config in configs]

    def log_probability(self, trajectory: Any) -> float:
        """Log probability of a trajectory: log of the summed probabilities of all configurations that have it.

        Paper 004, equation 6: O(T c) for c places on a first-order chain.
        """
        return float(self._log_probabilities([self._checked("trajectory", trajectory)])[0])

    def log_probabilities(self, trajectories: Any) -> Floats:
        """(n,) log probability of each of many trajectories.

        It tells which word of a lexicon a sequence is. What trajectories begin with is computed once for all that share
        it: O(T) for each different prefix on a first-order chain.
        """
        if isinstance(trajectories, (str, bytes)) or not isinstance(trajectories, Iterable):
            raise ValueError(f"trajectories must be a list of sequences of labels, got {trajectories!r}")
        return self._log_probabilities([self._checked(f"trajectories[{i}]", s) for i, s in enumerate(trajectories)])

    def probability(self, cells: Any, length: int | None = None) -> float:
        """Probability that the trajectory goes through all of the cells (paper 004, equations 9 and 10).

        Parameters
        ----------
        cells : iterable of (place, label)
            Any number; several labels for one place: one of them.
        length : int, optional
            And that it has this length c. None: any length that `lengths` looks at.
        """
        pairs = list(cells) if isinstance(cells, Iterable) else [cells]
        if any(not isinstance(c, (tuple, list)) or len(c) != 2 for c in pairs):
            raise ValueError(f"cells must be pairs (place, label), got {cells!r}")
        most = self.max_length if length is None else checks.count("length", length, 0)
        places = 1 + max((checks.count(f"cells[{n}][0]", place, 0) for n, (place, _) in enumerate(pairs)), default=-1)
        if max(most, places) > self._size:
            return 0.0
        if not pairs:
            return float(self.lengths.sum() if length is None else self.lengths[length])
        allowed = np.ones((places, self.n_labels), np.uint8)
        allowed[[place for place, _ in pairs]] = 0
        labels = checks.integers("labels of cells", np.array([y for _, y in pairs]), len(pairs), 0, self.n_labels - 1)
        allowed[[place for place, _ in pairs], labels] = 1
        out = np.zeros(most + 1)
        self._core.native.compressed_passing(self._merge, allowed, out)
        return float(out.sum() if length is None else out[length])

    def lattice(self, trajectory: Any) -> Any:
        """The lattice of all configurations that have a trajectory; its labels are the places 0 .. c-1.

        Questions about transition points are questions about it: `marginals().labels[t, i]` is the probability that
        position t belongs to place i, `viterbi` the best way to place the transitions.
        """
        labels = self._checked("trajectory", trajectory)
        if not 0 < len(labels) <= self._size:
            raise ValueError(
                f"trajectory of length {len(labels)} is impossible: a sequence of length {self._size} has trajectories "
                f"of length 1 .. {self._size}"
            )
        batch = type(self._batch)._of(self._places(labels), 1)
        batch._possible(batch._core.log_partitions(1), f"the trajectory {labels}")
        return batch[0]

    def boundaries(self, trajectory: Any) -> Floats:
        """(c, T) probability that place i starts at position t, given the trajectory; rows sum to 1."""
        at = self.lattice(trajectory).marginals().labels
        reached = np.cumsum(at[:, ::-1], axis=1)[:, ::-1].T  # [i, t]: place i has started by t
        return np.maximum(np.diff(reached, axis=1, prepend=0.0), 0.0)

    def _checked(self, name: str, trajectory: Any) -> Labels:
        if isinstance(trajectory, (str, bytes)) or not isinstance(trajectory, Iterable):
            raise ValueError(f"{name} must be a sequence of labels, got {trajectory!r}")
        given = list(trajectory)
        if any(
            np.ndim(label) if isinstance(label, np.ndarray) else isinstance(label, (list, tuple)) for label in given
        ):
            raise ValueError(f"{name} must be a sequence of labels, got {trajectory!r}")
        array = np.array(given, np.int64 if not given else None)
        labels = checks.integers(name, array, len(given), 0, self.n_labels - 1)
        if self._merge:
            check_neighbours(name, labels.tolist())
        return tuple(labels.tolist())

    def _log_probabilities(self, trajectories: list[Labels]) -> Floats:
        lengths = np.array([len(labels) for labels in trajectories], np.int64)
        out = np.where(lengths == self._size, 0.0, -np.inf) if self._size == 0 else np.full(len(lengths), -np.inf)
        possible = np.flatnonzero((lengths > 0) & (lengths <= self._size))
        if len(possible):
            symbols = np.concatenate([np.array(trajectories[i], np.int64) for i in possible])
            offsets = np.concatenate([[0], np.cumsum(lengths[possible])])
            values = np.empty((1, len(possible)))
            self._core.native.compressed_lexicon(self._merge, symbols, offsets, self.n_labels, values, 1)
            out[possible] = values[0]
        return out

    def _places(self, labels: Labels) -> DenseCore | PatternCore:
        core = self._core
        allowed = possible_places(self._size, len(labels))
        columns = np.array(labels)
        before = core.known.level
        mask = before.mask(self.n_labels)
        if mask is not None:
            allowed &= mask[:, columns]
        ends = None if isinstance(core, DenseCore) else before.ends
        known = Knowledge((Known(allowed=allowed, ends=ends),), core.offsets)
        if isinstance(core, DenseCore):
            return _dense_places(core, columns, known)
        return _pattern_places(core, columns, known, self._merge)


def compress(labels: Iterable[int]) -> Labels:
    """Labels with runs of equal ones merged."""
    out: list[int] = []
    for y in labels:
        if not out or out[-1] != y:
            out.append(int(y))
    return tuple(out)


def check_neighbours(name: str, labels: Sequence[Any]) -> None:
    """Raise if a label stands twice in a row: on a chain that is one place."""
    for i in range(1, len(labels)):
        if labels[i] == labels[i - 1]:
            raise ValueError(
                f"{name}[{i}] = {labels[i]!r} is the label before it again: on a chain, equal neighbours are one place"
            )


def predict_all(batch: FlatBatch[Any, Any], max_length: int | None = None, raw: bool = False) -> list[Labels]:
    """The labelling of the places of every sequence; see `Compressed.predict`."""
    limit, core = _limit(max_length), batch._core
    batch.log_partition()
    if len(core.groups()) > 1 or core.groups()[0][1] is not core:
        return _by_group(batch, lambda one: predict_all(one, max_length, raw))
    labels, firsts, missing = core.native.compressed_labelling(batch._merges, limit, core.n_labels, raw, batch.n_jobs)
    if missing >= 0:
        where = f" of sequence {missing}" if len(batch) > 1 else ""
        raise ValueError(f"max_length = {max_length} leaves no trajectory{where} with a probability above 1e-300")
    return _cut(labels, firsts)


def best_all(
    batch: FlatBatch[Any, Any], k: int = 1, budget: int | None = None, max_length: int | None = None
) -> list[BestTrajectories]:
    """The k most probable trajectories of every sequence; see `Compressed.best`."""
    limit, core = _limit(max_length), batch._core
    work = _NO_LIMIT if budget is None else checks.count("budget", budget, 1)
    batch.log_partition()
    if len(core.groups()) > 1 or core.groups()[0][1] is not core:
        return _by_group(batch, lambda one: best_all(one, k, budget, max_length))
    labels, firsts, sequences, probabilities, bounds, proven, expanded = core.native.compressed_best(
        batch._merges, k, work, limit, core.n_labels, batch.n_jobs
    )
    trajectories = _cut(labels, firsts)
    return [
        BestTrajectories(
            trajectories[first:last],
            probabilities[first:last],
            bool(proven[b]),
            float(bounds[b]),
            int(expanded[b]),
        )
        for b, (first, last) in enumerate(zip(sequences[:-1], sequences[1:], strict=True))
    ]


def _by_group(batch: FlatBatch[Any, Any], ask: Callable[[FlatBatch[Any, Any]], list[Any]]) -> list[Any]:
    """The answers for lattices under rules, for which several cores answer."""
    found: list[Any] = [None] * len(batch)
    for sequences, core in batch._core.groups():
        for b, answer in zip(sequences.tolist(), ask(type(batch)._of(core, batch.n_jobs)), strict=True):
            found[b] = answer
    return found


def possible_places(size: int, places: int) -> Bools:
    """(T, c): place i at position t leaves room for the places before and after it."""
    t, i = np.arange(size)[:, None], np.arange(places)
    allowed: Bools = (i <= t) & (places - 1 - i <= size - 1 - t)
    return allowed


def _limit(max_length: int | None) -> int:
    return _ANY_LENGTH if max_length is None else checks.count("max_length", max_length, 1)


def _cut(labels: Ints, firsts: Ints) -> list[Labels]:
    flat = labels.tolist()
    return [tuple(flat[a:b]) for a, b in zip(firsts[:-1].tolist(), firsts[1:].tolist(), strict=True)]


def _dense_places(core: DenseCore, columns: Ints, known: Knowledge) -> DenseCore:
    n = len(columns)
    moves = np.eye(n, dtype=np.bool_) | np.eye(n, k=1, dtype=np.bool_)
    transition = np.where(moves, core.transition[..., columns[:, None], columns], -np.inf)
    return replace(
        core,
        unary=np.ascontiguousarray(core.unary[:, columns]),
        transition=np.ascontiguousarray(transition),
        start=None if core.start is None else core.start[columns],
        end=None if core.end is None else core.end[columns],
        known=known,
    )


def _pattern_places(core: PatternCore, columns: Ints, known: Knowledge, merge: bool) -> PatternCore:
    net = core.automaton
    symbols, offsets, column = _core.place_patterns(net._symbols, net._offsets, columns.astype(np.int32), merge)
    patterns = [tuple(symbols[a:b].tolist()) for a, b in zip(offsets[:-1], offsets[1:], strict=True)]
    parts = (core.full, core.start, core.inside, core.end, core.by_length)
    width = next((part.shape[-1] for part in parts if part is not None), 0)
    kept = column[(column >= 0) & (column < width)]  # the first ones, as in the label patterns
    forbidden = column < 0

    def take(part: Floats | None) -> Floats | None:
        return None if part is None else np.ascontiguousarray(part[..., kept])

    starts = np.zeros(len(net.patterns)) if core.starts is None else core.starts
    starts = np.where(forbidden, -np.inf, starts[..., np.maximum(column, 0)])
    return replace(
        core,
        automaton=PatternAutomaton(patterns, len(columns)),
        extent=core.extent[np.maximum(column, 0)] & ~forbidden,
        starts=np.ascontiguousarray(starts),
        full=take(core.full),
        start=take(core.start),
        inside=take(core.inside),
        end=take(core.end),
        by_length=take(core.by_length),
        known=known,
        rules=None if core.rules is None else core.rules.reading(columns),
    )
