"""Segment lattices, from a full array and from additive parts, against enumeration and closed forms."""

import numpy as np
import pytest
import strategies
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from strategies import Case, cases, parts_problems, pattern_problems, segment_problems
from test_chain import finite_differences
from test_reference import PATTERNS, TABLE_11, TABLE_14, TWO_DIGITS, L, O, P

import scansion as sc
from scansion.reference import enumeration as brute

ANY = cases(segment_problems(), parts_problems())


# Every question, against enumeration: those of all kinds are in test_questions --------------------


@given(ANY)
def test_answers_are_lists_of_segments(case):
    best, _ = case.lattice.viterbi()
    assert isinstance(best, list)
    assert all(isinstance(segment, sc.Segment) for segment in best)
    drawn = case.lattice.sample(5, np.random.default_rng(0))
    assert all(isinstance(segment, sc.Segment) for config in drawn for segment in config)


@given(segment_problems())
def test_score_takes_plain_tuples(problem):
    expected = dict(problem.scored)[problem.witness]
    assert_allclose(problem.lattice().score(list(problem.witness)), expected, rtol=1e-12, atol=problem.atol)


@given(cases(segment_problems()))
def test_marginals(case):
    p = case.problem
    strategies.check_segment_marginals(case)
    answer = case.lattice.marginals()
    expected = brute.pattern_marginals(case.scored, p.patterns, p.n_times, p.max_length)
    assert answer.patterns.shape == p.scores.shape
    assert_allclose(answer.patterns, expected, rtol=0, atol=10 * case.atol)


@given(cases(parts_problems()))
def test_marginals_of_parts(case):
    p = case.problem
    strategies.check_segment_marginals(case)
    answer = case.lattice.marginals().patterns
    expected = brute.part_gradients(case.scored, p.patterns, p.n_times, p.max_length)
    for name in ("start", "inside", "end", "length"):
        if name not in p.parts:
            assert getattr(answer, name) is None
            continue
        gradient = getattr(expected, name)
        if p.parts[name].ndim == 1:
            gradient = gradient.sum(axis=0)
        assert getattr(answer, name).shape == p.parts[name].shape
        assert_allclose(getattr(answer, name), gradient, rtol=0, atol=10 * case.atol)


@given(ANY)
def test_marginals_are_consistent(case):
    """Labels sum to one, one segment starts after each boundary, impossible segments are exactly 0."""
    p = case.problem
    answer = case.lattice.marginals()
    atol = 10 * case.atol
    assert_allclose(answer.labels.sum(axis=1), 1.0, rtol=0, atol=atol)
    if p.n_times:
        assert_allclose(answer.boundaries[-1], 1.0, rtol=0, atol=atol)
        starts = answer.segments.sum(axis=(1, 2))
        assert_allclose(starts[0], 1.0, rtol=0, atol=atol)
        assert_allclose(starts[1:], answer.boundaries[:-1], rtol=0, atol=atol)
    for u in range(p.n_times):
        assert_array_equal(answer.segments[u, p.n_times - u :], 0.0)


@given(st.one_of(segment_problems(), parts_problems()))
def test_full_constraint_leaves_one_configuration(problem):
    labels = np.array(brute.label_sequence(problem.witness), dtype=np.int64)
    boundaries = np.zeros(problem.n_times, dtype=np.int64)
    boundaries[[stop - 1 for _, stop, _ in problem.witness]] = 1
    lattice = problem.lattice().constrain(labels=labels, boundaries=boundaries)
    score = dict(problem.scored)[problem.witness]
    assert_allclose(lattice.log_partition(), score, rtol=1e-12, atol=problem.atol)
    assert_allclose(lattice.entropy(), 0.0, rtol=0, atol=10 * problem.atol)
    ((config, value),) = lattice.kbest(5)
    assert brute.config_of(config) == problem.witness
    assert_allclose(value, score, rtol=1e-12, atol=problem.atol)


# Gradients -----------------------------------------------------------------------------------------


@settings(max_examples=10)
@given(segment_problems(kinds=("tame",)))
def test_marginals_are_the_gradient_of_log_partition(problem):
    scores = np.where(np.isfinite(problem.scores), problem.scores, -3.0)

    def of_scores(array):
        return sc.SegmentLattice(array, problem.patterns, problem.n_labels).log_partition()

    answer = sc.SegmentLattice(scores, problem.patterns, problem.n_labels).marginals()
    assert_allclose(answer.patterns, finite_differences(of_scores, scores), rtol=0, atol=1e-6)


@settings(max_examples=10)
@given(parts_problems(kinds=("tame",)))
def test_part_gradients_are_the_gradient_of_log_partition(problem):
    parts = {name: np.where(np.isfinite(a), a, -3.0) for name, a in problem.parts.items()}

    def build(**changed):
        return sc.SegmentLattice.from_parts(
            problem.patterns, problem.n_labels, problem.max_length, **{**parts, **changed}
        )

    answer = build().marginals().patterns
    for name, array in parts.items():
        expected = finite_differences(lambda a, name=name: build(**{name: a}).log_partition(), array)
        assert_allclose(getattr(answer, name), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("max_length", [1, 2, 3])
@pytest.mark.parametrize("names", [("inside",), ("start", "inside", "end", "length"), ("end", "length")])
@pytest.mark.parametrize("zero", ["none", "first", "last two", "all"])
def test_part_gradients_where_scores_are_zero(names, max_length, zero):
    """A score of 0 has a gradient like any other: training starts there."""
    patterns = [(0,), (1,), (0, 0), (1, 0, 0), (0, sc.EOS)]
    rng = np.random.default_rng(13)
    rows = {"start": 4, "inside": 4, "end": 4, "length": max_length}
    parts = {name: rng.normal(size=(rows[name], 5)) for name in names}
    columns = {"none": [], "first": [0], "last two": [3, 4], "all": range(5)}[zero]
    for array in parts.values():
        array[:, list(columns)] = 0.0
    problem = strategies.PartsProblem(4, patterns, 2, max_length, parts, ())
    expected = brute.part_gradients(problem.scored, patterns, 4, max_length)
    answer = problem.lattice().marginals().patterns
    for name in names:
        assert_allclose(getattr(answer, name), getattr(expected, name), rtol=0, atol=1e-12, err_msg=name)


# The worked example of paper 001, Appendix B -------------------------------------------------------


def test_worked_example():
    lattice = sc.SegmentLattice(TABLE_11[:, None, :], PATTERNS, 3)
    assert_allclose(lattice.log_partition(), 12.696, rtol=0, atol=5e-4)
    answer = lattice.marginals()
    assert_allclose(answer.patterns[:, 0], TABLE_14, rtol=0, atol=TWO_DIGITS)
    assert_allclose(answer.segments[:, 0], TABLE_14[:, :3], rtol=0, atol=TWO_DIGITS)
    best, score = lattice.viterbi()
    assert best == [(t, t + 1, y) for t, y in enumerate([P, O, O, L, O, L, O, O])]
    assert score == 9.0


# Limiting cases ------------------------------------------------------------------------------------


@given(cases(pattern_problems()))
def test_longest_segment_one_is_a_chain(case):
    p = case.problem
    segments = sc.SegmentLattice(p.scores[:, None, :], p.patterns, p.n_labels)
    if case.known is not None:
        segments = segments.constrain(**case.known.as_kwargs())
    chain = case.lattice
    assert_allclose(segments.log_partition(), chain.log_partition(), rtol=1e-12, atol=case.atol)
    assert_allclose(segments.viterbi()[1], chain.viterbi()[1], rtol=1e-12, atol=case.atol)
    assert_allclose(segments.entropy(), chain.entropy(), rtol=1e-10, atol=10 * case.atol)
    one, other = segments.marginals(), chain.marginals()
    assert_allclose(one.patterns[:, 0], other.patterns, rtol=0, atol=10 * case.atol)
    assert_allclose(one.labels, other.labels, rtol=0, atol=10 * case.atol)
    assert_allclose(one.boundaries, 1.0, rtol=0, atol=10 * case.atol)


@given(cases(parts_problems()))
def test_parts_are_a_full_array(case):
    p = case.problem
    full = sc.SegmentLattice(p.scores, p.patterns, p.n_labels)
    if case.known is not None:
        full = full.constrain(**case.known.as_kwargs())
    parts = case.lattice
    assert_allclose(parts.log_partition(), full.log_partition(), rtol=1e-12, atol=case.atol)
    assert_allclose(parts.viterbi()[1], full.viterbi()[1], rtol=1e-12, atol=case.atol)
    assert_allclose(parts.entropy(), full.entropy(), rtol=1e-10, atol=10 * case.atol)
    one, other = parts.marginals(), full.marginals()
    assert_allclose(one.segments, other.segments, rtol=0, atol=10 * case.atol)
    assert_allclose(one.labels, other.labels, rtol=0, atol=10 * case.atol)


@given(segment_problems(kinds=("tame", "hundred")), st.integers(0, 2**32 - 1))
def test_segments_that_leave_the_sequence_are_ignored(problem, seed):
    rng = np.random.default_rng(seed)
    scores = problem.scores.copy()
    for u in range(problem.n_times):
        tail = scores[u, problem.n_times - u :]
        tail[...] = rng.choice([-np.inf, 1e100, -7.0], size=tail.shape)
    other = sc.SegmentLattice(scores, problem.patterns, problem.n_labels)
    lattice = problem.lattice()
    assert other.log_partition() == lattice.log_partition()
    assert_array_equal(other.marginals().patterns, lattice.marginals().patterns)


@pytest.mark.parametrize("patterns", [[(0,)], [(0, 0, 0), (1, 0)], [(1, 0), (sc.BOS, 1, 0), (0, 0, sc.EOS)]])
def test_ties_of_a_lattice_of_zeros(patterns):
    lattice = sc.SegmentLattice(np.zeros((6, 3, len(patterns))), patterns, 2)
    for _ in range(3):
        best, score = lattice.viterbi()
        assert best == [(t, t + 1, 0) for t in range(6)]
        assert score == 0.0
    assert_allclose(np.exp(lattice.log_partition()), 444, rtol=1e-12, atol=0)
    assert_allclose(lattice.entropy(), np.log(444), rtol=1e-12, atol=0)


@pytest.mark.parametrize("patterns", [[(0,), (1,)], [(0,), (0, 0), (1, 0)], [(0, 1), (1, 1), (0, 0, 1)]])
@pytest.mark.parametrize("form", ["full", "parts"])
def test_shorter_segments_win_ties(form, patterns):
    """Of equally good last segments with one label the shorter wins, whatever lies before it."""
    rng = np.random.default_rng(0)
    for _ in range(40):
        parts = {"inside": rng.integers(-1, 1, size=(4, len(patterns))).astype(float)}
        parts["length"] = rng.integers(-1, 1, size=(3, len(patterns))).astype(float)
        scores = brute.expand_parts(4, len(patterns), 3, **parts)
        scored = brute.enumerate_segments(scores, patterns, 2)
        if form == "full":
            lattice = sc.SegmentLattice(scores, patterns, 2)
        else:
            lattice = sc.SegmentLattice.from_parts(patterns, 2, 3, **parts)
        config, score = brute.best(scored)
        assert lattice.viterbi() == ([sc.Segment(*segment) for segment in config], score)
        assert brute.config_of(lattice.kbest(1)[0][0]) == config


def test_longest_segment_longer_than_the_sequence():
    scores = np.random.default_rng(0).normal(size=(3, 7, 2))
    lattice = sc.SegmentLattice(scores, [(0,), (1, 0)], 2)
    scored = brute.enumerate_segments(scores, [(0,), (1, 0)], 2)
    assert_allclose(lattice.log_partition(), brute.log_partition(scored), rtol=1e-12, atol=0)
    assert lattice.marginals().segments.shape == (3, 7, 2)


# Samples -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("constrained", [False, True])
@pytest.mark.parametrize("form", ["full", "parts"])
def test_sample_frequencies(form, constrained):
    rng = np.random.default_rng(7)
    patterns = [(0,), (1, 0), (0, 1, 0), (sc.BOS, 1), (0, 0, sc.EOS)]
    if form == "full":
        scores = rng.normal(size=(5, 3, 5)) * 1.5
        scores[1, 1, 0] = -np.inf
        problem = strategies.SegmentProblem(scores, patterns, 2, ())
    else:
        shapes = {"start": (5,), "inside": (5, 5), "end": (5, 5), "length": (3, 5)}
        parts = {name: rng.normal(size=shape) for name, shape in shapes.items()}
        problem = strategies.PartsProblem(5, patterns, 2, 3, parts, ())
    known = None
    if constrained:
        known = strategies.Known(np.array([-1, 0, -1, -1, -1]), np.array([-1, -1, 0, -1, -1]))
    case = Case(problem, known)
    strategies.check_frequencies(case.lattice.sample(20_000, np.random.default_rng(1)), case.scored)


def test_sample_is_repeatable():
    rng = np.random.default_rng(0)
    lattice = sc.SegmentLattice(rng.normal(size=(20, 3, 2)), [(0,), (1, 0)], 2)
    assert lattice.sample(10, 5) == lattice.sample(10, 5)
    assert lattice.sample(10, 5) == lattice.sample(10, np.random.default_rng(5))
    generator = np.random.default_rng(5)
    assert lattice.sample(10, generator) != lattice.sample(10, generator)


# Long sequences, large scores, underflow -----------------------------------------------------------


@pytest.mark.parametrize("score", [-1e4, -0.3, 1e4])
@pytest.mark.parametrize("form", ["full", "parts"])
def test_long_sequence_with_constant_scores(form, score):
    """Segments of length 1 and 2 that all score the same: Z_n = L exp(score) (Z_{n-1} + Z_{n-2})."""
    n, size = 100_000, 2
    patterns = [(0,), (1,), (0, 1, 0)]
    if form == "full":
        scores = np.full((n, 2, 3), score)
        scores[:, :, 2] = 0.0
        lattice = sc.SegmentLattice(scores, patterns, size)
    else:
        inside = np.zeros((n, 3))
        lattice = sc.SegmentLattice.from_parts(patterns, size, 2, inside=inside, start=np.array([score, score, 0.0]))
    log_a = np.log(size) + score
    log_z = np.array([0.0, log_a])  # Z_0, Z_1
    for _ in range(n - 1):
        log_z = np.array([log_z[1], log_a + np.logaddexp(log_z[0], log_z[1])])
    assert_allclose(lattice.log_partition(), log_z[1], rtol=1e-10, atol=0)
    answer = lattice.marginals()
    if score == -0.3:
        # far from both ends, with q = Z_{n-1} / Z_n: 1 = a (q + q^2), and lengths have mean a (q + 2 q^2)
        a = np.exp(log_a)
        q = (np.sqrt(a * a + 4 * a) - a) / (2 * a)
        begins = 1.0 / (a * (q + 2 * q * q))
        middle = answer.segments[n // 2]
        assert_allclose(middle, begins * np.exp(score) * np.array([[q, q], [q * q, q * q]]), rtol=1e-9, atol=0)
    else:  # only the shortest, or only the longest segments
        expected = np.zeros((n, 2, 2))
        expected[:: 2 if score < 0 else 1, int(score < 0)] = 0.5
        assert_allclose(answer.segments, expected, rtol=0, atol=1e-9)
    assert_allclose(answer.labels, 0.5, rtol=0, atol=1e-8)
    mean = score * answer.boundaries.sum()
    assert_allclose(lattice.entropy(), log_z[1] - mean, rtol=1e-9, atol=1e-15 * abs(mean) * n)
    best, value = lattice.viterbi()
    count = n // 2 if score < 0 else n
    assert len(best) == count
    assert_allclose(value, count * score, rtol=1e-12, atol=0)


@pytest.mark.parametrize("drift", [0.0, 1e4])
def test_long_parts_equal_the_full_array(drift):
    """Sums over a segment must not be differences of sums over 1e5 positions, which lose seven digits."""
    n, size = 100_000, 2
    patterns = [(0,), (1,), (0, 1)]
    inside = np.random.default_rng(12).normal(size=(n, 3)) + drift
    scores = np.zeros((n, 2, 3))
    scores[:, 0] = inside
    scores[:-1, 1] = inside[:-1] + inside[1:]
    full = sc.SegmentLattice(scores, patterns, size)
    parts = sc.SegmentLattice.from_parts(patterns, size, 2, inside=inside)
    assert_allclose(parts.log_partition(), full.log_partition(), rtol=1e-12, atol=0)
    one, other = parts.marginals(), full.marginals()
    assert_allclose(one.segments, other.segments, rtol=0, atol=1e-8)
    assert_allclose(one.labels, other.labels, rtol=0, atol=1e-8)
    assert_allclose(
        one.patterns.inside.sum(),
        other.patterns[:, 0].sum() + 2 * other.patterns[:, 1].sum(),
        rtol=1e-9,
        atol=0,
    )


@pytest.mark.parametrize("form", ["full", "parts"])
def test_dominating_dead_end(form):
    """Label 0 leads by e^100 a time but cannot end the sequence; only e^-5000 of its weight survives."""
    n = 60
    patterns = [(0,), (1,), (0, 1), (1, 0), (0, sc.EOS)]
    row = np.zeros((n, 5))
    row[:50, 1] = -100.0
    row[:, [2, 3, 4]] = -np.inf
    if form == "full":
        scores = brute.expand_parts(n, 5, 3, inside=row)
        scores[:, 1:, :2] = -np.inf
        lattice = sc.SegmentLattice(scores, patterns, 2)
    else:
        length = np.zeros((3, 5))
        length[1:, :2] = -np.inf
        lattice = sc.SegmentLattice.from_parts(patterns, 2, 3, inside=row, length=length)
    assert_allclose(lattice.log_partition(), -5000.0, rtol=1e-12, atol=0)
    assert_allclose(lattice.marginals().labels[:, 1], 1.0, rtol=0, atol=1e-9)
    assert_allclose(lattice.entropy(), 0.0, rtol=0, atol=1e-8)
    assert lattice.viterbi()[0] == [(t, t + 1, 1) for t in range(n)]
    assert lattice.sample(2, 0) == [lattice.viterbi()[0]] * 2


@pytest.mark.parametrize("form", ["full", "parts"])
def test_large_scores_equal_the_log_space_recursion(form):
    from scansion.reference import segment

    rng = np.random.default_rng(11)
    n, size, longest = 40, 3, 4
    patterns = [(y,) for y in range(size)] + [(0, 1), (1, 2, 0), (2, 2), (sc.BOS, 1), (0, sc.EOS)]
    shape = (n, longest, len(patterns))
    if form == "full":
        scores = rng.choice([-1e4, 0.0, 1e4], size=shape) + rng.normal(size=shape)
        lattice = sc.SegmentLattice(scores, patterns, size)
    else:
        parts = {"start": rng.normal(size=(n, 8)), "inside": rng.choice([-1e4, 1e4], size=(n, 8))}
        parts |= {"end": rng.normal(size=(n, 8)), "length": rng.choice([-1e4, 1e4], size=(longest, 8))}
        scores = brute.expand_parts(n, 8, longest, **parts)
        lattice = sc.SegmentLattice.from_parts(patterns, size, longest, **parts)
    automaton = segment.pattern_automaton(patterns, size)
    psi = segment.arc_scores(automaton, scores)
    expected = segment.marginals(automaton, psi)
    assert_allclose(lattice.log_partition(), segment.log_partition(automaton, psi), rtol=1e-12, atol=0)
    answer = lattice.marginals()
    assert_allclose(answer.segments, expected.segments, rtol=0, atol=1e-7)
    assert_allclose(answer.labels, expected.labels, rtol=0, atol=1e-7)
    assert_allclose(answer.boundaries, expected.boundaries, rtol=0, atol=1e-7)
    assert_allclose(lattice.entropy(), segment.entropy(automaton, psi), rtol=0, atol=1e-6)
    best, score = segment.viterbi(automaton, psi)
    assert_allclose(lattice.viterbi()[1], score, rtol=1e-12, atol=0)
    assert_allclose(lattice.score(list(best)), score, rtol=1e-12, atol=0)
