"""The engines behind the lattices, with one interface: ragged arrays in, packed configurations and numbers out.

`DenseCore` is the first-order chain kernel, `PatternCore` the segment kernel on a pattern automaton (chains of any
order are segments of length one), `scansion.lattice.nested_scores.NestedCore` segments inside segments. A core is the
scores of B sequences with what is known of them; every question crosses into native code once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from scansion import _checks as checks
from scansion import _core
from scansion._checks import Bools, Floats, Ints
from scansion.data.dataset import gather
from scansion.data.knowledge import Knowledge
from scansion.lattice.patterns import BOS, EOS, PatternAutomaton
from scansion.rules.automata import Automaton

__all__ = ["Core", "DenseCore", "Packed", "PairCore", "PatternCore"]


class Packed(NamedTuple):
    """Configurations of B sequences, each a path for every one of D levels (one for chains and segments).

    Attributes
    ----------
    steps : int64 (n, 3)
        Start, stop and label.
    paths : int64 (configurations * D + 1,)
        Where each path begins among the steps.
    firsts : int64 (B + 1,)
        Where each sequence begins among the configurations.
    scores : (configurations,)
    """

    steps: Ints
    paths: Ints
    firsts: Ints
    scores: Floats


BOUNDARY = 1e-9  # of a right boundary beside a right label, in gains: it only decides between equals


def possible(scores: Floats | None) -> Floats | None:
    """0 where scores are finite, -inf elsewhere; None: all are finite."""
    if scores is None or np.isfinite(scores).all():
        return None
    return np.where(np.isfinite(scores), 0.0, -np.inf)


class Labels(NamedTuple):
    """Configurations of B chains.

    Attributes
    ----------
    labels : int32
        Of all configurations, one after another, sequence by sequence.
    firsts : int64 (B + 1,)
        Where each sequence begins among the configurations.
    scores : (configurations,)
    """

    labels: npt.NDArray[np.int32]
    firsts: Ints
    scores: Floats


@dataclass(frozen=True)
class Core:
    """What the engines have in common: sequence b has rows ``offsets[b]:offsets[b + 1]``."""

    offsets: Ints
    known: Knowledge

    n_levels = 1
    what = "the scores"  # that may leave nothing possible

    @property
    def n_labels(self) -> int:
        """L, of nested lattices at the bottom."""
        raise NotImplementedError

    @cached_property
    def native(self) -> Any:
        """The object that answers."""
        raise NotImplementedError

    def select(self, b: int) -> Any:
        """The core of one sequence."""
        raise NotImplementedError

    def take(self, sequences: Ints) -> Any:
        """The core of some sequences, in the order given."""
        raise NotImplementedError

    def _taken(self, sequences: Ints) -> tuple[Ints, dict[str, Any]]:
        """The rows of some sequences, and their offsets and knowledge."""
        offsets, rows = gather(self.offsets, sequences)
        return rows, {"offsets": offsets, "known": self.known.take(sequences)}

    def groups(self) -> list[tuple[Ints, Any]]:
        """Sequences and the cores that answer for them: one core, unless rules make several of it."""
        return [(np.arange(len(self.offsets) - 1), self)]

    def impossible_rules(self, b: int) -> str | None:
        """Rules that leave nothing of sequence b possible; None: it is not rules that do."""
        return None

    def _rows(self, b: int) -> tuple[slice, dict[str, Any]]:
        """The rows of one sequence, and its offsets and knowledge."""
        rows = slice(int(self.offsets[b]), int(self.offsets[b + 1]))
        offsets = np.array([0, rows.stop - rows.start])
        return rows, {"offsets": offsets, "known": self.known.rows(rows, offsets)}

    def gains(self, labels: Any, boundaries: Any) -> Any:
        """The core of the same configurations, scored by how many positions are expected to be right.

        labels, boundaries: marginals, (N, L) and (N,), of nested lattices by level. What is impossible stays so.
        Boundaries decide among configurations that have the same labels.
        """
        raise NotImplementedError

    def log_partitions(self, threads: int) -> Floats:
        """(B,) log Z, -inf where nothing is possible."""
        raise NotImplementedError

    def best(self, threads: int) -> Packed:
        """Best configurations; none for a sequence that is impossible."""
        return Packed(*self.native.best(threads))

    def kbest(self, k: int, threads: int) -> Packed:
        """The k best configurations of each sequence, best first."""
        return Packed(*self.native.kbest(k, threads))

    def sample(self, n: int, generator: np.random.Generator, threads: int) -> Packed:
        """Random configurations, n of each sequence."""
        return Packed(*self.native.sample(n, generator.random(n * self.randoms), threads))

    @property
    def randoms(self) -> int:
        """How many random numbers a draw of all sequences takes."""
        return int(self.offsets[-1]) + len(self.offsets) - 1

    def entropies(self, threads: int) -> Floats:
        """(B,) entropies in nats."""
        out = np.empty(len(self.offsets) - 1)
        self.native.entropies(out, threads)
        return out

    def scores(self, steps: Ints, paths: Ints, owners: Ints) -> Floats:
        """Scores of packed configurations; owners: the sequence of each."""
        out = np.empty(len(owners))
        self.native.scores(steps, paths, owners, out)
        return out

    def furthest(self, b: int) -> int:
        """Positions of sequence b that some configuration can cover."""
        covered: int = self.native.furthest(b)
        return covered


@dataclass(frozen=True)
class DenseCore(Core):
    """First-order chains: unary (N, L), transition (L, L) or (sum of T - 1, L, L), start and end (L,) or None."""

    unary: Floats
    transition: Floats
    start: Floats | None
    end: Floats | None

    max_length = 1
    pairwise = True  # scores of labels and pairs, not of patterns

    @property
    def n_labels(self) -> int:
        """L."""
        return int(self.unary.shape[1])

    @cached_property
    def native(self) -> _core.ChainBatch:
        """The object that answers."""
        allowed = self.known.level.bytes(self.n_labels)
        return _core.ChainBatch(self.unary, self.offsets, self.transition, self.start, self.end, allowed)

    def select(self, b: int) -> DenseCore:
        """The core of one sequence."""
        rows, shared = self._rows(b)
        transition = self.transition
        if transition.ndim == 3:
            steps = np.maximum(np.diff(self.offsets) - 1, 0)
            begin = int(steps[:b].sum())
            transition = transition[begin : begin + int(steps[b])]
        return replace(self, unary=self.unary[rows], transition=transition, **shared)

    def take(self, sequences: Ints) -> DenseCore:
        """The core of some sequences."""
        rows, shared = self._taken(sequences)
        transition = self.transition
        if transition.ndim == 3:
            steps = np.maximum(np.diff(self.offsets) - 1, 0)
            transition = transition[gather(np.concatenate([[0], np.cumsum(steps)]), sequences)[1]]
        return replace(self, unary=self.unary[rows], transition=transition, **shared)

    def restricted(self, rules: Automaton) -> DenseCore | PairCore:
        """The core of the configurations that an automaton over labels accepts; it answers like this one."""
        state = rules.by_letter()
        if state is None:
            return PairCore.of(self, rules)

        def allowed(scores: Floats | None, mask: Bools) -> Floats:
            return np.where(mask, 0.0 if scores is None else scores, -np.inf)

        after = rules.next[state] >= 0  # a label that never occurs reads the last row: it has no way in
        return replace(
            self,
            transition=allowed(self.transition, after),
            start=allowed(self.start, rules.next[0] >= 0),
            end=allowed(self.end, rules.accepting[state] > 0),
        )

    def gains(self, labels: Floats, boundaries: Any) -> DenseCore:
        """See `Core.gains`."""
        mask, moves = possible(self.unary), possible(self.transition)
        return replace(
            self,
            unary=labels if mask is None else labels + mask,
            transition=np.zeros_like(self.transition) if moves is None else moves,
            start=possible(self.start),
            end=possible(self.end),
        )

    def log_partitions(self, threads: int) -> Floats:
        """(B,) log Z, -inf where nothing is possible."""
        out = np.empty(len(self.offsets) - 1)
        self.native.posteriors(out, None, None, None, threads)
        return out

    def posteriors(self, threads: int, *, counts: bool = False, transitions: bool = False) -> dict[str, Any]:
        """Labels, and on demand expected transitions, summed or by position."""
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

    def kbest_labels(self, k: int, threads: int) -> Labels:
        """What `kbest` finds, as labels."""
        return Labels(*self.native.kbest_labels(k, threads))

    def sample_labels(self, n: int, generator: np.random.Generator, threads: int) -> Labels:
        """What `sample` draws, as labels."""
        return Labels(*self.native.sample_labels(n, generator.random(n * self.randoms), threads))

    def entropies(self, threads: int) -> Floats:
        """(B,) entropies in nats."""
        out = np.empty(len(self.offsets) - 1)
        self.native.chain_entropies(out, threads)
        return out

    def best_labels(self, threads: int) -> Ints:
        """(N,) labels of the best configurations; -1 throughout a sequence that is impossible."""
        labels = np.empty(int(self.offsets[-1]), np.int64)
        self.native.best_labels(labels, threads)
        return labels


@dataclass(frozen=True)
class PatternCore(Core):
    """Segment lattices on an automaton.

    A pattern's score on segment [u, v) of length d is either ``starts[u, z]`` or, where `extent` (P,) is true, the sum
    of ``full[u, d-1, z]``, ``start[u, z]``, ``inside`` over the segment, ``end[v-1, z]`` and ``by_length[d-1, z]``.
    The kernel keeps the former out of its loop over lengths. Arrays: starts (N, P) or (P,); full (N, M, C), start
    (N, C) or (C,), inside and end (N, C), by_length (M, C) with columns for the patterns 0..C-1; None is zero.
    """

    automaton: PatternAutomaton
    max_length: int
    extent: Bools
    starts: Floats | None = None
    full: Floats | None = None
    start: Floats | None = None
    inside: Floats | None = None
    end: Floats | None = None
    by_length: Floats | None = None
    rules: Automaton | None = None  # over labels: what it does not accept is left out

    pairwise = False

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
        parts: dict[str, Any] = {"starts": starts, "start": start, "inside": inside, "end": end, "by_length": by_length}
        return cls(offsets, Knowledge.nothing(offsets), automaton, max_length, extent, **parts)

    @property
    def n_labels(self) -> int:
        """L."""
        return self.automaton.n_labels

    @cached_property
    def native(self) -> _core.SegmentBatch:
        """The object that answers."""
        parts = (self.starts, self.full, self.start, self.inside, self.end, self.by_length)
        size = sum(part.size for part in parts if part is not None)
        checks.memory("exponentials and expectations of the scores of segments", 3 * size)
        return _core.SegmentBatch(
            self.automaton._native,
            self.automaton.topology(self.extent, self.rules),
            self.offsets,
            self.max_length,
            self.starts,
            self.full,
            self.start,
            self.inside,
            self.end,
            self.by_length,
            self.known.level.bytes(self.n_labels),
            self.known.level.contiguous_ends,
        )

    def select(self, b: int) -> PatternCore:
        """The core of one sequence."""
        return self._cut(*self._rows(b))

    def take(self, sequences: Ints) -> PatternCore:
        """The core of some sequences."""
        return self._cut(*self._taken(sequences))

    def _cut(self, rows: slice | Ints, shared: dict[str, Any]) -> PatternCore:
        def cut(part: Floats | None) -> Floats | None:
            return part if part is None or part.ndim == 1 else part[rows]

        parts: dict[str, Any] = {
            name: cut(getattr(self, name)) for name in ("starts", "full", "start", "inside", "end")
        }
        return replace(self, **parts, **shared)

    def restricted(self, rules: Automaton) -> PatternCore:
        """The core of the configurations that an automaton over labels accepts."""
        return replace(self, rules=rules)

    def gains(self, labels: Floats, boundaries: Floats | None) -> PatternCore:
        """See `Core.gains`; boundaries None: every position has one."""
        # labels first, then the other patterns, which matter where their scores are -inf
        given, size = self.automaton.patterns, self.n_labels
        others = [z for z, pattern in enumerate(given) if len(pattern) > 1]
        singles = {pattern[0]: z for z, pattern in enumerate(given) if len(pattern) == 1}
        column = np.array([*(singles.get(y, -1) for y in range(size)), *others], np.int64)  # -1: has no scores
        by_extent = np.where(column >= 0, self.extent[column], True)

        def mask(name: str, columns: Ints) -> Floats | None:
            found = possible(getattr(self, name))
            if found is None:
                return None
            wide = np.zeros((*found.shape[:-1], len(columns)))
            has = np.flatnonzero((columns >= 0) & (columns < found.shape[-1]))
            wide[..., has] = found[..., columns[has]]
            return wide

        names = ("full", "start", "inside", "end", "by_length")
        masked = any(possible(getattr(self, name)) is not None for name in names)
        columns = column if masked and others else column[:size]
        parts = {name: mask(name, columns) for name in names}
        # labels are scored by extent here: what forbids their starts moves there
        starts = mask("starts", column)
        if starts is not None:
            ends = np.array([len(p) > 1 and p[-1] == EOS for p in given], np.bool_)
            read = ~by_extent | ((column >= 0) & ends[column])  # EOS is never part of an extent
            starts = np.where(read, starts, 0.0)
            first = np.pad(starts[..., :size], [*[(0, 0)] * (starts.ndim - 1), (0, len(columns) - size)])
            parts["start"] = first if parts["start"] is None else first + parts["start"]
        ends_here = np.ones(len(labels)) if boundaries is None else boundaries
        later = BOUNDARY * (1.0 - ends_here)[:, None]
        last = (BOUNDARY * ends_here[:, None] - later).repeat(size, 1)
        for name, values in (("inside", labels + later), ("end", last)):
            wide = np.pad(values, [(0, 0), (0, len(columns) - size)])
            before = parts[name]
            parts[name] = wide if before is None else wide + before
        extent = by_extent & (np.arange(len(column)) < len(columns))
        extent[:size] = True
        return PatternCore(
            self.offsets,
            self.known,
            PatternAutomaton([*((y,) for y in range(size)), *(given[z] for z in others)], size),
            self.max_length,
            extent,
            np.zeros(len(column)) if starts is None else starts,
            rules=self.rules,
            **parts,
        )

    def whole(self) -> PatternCore:
        """The same with the extent of every pattern, also of those whose parts are all zero: for gradients."""
        core = PatternCore.additive(
            self.automaton,
            self.offsets,
            self.max_length,
            start=self.start,
            inside=self.inside,
            end=self.end,
            by_length=self.by_length,
            gradient=True,
        )
        return replace(core, known=self.known, rules=self.rules)

    def log_partitions(self, threads: int) -> Floats:
        """(B,) log Z, -inf where nothing is possible."""
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
        }
        for name in ("starts", "full", "start", "inside", "end", "by_length"):
            out[name] = like(getattr(self, name))
        out["escaped"] = self.native.posteriors(**out, threads=threads)
        return out

    def best_labels(self, threads: int) -> Ints:
        """(N,) labels of the best configurations of chains; -1 throughout a sequence that is impossible."""
        labels = np.empty(int(self.offsets[-1]), np.int64)
        self.native.best_labels(labels, threads)
        return labels


@dataclass(frozen=True)
class PairCore(PatternCore):
    """A first-order chain under rules, on the automaton of its label pairs; it answers like the `DenseCore` it is of.

    Patterns: labels, pairs (i, j) at L + i L + j, then (BOS, y) and (y, EOS).
    """

    pairwise = True

    @classmethod
    def of(cls, core: DenseCore, rules: Automaton) -> PairCore:
        """A chain under rules."""
        net, size = _pairs(core.n_labels), core.n_labels
        ends = [np.zeros(size) if part is None else part for part in (core.start, core.end)]
        pairs = core.transition.reshape(-1, size * size)
        if core.transition.ndim == 2:
            starts = np.concatenate([np.zeros(size), pairs[0], *ends])
        else:
            later = np.ones(int(core.offsets[-1]), np.bool_)
            later[core.offsets[:-1][np.diff(core.offsets) > 0]] = False
            starts = np.zeros((len(later), len(net.patterns)))
            starts[later, size : size + size * size] = pairs
            starts[:, size + size * size :] = np.concatenate(ends)
        extent = np.arange(len(net.patterns)) < size
        return cls(core.offsets, core.known, net, 1, extent, starts, start=core.unary, rules=rules)

    def posteriors(  # type: ignore[override]
        self, threads: int, *, counts: bool = False, transitions: bool = False
    ) -> dict[str, Any]:
        """Labels, and on demand expected transitions, summed or by position."""
        n, size = int(self.offsets[-1]), self.n_labels
        core: PatternCore = self
        assert self.starts is not None
        if transitions and self.starts.ndim == 1:
            core = replace(self, starts=np.ascontiguousarray(np.broadcast_to(self.starts, (n, self.starts.size))))
        found = PatternCore.posteriors(core, threads, gradient=counts or transitions)
        out: dict[str, Any] = {name: found[name] for name in ("log_partition", "labels", "escaped")}
        out["counts"] = out["transitions"] = None
        if counts or transitions:
            pairs = found["starts"][..., size : size + size * size]
            if pairs.ndim == 2:
                later = np.ones(n, np.bool_)
                later[self.offsets[:-1][np.diff(self.offsets) > 0]] = False
                pairs = pairs[later]
            if transitions:
                out["transitions"] = pairs.reshape(-1, size, size)
            if counts:
                out["counts"] = (pairs if pairs.ndim == 1 else pairs.sum(axis=0)).reshape(size, size)
        return out


@lru_cache(maxsize=32)
def _pairs(size: int) -> PatternAutomaton:
    """The automaton of a first-order chain."""
    labels = range(size)
    pairs = [(i, j) for i in labels for j in labels]
    return PatternAutomaton(
        [*((y,) for y in labels), *pairs, *((BOS, y) for y in labels), *((y, EOS) for y in labels)], size
    )
