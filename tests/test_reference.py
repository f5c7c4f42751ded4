"""The specification agrees with itself: recursions equal enumeration, and the worked example of paper 001."""

import numpy as np
import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from scansion.reference import chain, ranges, segment
from scansion.reference import enumeration as brute

BOS, EOS = brute.BOS, brute.EOS

# Paper 001, Appendix B: "Peter goes to Britain and France annually ." with labels P, O, L.
P, O, L = 0, 1, 2
PATTERNS = [(P,), (O,), (L,), (L, O, L)]
TABLE_11 = np.array(
    [
        [1, 0, 0, 0],
        [0, 1, 0, 0],
        [0, 1, 0, 0],
        [0, 0, 1, 0],
        [0, 1, 0, 0],
        [0, 0, 1, 1],
        [0, 1, 0, 0],
        [0, 1, 0, 0],
    ],
    dtype=np.float64,
)
# Columns: P, O, L, LO. The paper prints 3.12 for (3, L); its own row 2 gives ln(22.2) = 3.10, as for (3, P).
TABLE_12 = np.array(
    [
        [1.00, 0.00, 0.00, -np.inf],
        [1.55, 2.31, 1.55, 1.00],
        [3.10, 3.87, 3.10, 2.55],
        [4.65, 4.42, 5.65, 3.10],
        [6.21, 6.35, 6.21, 6.65],
        [7.76, 7.52, 9.21, 6.21],
        [9.60, 9.45, 9.59, 10.21],
        [11.14, 11.91, 11.14, 10.59],
    ]
)
# Columns: histories ending in P, in O (but not LO), in L, in LO; the other columns of the paper repeat these.
TABLE_13 = np.array(
    [
        [12.70, 12.70, 12.70, 12.70],
        [11.14, 11.14, 11.14, 11.14],
        [9.59, 9.59, 9.59, 9.59],
        [8.04, 8.04, 8.04, 8.04],
        [6.21, 6.21, 6.66, 6.21],
        [4.65, 4.65, 4.65, 5.34],
        [3.10, 3.10, 3.10, 3.10],
        [1.55, 1.55, 1.55, 1.55],
    ]
)
TABLE_14 = np.array(
    [
        [0.58, 0.21, 0.21, 0.00],
        [0.21, 0.58, 0.21, 0.00],
        [0.21, 0.58, 0.21, 0.03],
        [0.16, 0.16, 0.68, 0.08],
        [0.16, 0.68, 0.16, 0.01],
        [0.16, 0.16, 0.68, 0.39],
        [0.21, 0.58, 0.21, 0.01],
        [0.21, 0.58, 0.21, 0.08],
    ]
)
TWO_DIGITS = 0.0051
CARRIED = 0.0101  # table 12 carries rounded values from row to row


@pytest.mark.parametrize(("n_times", "n_labels", "count"), [(0, 3, 1), (1, 3, 3), (4, 3, 81), (5, 1, 1)])
def test_number_of_labelings(n_times, n_labels, count):
    assert len(set(brute.labelings(n_times, n_labels))) == count


@pytest.mark.parametrize(
    ("n_times", "n_labels", "max_length", "count"),
    [(0, 2, 3, 1), (4, 1, 4, 8), (5, 2, 3, 152), (6, 3, 3, 2952)],
)
def test_number_of_segmentations(n_times, n_labels, max_length, count):
    assert len(set(brute.segmentations(n_times, n_labels, max_length))) == count


def test_score_by_hand():
    patterns = [(0,), (1,), (0, 1), (BOS, 0), (1, EOS), (BOS, 0, 1, EOS), (0, EOS)]
    scores = np.arange(3 * 2 * 7, dtype=np.float64).reshape(3, 2, 7)
    config = ((0, 2, 0), (2, 3, 1))
    expected = scores[0, 1, [0, 3]].sum() + scores[2, 0, [1, 2, 4, 5]].sum()
    assert brute.segment_score(config, scores, patterns) == expected


def test_consistency_by_hand():
    config = ((0, 2, 0), (2, 3, 1))
    assert brute.is_consistent(config, [0, -1, 1], [0, 1, 1])
    assert not brute.is_consistent(config, [0, 1, -1])
    assert not brute.is_consistent(config, None, [1, -1, -1])
    assert not brute.is_consistent(config, None, [-1, 0, -1])
    assert brute.is_consistent(config, [[True, False], [True, True], [False, True]])


def test_automaton_of_the_worked_example():
    automaton = segment.pattern_automaton(PATTERNS, 3)
    assert set(automaton.states) == {(), (P,), (O,), (L,), (L, O)}
    after = {
        (state, y): automaton.states[automaton.next[p, y]] for p, state in enumerate(automaton.states) for y in range(3)
    }
    assert after[(L,), O] == (L, O)
    assert after[(L, O), L] == (L,)
    assert after[(L, O), O] == (O,)
    assert after[(), P] == (P,)


def test_worked_example():
    automaton = segment.pattern_automaton(PATTERNS, 3)
    psi = segment.arc_scores(automaton, TABLE_11[:, None, :])
    columns = [automaton.states.index(state) for state in [(P,), (O,), (L,), (L, O)]]
    alpha = segment.forward(automaton, psi)
    beta = segment.backward(automaton, psi)
    assert_allclose(alpha[1:, columns], TABLE_12, rtol=0, atol=CARRIED)
    assert_allclose(beta[:-1, columns], TABLE_13, rtol=0, atol=TWO_DIGITS)
    assert_allclose(segment.log_partition(automaton, psi), 12.696, rtol=0, atol=5e-4)
    patterns = segment.marginals(automaton, psi).patterns[:, 0]
    assert_allclose(patterns, TABLE_14, rtol=0, atol=TWO_DIGITS)


def test_worked_example_by_enumeration():
    scored = brute.enumerate_patterns(TABLE_11, PATTERNS, 3)
    assert_allclose(brute.log_partition(scored), 12.696, rtol=0, atol=5e-4)
    patterns = brute.pattern_marginals(scored, PATTERNS, 8, 1)[:, 0]
    assert_allclose(patterns, TABLE_14, rtol=0, atol=TWO_DIGITS)
    assert brute.label_sequence(brute.best(scored)[0]) == (P, O, O, L, O, L, O, O)


@given(strategies.with_constraints(strategies.segment_problems()))
def test_recursion_equals_enumeration(drawn):
    problem, known = drawn
    scored = brute.constrain(problem.scored, known.labels, known.boundaries)
    automaton = segment.pattern_automaton(problem.patterns, problem.n_labels)
    psi = segment.arc_scores(automaton, problem.scores, known.labels, known.boundaries)
    answer = segment.marginals(automaton, psi)
    sizes = (problem.n_times, problem.max_length)
    atol = 10 * problem.atol
    assert_allclose(segment.log_partition(automaton, psi), brute.log_partition(scored), rtol=1e-12, atol=problem.atol)
    assert_allclose(answer.patterns, brute.pattern_marginals(scored, problem.patterns, *sizes), rtol=0, atol=atol)
    assert_allclose(answer.segments, brute.segment_marginals(scored, *sizes, problem.n_labels), rtol=0, atol=atol)
    assert_allclose(answer.labels, brute.label_marginals(scored, problem.n_times, problem.n_labels), rtol=0, atol=atol)
    assert_allclose(answer.boundaries, brute.boundary_marginals(scored, problem.n_times), rtol=0, atol=atol)
    assert_allclose(segment.entropy(automaton, psi), brute.entropy(scored), rtol=1e-10, atol=atol)
    by_ranges = np.logaddexp.reduce(ranges.forward(automaton, psi)[-1])
    assert_allclose(by_ranges, brute.log_partition(scored), rtol=1e-12, atol=problem.atol)


@given(strategies.segment_problems())
def test_ranges_are_as_many_as_patterns(problem):
    automaton = segment.pattern_automaton(problem.patterns, problem.n_labels)
    longer = {tuple(z[:-1]) if z[-1] == EOS else tuple(z) for z in problem.patterns} | set(automaton.states)
    known = sum(bool(z) and z[-1] >= 0 for z in longer)
    found = ranges.ranges(automaton)
    assert len(found) <= problem.n_labels + 2 * known
    covered = sorted((r.label, p) for r in found for p in range(r.first, r.stop))
    assert covered == [(y, p) for y in range(problem.n_labels) for p in range(len(automaton.states))]


@given(strategies.with_constraints(strategies.segment_problems(kinds=("integer",))))
def test_recursion_breaks_ties_like_enumeration(drawn):
    problem, known = drawn
    scored = brute.constrain(problem.scored, known.labels, known.boundaries)
    automaton = segment.pattern_automaton(problem.patterns, problem.n_labels)
    psi = segment.arc_scores(automaton, problem.scores, known.labels, known.boundaries)
    assert segment.viterbi(automaton, psi) == brute.best(scored)


@given(strategies.parts_problems())
def test_part_gradients_are_sums_of_pattern_marginals(problem):
    sizes = (problem.n_times, problem.max_length)
    full = brute.pattern_marginals(problem.scored, problem.patterns, *sizes)
    parts = brute.part_gradients(problem.scored, problem.patterns, *sizes)
    assert_allclose(parts.start, full.sum(axis=1), rtol=0, atol=1e-12)
    assert_allclose(parts.length, full.sum(axis=0), rtol=0, atol=1e-12)
    end, inside = np.zeros_like(parts.end), np.zeros_like(parts.inside)
    for u in range(problem.n_times):
        for d in range(1, min(problem.max_length, problem.n_times - u) + 1):
            end[u + d - 1] += full[u, d - 1]
            inside[u : u + d] += full[u, d - 1]
    assert_allclose(parts.end, end, rtol=0, atol=1e-12)
    assert_allclose(parts.inside, inside, rtol=0, atol=1e-12)


@given(strategies.chain_problems())
def test_chain_recursion_equals_enumeration(problem):
    answer = chain.forward_backward(problem.unary, problem.transition, problem.start, problem.end)
    sizes = (problem.n_times, problem.n_labels)
    log_z = brute.log_partition(problem.scored)
    atol = 10 * problem.atol
    assert_allclose(answer.log_partition, log_z, rtol=1e-12, atol=problem.atol)
    assert_allclose(answer.labels, brute.label_marginals(problem.scored, *sizes), rtol=0, atol=atol)
    assert_allclose(answer.transitions, brute.transition_marginals(problem.scored, *sizes), rtol=0, atol=atol)
    only_log_z = chain.log_partition(problem.unary, problem.transition, problem.start, problem.end)
    assert_allclose(only_log_z, log_z, rtol=1e-12, atol=problem.atol)


@given(st.integers(1, 4), st.integers(1, 5), st.integers(1, 4), st.booleans(), st.integers(0, 2**32 - 1))
def test_batched_chain_equals_one_by_one(n_batch, n_times, n_labels, by_time, seed):
    rng = np.random.default_rng(seed)
    unary = rng.normal(size=(n_batch, n_times, n_labels)) * 5
    transition = rng.normal(size=(n_times - 1, n_labels, n_labels) if by_time else (n_labels, n_labels))
    start, end = rng.normal(size=(2, n_labels))
    answer = chain.batched_forward_backward(unary, transition, start, end)
    best, scores = chain.batched_viterbi(unary, transition, start, end)
    for b in range(n_batch):
        one = chain.forward_backward(unary[b], transition, start, end)
        assert_allclose(answer.log_partition[b], one.log_partition, rtol=1e-12, atol=1e-12)
        assert_allclose(answer.labels[b], one.labels, rtol=0, atol=1e-12)
        assert_allclose(answer.transitions[b], one.transitions, rtol=0, atol=1e-12)
        config, score = brute.best(brute.enumerate_chain(unary[b], transition, start, end))
        assert tuple(best[b]) == brute.label_sequence(config)
        assert_allclose(scores[b], score, rtol=1e-12, atol=1e-12)


def test_nothing_possible():
    scored = [(((0, 1, 0),), -np.inf)]
    assert brute.log_partition(scored) == -np.inf
    with pytest.raises(ValueError, match="no configuration is possible"):
        brute.probabilities(scored)
    with pytest.raises(ValueError, match="no configuration is possible"):
        chain.forward_backward([[-np.inf]], [[0.0]])
