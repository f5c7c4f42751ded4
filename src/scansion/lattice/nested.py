"""Nested lattices: segments inside segments, the hierarchical semi-Markov CRF (papers 000 and 003).

Conventions: D levels, root first, S_d states at level d; a configuration is a list of D lists of segments, each level
refining the one above; segments are half-open. A batch holds the rows of all sequences one after another, N in all,
cut at `offsets`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any, cast

import numpy as np

from scansion import _checks as checks
from scansion._checks import Floats, Ints
from scansion.data.knowledge import Knowledge, Known
from scansion.lattice.base import _ROWS_AT_ONCE, Batch, Lattice, parts_of
from scansion.lattice.nested_scores import LevelScores, NestedCore, NestedScores, Persistence, parse
from scansion.segments import Segment, checked_segments, segments_of

__all__ = ["NestedBatch", "NestedLattice", "NestedMarginals", "NestedScores", "Persistence"]

Nesting = list[list[Segment]]


class NestedMarginals:
    """Posterior probabilities of a nested lattice (or of a batch: rows of all sequences one after another).

    Lists by level, root first; all but `labels` and `boundaries` are computed when first read.

    Attributes
    ----------
    labels[d] : (T, S_d)
        ``P(position t lies in a segment of level d with state s)``.
    boundaries[d] : (T,)
        ``P(a segment of level d ends at t)``, t its last position.
    segments[d] : (T, M_d, S_d)
        ``P([u, u + n) is a segment of level d with state s)`` at ``[u, n - 1, s]``. M_d is T where nothing bounds it.
    transit[d - 1] : (T-1, S_{d-1}, S_d, S_d), a batch: (N, ...)
        ``P(under parent p, child u ends at t and child v follows)``.
    init[d], end[d] : (T, S_d, S_{d+1})
        ``P(parent p starts at t with first child u)``, ``P(parent p ends at t with last child u)``.
    transit_counts[d - 1], init_counts[d], end_counts[d]
        The same summed over time (and sequences), at a fraction of the cost.
    persist[d] : (T, M_d, S_d), or Persistence
        Expected number of times that each persistence score counts: with the counts (or, for scores given by time,
        the arrays above) the gradient of the sum of log Z.
    """

    def __init__(self, core: NestedCore, n_jobs: int, answer: dict[str, Any], single: bool) -> None:
        self._core = core
        self._n_jobs = n_jobs
        self._single = single
        self.labels: list[Floats] = answer["labels"]
        self.boundaries: list[Floats] = answer["boundaries"]

    def __repr__(self) -> str:
        shapes = ", ".join(str(labels.shape) for labels in self.labels)
        return f"NestedMarginals(labels {shapes}; also boundaries, segments, transit, init, end)"

    @cached_property
    def segments(self) -> list[Floats]:
        """(T, M_d, S_d) posterior of each segment, by level."""
        return _segments(self._core, self._n_jobs)

    @cached_property
    def _by_time(self) -> dict[str, Any]:
        nothing = [False] * self._core.n_levels
        return self._core.posteriors(self._n_jobs, spans=nothing, cliques="time", parts=False)

    @property
    def transit(self) -> list[Floats]:
        """(T-1, S_{d-1}, S_d, S_d) posterior of neighbouring children, by level."""
        found: list[Floats] = self._by_time["transit"]
        return [array[: max(len(array) - 1, 0)] for array in found] if self._single else found

    @property
    def init(self) -> list[Floats]:
        """(T, S_d, S_{d+1}) posterior of first children, by level."""
        return cast(list[Floats], self._by_time["init"])

    @property
    def end(self) -> list[Floats]:
        """(T, S_d, S_{d+1}) posterior of last children, by level."""
        return cast(list[Floats], self._by_time["end"])

    @cached_property
    def _gradient(self) -> NestedScores:
        return _gradient(self._core, self._n_jobs)[1]

    @property
    def persist(self) -> list[Any]:
        """Gradient with respect to persist, by level."""
        return self._gradient.persist

    @property
    def transit_counts(self) -> list[Floats]:
        """(S_{d-1}, S_d, S_d) expected transitions, by level."""
        return [a if a.ndim == 3 else a.sum(axis=0) for a in self._gradient.transit]

    @property
    def init_counts(self) -> list[Floats]:
        """(S_d, S_{d+1}) expected initialisations, by level."""
        return [a if a.ndim == 2 else a.sum(axis=0) for a in self._gradient.init]

    @property
    def end_counts(self) -> list[Floats]:
        """(S_d, S_{d+1}) expected endings, by level."""
        return [a if a.ndim == 2 else a.sum(axis=0) for a in self._gradient.end]


def _segments(core: NestedCore, n_jobs: int) -> list[Floats]:
    """Free levels do not keep segments: they are asked of the general recursion."""
    longest = max(core.longest, 1)
    levels = [v if v.max_length is not None else replace(v, max_length=longest) for v in core.levels]
    whole = core.generalized(tuple(levels))
    answer = whole.posteriors(n_jobs, spans=[d > 0 for d in range(core.n_levels)], cliques=None, parts=False)
    found: list[Floats] = answer["spans"]
    bound = core.levels[0].max_length
    root = np.zeros((int(core.offsets[-1]), longest if bound is None else bound, core.sizes[0]))
    _add_root(root, core, answer["labels"][0])
    return [root, *found[1:]]


def _add_root(out: Floats, core: NestedCore, labels: Floats) -> None:
    _, first, last = core.ends
    out[first, last - first] = labels[first]


def _gradient(core: NestedCore, n_jobs: int) -> tuple[Floats, NestedScores]:
    wants = [d > 0 and level.spans is not None for d, level in enumerate(core.levels)]
    if any(w and f for w, f in zip(wants, core.free, strict=True)):  # dense arrays that happen to be plain sums
        core = core.generalized()
    answer = core.posteriors(n_jobs, spans=wants, cliques="given", parts=True)
    persist = [_persist_gradient(core, d, answer) for d in range(core.n_levels)]
    return answer["log_partition"], NestedScores(persist, answer["transit"], answer["init"], answer["end"])


def _persist_gradient(core: NestedCore, d: int, answer: dict[str, Any]) -> Any:
    level: LevelScores = core.levels[d]
    labels = answer["labels"][d]
    parts = {name: answer[name][d] for name in ("start", "stop", "length")}
    spans = answer["spans"][d]
    if d == 0:
        spans = None if level.spans is None else np.zeros(level.spans.shape)
        if spans is not None:
            _add_root(spans, core, labels)
        _, first, last = core.ends
        for name, at in (("start", first), ("stop", last), ("length", last - first)):
            if parts[name] is not None and parts[name].ndim == 1:
                parts[name] += labels[first].sum(axis=0)
            elif parts[name] is not None:
                np.add.at(parts[name], at, labels[first])
    if level.dense:
        return spans
    inside = None if level.inside is None else labels
    return Persistence(inside, parts["start"], parts["stop"], parts["length"], spans, level.max_length)


class NestedBatch(Batch[Nesting, NestedMarginals]):
    """Nested lattices of many sequences.

    Parameters
    ----------
    persist : list, level d: (N, M_d, S_d), or Persistence
    transit : list, level d >= 1 at index d - 1: (S_{d-1}, S_d, S_d), or (N, S_{d-1}, S_d, S_d)
        By row: that of the left child's last position; the last row of a sequence is ignored.
    init, end : list, level d < D-1: (S_d, S_{d+1}), or (N, S_d, S_{d+1})
    offsets : int (B + 1,)
        Sequence b has rows ``offsets[b]:offsets[b + 1]``.
    children : list of bool (S_d, S_{d+1}), optional
        Which states of level d + 1 may lie inside which of level d; None: all.
    n_jobs : int
        Threads, -1 for all processors. Results do not depend on it.

    See `NestedLattice` for the meaning of the scores.
    """

    _core: NestedCore
    _single = False

    def __init__(
        self, persist: Any, transit: Any, init: Any, end: Any, offsets: Any, children: Any = None, n_jobs: int = 1
    ) -> None:
        if offsets is None:
            raise ValueError("offsets must be a 1-D array of integers with at least one entry, got None")
        self._core = parse(persist, transit, init, end, children, offsets)
        self.n_jobs = checks.jobs(n_jobs)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of states S_d by level, root first."""
        return self._core.sizes

    def __getitem__(self, b: int) -> NestedLattice:
        return _lattice(self._one(b))

    def marginals(self) -> NestedMarginals:
        """Posteriors: ``labels`` and ``boundaries`` by level, and on demand the others; see `NestedMarginals`."""
        nothing = [False] * self._core.n_levels
        answer = self._core.posteriors(self.n_jobs, spans=nothing, cliques=None, parts=False)
        self._possible(answer["log_partition"])
        return NestedMarginals(self._core, self.n_jobs, answer, self._single)

    def log_partition_and_gradient(self) -> tuple[Floats, NestedScores]:
        """Log Z of each sequence, (B,), and the gradient of their sum in the shapes of the scores, in one native call.

        The gradient of a score is the expected number of times that it counts: what training needs.
        """
        log_partition, gradient = _gradient(self._core, self.n_jobs)
        return self._possible(log_partition), gradient

    def _config(self, levels: list[Ints]) -> Nesting:
        return [segments_of(level) for level in levels]

    def _levels(self, config: Any, length: int, name: str) -> list[Ints]:
        """A configuration as one array (n, 3) per level, checked: tiles, bounds, nesting."""
        depth = self._core.n_levels
        if not hasattr(config, "__len__") or len(config) != depth:
            raise ValueError(f"{name} must be a list of {depth} levels, root first, got {config!r}")
        levels: list[Ints] = []
        for d, (given, level) in enumerate(zip(config, self._core.levels, strict=True)):
            levels.append(checked_segments(given, length, f"{name}[{d}]", level.size, level.max_length, d))
            if len(levels[0]) > 1:
                raise ValueError(f"{name}[0] must be one segment over everything, got {len(levels[0])} segments")
        for d in range(depth - 1):
            inner = set(levels[d + 1][:, 1].tolist())
            for i, stop in enumerate(levels[d][:, 1].tolist()):
                if stop not in inner:
                    raise ValueError(
                        f"{name}[{d}][{i}] = {tuple(levels[d][i].tolist())} stops inside a segment of level {d + 1}: "
                        "a segment's children must end where it ends"
                    )
        return levels

    def _probabilities(self, configs: list[list[Ints]]) -> list[list[Floats]]:
        """Timed levels have the posteriors of their segments; of free ones, Z with the segment is divided by Z.

        The latter takes as many sweeps as there are segments, each linear in T.
        """
        core, log_z = self._core, self.log_partition()
        timed = [d > 0 and not free for d, free in enumerate(core.free)]
        spans = core.posteriors(self.n_jobs, spans=timed, cliques=None, parts=False)["spans"] if any(timed) else []
        found = [[np.zeros(len(level)) for level in levels] for levels in configs]
        asked: list[tuple[int, int, int]] = []
        for b, levels in enumerate(configs):
            for d, level in enumerate(levels):
                if timed[d]:
                    start, stop, label = level.T
                    found[b][d][:] = spans[d][self.offsets[b] + start, stop - start - 1, label]
                else:
                    asked += [(b, d, i) for i in range(len(level))]
        lengths = np.diff(self.offsets)
        sizes = np.array([lengths[b] for b, _, _ in asked], np.int64)
        for part in parts_of(sizes, _ROWS_AT_ONCE):
            some = [asked[k] for k in part.tolist()]
            owner = np.array([b for b, _, _ in some], np.int64)
            with_it = self._held([(d, *configs[b][d][i].tolist()) for b, d, i in some], owner)
            p = np.exp(with_it - log_z[owner])
            for (b, d, i), value in zip(some, p.tolist(), strict=True):
                found[b][d][i] = min(value, 1.0)
        return found

    def _held(self, segments: list[tuple[int, int, int, int]], owner: Ints) -> Floats:
        """Log Z of sequences in each of which a segment (level, start, stop, state) is known; -inf: it cannot be."""
        taken = self._core.take(owner)
        rows, levels, clash = int(taken.offsets[-1]), [], np.zeros(len(segments), np.bool_)
        sequence = np.repeat(np.arange(len(segments)), np.diff(taken.offsets))
        for d, known in enumerate(taken.known.levels):
            allowed, ends = np.ones((rows, self.sizes[d]), np.bool_), np.full(rows, -1, np.int8)
            for k, (level, start, stop, state) in enumerate(segments):
                if level != d:
                    continue
                first = int(taken.offsets[k])
                allowed[first + start : first + stop] = np.arange(self.sizes[d]) == state
                ends[first + start : first + stop - 1] = 0
                ends[first + stop - 1] = 1
                if start:
                    ends[first + start - 1] = 1
            if known.ends is not None:
                clash[sequence[(known.ends >= 0) & (ends >= 0) & (known.ends != ends)]] = True
            levels.append(known.also(Known(allowed=allowed, ends=ends))[0])
        found: Floats = replace(taken, known=Knowledge(tuple(levels), taken.offsets)).log_partitions(self.n_jobs)
        return np.where(clash, -np.inf, found)

    def constrain(self, labels: Any = None, boundaries: Any = None) -> NestedBatch:
        """The same lattices with partial knowledge; a second call adds to the first.

        Parameters
        ----------
        labels : dict of level -> int (N,), -1 for unknown, or bool (N, S_d), true for allowed states
        boundaries : dict of level -> int (N,)
            1: a segment of this level ends at this row, 0: none does, -1: unknown. A list with one entry per level,
            None for nothing known, serves as well.
        """
        core = self._core
        told = _by_level("labels", labels, core.n_levels), _by_level("boundaries", boundaries, core.n_levels)
        bounds = [level.max_length if d else None for d, level in enumerate(core.levels)]  # the root has its own
        return self._constrained([(told[0].get(d), told[1].get(d)) for d in range(core.n_levels)], core.sizes, bounds)

    def _check_nesting(self, held: Knowledge, last: Ints) -> None:
        inner = np.ones(int(self._core.offsets[-1]), np.bool_)
        inner[last] = False
        root = held.levels[0].ends
        if root is not None and ((root == 1) & inner).any():
            row = int(np.argmax((root == 1) & inner))
            self._contradiction(f"boundaries[0][{row}]", row, "is 1, but the root never ends there")
        low, high = held.event_levels()
        bad = np.flatnonzero((low > high) & inner)
        if bad.size:
            row = int(bad[0])
            self._contradiction(
                f"boundaries[{low[row] - 1}][{row}]",
                row,
                f"is 0, but a segment of level {high[row]} is known to end there",
            )


def _by_level(name: str, given: Any, depth: int) -> dict[int, Any]:
    if given is None:
        return {}
    if not isinstance(given, dict):
        if isinstance(given, np.ndarray) or not hasattr(given, "__len__") or len(given) != depth:
            raise ValueError(f"{name} must be a dict of level -> array, or a list of {depth} levels")
        given = {d: value for d, value in enumerate(given) if value is not None}
    found = {}
    for key, value in given.items():
        level = checks.count(f"level of {name}", key, -depth)
        if level >= depth:
            raise ValueError(f"{name} names level {level}, but the levels are 0..{depth - 1}")
        found[level % depth] = value
    return found


def _lattice(core: NestedCore) -> NestedLattice:
    batch: NestedBatch = NestedBatch._of(core, 1)
    batch._single = True
    lattice: NestedLattice = NestedLattice._of(batch)
    return lattice


class NestedLattice(Lattice[Nesting, NestedMarginals]):
    """A nested lattice: the distribution over trees of segments of one sequence with given scores.

    Level 0 is one segment over everything; each segment of level d < D-1 is cut into a chain of child segments of level
    d + 1. A configuration is a list of D lists of ``Segment(start, stop, label)``, root first; its score is the sum of

    - ``persist[d][u, n - 1, s]`` for each s-segment [u, u + n) of each level,
    - ``transit[d - 1][(t,) p, u, v]`` for children u, v of level d side by side under p, u ending at t,
    - ``init[d][(t,) p, u]`` for each p-segment of level d that starts at t with first child u,
    - ``end[d][(t,) p, u]`` for each p-segment of level d that ends at t with last child u.

    Parameters
    ----------
    persist : list, level d: (T, M_d, S_d), or Persistence
        Of the root only [0, T - 1] counts. The bottom has M = 1 for single steps, or more.
    transit : list, level d >= 1 at index d - 1: (S_{d-1}, S_d, S_d), or (T-1, S_{d-1}, S_d, S_d)
    init, end : list, level d < D-1: (S_d, S_{d+1}), or (T, S_d, S_{d+1})
    children : list of bool (S_d, S_{d+1}), optional
        Which states of level d + 1 may lie inside which of level d; None: all. States may be shared.

    Everything is exact (asymmetric inside-outside, paper 000, section 4). A level is *free* if its persistence is a
    plain sum over time steps and no bound matters; inference runs by blocks, from a timed level (or the root) over the
    free ones below it to the next timed one (`docs/concepts/nested.md`). With K the stacks of states of a block
    that `children` allows (S_d S_{d+1} without free levels), the block between timed levels d and e costs
    O(T M_d (M_e K + K S)) time, that of the root O(T (M_e K + K S)); what known boundaries exclude is left out. Memory
    beside the scores: 2 T M_d S_d doubles for each timed level, T M_e K for each block, 4 T K for the root's.
    """

    _batch: NestedBatch
    compressed = checks.Absent(
        "compressed inference is for chains and segments; a nested lattice has a trajectory per level"
    )

    def __init__(self, persist: Any, transit: Any, init: Any, end: Any, children: Any = None) -> None:
        self._batch = NestedBatch._of(parse(persist, transit, init, end, children, None), 1)
        self._batch._single = True

    @classmethod
    def _of(cls, batch: Any) -> Any:
        batch._single = True
        return super()._of(batch)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of states S_d by level, root first."""
        return self._batch.sizes

    def __repr__(self) -> str:
        return f"NestedLattice(length {len(self)}, states by level {', '.join(map(str, self.sizes))})"

    def log_partition_and_gradient(self) -> tuple[float, NestedScores]:
        """Log Z and its gradient in the shapes of the scores given."""
        log_partition, gradient = self._batch.log_partition_and_gradient()
        transit = [a if a.ndim == 3 else a[: max(len(a) - 1, 0)] for a in gradient.transit]
        return float(log_partition[0]), gradient._replace(transit=transit)
