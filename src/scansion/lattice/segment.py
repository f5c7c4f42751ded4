"""Segment lattices: segments with labels, any order (paper 001, section 2).

Conventions: a segment is half-open, [u, v), of length d = v - u <= M; scores of a segment that would pass the end of
the sequence are ignored. A batch holds the rows of all sequences one after another, N in all, cut at `offsets`.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from scansion import _checks as checks
from scansion._checks import Floats, Ints
from scansion.data.knowledge import Knowledge
from scansion.lattice.base import FlatBatch, FlatLattice
from scansion.lattice.cores import PatternCore
from scansion.lattice.patterns import automaton
from scansion.segments import Segment, checked_segments, segments_of

__all__ = ["SegmentBatch", "SegmentLattice", "SegmentMarginals", "SegmentParts"]

Segmentation = list[Segment]


class SegmentParts(NamedTuple):
    """The parts of additive segment scores, or the gradient of log Z with respect to them; None: not given."""

    start: Floats | None
    inside: Floats | None
    end: Floats | None
    length: Floats | None


class SegmentMarginals:
    """Posterior probabilities of a segment lattice (or of a batch: rows of all sequences one after another).

    Attributes
    ----------
    labels : (T, L)
        ``P(position t lies in a segment with label y)``.
    boundaries : (T,)
        ``P(a segment ends at t)``, t its last position.
    segments : (T, M, L)
        ``P([u, u + d) is a segment with label y)`` at index ``[u, d - 1, y]``.
    patterns : (T, M, P), or SegmentParts
        ``P([u, u + d) is a segment and the segment labels up to it end in pattern z)``; for additive scores the
        expected number of firings of each part. Both are the gradient of log Z with respect to the scores.

    From additive scores, `segments` and `patterns` are computed when first read: the former is the one answer whose
    size is not linear in T, the latter needs the extent of every pattern, also of those whose parts are all zero.
    """

    def __init__(self, core: PatternCore, n_jobs: int, answer: dict[str, Any]) -> None:
        self._core = core
        self._n_jobs = n_jobs
        self.labels: Floats = answer["labels"]
        self.boundaries: Floats = answer["boundaries"]
        if answer["full"] is not None:
            self.patterns = answer["full"]
            self.segments = answer["segments"]

    def __repr__(self) -> str:
        shapes = f"labels {self.labels.shape}, boundaries {self.boundaries.shape}"
        return f"SegmentMarginals({shapes}; also segments, patterns)"

    @cached_property
    def patterns(self) -> Floats | SegmentParts:
        """(T, M, P), or parts: the gradient of log Z."""
        answer = self._core.whole().posteriors(self._n_jobs, gradient=True)
        start = answer["start"]
        if start is not None:  # a pattern is scored by one of the two, and patterns that end in EOS by starts
            start = start + answer["starts"]
        return SegmentParts(start, answer["inside"], answer["end"], answer["by_length"])

    @cached_property
    def segments(self) -> Floats:
        """(T, M, L) posterior of each segment."""
        out: Floats = self._core.posteriors(self._n_jobs, segments=True)["segments"]
        return out


class SegmentBatch(FlatBatch[Segmentation, SegmentMarginals]):
    """Segment lattices of many sequences.

    Parameters
    ----------
    scores : (N, M, P)
        Rows of all sequences one after another; see `SegmentLattice`.
    offsets : int (B + 1,)
        Sequence b has rows ``offsets[b]:offsets[b + 1]``.
    patterns, n_labels
        See `SegmentLattice`.
    n_jobs : int
        Threads, -1 for all processors. Results do not depend on it.
    """

    _merges = False

    def __init__(self, scores: Any, offsets: Any, patterns: Any, n_labels: int, n_jobs: int = 1) -> None:
        net = automaton(patterns, n_labels)
        values = checks.scores("scores", scores, ("N", "M", len(net.patterns)))
        cuts = checks.offsets(offsets, len(values), "scores")
        self._core = _full(net, cuts, values)
        self.n_jobs = checks.jobs(n_jobs)

    @classmethod
    def from_parts(
        cls,
        offsets: Any,
        patterns: Any,
        n_labels: int,
        max_length: int,
        *,
        start: Any = None,
        inside: Any = None,
        end: Any = None,
        length: Any = None,
        n_jobs: int = 1,
    ) -> SegmentBatch:
        """Additive scores, rows of all sequences one after another; see `SegmentLattice.from_parts`."""
        core = _parts(patterns, n_labels, max_length, SegmentParts(start, inside, end, length), offsets)
        batch: SegmentBatch = cls._of(core, checks.jobs(n_jobs))
        return batch

    def __getitem__(self, b: int) -> SegmentLattice:
        lattice: SegmentLattice = SegmentLattice._of(self._of(self._one(b), 1))
        return lattice

    @property
    def max_length(self) -> int:
        """Longest segment M."""
        return int(self._core.max_length)

    def marginals(self) -> SegmentMarginals:
        """Posteriors, rows of all sequences one after another; see `SegmentMarginals`."""
        core: PatternCore = self._core
        full = core.full is not None
        answer = core.posteriors(self.n_jobs, segments=full, gradient=full)
        self._possible(answer["log_partition"])
        return SegmentMarginals(core, self.n_jobs, answer)

    def _config(self, levels: list[Ints]) -> Segmentation:
        return segments_of(levels[0])

    def _levels(self, config: Any, length: int, name: str) -> list[Ints]:
        return [checked_segments(config, length, name, self.n_labels, self.max_length)]

    def _probable(self, marginals: SegmentMarginals, rows: Ints, lengths: Ints, labels: Ints) -> Floats:
        return marginals.segments[rows, lengths - 1, labels]


class SegmentLattice(FlatLattice[Segmentation, SegmentMarginals]):
    """A segment lattice: the distribution over segmentations of one sequence with given scores.

    A segmentation's score is the sum, over its segments [u, v) and the patterns z that equal the last |z| segment
    labels, of ``scores[u, v - u - 1, z]``. Every answer is exact. Time O(T (arcs + M K)) with K the number of
    distinct (state, extent) pairs of the automaton; memory O(T K) beside the scores.

    Parameters
    ----------
    scores : (T, M, P)
        Start, length - 1, pattern; -inf forbids.
    patterns : sequence of tuples of int, or PatternAutomaton
        Segment labels 0..n_labels-1; `BOS` allowed first, `EOS` last.
    n_labels : int
    """

    def __init__(self, scores: Any, patterns: Any, n_labels: int) -> None:
        net = automaton(patterns, n_labels)
        values = checks.scores("scores", scores, ("T", "M", len(net.patterns)))
        self._batch = SegmentBatch._of(_full(net, np.array([0, len(values)]), values), 1)

    @classmethod
    def from_parts(
        cls,
        patterns: Any,
        n_labels: int,
        max_length: int,
        *,
        start: Any = None,
        inside: Any = None,
        end: Any = None,
        length: Any = None,
    ) -> SegmentLattice:
        """Additive scores: memory linear in T whatever the longest segment.

        Pattern z on segment [u, v) of length d scores
        ``start[u, z] + sum_{u <= t < v} inside[t, z] + end[v - 1, z] + length[d - 1, z]``.

        Parameters
        ----------
        patterns, n_labels
            As above.
        max_length : int
            Longest segment M.
        start : (T, P), or (P,) for the same at every position
        inside, end : (T, P)
        length : (M, P)
            None is zero; at least one of the (T, P) arrays must be given, for it tells T.
        """
        core = _parts(patterns, n_labels, max_length, SegmentParts(start, inside, end, length), None)
        lattice: SegmentLattice = cls._of(SegmentBatch._of(core, 1))
        return lattice

    @property
    def max_length(self) -> int:
        """Longest segment M."""
        return int(self._batch._core.max_length)


def _full(net: Any, offsets: Ints, values: Floats) -> PatternCore:
    if values.shape[1] == 0:
        raise ValueError(f"scores must allow segments of length 1 at least, got shape {values.shape}")
    extent = np.ones(len(net.patterns), np.bool_)
    return PatternCore(offsets, Knowledge.nothing(offsets), net, values.shape[1], extent, full=values)


def _parts(patterns: Any, n_labels: int, max_length: int, given: SegmentParts, offsets: Any) -> PatternCore:
    net = automaton(patterns, n_labels)
    size = len(net.patterns)
    longest = checks.count("max_length", max_length, 1)
    parts: dict[str, Floats | None] = {}
    rows: int | None = None
    for name in ("start", "inside", "end"):
        value = getattr(given, name)
        value = value if value is None else checks.plain(name, value)
        if value is None:
            parts[name] = None
        elif name == "start" and value.ndim == 1:
            parts[name] = checks.scores(name, value, (size,))
        else:
            parts[name] = checks.scores(name, value, ("T" if rows is None else rows, size))
            rows = len(parts[name])  # type: ignore[arg-type]
    if rows is None:
        raise ValueError("at least one of start, inside, end must be given as an array of shape (T, patterns)")
    by_length = None if given.length is None else checks.scores("length", given.length, (longest, size))
    cuts = np.array([0, rows]) if offsets is None else checks.offsets(offsets, rows, "start, inside and end")
    return PatternCore.additive(
        net,
        cuts,
        longest,
        start=parts.get("start"),
        inside=parts.get("inside"),
        end=parts.get("end"),
        by_length=by_length,
    )
