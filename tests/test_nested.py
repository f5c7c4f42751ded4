"""Nested lattices against the enumeration of all trees, the reference, models that exist, and closed forms."""

import doctest
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nested_oracle import check_gradient, check_marginals, nested_problems, plain
from numpy.testing import assert_allclose, assert_array_equal
from strategies import check_frequencies
from test_chain import finite_differences

import scansion as sc
from scansion.reference import enumeration as brute
from scansion.reference import nested, trees

ANY = nested_problems()


def general(lattice):
    """The same lattice without the short cut for levels that are plain sums over time steps."""
    batch = type(lattice._batch)._of(replace(lattice._batch._core, general=True), 1)
    return type(lattice)._of(batch)


def escaped(lattice):
    """Whether some run needed log space."""
    core = lattice._batch._core
    return core.posteriors(1, spans=[False] * core.n_levels, cliques=None, parts=False)["escaped"]


# Every question, against enumeration: those of all kinds are in test_questions --------------------


@given(ANY)
def test_answers_are_lists_of_segments_by_level(problem):
    best, _ = problem.lattice().viterbi()
    assert isinstance(best, list)
    assert all(isinstance(segment, sc.Segment) for level in best for segment in level)


@settings(max_examples=100)
@given(ANY)
def test_marginals(problem):
    check_marginals(problem, problem.lattice().marginals())


@settings(max_examples=100)
@given(ANY)
def test_gradient(problem):
    log_z, gradient = problem.lattice().log_partition_and_gradient()
    assert_allclose(log_z, brute.log_partition(problem.scored), rtol=1e-12, atol=problem.atol)
    check_gradient(problem, gradient)


@given(nested_problems(min_times=1))
def test_marginals_are_consistent(problem):
    answer = problem.lattice().marginals()
    atol = 10 * problem.atol
    for d in range(len(problem.sizes)):
        assert_allclose(answer.labels[d].sum(axis=1), 1.0, rtol=0, atol=atol)
        assert_allclose(answer.boundaries[d][-1], 1.0, rtol=0, atol=atol)
        starts = answer.segments[d].sum(axis=(1, 2))
        assert_allclose(starts[1:], answer.boundaries[d][:-1], rtol=0, atol=atol)
        if d:
            assert (answer.boundaries[d] >= answer.boundaries[d - 1] - atol).all()
            below = answer.init[d - 1].sum(axis=(1, 2)) + np.pad(answer.transit[d - 1].sum(axis=(1, 2, 3)), (1, 0))
            assert_allclose(below, starts, rtol=0, atol=atol)
            assert_allclose(answer.transit_counts[d - 1], answer.transit[d - 1].sum(axis=0), rtol=0, atol=atol)
            assert_allclose(answer.init_counts[d - 1], answer.init[d - 1].sum(axis=0), rtol=0, atol=atol)
            assert_allclose(answer.end_counts[d - 1], answer.end[d - 1].sum(axis=0), rtol=0, atol=atol)


@settings(max_examples=30)
@given(nested_problems(kinds=("tame", "huge")))
def test_reference(problem):
    """The recursion of the specification, too, is the sum over all trees."""
    scores = nested.complete(
        problem.dense, problem.transit, problem.init, problem.end, problem.children, problem.labels, problem.boundaries
    )
    expected = brute.log_partition(problem.scored)
    assert_allclose(nested.log_partition(scores), expected, rtol=1e-12, atol=problem.atol)
    top = max(value for _, value in problem.scored)
    assert_allclose(nested.best_score(scores), top, rtol=1e-12, atol=problem.atol)
    answer = nested.marginals(scores)
    for name, arrays in problem.expected.items():
        for value, array in zip(getattr(answer, name), arrays, strict=True):
            assert_allclose(value, array, rtol=0, atol=10 * problem.atol, err_msg=name)


@settings(max_examples=8)
@given(nested_problems(kinds=("tame",), min_times=2, constrained=False))
def test_gradient_is_that_of_finite_differences(problem):
    gradient = problem.lattice().log_partition_and_gradient()[1]
    for name in ("transit", "init", "end"):
        arrays = [np.where(np.isfinite(a), a, -3.0) for a in getattr(problem, name)]
        gradient = problem.lattice(**{name: arrays}).log_partition_and_gradient()[1]

        def moved(array, name=name, arrays=arrays):
            return problem.lattice(**{name: [array, *arrays[1:]]}).log_partition()

        expected = finite_differences(moved, arrays[0])
        assert_allclose(getattr(gradient, name)[0], expected, rtol=0, atol=1e-7, err_msg=name)


def test_samples_come_as_often_as_they_should():
    rng = np.random.default_rng(5)
    sizes = (1, 2, 2)
    persist = [np.zeros((4, 4, 1)), rng.normal(size=(4, 3, 2)), sc.Persistence(inside=rng.normal(size=(4, 2)))]
    transit = [rng.normal(size=(p, s, s)) for p, s in zip(sizes[:-1], sizes[1:], strict=True)]
    edges = [rng.normal(size=pair) for pair in zip(sizes[:-1], sizes[1:], strict=True)]
    lattice = sc.NestedLattice(persist, transit, edges, edges)
    dense = [*persist[:2], np.zeros((4, 4, 2))]
    for u in range(4):
        for n in range(1, 5 - u):
            dense[2][u, n - 1] = persist[2].inside[u : u + n].sum(axis=0)
    scored = trees.enumerate_trees(dense, transit, edges, edges)

    numbers = {tree: i for i, (tree, _) in enumerate(scored)}
    drawn = [np.array([numbers[plain(config)]]) for config in lattice.sample(4000, 3)]
    check_frequencies(drawn, [(((0, 1, i),), score) for i, (_, score) in enumerate(scored)])


# Models that exist ---------------------------------------------------------------------------------


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.integers(1, 8), st.integers(1, 4), st.sampled_from([1, 2, 3, 8]))
def test_three_levels_with_dummy_root_and_bottom_are_segments(seed, n_times, size, longest):
    """Paper 000, appendix C."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(n_times, longest, size))
    pairs = rng.normal(size=(size, size))
    first, last = rng.normal(size=(2, size))
    patterns = [(y,) for y in range(size)] + [(x, y) for x in range(size) for y in range(size)]
    patterns += [(sc.BOS, y) for y in range(size)] + [(y, sc.EOS) for y in range(size)]
    flat = np.concatenate([pairs.ravel(), first, last])
    full = np.concatenate([scores, np.broadcast_to(flat, (n_times, longest, len(flat)))], axis=2)
    segments = sc.SegmentLattice(full, patterns, size)
    lattice = sc.NestedLattice(
        [np.zeros((n_times, n_times, 1)), scores, np.zeros((n_times, 1, 1))],
        [pairs[None], np.zeros((size, 1, 1))],
        [first[None], np.zeros((size, 1))],
        [last[None], np.zeros((size, 1))],
    )
    assert_allclose(lattice.log_partition(), segments.log_partition(), rtol=1e-12, atol=1e-10)
    assert_allclose(lattice.entropy(), segments.entropy(), rtol=1e-9, atol=1e-10)
    best, score = lattice.viterbi()
    assert (best[1], score) == (segments.viterbi()[0], pytest.approx(segments.viterbi()[1], rel=1e-12))
    ours, theirs = lattice.marginals(), segments.marginals()
    assert_allclose(ours.segments[1], theirs.segments, rtol=0, atol=1e-11)
    assert_allclose(ours.labels[1], theirs.labels, rtol=0, atol=1e-11)
    assert_allclose(ours.boundaries[1], theirs.boundaries, rtol=0, atol=1e-11)


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.integers(1, 9), st.booleans())
def test_two_levels_are_a_chain(seed, n_times, size, by_time):
    rng = np.random.default_rng(seed)
    unary = rng.normal(size=(n_times, size)) * 3
    transition = rng.normal(size=(n_times - 1, size, size) if by_time else (size, size))
    start, end = rng.normal(size=(2, size))
    chain = sc.ChainLattice(unary, transition, start, end)
    transit = transition[:, None] if by_time else transition[None]
    lattice = sc.NestedLattice([np.zeros((n_times, n_times, 1)), unary[:, None]], [transit], [start[None]], [end[None]])
    assert_allclose(lattice.log_partition(), chain.log_partition(), rtol=1e-12, atol=1e-10)
    best, _ = lattice.viterbi()
    assert [label for _, _, label in best[1]] == chain.viterbi()[0].tolist()
    assert_allclose(lattice.marginals().labels[1], chain.marginals().labels, rtol=0, atol=1e-11)
    assert_allclose(lattice.marginals().transit[0][:, 0], chain.marginals().transitions, rtol=0, atol=1e-11)
    assert_allclose(lattice.entropy(), chain.entropy(), rtol=1e-9, atol=1e-10)


# The short cuts ------------------------------------------------------------------------------------


def sized(n_times, sizes=(2, 3, 4), seed=0, scale=1.0, bounds=(None, None, 1), children=None, inside=True):
    """A lattice with additive persistence; a bound of None is a free level."""
    rng = np.random.default_rng(seed)

    def of(*shape):
        return rng.normal(size=shape) * scale

    persist = [sc.Persistence(inside=of(n_times, s), max_length=m) for s, m in zip(sizes, bounds, strict=True)]
    pairs = list(zip(sizes[:-1], sizes[1:], strict=True))
    transit = [of(p, s, s) for p, s in pairs]
    return sc.NestedLattice(persist, transit, [of(*pair) for pair in pairs], [of(*pair) for pair in pairs], children)


@pytest.mark.parametrize("bounds", [(None, None, 1), (None, None, None), (None, None, 3), (None, 4, None)])
@pytest.mark.parametrize("seed", [0, 1])
def test_collapse_of_free_levels(bounds, seed):
    children = None
    if seed:
        children = [np.array([[1, 0, 1], [1, 1, 0]], bool), np.array([[1, 1, 0, 0], [0, 1, 1, 1], [1, 0, 0, 1]], bool)]
    lattice = sized(14, bounds=bounds, seed=seed, scale=2.0, children=children)
    assert any(lattice._batch._core.free)
    slow = general(lattice)
    assert not any(slow._batch._core.free)
    assert_allclose(lattice.log_partition(), slow.log_partition(), rtol=1e-13, atol=0)
    assert lattice.viterbi() == slow.viterbi()
    assert_allclose(lattice.entropy(), slow.entropy(), rtol=1e-11, atol=0)
    ours, theirs = lattice.marginals(), slow.marginals()
    for name in ("labels", "boundaries", "transit", "init", "end", "segments", "transit_counts", "init_counts"):
        for x, y in zip(getattr(ours, name), getattr(theirs, name), strict=True):
            assert_allclose(x, y, rtol=0, atol=1e-12, err_msg=name)
    scores = [score for _, score in lattice.kbest(20)]
    assert_allclose(scores, [score for _, score in slow.kbest(20)], rtol=1e-13, atol=0)


def test_dense_sums_over_steps_are_found():
    n = 7
    rng = np.random.default_rng(0)
    inside = rng.normal(size=(n, 2))
    inside[3, 1] = -np.inf
    spans = np.zeros((n, n, 2))
    for u in range(n):
        for length in range(1, n - u + 1):
            spans[u, length - 1] = inside[u : u + length].sum(axis=0)
    others = [np.zeros((n, n, 1)), rng.normal(size=(n, 1, 3))]
    rest = ([rng.normal(size=(1, 2, 2)), rng.normal(size=(2, 3, 3))], *([[np.zeros((1, 2)), np.zeros((2, 3))]] * 2))
    lattice = sc.NestedLattice([others[0], spans, others[1]], *rest)
    assert lattice._batch._core.free == (False, True, False)
    assert_allclose(lattice.log_partition(), general(lattice).log_partition(), rtol=1e-13, atol=0)
    assert lattice.log_partition_and_gradient()[1].persist[1].shape == spans.shape
    for other in (np.where(spans == spans[1, 2, 0], 9.0, spans), spans[:, : n - 1]):
        lattice = sc.NestedLattice([others[0], other, others[1]], *rest)
        assert lattice._batch._core.free == (False, False, False)


@pytest.mark.parametrize("bounds", [(None, 6, 1), (None, 6, 3), (None, None, 1), (None, 8, None)])
def test_known_boundaries(bounds):
    """All boundaries known, some known, at one level or at all: equal to the same scores struck out by hand."""
    lattice = sized(12, bounds=bounds, seed=3)
    truth = lattice.sample(1, 0)[0]
    ends = {}
    for d, level in enumerate(truth):
        ends[d] = np.zeros(12, np.int64)
        ends[d][[v - 1 for _, v, _ in level]] = 1
    rng = np.random.default_rng(1)
    for d, share in ((1, 0.0), (1, 0.5), (2, 0.5)):
        if d == 2 and bounds[2] == 1:
            continue
        known = {d: np.where(rng.random(12) < share, -1, ends[d])}
        core = lattice._batch._core
        spans = nested_spans(core, d, known[d])
        persist = list(core.levels)
        persist[d] = replace(persist[d], spans=spans, max_length=spans.shape[1])
        struck = type(lattice)._of(type(lattice._batch)._of(replace(core, levels=tuple(persist)), 1))
        held = lattice.constrain(boundaries=known)
        assert_allclose(held.log_partition(), struck.log_partition(), rtol=1e-12, atol=0)
        for x, y in zip(held.marginals().labels, struck.marginals().labels, strict=True):
            assert_allclose(x, y, rtol=0, atol=1e-12)
    held = lattice.constrain(boundaries={d: e for d, e in ends.items() if not (d == 2 and bounds[2] == 1)})
    for d in range(3):
        assert_allclose(held.marginals().boundaries[d], ends[d], rtol=0, atol=1e-12)


def nested_spans(core, d, ends):
    """(T, M, S): 0 for spans that the boundaries allow, else -inf."""
    n = len(ends)
    spans = np.full((n, core.levels[d].longest(n), core.sizes[d]), -np.inf)
    for u in range(n):
        for v in range(u + 1, min(n, u + spans.shape[1]) + 1):
            inner = (ends[u : v - 1] == 1).any() or ends[v - 1] == 0 or (u > 0 and ends[u - 1] == 0)
            spans[u, v - u - 1] = -np.inf if inner else 0.0
    return spans


def test_known_labels_leave_one_tree():
    lattice = sized(30, bounds=(None, 10, 4), seed=2)
    truth = lattice.sample(1, 0)[0]
    known = {d: np.repeat([s for *_, s in level], [v - u for u, v, _ in level]) for d, level in enumerate(truth)}
    ends = {d: np.isin(np.arange(30), [v - 1 for _, v, _ in level]).astype(int) for d, level in enumerate(truth)}
    held = lattice.constrain(known, ends)
    assert held.viterbi()[0] == truth
    assert_allclose(held.log_partition(), lattice.score(truth), rtol=1e-12, atol=0)
    assert_allclose(held.entropy(), 0.0, rtol=0, atol=1e-12)
    assert len(held.kbest(3)) == 1


# Long sequences and large scores -------------------------------------------------------------------


def uniform(n_times, sizes, bounds):
    persist = [sc.Persistence(inside=np.zeros((n_times, s)), max_length=m) for s, m in zip(sizes, bounds, strict=True)]
    pairs = list(zip(sizes[:-1], sizes[1:], strict=True))
    transit = [np.zeros((p, s, s)) for p, s in pairs]
    edges = [np.zeros(pair) for pair in pairs]
    return sc.NestedLattice(persist, transit, edges, edges)


def test_long_sequences_with_bounds():
    """All scores zero: log Z counts the trees. Segments of up to 3 steps, each with 2 states over steps of 3 states."""
    n, longest = 2000, 3
    lattice = uniform(n, (1, 2, 3), (None, longest, 1))
    log_counts = [0.0]
    for t in range(1, n + 1):
        ways = [log_counts[t - m] + np.log(2) + m * np.log(3) for m in range(1, min(longest, t) + 1)]
        log_counts.append(float(np.logaddexp.reduce(ways)))
    assert_allclose(lattice.log_partition(), log_counts[-1], rtol=1e-12, atol=0)
    assert_allclose(lattice.entropy(), log_counts[-1], rtol=1e-12, atol=0)
    answer = lattice.marginals()
    assert_allclose(answer.labels[1], 0.5, rtol=0, atol=1e-10)
    assert_allclose(answer.labels[2], 1 / 3, rtol=0, atol=1e-10)
    assert not escaped(lattice)


def test_long_sequences_collapsed():
    """All scores zero, levels free: after each step one of three things happens, with 2 * 3, 3 and 1 sequels."""
    n = 20_000
    lattice = uniform(n, (1, 2, 3), (None, None, 1))
    expected = np.log(6.0) + (n - 1) * np.log(6.0 + 3.0)
    assert_allclose(lattice.log_partition(), expected, rtol=1e-12, atol=0)
    answer = lattice.marginals()
    assert_allclose(answer.labels[1], 0.5, rtol=0, atol=1e-9)
    assert_allclose(answer.boundaries[1][:-1], 6 / 9, rtol=0, atol=1e-9)
    assert_allclose(answer.transit_counts[0].sum(), (n - 1) * 6 / 9, rtol=1e-9, atol=0)
    assert not escaped(lattice)
    best, score = lattice.viterbi()
    assert score == 0.0
    assert best[2][-1].stop == n
    assert len(lattice.sample(1, 0)[0][2]) == n


@pytest.mark.parametrize("bounds", [(None, 4, 1), (None, 5, 3), (None, None, 1), (None, None, None)])
@pytest.mark.parametrize("scale", [1.0, 1e2, 1e4])
def test_extreme_scores_equal_the_log_space_recursion(bounds, scale):
    n = 12
    lattice = sized(n, (2, 2, 3), seed=7, scale=scale, bounds=bounds)
    core = lattice._batch._core
    dense = []
    for d, level in enumerate(core.levels):
        spans = np.zeros((n, n if d == 0 else level.longest(n), level.size))
        for u in range(n):
            for length in range(1, min(spans.shape[1], n - u) + 1):
                spans[u, length - 1] = level.inside[u : u + length].sum(axis=0)
        dense.append(spans)
    scores = nested.complete(dense, core.transit, core.init, core.end)
    expected = nested.marginals(scores)
    assert_allclose(lattice.log_partition(), nested.log_partition(scores), rtol=1e-12, atol=0)
    assert_allclose(lattice.viterbi()[1], nested.best_score(scores), rtol=1e-12, atol=0)
    answer = lattice.marginals()
    for name in ("labels", "boundaries", "transit", "init", "end"):
        for x, y in zip(getattr(answer, name), getattr(expected, name), strict=True):
            assert_allclose(x, y, rtol=0, atol=1e-12 * max(scale, 1e2), err_msg=name)
    assert_array_equal([np.isfinite(a).all() for a in answer.labels], True)


def test_what_vanishes_beside_a_dead_end_is_found():
    """A parent whose children fit far better everywhere, but which must not end: all answers lie in what vanished."""
    n = 6
    persist = [np.zeros((n, n, 1)), sc.Persistence(inside=np.array([[0.0, 900.0]] * n), max_length=3)]
    persist.append(np.zeros((n, 1, 1)))
    end = [np.array([[0.0, -np.inf]]), np.zeros((2, 1))]
    transit = [np.array([[[0.0, 0.0], [-np.inf, 0.0]]]), np.zeros((2, 1, 1))]
    lattice = sc.NestedLattice(persist, transit, [np.zeros((1, 2)), np.zeros((2, 1))], end)
    tiles = [1, 1, 2, 4, 7, 13, 24]  # ways to cut n steps into pieces of up to 3
    assert_allclose(lattice.log_partition(), np.log(tiles[n]), rtol=1e-12, atol=0)
    assert_allclose(lattice.marginals().labels[1][:, 0], 1.0, rtol=0, atol=1e-12)
    assert escaped(lattice)


@pytest.mark.parametrize("toll", [-5.0, 5.0])
def test_free_levels_score_where_no_child_may_begin(toll):
    """A child that ends at 3 begins at 2 or at 0, not at 1: what the free level scores at 1 counts for the latter."""
    inside = np.array([[0.0], [toll], [0.0]])
    persist = [sc.Persistence(inside=np.zeros((3, 1))), sc.Persistence(inside=inside), np.zeros((3, 3, 1))]
    persist[2][0, 2] = -1.0  # one segment of three is a little worse than two segments
    cliques = [np.zeros((1, 1)), np.zeros((1, 1))]
    transit = [np.full((1, 1, 1), -np.inf), np.zeros((1, 1, 1))]  # the free level is one segment
    lattice = sc.NestedLattice(persist, transit, cliques, cliques).constrain(boundaries={2: [0, -1, -1]})
    best, score = lattice.viterbi()
    assert score == toll
    assert best[2] == [(0, 2, 0), (2, 3, 0)]
    assert [(len(config[2]), value) for config, value in lattice.kbest(5)] == [(2, toll), (1, toll - 1.0)]
    assert_allclose(lattice.log_partition(), toll + np.log1p(np.exp(-1.0)), rtol=1e-14, atol=0)
    drawn = [len(config[2]) for config in lattice.sample(2000, 0)]
    assert_allclose(np.mean(np.array(drawn) == 1), np.exp(-1.0) / (1.0 + np.exp(-1.0)), rtol=0, atol=0.05)


def test_tame_scores_stay_in_linear_space():
    for bounds in ((None, 20, 1), (None, 20, 5), (None, None, 1), (None, None, None)):
        assert not escaped(sized(150, (1, 3, 6), scale=2.0, bounds=bounds))
    held = sized(100, (1, 3, 6), scale=2.0, bounds=(None, 20, 1)).constrain(labels={2: [0, 1] * 50})
    assert not escaped(held)


# Batches -------------------------------------------------------------------------------------------


def make_batch(lengths, n_jobs=1, seed=0, by_time=True):
    rng = np.random.default_rng(seed)
    n, sizes = sum(lengths), (2, 2, 3)
    longest = max(lengths, default=1)

    def of(*shape):
        return rng.normal(size=shape)

    persist = [
        sc.Persistence(inside=of(n, 2), start=of(2), length=of(max(longest, 1), 2)),
        sc.Persistence(inside=of(n, 2), start=of(2), stop=of(n, 2), length=of(4, 2)),
        of(n, 1, 3),
    ]
    pairs = list(zip(sizes[:-1], sizes[1:], strict=True))
    transit = [of(*((n,) if by_time else ()), p, s, s) for p, s in pairs]
    init, end = [of(n, 2, 2), of(2, 3)], [of(2, 2), of(n, 2, 3)]
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64)
    return sc.NestedBatch(persist, transit, init, end, offsets, n_jobs=n_jobs)


LENGTHS = [0, 1, 5, 2, 9, 0, 3]


@pytest.mark.parametrize("by_time", [True, False])
def test_batch_equals_one_by_one(by_time):
    batch = make_batch(LENGTHS, by_time=by_time)
    singles = [batch[b] for b in range(len(batch))]
    assert_allclose(batch.log_partition(), [s.log_partition() for s in singles], rtol=1e-13, atol=0)
    assert_allclose(batch.entropy(), [s.entropy() for s in singles], rtol=1e-13, atol=0)
    best, scores = batch.viterbi()
    assert best == [s.viterbi()[0] for s in singles]
    assert_allclose(scores, [s.viterbi()[1] for s in singles], rtol=1e-13, atol=0)
    assert_allclose(batch.score(best), scores, rtol=1e-13, atol=0)
    for got, single in zip(batch.kbest(3), singles, strict=True):
        assert [plain(c) for c, _ in got] == [plain(c) for c, _ in single.kbest(3)]
    answer = batch.marginals()
    each = [s.marginals() for s in singles]
    for d in range(3):
        for name in ("labels", "boundaries"):
            expected = np.concatenate([getattr(e, name)[d] for e in each])
            assert_allclose(getattr(answer, name)[d], expected, rtol=0, atol=1e-12)
    gradient = batch.log_partition_and_gradient()[1]
    parts = [s.log_partition_and_gradient()[1] for s in singles]
    for d in (0, 1):
        for name in ("start", "length"):
            expected = sum(getattr(p.persist[d], name) for p in parts)
            assert_allclose(getattr(gradient.persist[d], name), expected, rtol=0, atol=1e-11)
        assert_allclose(answer.transit_counts[d], sum(e.transit_counts[d] for e in each), rtol=0, atol=1e-11)
        assert_allclose(answer.init_counts[d], sum(e.init_counts[d] for e in each), rtol=0, atol=1e-11)
    assert_allclose(gradient.init[1], sum(p.init[1] for p in parts), rtol=0, atol=1e-11)
    assert_allclose(gradient.end[1], np.concatenate([p.end[1] for p in parts]), rtol=0, atol=1e-11)


def test_threads_change_nothing():
    one, many = make_batch(LENGTHS * 6), make_batch(LENGTHS * 6, n_jobs=3)
    assert_array_equal(one.log_partition(), many.log_partition())
    assert_array_equal(one.entropy(), many.entropy())
    assert one.viterbi()[0] == many.viterbi()[0]
    assert one.sample(2, 0) == many.sample(2, 0)
    x, y = one.log_partition_and_gradient()[1], many.log_partition_and_gradient()[1]
    for d in (0, 1):
        assert_array_equal(x.persist[d].length, y.persist[d].length)
        assert_array_equal(x.transit[d], y.transit[d])
        assert_array_equal(x.init[d], y.init[d])
        assert_array_equal(x.end[d], y.end[d])


def test_batch_of_nothing():
    batch = make_batch([])
    assert batch.log_partition().shape == (0,)
    assert batch.viterbi()[0] == []
    assert batch.marginals().labels[1].shape == (0, 2)


@pytest.mark.parametrize("lengths", [[], [0], [1, 1, 1], [2, 0, 3]])
def test_segments_of_unbounded_levels_are_as_long_as_the_longest_sequence(lengths):
    n, longest = sum(lengths), max([*lengths, 1])
    persist = [sc.Persistence(inside=np.zeros((n, s))) for s in (1, 2, 3)]
    edges = [np.zeros((1, 2)), np.zeros((2, 3))]
    offsets = np.cumsum([0, *lengths])
    batch = sc.NestedBatch(persist, [np.zeros((1, 2, 2)), np.zeros((2, 3, 3))], edges, edges, offsets)
    answer = batch.marginals()
    assert [a.shape for a in answer.segments] == [(n, longest, s) for s in (1, 2, 3)]
    for d in range(3):
        assert_allclose(answer.segments[d].sum(), answer.boundaries[d].sum(), rtol=0, atol=1e-12)


def test_batch_constraints_name_level_sequence_and_position():
    batch = make_batch([4, 5])
    ends = np.full(9, -1)
    ends[6] = 0
    more = np.full(9, -1)
    more[6] = 1
    with pytest.raises(ValueError, match=r"boundaries\[2\]\[6\].*sequence 1, position 2"):
        batch.constrain(boundaries={2: ends})
    held = batch.constrain(boundaries={1: more})
    assert_allclose(held.marginals().boundaries[1][6], 1.0, rtol=0, atol=1e-12)
    with pytest.raises(ValueError, match=r"boundaries\[1\]\[6\].*sequence 1, position 2"):
        held.constrain(boundaries={1: ends})


def test_the_page_runs():
    page = Path(__file__).parents[1] / "docs" / "concepts" / "nested.md"
    result = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert result.attempted > 0 and result.failed == 0
