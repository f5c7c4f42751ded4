"""Chain lattices, from unary and transition scores or from patterns, against enumeration and closed forms."""

import numpy as np
import pytest
import strategies
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from strategies import Case, cases, chain_problems, pattern_problems
from test_reference import CARRIED, PATTERNS, TABLE_11, TABLE_12, TABLE_14, TWO_DIGITS, L, O, P

import scansion as sc
from scansion.reference import enumeration as brute

ANY = cases(chain_problems(), pattern_problems())


# Every question, against enumeration: those of all kinds are in test_questions --------------------


@given(ANY)
def test_answers_are_arrays(case):
    best, _ = case.lattice.viterbi()
    assert best.shape == (case.problem.n_times,)
    assert np.issubdtype(best.dtype, np.integer)
    drawn = case.lattice.sample(5, np.random.default_rng(0))
    assert drawn.shape == (5, case.problem.n_times)
    assert np.issubdtype(drawn.dtype, np.integer)


@given(cases(chain_problems()))
def test_marginals(case):
    p = case.problem
    answer = case.lattice.marginals()
    labels = brute.label_marginals(case.scored, p.n_times, p.n_labels)
    transitions = brute.transition_marginals(case.scored, p.n_times, p.n_labels)
    assert answer.labels.shape == labels.shape
    assert answer.transitions.shape == transitions.shape
    assert_allclose(answer.labels, labels, rtol=0, atol=10 * case.atol)
    assert_allclose(answer.transitions, transitions, rtol=0, atol=10 * case.atol)


@given(cases(pattern_problems()))
def test_pattern_marginals(case):
    p = case.problem
    answer = case.lattice.marginals()
    patterns = brute.pattern_marginals(case.scored, p.patterns, p.n_times, 1)[:, 0]
    assert answer.patterns.shape == p.scores.shape
    assert_allclose(answer.patterns, patterns, rtol=0, atol=10 * case.atol)
    labels = brute.label_marginals(case.scored, p.n_times, p.n_labels)
    assert_allclose(answer.labels, labels, rtol=0, atol=10 * case.atol)


@given(st.one_of(chain_problems(), pattern_problems()))
def test_full_constraint_leaves_one_configuration(problem):
    labels = np.array(brute.label_sequence(problem.witness), dtype=np.int64)
    lattice = problem.lattice().constrain(labels=labels)
    score = dict(problem.scored)[problem.witness]
    assert_allclose(lattice.log_partition(), score, rtol=1e-12, atol=problem.atol)
    assert_allclose(lattice.entropy(), 0.0, rtol=0, atol=10 * problem.atol)
    assert len(lattice.kbest(5)) == 1
    assert_array_equal(lattice.sample(3, 0), np.tile(labels, (3, 1)))


# Gradients -----------------------------------------------------------------------------------------


def finite_differences(log_partition, array, step=1e-5):
    """Central differences of ``log_partition(array)`` in every entry."""
    gradient = np.zeros_like(array)
    for index in np.ndindex(array.shape):
        sides = []
        for sign in (1.0, -1.0):
            moved = array.copy()
            moved[index] += sign * step
            sides.append(log_partition(moved))
        gradient[index] = (sides[0] - sides[1]) / (2 * step)
    return gradient


@settings(max_examples=15)
@given(chain_problems(kinds=("tame",), min_times=1))
def test_marginals_are_the_gradient_of_log_partition(problem):
    unary = np.where(np.isfinite(problem.unary), problem.unary, -3.0)
    transition = np.where(np.isfinite(problem.transition), problem.transition, -3.0)

    def of_unary(array):
        return sc.ChainLattice(array, transition, start=problem.start, end=problem.end).log_partition()

    def of_transition(array):
        return sc.ChainLattice(unary, array, start=problem.start, end=problem.end).log_partition()

    answer = sc.ChainLattice(unary, transition, start=problem.start, end=problem.end).marginals()
    assert_allclose(answer.labels, finite_differences(of_unary, unary), rtol=0, atol=1e-6)
    by_time = transition.ndim == 3
    expected = answer.transitions if by_time else answer.transitions.sum(axis=0)
    assert_allclose(expected, finite_differences(of_transition, transition), rtol=0, atol=1e-6)


@settings(max_examples=15)
@given(pattern_problems(kinds=("tame",)))
def test_pattern_marginals_are_the_gradient_of_log_partition(problem):
    scores = np.where(np.isfinite(problem.scores), problem.scores, -3.0)

    def of_scores(array):
        return sc.ChainLattice.from_patterns(array, problem.patterns, problem.n_labels).log_partition()

    answer = sc.ChainLattice.from_patterns(scores, problem.patterns, problem.n_labels).marginals()
    assert_allclose(answer.patterns, finite_differences(of_scores, scores), rtol=0, atol=1e-6)


# The worked example of paper 001, Appendix B -------------------------------------------------------


def test_worked_example():
    lattice = sc.ChainLattice.from_patterns(TABLE_11, PATTERNS, 3)
    assert_allclose(lattice.log_partition(), 12.696, rtol=0, atol=5e-4)
    answer = lattice.marginals()
    assert_allclose(answer.patterns, TABLE_14, rtol=0, atol=TWO_DIGITS)
    assert_allclose(answer.labels, TABLE_14[:, :3], rtol=0, atol=TWO_DIGITS)
    best, score = lattice.viterbi()
    assert_array_equal(best, [P, O, O, L, O, L, O, O])
    assert score == 9.0


@pytest.mark.parametrize("j", range(1, 9))
def test_worked_example_forward_variables(j):
    """Table 12: alpha(j, p) is the mass of the first j words whose labels end in p and in no longer state."""
    prefix = sc.ChainLattice.from_patterns(TABLE_11[:j], PATTERNS, 3)

    def mass(last, before=(P, O, L)):
        allowed = np.ones((j, 3), dtype=np.bool_)
        allowed[-1] = [y == last for y in range(3)]
        if j > 1:
            allowed[-2] = [y in before for y in range(3)]
        return prefix.constrain(labels=allowed).log_partition()

    values = [mass(P), mass(O, before=(P, O)), mass(L), mass(O, before=(L,)) if j > 1 else -np.inf]
    assert_allclose(values, TABLE_12[j - 1], rtol=0, atol=CARRIED)


# Limiting cases ------------------------------------------------------------------------------------


@given(chain_problems())
def test_patterns_up_to_length_two_are_a_chain(problem):
    """Singles, pairs, (BOS, y) and (y, EOS) write any first-order chain."""
    n, size = problem.n_times, problem.n_labels
    patterns = [(y,) for y in range(size)] + [(a, b) for a in range(size) for b in range(size)]
    patterns += [(sc.BOS, y) for y in range(size)] + [(y, sc.EOS) for y in range(size)]
    scores = np.zeros((n, len(patterns)))
    scores[:, :size] = problem.unary
    for t in range(1, n):
        step = problem.transition if problem.transition.ndim == 2 else problem.transition[t - 1]
        scores[t, size : size + size**2] = step.ravel()
    if n:
        scores[:, size + size**2 : 2 * size + size**2] = 0.0 if problem.start is None else problem.start
        scores[:, 2 * size + size**2 :] = 0.0 if problem.end is None else problem.end
    chain, by_patterns = problem.lattice(), sc.ChainLattice.from_patterns(scores, patterns, size)
    atol = problem.atol
    assert_allclose(by_patterns.log_partition(), chain.log_partition(), rtol=1e-12, atol=atol)
    assert_allclose(by_patterns.viterbi()[1], chain.viterbi()[1], rtol=1e-12, atol=atol)
    assert_allclose(by_patterns.entropy(), chain.entropy(), rtol=1e-10, atol=10 * atol)
    one, other = by_patterns.marginals(), chain.marginals()
    assert_allclose(one.labels, other.labels, rtol=0, atol=10 * atol)
    pairs = one.patterns[1:, size : size + size**2].reshape(-1, size, size)
    assert_allclose(pairs, other.transitions, rtol=0, atol=10 * atol)


@given(chain_problems(by_time=False))
def test_constant_transition_by_time(problem):
    """(L, L) means the same matrix at every step."""
    steps = np.repeat(problem.transition[None], max(problem.n_times - 1, 0), axis=0)
    by_time = sc.ChainLattice(problem.unary, steps, start=problem.start, end=problem.end)
    lattice = problem.lattice()
    assert_allclose(by_time.log_partition(), lattice.log_partition(), rtol=1e-12, atol=problem.atol)
    assert_allclose(by_time.marginals().transitions, lattice.marginals().transitions, rtol=0, atol=10 * problem.atol)


@pytest.mark.parametrize("patterns", [[(0,)], [(0, 0, 0), (1, 0)], [(2, 0), (sc.BOS, 1, 0), (0, 0, sc.EOS)]])
def test_ties_of_a_lattice_of_zeros(patterns):
    lattice = sc.ChainLattice.from_patterns(np.zeros((7, len(patterns))), patterns, 3)
    for _ in range(3):
        best, score = lattice.viterbi()
        assert_array_equal(best, np.zeros(7))
        assert score == 0.0
    chain = sc.ChainLattice(np.zeros((7, 3)), np.zeros((3, 3)))
    assert_array_equal(chain.viterbi()[0], np.zeros(7))
    assert_allclose(chain.log_partition(), 7 * np.log(3), rtol=1e-14, atol=0)
    assert_allclose(lattice.entropy(), 7 * np.log(3), rtol=1e-13, atol=0)


# Samples -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("constrained", [False, True])
@pytest.mark.parametrize("form", ["chain", "patterns"])
def test_sample_frequencies(form, constrained):
    rng = np.random.default_rng(7)
    if form == "chain":
        transition = rng.normal(size=(3, 3))
        transition[0, 1] = -np.inf
        problem = strategies.ChainProblem(rng.normal(size=(4, 3)), transition, None, rng.normal(size=3), ())
    else:
        patterns = [(0,), (1, 0), (0, 1, 0), (sc.BOS, 2), (2, 2, sc.EOS)]
        problem = strategies.PatternProblem(rng.normal(size=(4, 5)) * 1.5, patterns, 3, ())
    known = strategies.Known(np.array([-1, 2, -1, -1]), None) if constrained else None
    case = Case(problem, known)
    strategies.check_frequencies(case.lattice.sample(20_000, np.random.default_rng(1)), case.scored)


def test_sample_is_repeatable():
    rng = np.random.default_rng(0)
    lattice = sc.ChainLattice(rng.normal(size=(20, 3)), rng.normal(size=(3, 3)))
    assert_array_equal(lattice.sample(10, 5), lattice.sample(10, 5))
    assert_array_equal(lattice.sample(10, 5), lattice.sample(10, np.random.default_rng(5)))
    generator = np.random.default_rng(5)
    first, second = lattice.sample(10, generator), lattice.sample(10, generator)
    assert (first != second).any()
    assert lattice.sample(4, None).shape == (4, 20)


# Long sequences, large scores, underflow -----------------------------------------------------------


def softmax(scores):
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def test_long_homogeneous_chain():
    """Constant symmetric steps: Z = sum_k (1'v_k)^2 lambda_k^(T-1), from the eigenvalues of exp(A)."""
    n = 100_000
    rng = np.random.default_rng(3)
    transition = rng.normal(size=(4, 4)) * 2
    transition += transition.T
    values, vectors = np.linalg.eigh(np.exp(transition))
    top = np.abs(values).argmax()
    weights = vectors.sum(axis=0) ** 2 * (values / values[top]) ** (n - 1)
    expected = (n - 1) * np.log(values[top]) + np.log(weights.sum())
    lattice = sc.ChainLattice(np.zeros((n, 4)), transition)
    assert_allclose(lattice.log_partition(), expected, rtol=1e-11, atol=0)
    answer = lattice.marginals()
    assert_allclose(answer.labels[n // 2], vectors[:, top] ** 2, rtol=0, atol=1e-9)
    assert_allclose(answer.labels.sum(axis=1), 1.0, rtol=0, atol=1e-9)
    assert_allclose(answer.transitions.sum(axis=(1, 2)), 1.0, rtol=0, atol=1e-9)


@pytest.mark.parametrize("scale", [1.0, 1e4])
@pytest.mark.parametrize("form", ["chain", "patterns"])
def test_long_sequence_of_independent_positions(form, scale):
    """Without transition scores everything factorises over time."""
    n, size = 100_000, 3
    unary = np.random.default_rng(4).uniform(-scale, scale, size=(n, size))
    if form == "chain":
        lattice = sc.ChainLattice(unary, np.zeros((size, size)))
    else:
        patterns = [(0,), (1,), (2,), (0, 1), (1, 2, 0)]
        lattice = sc.ChainLattice.from_patterns(np.hstack([unary, np.zeros((n, 2))]), patterns, size)
    p = softmax(unary)
    log_z = np.logaddexp.reduce(unary, axis=1)
    assert_allclose(lattice.log_partition(), log_z.sum(), rtol=1e-11, atol=0)
    answer = lattice.marginals()
    assert_allclose(answer.labels, p, rtol=0, atol=1e-9)
    best, score = lattice.viterbi()
    assert_array_equal(best, unary.argmax(axis=1))
    assert_allclose(score, unary.max(axis=1).sum(), rtol=1e-12, atol=0)
    entropy = -np.where(p > 0, p * np.log(np.where(p > 0, p, 1.0)), 0.0).sum()
    assert_allclose(lattice.entropy(), entropy, rtol=1e-6, atol=1e-4)
    (drawn,) = lattice.sample(1, 0)
    assert np.isfinite(lattice.log_probability(drawn))
    assert_allclose(lattice.score(best), score, rtol=1e-12, atol=0)


def test_long_kbest():
    """The second best of independent positions changes the position with the smallest gap."""
    n = 10_000
    unary = np.random.default_rng(5).normal(size=(n, 3))
    (first, one), (second, two) = sc.ChainLattice(unary, np.zeros((3, 3))).kbest(2)
    ordered = np.sort(unary, axis=1)
    gaps = ordered[:, -1] - ordered[:, -2]
    assert_array_equal(np.flatnonzero(first != second), [gaps.argmin()])
    assert_allclose(one - two, gaps.min(), rtol=0, atol=1e-9)


def test_scores_of_ten_thousand():
    """Alternating +-1e4 with strong transitions, against the log-space recursion."""
    from scansion.reference import chain

    rng = np.random.default_rng(6)
    n, size = 300, 4
    unary = rng.choice([-1e4, 1e4], size=(n, size)) + rng.normal(size=(n, size))
    transition = rng.choice([-1e4, 0.0, 1e4], size=(n - 1, size, size)) + rng.normal(size=(n - 1, size, size))
    expected = chain.forward_backward(unary, transition)
    lattice = sc.ChainLattice(unary, transition)
    answer = lattice.marginals()
    assert_allclose(lattice.log_partition(), expected.log_partition, rtol=1e-13, atol=0)
    assert_allclose(answer.labels, expected.labels, rtol=0, atol=1e-7)
    assert_allclose(answer.transitions, expected.transitions, rtol=0, atol=1e-7)


def dead_end(form, where, n=60, step=-100.0):
    """Label 0 leads by e^100 a time, but is cut off; only "1 .. 1 1" and "1 .. 1 2" are possible."""
    unary = np.zeros((n, 3))
    unary[:50, 1] = step
    unary[:, 2] = -np.inf
    transition = np.zeros((3, 3))
    transition[0, 1] = transition[1, 0] = transition[2, 0] = transition[0, 2] = -np.inf
    start, end = np.zeros(3), np.zeros(3)
    if where == "unary after":
        unary[-2, 0] = -np.inf
    elif where == "end":
        end[0] = -np.inf
    elif where == "start":
        start[0] = -np.inf
        unary = unary[::-1].copy()
    elif where == "unary before":
        unary = unary[::-1].copy()
        unary[1, 0] = -np.inf
    unary[-1, 2] = unary[-1, 1]
    if form == "chain":
        return sc.ChainLattice(unary, transition, start=start, end=end)
    patterns = [(y,) for y in range(3)] + [(a, b) for a in range(3) for b in range(3)]
    patterns += [(sc.BOS, y) for y in range(3)] + [(y, sc.EOS) for y in range(3)]
    flat = np.tile(np.concatenate([transition.ravel(), start, end]), (n, 1))
    return sc.ChainLattice.from_patterns(np.hstack([unary, flat]), patterns, 3)


@pytest.mark.parametrize("form", ["chain", "patterns"])
@pytest.mark.parametrize("where", ["unary after", "end", "start", "unary before", "constraint"])
def test_dominating_dead_end(form, where):
    """What survives weighs e^-5000 beside what dies: scaling to the largest must not lose it."""
    lattice = dead_end(form, where)
    if where == "constraint":
        labels = np.full(60, -1)
        labels[-3] = 1
        lattice = lattice.constrain(labels=labels)
    assert_allclose(lattice.log_partition(), -5000.0 + np.log(2.0), rtol=1e-13, atol=0)
    answer = lattice.marginals()
    expected = np.zeros((60, 3))
    expected[:, 1] = 1.0
    expected[-1, 1:] = 0.5
    assert_allclose(answer.labels, expected, rtol=0, atol=1e-10)
    assert_allclose(lattice.entropy(), np.log(2.0), rtol=0, atol=1e-9)
    best, score = lattice.viterbi()
    assert_array_equal(best, np.ones(60))
    assert_allclose(score, -5000.0, rtol=1e-13, atol=0)
    assert [s for _, s in lattice.kbest(5)] == pytest.approx([-5000.0, -5000.0], rel=1e-13)
    drawn = lattice.sample(40, 0)
    assert_array_equal(drawn[:, :-1], np.ones((40, 59)))
    assert set(drawn[:, -1]) == {1, 2}


def test_products_that_vanish_beside_a_small_row():
    """What vanished beside a row of small numbers comes back in the next step, though every transition is possible."""
    unary = np.array([[0, -400], [-800, 0], [-400, -800], [-400, -400]], float)
    transition = np.array([[0, -400], [-400, -400]], float)
    case = Case(strategies.ChainProblem(unary, transition, None, None, ()), None)
    assert_allclose(case.lattice.log_partition(), -1600 + np.log(2), rtol=1e-14, atol=0)
    assert_allclose(case.lattice.log_partition(), brute.log_partition(case.scored), rtol=1e-14, atol=0)
    labels = brute.label_marginals(case.scored, 4, 2)
    assert_allclose(case.lattice.marginals().labels, labels, rtol=0, atol=1e-12)
    by_time = sc.ChainLattice(unary, np.repeat(transition[None], 3, axis=0))
    assert_allclose(by_time.log_partition(), -1600 + np.log(2), rtol=1e-14, atol=0)
    assert_allclose(by_time.marginals().labels, labels, rtol=0, atol=1e-12)


def test_underflow_within_one_step():
    lattice = sc.ChainLattice([[0.0, -5000.0], [-np.inf, 0.0]], [[0.0, -np.inf], [0.0, 0.0]])
    assert lattice.log_partition() == -5000.0
    assert_array_equal(lattice.marginals().labels, [[0.0, 1.0], [0.0, 1.0]])


def test_underflow_deep_inside_a_long_chain():
    """Long free stretches around a trap; compare with the log-space recursion."""
    from scansion.reference import chain

    rng = np.random.default_rng(8)
    n, size = 2_000, 4
    unary = rng.normal(size=(n, size))
    transition = rng.normal(size=(size, size))
    steps = np.repeat(transition[None], n - 1, axis=0)
    for middle in (400, 1_000, 1_990):
        unary[middle : middle + 8, 3] -= 900.0
        steps[middle : middle + 7] = -np.inf
        steps[middle : middle + 7, range(size), range(size)] = 0.0
        unary[middle + 8, :3] = -np.inf
        steps[middle + 7] = np.where(np.eye(size, dtype=bool), 0.0, -np.inf)
    expected = chain.forward_backward(unary, steps)
    lattice = sc.ChainLattice(unary, steps)
    answer = lattice.marginals()
    assert_allclose(lattice.log_partition(), expected.log_partition, rtol=1e-12, atol=0)
    assert_allclose(answer.labels, expected.labels, rtol=0, atol=1e-8)
    assert_allclose(answer.transitions, expected.transitions, rtol=0, atol=1e-8)


# Several answers at once, by the chains' own ways, against those of all lattices ------------------


@pytest.mark.parametrize("kind", ["plain", "ties", "forbidden", "underflow", "one label", "varying"])
def test_many_answers_are_those_of_the_general_way(kind):
    rng = np.random.default_rng(7)
    n_labels = 1 if kind == "one label" else 7
    lengths = [0, 1, 2, 9, 40]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    unary = rng.normal(scale=3.0, size=(offsets[-1], n_labels))
    steps = sum(max(0, t - 1) for t in lengths)
    transition = rng.normal(size=(steps, n_labels, n_labels) if kind == "varying" else (n_labels, n_labels))
    if kind == "ties":
        unary, transition = np.round(unary / 3), np.round(transition)
    elif kind == "forbidden":
        transition[rng.random(transition.shape) < 0.4] = -np.inf
        transition[:, 0] = 0.0
    elif kind == "underflow":
        unary *= 300.0
    batch = sc.ChainBatch(unary, offsets, transition, start=np.arange(n_labels) * 0.1)
    core = batch._core
    for k in (1, 5, 60):
        one, (labels, firsts, scores) = core.kbest(k, 1), core.kbest_labels(k, 2)
        assert_array_equal(labels, one.steps[:, 2])
        assert_array_equal(firsts, one.firsts)
        assert_array_equal(scores, one.scores)
    general = np.empty(len(batch))
    core.native.entropies(general, 1)
    assert_allclose(batch.entropy(), general, rtol=1e-9, atol=1e-11)
    state = rng.bit_generator.state
    before = core.sample(20, rng, 1).steps[:, 2]
    rng.bit_generator.state = state
    assert_array_equal(core.sample_labels(20, rng, 2).labels, before)


def test_entropies_of_chains_that_are_nearly_certain():
    unary = np.zeros((30, 4))
    unary[:, 0] = 60.0
    entropy = sc.ChainBatch(unary, [0, 30], np.zeros((4, 4))).entropy()
    assert_allclose(entropy, 0.0, atol=1e-13)
    assert (entropy >= 0.0).all()
