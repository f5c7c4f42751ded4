"""The two engines behind the lattices, with one interface: ragged arrays in, packed paths and numbers out.

`DenseCore` is the first-order chain kernel, `PatternCore` the segment kernel on a pattern automaton (chains of any
order are segments of length one). Paths of B sequences come packed as ``(steps, paths, firsts)``: steps int64 (n, 3)
with start, stop and label; path i has steps ``paths[i]:paths[i+1]``, sequence b has paths ``firsts[b]:firsts[b+1]``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from scansion import _core
from scansion._checks import Bools, Floats, Ints
from scansion.data.knowledge import Knowledge
from scansion.lattice.patterns import PatternAutomaton

Packed = tuple[Ints, Ints, Ints]


@dataclass(frozen=True)
class DenseCore:
    """First-order chains: unary (N, L), transition (L, L) or (sum of T - 1, L, L), start and end (L,) or None."""

    unary: Floats
    offsets: Ints
    transition: Floats
    start: Floats | None
    end: Floats | None
    known: Knowledge
    max_length: int = 1

    @property
    def n_labels(self) -> int:
        return int(self.unary.shape[1])

    @cached_property
    def native(self) -> _core.ChainBatch:
        mask = self.known.level.bytes(self.n_labels)
        return _core.ChainBatch(self.unary, self.offsets, self.transition, self.start, self.end, mask)

    def select(self, b: int) -> DenseCore:
        first, last = int(self.offsets[b]), int(self.offsets[b + 1])
        transition = self.transition
        if transition.ndim == 3:
            steps = np.maximum(np.diff(self.offsets) - 1, 0)
            begin = int(steps[:b].sum())
            transition = transition[begin : begin + int(steps[b])]
        return replace(
            self,
            unary=self.unary[first:last],
            offsets=np.array([0, last - first]),
            transition=transition,
            known=self.known.rows(slice(first, last), np.array([0, last - first])),
        )

    def log_partitions(self, threads: int) -> Floats:
        out = np.empty(len(self.offsets) - 1)
        self.native.posteriors(out, None, None, None, threads)
        return out

    def posteriors(self, threads: int, *, counts: bool = False, transitions: bool = False) -> dict[str, Any]:
        n, size = len(self.offsets) - 1, self.n_labels
        steps = int(np.maximum(np.diff(self.offsets) - 1, 0).sum())
        out: dict[str, Any] = {
            "log_partition": np.empty(n),
            "labels": np.zeros((int(self.offsets[-1]), size)),
            "counts": np.zeros((size, size)) if counts else None,
            "transitions": np.zeros((steps, size, size)) if transitions else None,
        }
        out["escaped"] = self.native.posteriors(**out, threads=threads)
        return out

    def best(self, threads: int) -> Packed:
        labels = np.empty(int(self.offsets[-1]), np.int64)
        self.native.best_labels(labels, threads)
        at = np.arange(len(labels)) - np.repeat(self.offsets[:-1], np.diff(self.offsets))
        return np.stack([at, at + 1, labels], axis=1), self.offsets, np.arange(len(self.offsets))

    def kbest(self, k: int, threads: int) -> Packed:
        return self.native.kbest(k, threads)

    def sample(self, n: int, uniform: Floats, threads: int) -> Packed:
        return self.native.sample(n, uniform, threads)

    def entropies(self, threads: int) -> Floats:
        out = np.empty(len(self.offsets) - 1)
        self.native.entropies(out, threads)
        return out

    def scores(self, steps: Ints, firsts: Ints) -> Floats:
        """Score of one labelling per sequence; steps as in packed paths, covering every row."""
        out = np.empty(len(self.offsets) - 1)
        self.native.scores(np.ascontiguousarray(steps[:, 2]), out)
        return out

    def furthest(self, b: int) -> int:
        return self.native.furthest(b)


@dataclass(frozen=True)
class PatternCore:
    """Segment lattices on an automaton.

    A pattern's score on segment [u, v) of length d is either ``starts[u, z]`` or, where `extent` (P,) is true, the sum
    of ``full[u, d-1, z]``, ``start[u, z]``, ``inside`` over the segment, ``end[v-1, z]`` and ``by_length[d-1, z]``.
    The kernel keeps the former out of its loop over lengths. Arrays: starts (N, P) or (P,); full (N, M, C), start
    (N, C) or (C,), inside and end (N, C), by_length (M, C) with columns for the patterns 0..C-1; None is zero.
    """

    automaton: PatternAutomaton
    offsets: Ints
    max_length: int
    extent: Bools
    known: Knowledge
    starts: Floats | None = None
    full: Floats | None = None
    start: Floats | None = None
    inside: Floats | None = None
    end: Floats | None = None
    by_length: Floats | None = None

    @classmethod
    def additive(
        cls,
        automaton: PatternAutomaton,
        offsets: Ints,
        max_length: int,
        *,
        start: Floats | None = None,
        inside: Floats | None = None,
        end: Floats | None = None,
        by_length: Floats | None = None,
        gradient: bool = False,
    ) -> PatternCore:
        """From parts with a column for every pattern.

        Patterns that score nothing but a start leave the loop over lengths; not so for a gradient, which exists also
        where a part happens to be zero.
        """
        extent = np.zeros(len(automaton.patterns), np.bool_)
        for part in (inside, end, by_length):
            if part is not None:
                extent |= True if gradient else part.any(axis=0)
        starts = np.zeros(len(automaton.patterns)) if start is None else start
        known = Knowledge.nothing(offsets)
        return cls(automaton, offsets, max_length, extent, known, starts, None, start, inside, end, by_length)

    @property
    def n_labels(self) -> int:
        return self.automaton.n_labels

    @cached_property
    def native(self) -> _core.SegmentBatch:
        runs, may_end = self.known.level.runs(self.offsets, self.n_labels, self.max_length)
        return _core.SegmentBatch(
            self.automaton._native,
            self.automaton.topology(self.extent),
            self.offsets,
            self.max_length,
            self.starts,
            self.full,
            self.start,
            self.inside,
            self.end,
            self.by_length,
            runs,
            may_end,
        )

    def select(self, b: int) -> PatternCore:
        first, last = int(self.offsets[b]), int(self.offsets[b + 1])

        def cut(rows: Floats | None) -> Floats | None:
            return rows if rows is None or rows.ndim == 1 else rows[first:last]

        return replace(
            self,
            offsets=np.array([0, last - first]),
            starts=cut(self.starts),
            full=cut(self.full),
            start=cut(self.start),
            inside=cut(self.inside),
            end=cut(self.end),
            known=self.known.rows(slice(first, last), np.array([0, last - first])),
        )

    def log_partitions(self, threads: int) -> Floats:
        out = np.empty(len(self.offsets) - 1)
        self.native.posteriors(out, None, None, None, None, None, None, None, None, None, threads)
        return out

    def posteriors(self, threads: int, *, segments: bool = False, gradient: bool = False) -> dict[str, Any]:
        """Labels and boundaries, and on demand segments and the gradient with respect to every array of scores."""
        n = int(self.offsets[-1])

        def like(part: Floats | None) -> Floats | None:
            return np.zeros(part.shape) if gradient and part is not None else None

        out: dict[str, Any] = {
            "log_partition": np.empty(len(self.offsets) - 1),
            "labels": np.zeros((n, self.n_labels)),
            "boundaries": np.zeros(n),
            "segments": np.zeros((n, self.max_length, self.n_labels)) if segments else None,
            "starts": like(self.starts),
            "full": like(self.full),
            "start": like(self.start),
            "inside": like(self.inside),
            "end": like(self.end),
            "by_length": like(self.by_length),
        }
        out["escaped"] = self.native.posteriors(**out, threads=threads)
        return out

    def best(self, threads: int) -> Packed:
        return self.native.best(threads)

    def kbest(self, k: int, threads: int) -> Packed:
        return self.native.kbest(k, threads)

    def sample(self, n: int, uniform: Floats, threads: int) -> Packed:
        return self.native.sample(n, uniform, threads)

    def entropies(self, threads: int) -> Floats:
        out = np.empty(len(self.offsets) - 1)
        self.native.entropies(out, threads)
        return out

    def scores(self, steps: Ints, firsts: Ints) -> Floats:
        """Score of one segmentation per sequence, packed."""
        out = np.empty(len(self.offsets) - 1)
        self.native.scores(steps, firsts, out)
        return out

    def furthest(self, b: int) -> int:
        return self.native.furthest(b)


Core = DenseCore | PatternCore
