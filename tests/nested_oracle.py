"""Random tiny nested problems with the list of all their trees, for tests by property.

As in `strategies`, a problem carries a witness, a tree that never meets a ``-inf``; constraints are drawn from it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from strategies import KINDS, fill

import scansion as sc
from scansion.reference import enumeration as brute
from scansion.reference import trees

MOST_TREES = 500


def expand(given: Any, n_times: int, size: int) -> np.ndarray:
    """The array (T, M, S) that persistence stands for."""
    if isinstance(given, np.ndarray):
        return given
    bounds = [given.max_length, None if given.length is None else len(given.length)]
    bounds.append(None if given.spans is None else given.spans.shape[1])
    longest = next((m for m in bounds if m is not None), max(n_times, 1))
    out = np.zeros((n_times, longest, size))
    for u in range(n_times):
        for v in range(u + 1, min(u + longest, n_times) + 1):
            cell = out[u, v - u - 1]
            if given.inside is not None:
                cell += given.inside[u:v].sum(axis=0)
            if given.start is not None:
                cell += given.start if given.start.ndim == 1 else given.start[u]
            if given.stop is not None:
                cell += given.stop if given.stop.ndim == 1 else given.stop[v - 1]
            if given.length is not None:
                cell += given.length[v - u - 1]
            if given.spans is not None:
                cell += given.spans[u, v - u - 1]
    return out


@dataclass(frozen=True)
class NestedProblem:
    n_times: int
    sizes: tuple[int, ...]
    persist: list[Any]  # by level: (T, M, S) or sc.Persistence
    transit: list[np.ndarray]
    init: list[np.ndarray]
    end: list[np.ndarray]
    children: list[np.ndarray]
    labels: dict[int, np.ndarray]  # constraints
    boundaries: dict[int, np.ndarray]
    general: bool  # take no short cut

    @cached_property
    def dense(self) -> list[np.ndarray]:
        return [expand(p, self.n_times, s) for p, s in zip(self.persist, self.sizes, strict=True)]

    @cached_property
    def listed(self) -> trees.ScoredTrees:
        """All trees, whatever is known."""
        return trees.enumerate_trees(self.dense, self.transit, self.init, self.end, self.children)

    @cached_property
    def scored(self) -> trees.ScoredTrees:
        """The possible trees that agree with what is known."""
        held = trees.constrain(self.listed, self.labels, self.boundaries)
        return [(tree, score) for tree, score in held if score > -np.inf]

    @cached_property
    def expected(self) -> dict[str, list[np.ndarray]]:
        """Expected counts of everything, by brute force."""
        total: dict[str, list[np.ndarray]] = {}
        for (tree, _), p in zip(self.scored, brute.probabilities(self.scored), strict=True):
            for name, arrays in trees.counts(tree, self.sizes).items():
                for d, array in enumerate(arrays):
                    sums = total.setdefault(name, [np.zeros(a.shape) for a in arrays])
                    sums[d] += p * array
        return total

    def lattice(self, **changed: Any) -> sc.NestedLattice:
        given = {name: getattr(self, name) for name in ("persist", "transit", "init", "end", "children")}
        lattice = sc.NestedLattice(**{**given, **changed})
        lattice._batch._core = replace(lattice._batch._core, general=self.general)
        if self.labels or self.boundaries:
            lattice = lattice.constrain(self.labels, self.boundaries)
        return lattice

    @property
    def atol(self) -> float:
        """What rounding may do to a sum of all scores that meet in one tree."""
        arrays = [*self.dense, *self.transit, *self.init, *self.end]
        scale = max((np.abs(a[np.isfinite(a)]).max(initial=0.0) for a in arrays), default=0.0)
        return float(1e-10 + 1e-14 * scale * (1 + self.n_times) * len(self.sizes) ** 2)


def plain(config: Any) -> trees.Tree:
    return tuple(tuple((int(u), int(v), int(s)) for u, v, s in level) for level in config)


@st.composite
def nested_problems(
    draw: st.DrawFn, kinds: tuple[str, ...] = KINDS, min_times: int = 0, constrained: bool | None = None
) -> NestedProblem:
    n_levels = draw(st.sampled_from((2, 3, 3, 3, 4, 4)))
    n_times = draw(st.sampled_from([t for t in (0, 1, 2, 3, 3, 4, 4, 5, 5) if t >= min_times]))
    sizes = [draw(st.sampled_from((1, 2, 2, 3))) for _ in range(n_levels)]
    forms = [draw(st.sampled_from(("dense", "timed", "free"))) for _ in range(n_levels)]
    bounds = [n_times, *(draw(st.integers(1, max(n_times, 1))) for _ in range(n_levels - 1))]
    if draw(st.booleans()):
        bounds[-1] = 1
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind, forbid, general = draw(st.sampled_from(kinds)), draw(st.booleans()), draw(st.booleans())
    shared = draw(st.sampled_from((1.0, 0.7)))
    children = [rng.random(pair) < shared for pair in zip(sizes[:-1], sizes[1:], strict=True)]
    for mask in children:  # everybody has a child
        mask[np.arange(len(mask)), rng.integers(mask.shape[1], size=len(mask))] = True
    reach = [max(n_times, 1) if form == "free" else bound for form, bound in zip(forms, bounds, strict=True)]
    reach[0] = max(n_times, 1)
    while trees.n_trees(n_times, sizes, reach, children) > MOST_TREES:
        n_times -= 1
    reach = [max(1, min(bound, n_times)) for bound in reach]

    persist: list[Any] = []
    for d, (form, size) in enumerate(zip(forms, sizes, strict=True)):
        if form == "dense":
            persist.append(fill(rng, kind, (n_times, reach[d], size)))
            continue
        parts: dict[str, Any] = {"inside": fill(rng, kind, (n_times, size))}
        for name in ("start", "stop"):
            pick = rng.integers(3)
            if pick:
                parts[name] = fill(rng, kind, (size,) if pick == 1 else (n_times, size))
        if form == "timed":
            parts["max_length"] = reach[d]
            if rng.random() < 0.6:
                parts["length"] = fill(rng, kind, (reach[d], size))
            if rng.random() < 0.3:
                parts["spans"] = fill(rng, kind, (n_times, reach[d], size))
        persist.append(sc.Persistence(**parts))

    def cliques(rows: int, squares: bool) -> list[np.ndarray]:
        made = []
        for p, s in zip(sizes[:-1], sizes[1:], strict=True):
            shape = (p, s, s) if squares else (p, s)
            made.append(fill(rng, kind, (rows, *shape) if rng.random() < 0.5 else shape))
        return made

    transit = cliques(max(n_times - 1, 0), True)
    init, end = cliques(n_times, False), cliques(n_times, False)
    problem = NestedProblem(n_times, tuple(sizes), persist, transit, init, end, children, {}, {}, general)
    witness = problem.listed[rng.integers(len(problem.listed))][0]
    if forbid:
        _forbid(rng, problem, witness)
        problem = replace(problem)  # with lists of its own
    if constrained or (constrained is None and draw(st.booleans())):
        _know(rng, problem, witness)
    return problem


def _forbid(rng: np.random.Generator, problem: NestedProblem, witness: trees.Tree) -> None:
    """Set about a fifth of the scores to -inf, never one that the witness uses."""
    used = trees.counts(witness, problem.sizes)

    def strike(array: Any, mask: np.ndarray) -> None:
        if array is not None:
            array[(rng.random(array.shape) < 0.2) & (mask == 0)] = -np.inf

    for d, given in enumerate(problem.persist):
        spans = used["segments"][d]  # (T, T, S)
        if isinstance(given, np.ndarray):
            strike(given, _fit(spans, given.shape))
            continue
        starts = spans.sum(axis=1)
        stops = sum((np.roll(spans[:, n], n, axis=0) for n in range(problem.n_times)), np.zeros(starts.shape))
        strike(given.inside, used["labels"][d])
        for array, mask in ((given.start, starts), (given.stop, stops)):
            strike(array, mask.sum(axis=0) if array is not None and array.ndim == 1 else mask)
        if given.length is not None:
            strike(given.length, _fit(spans.sum(axis=0), given.length.shape))
        if given.spans is not None:
            strike(given.spans, _fit(spans, given.spans.shape))
    for name in ("transit", "init", "end"):
        for array, mask in zip(getattr(problem, name), used[name], strict=True):
            strike(array, mask if mask.ndim == array.ndim else mask.sum(axis=0))


def _fit(mask: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The mask of spans cut or padded to another longest length (its last axis but one)."""
    out = np.zeros(shape)
    longest = min(mask.shape[-2], shape[-2])
    out[..., :longest, :] = mask[..., :longest, :]
    return out


def _know(rng: np.random.Generator, problem: NestedProblem, witness: trees.Tree) -> None:
    n = problem.n_times
    for d, (level, size) in enumerate(zip(witness, problem.sizes, strict=True)):
        truth = np.array(brute.label_sequence(level), np.int64)
        form = rng.integers(3)
        if form:
            known = np.where(rng.random(n) < 0.5, -1, truth)
            allowed = (truth[:, None] == np.arange(size)) | (rng.random((n, size)) < 0.6)
            problem.labels[d] = known if form == 1 else allowed
        if rng.random() < 0.5:
            ends = np.zeros(n, np.int64)
            ends[[v - 1 for _, v, _ in level]] = 1
            problem.boundaries[d] = np.where(rng.random(n) < 0.5, -1, ends)


def check_marginals(problem: NestedProblem, answer: Any) -> None:
    """Labels, boundaries, segments, transit, init and end at every level."""
    for name, arrays in problem.expected.items():
        found = getattr(answer, name)
        assert len(found) == len(arrays)
        for d, (value, expected) in enumerate(zip(found, arrays, strict=True)):
            if name == "segments":
                assert value.shape == (problem.n_times, problem.dense[d].shape[1], problem.sizes[d])
                expected = _fit(expected, value.shape)
            assert value.shape == expected.shape
            assert_allclose(value, expected, rtol=0, atol=10 * problem.atol, err_msg=f"{name}[{d}]")


def check_gradient(problem: NestedProblem, gradient: sc.lattice.NestedScores) -> None:
    """The gradient in the shapes of the scores."""
    e, atol = problem.expected, 10 * problem.atol
    for name in ("transit", "init", "end"):
        for d, (value, given) in enumerate(zip(getattr(gradient, name), getattr(problem, name), strict=True)):
            expected = e[name][d] if given.ndim == e[name][d].ndim else e[name][d].sum(axis=0)
            assert value.shape == given.shape
            assert_allclose(value, expected, rtol=0, atol=atol, err_msg=f"{name}[{d}]")
    for d, (value, given) in enumerate(zip(gradient.persist, problem.persist, strict=True)):
        spans = e["segments"][d]
        if isinstance(given, np.ndarray):
            assert value.shape == given.shape
            assert_allclose(value, _fit(spans, given.shape), rtol=0, atol=atol, err_msg=f"persist[{d}]")
            continue
        stops = sum(
            (np.roll(spans[:, n], n, axis=0) for n in range(problem.n_times)),
            np.zeros((problem.n_times, problem.sizes[d])),
        )
        parts = {"inside": e["labels"][d], "start": spans.sum(axis=1), "stop": stops}
        parts |= {"length": spans.sum(axis=0), "spans": spans}
        for name, expected in parts.items():
            array, found = getattr(given, name), getattr(value, name)
            if array is None:
                assert found is None
                continue
            if name in ("length", "spans"):
                expected = _fit(expected, array.shape)
            elif array.ndim == 1:
                expected = expected.sum(axis=0)
            assert found.shape == array.shape
            assert_allclose(found, expected, rtol=0, atol=atol, err_msg=f"persist[{d}].{name}")
