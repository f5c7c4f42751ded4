"""Random tiny problems with their brute-force answers, for tests by property.

A problem carries a *witness*: a configuration that never meets a ``-inf``, so every problem is possible, and
constraints drawn from the witness are never contradictory. Shapes, patterns and constraints are drawn by
Hypothesis and shrink; score values come from a drawn seed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.stats import chi2

import scansion as sc
from scansion.reference import enumeration as brute

KINDS = ("tame", "hundred", "huge", "integer", "coarse")


@dataclass(frozen=True)
class Known:
    """Constraints: labels int (T,) or bool (T, L), boundaries int (T,)."""

    labels: np.ndarray | None
    boundaries: np.ndarray | None

    def as_kwargs(self) -> dict[str, np.ndarray]:
        return {k: v for k, v in (("labels", self.labels), ("boundaries", self.boundaries)) if v is not None}


class Problem:
    """What the problems share: sizes, brute force, tolerances."""

    n_times: int
    n_labels: int
    max_length: int
    witness: brute.Configuration

    def score_arrays(self) -> list[np.ndarray]:
        raise NotImplementedError

    @cached_property
    def scored(self) -> brute.Scored:
        raise NotImplementedError

    def lattice(self) -> Any:
        raise NotImplementedError

    @property
    def atol(self) -> float:
        """What rounding may do to a sum of all scores that meet in one configuration."""
        scale = sum(np.abs(a[np.isfinite(a)]).max(initial=0.0) * a.shape[-1] for a in self.score_arrays())
        return float(1e-10 + 1e-14 * scale * (1 + self.n_times))


@dataclass(frozen=True)
class ChainProblem(Problem):
    unary: np.ndarray  # (T, L)
    transition: np.ndarray  # (L, L) or (T-1, L, L)
    start: np.ndarray | None  # (L,)
    end: np.ndarray | None  # (L,)
    witness: brute.Configuration

    max_length = 1

    @property
    def n_times(self) -> int:
        return self.unary.shape[0]

    @property
    def n_labels(self) -> int:
        return self.unary.shape[1]

    def score_arrays(self) -> list[np.ndarray]:
        return [a for a in (self.unary, self.transition, self.start, self.end) if a is not None]

    @cached_property
    def scored(self) -> brute.Scored:
        return brute.enumerate_chain(self.unary, self.transition, self.start, self.end)

    def lattice(self) -> sc.ChainLattice:
        return sc.ChainLattice(self.unary, self.transition, start=self.start, end=self.end)


@dataclass(frozen=True)
class PatternProblem(Problem):
    scores: np.ndarray  # (T, P)
    patterns: list[tuple[int, ...]]
    n_labels: int
    witness: brute.Configuration

    max_length = 1

    @property
    def n_times(self) -> int:
        return self.scores.shape[0]

    def score_arrays(self) -> list[np.ndarray]:
        return [self.scores]

    @cached_property
    def scored(self) -> brute.Scored:
        return brute.enumerate_patterns(self.scores, self.patterns, self.n_labels)

    def lattice(self) -> sc.ChainLattice:
        return sc.ChainLattice.from_patterns(self.scores, self.patterns, self.n_labels)


@dataclass(frozen=True)
class SegmentProblem(Problem):
    scores: np.ndarray  # (T, M, P)
    patterns: list[tuple[int, ...]]
    n_labels: int
    witness: brute.Configuration

    @property
    def n_times(self) -> int:
        return self.scores.shape[0]

    @property
    def max_length(self) -> int:
        return self.scores.shape[1]

    def score_arrays(self) -> list[np.ndarray]:
        return [self.scores]

    @cached_property
    def scored(self) -> brute.Scored:
        return brute.enumerate_segments(self.scores, self.patterns, self.n_labels)

    def lattice(self) -> sc.SegmentLattice:
        return sc.SegmentLattice(self.scores, self.patterns, self.n_labels)


@dataclass(frozen=True)
class PartsProblem(Problem):
    n_times: int
    patterns: list[tuple[int, ...]]
    n_labels: int
    max_length: int
    parts: dict[str, np.ndarray]  # start (T, P) or (P,), inside (T, P), end (T, P), length (M, P)
    witness: brute.Configuration

    def score_arrays(self) -> list[np.ndarray]:
        return list(self.parts.values())

    @cached_property
    def scores(self) -> np.ndarray:
        return brute.expand_parts(self.n_times, len(self.patterns), self.max_length, **self.parts)

    @cached_property
    def scored(self) -> brute.Scored:
        return brute.enumerate_segments(self.scores, self.patterns, self.n_labels)

    def lattice(self) -> sc.SegmentLattice:
        return sc.SegmentLattice.from_parts(self.patterns, self.n_labels, self.max_length, **self.parts)


# Scores --------------------------------------------------------------------------------------------


def fill(rng: np.random.Generator, kind: str, shape: tuple[int, ...]) -> np.ndarray:
    """Scores of one kind; "integer" ones add without rounding and so have true ties, "coarse" ones of hundreds too."""
    if kind == "tame":
        return rng.normal(size=shape) * 2.0
    if kind == "hundred":
        return rng.uniform(-100.0, 100.0, size=shape)
    if kind == "huge":
        return rng.choice([-1e4, 0.0, 1e4], size=shape, p=[0.3, 0.4, 0.3]) + rng.normal(size=shape)
    if kind == "coarse":
        return rng.integers(-2, 2, size=shape) * rng.choice([100.0, 250.0, 400.0, 700.0])
    return rng.integers(-1, 2, size=shape).astype(np.float64)


def _forbid(rng: np.random.Generator, scores: np.ndarray, used: np.ndarray) -> None:
    """Set about a third of the entries to -inf, never one that the witness uses (bool, same shape)."""
    scores[(rng.random(scores.shape) < 0.35) & ~used] = -np.inf


# Shapes, patterns, constraints ---------------------------------------------------------------------


@st.composite
def sizes(draw: st.DrawFn, max_length: int = 3, min_times: int = 0) -> tuple[int, int, int]:
    """(T, L, M) small enough to enumerate: at most 1,000 configurations."""
    n_labels = draw(st.sampled_from((1, 2, 2, 3, 3)))
    longest = draw(st.sampled_from([d for d in (1, 2, 2, 3, 3) if d <= max_length]))
    limit = 5 if n_labels == 3 and longest > 1 else 6
    often = (0, 1, 2, 3, 3, 4, 4, 4, 5, 5, 5, 6, 6, 6)
    return draw(st.sampled_from([t for t in often if min_times <= t <= limit])), n_labels, longest


@st.composite
def configurations(draw: st.DrawFn, n_times: int, n_labels: int, max_length: int) -> brute.Configuration:
    config = []
    start = 0
    while start < n_times:
        stop = start + draw(st.integers(1, min(max_length, n_times - start)))
        config.append((start, stop, draw(st.integers(0, n_labels - 1))))
        start = stop
    return tuple(config)


@st.composite
def patterns(draw: st.DrawFn, n_labels: int, max_order: int = 4) -> tuple[int, ...]:
    body = draw(st.lists(st.integers(0, n_labels - 1), min_size=1, max_size=max_order))
    head = [brute.BOS] if draw(st.integers(0, 4)) == 1 else []
    tail = [brute.EOS] if draw(st.integers(0, 4)) == 1 else []
    return (*head, *body, *tail)


@st.composite
def pattern_sets(draw: st.DrawFn, n_labels: int) -> list[tuple[int, ...]]:
    chosen = draw(st.lists(patterns(n_labels), min_size=1, max_size=8, unique=True))
    if draw(st.booleans()):
        chosen += [(y,) for y in range(n_labels) if (y,) not in chosen]
    return chosen


@st.composite
def known(draw: st.DrawFn, witness: brute.Configuration, n_labels: int, *, chain: bool) -> Known:
    """Constraints that the witness satisfies."""
    truth = brute.label_sequence(witness)
    n_times = len(truth)
    labels: np.ndarray | None = None
    boundaries: np.ndarray | None = None
    form = draw(st.sampled_from(["none", "int", "sets"]))
    if form == "int":
        hidden = draw(st.lists(st.booleans(), min_size=n_times, max_size=n_times))
        labels = np.array([-1 if h else y for h, y in zip(hidden, truth, strict=True)], dtype=np.int64)
    elif form == "sets":
        rows = draw(st.lists(st.integers(0, 2**n_labels - 1), min_size=n_times, max_size=n_times))
        labels = np.zeros((n_times, n_labels), dtype=np.bool_)
        for t, row in enumerate(rows):
            labels[t] = [bool(row >> y & 1) or y == truth[t] for y in range(n_labels)]
    if form == "none" or draw(st.booleans()):
        ends = {stop - 1 for _, stop, _ in witness}
        hidden = draw(st.lists(st.booleans(), min_size=n_times, max_size=n_times))
        boundaries = np.array([-1 if h else int(t in ends) for t, h in enumerate(hidden)], dtype=np.int64)
        if chain:
            assert not (boundaries == 0).any()
    return Known(labels, boundaries)


# Problems ------------------------------------------------------------------------------------------


@st.composite
def chain_problems(
    draw: st.DrawFn, kinds: tuple[str, ...] = KINDS, min_times: int = 0, by_time: bool | None = None
) -> ChainProblem:
    n_times, n_labels, _ = draw(sizes(max_length=1, min_times=min_times))
    kind = draw(st.sampled_from(kinds))
    if by_time is None:
        by_time = draw(st.booleans())
    with_start, with_end, forbid = draw(st.booleans()), draw(st.booleans()), draw(st.booleans())
    witness = draw(configurations(n_times, n_labels, 1))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    unary = fill(rng, kind, (n_times, n_labels))
    shape = (max(n_times - 1, 0), n_labels, n_labels) if by_time else (n_labels, n_labels)
    transition = fill(rng, kind, shape)
    start = fill(rng, kind, (n_labels,)) if with_start else None
    end = fill(rng, kind, (n_labels,)) if with_end else None
    if forbid:
        y = brute.label_sequence(witness)
        used = [np.zeros(np.shape(a), dtype=np.bool_) for a in (unary, transition, start, end)]
        for t in range(n_times):
            used[0][t, y[t]] = True
            if t + 1 < n_times:
                used[1][(t, y[t], y[t + 1]) if by_time else (y[t], y[t + 1])] = True
        for array, mask, at in ((start, used[2], 0), (end, used[3], -1)):
            if array is not None:
                if n_times:
                    mask[y[at]] = True
                _forbid(rng, array, mask)
        _forbid(rng, unary, used[0])
        _forbid(rng, transition, used[1])
    return ChainProblem(unary, transition, start, end, witness)


@st.composite
def pattern_problems(draw: st.DrawFn, kinds: tuple[str, ...] = KINDS, min_times: int = 0) -> PatternProblem:
    n_times, n_labels, _ = draw(sizes(max_length=1, min_times=min_times))
    chosen = draw(pattern_sets(n_labels))
    kind, forbid = draw(st.sampled_from(kinds)), draw(st.booleans())
    witness = draw(configurations(n_times, n_labels, 1))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    scores = fill(rng, kind, (n_times, len(chosen)))
    if forbid:
        used = np.zeros(scores.shape, dtype=np.bool_)
        for u, _, z in brute.matching_patterns(witness, chosen):
            used[u, z] = True
        _forbid(rng, scores, used)
    return PatternProblem(scores, chosen, n_labels, witness)


@st.composite
def segment_problems(draw: st.DrawFn, kinds: tuple[str, ...] = KINDS, min_times: int = 0) -> SegmentProblem:
    n_times, n_labels, max_length = draw(sizes(min_times=min_times))
    chosen = draw(pattern_sets(n_labels))
    kind, forbid = draw(st.sampled_from(kinds)), draw(st.booleans())
    witness = draw(configurations(n_times, n_labels, max_length))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    scores = fill(rng, kind, (n_times, max_length, len(chosen)))
    if forbid:
        used = np.zeros(scores.shape, dtype=np.bool_)
        for u, v, z in brute.matching_patterns(witness, chosen):
            used[u, v - u - 1, z] = True
        _forbid(rng, scores, used)
    return SegmentProblem(scores, chosen, n_labels, witness)


@st.composite
def parts_problems(draw: st.DrawFn, kinds: tuple[str, ...] = KINDS, min_times: int = 0) -> PartsProblem:
    n_times, n_labels, max_length = draw(sizes(min_times=min_times))
    chosen = draw(pattern_sets(n_labels))
    kind, forbid = draw(st.sampled_from(kinds)), draw(st.booleans())
    shapes = {"inside": (n_times, len(chosen)), "end": (n_times, len(chosen))}
    names = draw(st.sampled_from([("inside",), ("end",), ("inside", "end"), ("start",)]))
    start_form = "full" if names == ("start",) else draw(st.sampled_from(["none", "full", "shared"]))
    by_name = {name: shapes[name] for name in names if name != "start"}
    if start_form != "none":
        by_name["start"] = (n_times, len(chosen)) if start_form == "full" else (len(chosen),)
    if draw(st.booleans()):
        by_name["length"] = (max_length, len(chosen))
    witness = draw(configurations(n_times, n_labels, max_length))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    parts = {name: fill(rng, kind, shape) for name, shape in by_name.items()}
    if forbid:
        used = {name: np.zeros(shape, dtype=np.bool_) for name, shape in by_name.items()}
        for u, v, z in brute.matching_patterns(witness, chosen):
            rows = {"start": u, "inside": slice(u, v), "end": v - 1, "length": v - u - 1}
            for name, mask in used.items():
                mask[z if mask.ndim == 1 else (rows[name], z)] = True
        for name, mask in used.items():
            _forbid(rng, parts[name], mask)
    return PartsProblem(n_times, chosen, n_labels, max_length, parts, witness)


@st.composite
def with_constraints(draw: st.DrawFn, problems: st.SearchStrategy[Any]) -> tuple[Any, Known]:
    """A problem and constraints that leave it possible."""
    problem = draw(problems)
    chain = isinstance(problem, (ChainProblem, PatternProblem))
    return problem, draw(known(problem.witness, problem.n_labels, chain=chain))


# Cases: a problem, perhaps constrained, with its lattice and its brute-force list ------------------


@dataclass(frozen=True)
class Case:
    problem: Any
    known: Known | None

    @cached_property
    def lattice(self) -> Any:
        free = self.problem.lattice()
        return free if self.known is None else free.constrain(**self.known.as_kwargs())

    @cached_property
    def scored(self) -> brute.Scored:
        if self.known is None:
            return self.problem.scored
        return brute.constrain(self.problem.scored, self.known.labels, self.known.boundaries)

    @property
    def atol(self) -> float:
        return self.problem.atol

    @property
    def is_chain(self) -> bool:
        return isinstance(self.problem, (ChainProblem, PatternProblem))

    def native(self, config: brute.Configuration) -> Any:
        """The configuration as the lattice takes it."""
        if self.is_chain:
            return np.array(brute.label_sequence(config), dtype=np.int64)
        return [sc.Segment(*segment) for segment in config]


@st.composite
def cases(draw: st.DrawFn, *problems: st.SearchStrategy[Any]) -> Case:
    if draw(st.booleans()):
        return Case(draw(st.one_of(*problems)), None)
    return Case(*draw(with_constraints(st.one_of(*problems))))


# Checks that hold for every lattice ----------------------------------------------------------------


def check_frequencies(drawn: Any, scored: brute.Scored) -> None:
    """Pearson's chi-square test of samples against the exact probabilities, at level 1e-4."""
    counts: dict[brute.Configuration, int] = {}
    for config in drawn:
        key = brute.config_of(config)
        counts[key] = counts.get(key, 0) + 1
    n = len(drawn)
    observed, expected, rare_observed, rare_expected = [], [], 0, 0.0
    for (config, _), p in zip(scored, brute.probabilities(scored), strict=True):
        if p == 0.0:
            assert config not in counts
        elif n * p < 10.0:
            rare_observed += counts.get(config, 0)
            rare_expected += n * p
        else:
            observed.append(counts.get(config, 0))
            expected.append(n * p)
    if rare_expected > 5.0:
        observed.append(rare_observed)
        expected.append(rare_expected)
    assert len(observed) > 2, "the test needs a distribution, not a point"
    statistic = sum((o - e) ** 2 / e for o, e in zip(observed, expected, strict=True))
    assert chi2.sf(statistic, len(observed) - 1) > 1e-4


def check_segment_marginals(case: Case) -> None:
    """``.segments``, ``.labels`` and ``.boundaries``."""
    p = case.problem
    answer = case.lattice.marginals()
    sizes_ = (p.n_times, p.max_length, p.n_labels)
    assert answer.segments.shape == sizes_
    assert answer.labels.shape == (p.n_times, p.n_labels)
    assert answer.boundaries.shape == (p.n_times,)
    atol = 10 * case.atol
    assert_allclose(answer.segments, brute.segment_marginals(case.scored, *sizes_), rtol=0, atol=atol)
    assert_allclose(answer.labels, brute.label_marginals(case.scored, p.n_times, p.n_labels), rtol=0, atol=atol)
    assert_allclose(answer.boundaries, brute.boundary_marginals(case.scored, p.n_times), rtol=0, atol=atol)
