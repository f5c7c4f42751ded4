"""Trajectories against enumeration and the reference recursions: chains of both kinds, segments, constraints."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from strategies import Case, ChainProblem, cases, chain_problems, parts_problems, pattern_problems, segment_problems

import scansion as sc
from scansion.reference import compressed as reference

PROBLEMS = (chain_problems(), pattern_problems(), segment_problems(), parts_problems())


def brute_trajectories(case):
    return reference.trajectories(case.scored, case.is_chain)


def four_states(n_times, seed, kind="tame"):
    """A first-order chain with 4 labels, larger than what the strategies draw."""
    rng = np.random.default_rng(seed)
    scale = {"tame": 1.0, "peaked": 4.0}[kind]
    unary, transition = rng.normal(size=(n_times, 4)) * scale, rng.normal(size=(4, 4)) + 2 * np.eye(4)
    return Case(ChainProblem(unary, transition, None, None, ()), None)


# Against enumeration --------------------------------------------------------------------------------


@given(cases(*PROBLEMS))
def test_log_probability(case):
    answer = case.lattice.compressed()
    for trajectory, p in list(brute_trajectories(case).items())[:12]:
        value = np.exp(answer.log_probability(trajectory))
        assert_allclose(value, p, rtol=10 * case.atol, atol=1e-12)
        assert isinstance(answer.log_probability(trajectory), float)


@given(cases(*PROBLEMS))
def test_lengths(case):
    answer = case.lattice.compressed()
    n = case.problem.n_times
    expected = reference.length_distribution(brute_trajectories(case), n)
    assert answer.lengths.shape == (n + 1,)
    assert_allclose(answer.lengths, expected, rtol=0, atol=10 * case.atol)
    assert_allclose(answer.lengths.sum(), 1.0, rtol=1e-12, atol=0)
    for longest in range(1, n):
        cut = case.lattice.compressed(max_length=longest)
        assert_allclose(cut.lengths, answer.lengths[: longest + 1], rtol=0, atol=1e-15)


@given(cases(*PROBLEMS))
def test_marginals(case):
    answer = case.lattice.compressed()
    known = brute_trajectories(case)
    for c in range(1, case.problem.n_times + 1):
        joint = reference.place_marginals(known, c, case.problem.n_labels)
        if joint.sum() > 1e-4 * c:
            given_c = joint / joint.sum(axis=1, keepdims=True)
            assert_allclose(answer.marginals(c), given_c, rtol=0, atol=1e-8 + 1e5 * case.atol)
            assert_allclose(answer.marginals(c).sum(axis=1), 1.0, rtol=1e-12, atol=0)


@given(cases(*PROBLEMS))
def test_predict(case):
    """The most likely length; raw, at each place a label that none beats; else a trajectory that can occur.

    None that can has more places expected to be right.
    """
    answer = case.lattice.compressed()
    labels, raw = answer.predict(), answer.predict(raw=True)
    known = brute_trajectories(case)
    by_length = reference.length_distribution(known, case.problem.n_times)
    tolerance = 10 * case.atol
    assert len(labels) == len(raw)
    assert by_length[len(labels)] >= by_length.max() - tolerance
    joint = reference.place_marginals(known, len(labels), case.problem.n_labels)
    for i, y in enumerate(raw):
        assert joint[i, y] >= joint[i].max() - tolerance
    assert labels in known and answer.log_probability(labels) > -np.inf
    right = {s: joint[np.arange(len(s)), list(s)].sum() for s in known if len(s) == len(labels)}
    assert right[labels] >= max(right.values()) - len(labels) * tolerance
    assert labels == raw or raw not in known


def test_predict_where_the_likeliest_labels_are_no_trajectory():
    """Places judged one by one come out as label 0 twice in a row, which a chain does not have."""
    rng = np.random.default_rng(0)
    impossible = 0
    for _ in range(400):
        lattice = sc.ChainLattice(rng.normal(size=(8, 3)), rng.normal(size=(3, 3)))
        answer = lattice.compressed()
        raw, labels = answer.predict(raw=True), answer.predict()
        impossible += any(a == b for a, b in zip(raw[:-1], raw[1:], strict=True))
        assert np.isfinite(answer.log_probability(labels))
    assert impossible > 10


@given(cases(*PROBLEMS), st.integers(0, 2**32 - 1))
def test_probability_of_cells(case, seed):
    answer = case.lattice.compressed()
    known, n, rng = brute_trajectories(case), case.problem.n_times, np.random.default_rng(seed)
    for _ in range(4):
        cells = [(int(rng.integers(n + 1)), int(rng.integers(case.problem.n_labels))) for _ in range(rng.integers(4))]
        places = {place: {y for other, y in cells if other == place} for place, _ in cells}

        def passes(s, places=places):
            return all(place < len(s) and s[place] in ys for place, ys in places.items())

        expected = sum(p for s, p in known.items() if passes(s))
        assert_allclose(answer.probability(cells), expected, rtol=0, atol=20 * case.atol)
        c = int(rng.integers(n + 1))
        given_length = sum(p for s, p in known.items() if passes(s) and len(s) == c)
        assert_allclose(answer.probability(cells, length=c), given_length, rtol=0, atol=20 * case.atol)


@given(cases(*PROBLEMS))
def test_lexicon(case):
    """Many trajectories at once, possible or not, are what each is by itself and what enumeration says."""
    answer = case.lattice.compressed()
    known = brute_trajectories(case)
    n, last = case.problem.n_times, case.problem.n_labels - 1
    words = [*list(known)[:20], tuple([last, 0] * n)[: n + 1] if last else (0,), (last,), (0,)]
    values = answer.log_probabilities(words)
    assert values.shape == (len(words),)
    for word, value in zip(words, values, strict=True):
        assert value == answer.log_probability(word)
        assert_allclose(np.exp(value), known.get(word, 0.0), rtol=10 * case.atol, atol=1e-12)
    assert answer.log_probabilities([]).shape == (0,)


@given(cases(*PROBLEMS), st.integers(1, 6))
def test_best_are_the_most_probable(case, k):
    answer = case.lattice.compressed().best(k)
    known = brute_trajectories(case)
    expected = sorted((p for p in known.values() if p > 1e-290), reverse=True)
    assert answer.proven
    assert len(answer) == min(k, len(expected))
    assert len(set(answer.trajectories)) == len(answer)
    assert list(answer.probabilities) == sorted(answer.probabilities, reverse=True)
    assert_allclose(answer.probabilities, expected[:k], rtol=100 * case.atol, atol=10 * case.atol)
    for trajectory, p in answer:
        assert_allclose(p, known[trajectory], rtol=0, atol=10 * case.atol)
    rest = [p for s, p in known.items() if s not in set(answer.trajectories)]
    assert answer.bound >= max(rest, default=0.0) - 10 * case.atol
    assert len(answer) < k or answer.bound <= answer.probabilities[-1]


@given(cases(*PROBLEMS), st.integers(1, 4), st.integers(1, 12))
def test_budget_bounds_hold(case, k, budget):
    answer = case.lattice.compressed().best(k, budget=budget)
    known = brute_trajectories(case)
    tolerance = 10 * case.atol
    assert answer.expanded <= budget
    rest = [p for s, p in known.items() if s not in set(answer.trajectories)]
    assert answer.bound >= max(rest, default=0.0) - tolerance
    for trajectory, p in answer:
        assert_allclose(p, known[trajectory], rtol=0, atol=tolerance)
    if answer.proven:
        top = sorted(known.values(), reverse=True)[: len(answer)]
        assert_allclose(answer.probabilities, top, rtol=0, atol=tolerance)


@given(cases(*PROBLEMS))
def test_boundaries(case):
    answer = case.lattice.compressed()
    for trajectory, p in list(brute_trajectories(case).items())[:8]:
        if not trajectory or p < 1e-5:
            continue
        expected = reference.place_starts(case.scored, trajectory, case.is_chain, case.problem.n_times)
        starts = answer.boundaries(trajectory)
        assert_allclose(starts, expected, rtol=0, atol=1e-8 + 1e6 * case.atol)
        assert_allclose(starts.sum(axis=1), 1.0, rtol=1e-9, atol=0)


@given(cases(*PROBLEMS))
def test_the_lattice_of_a_trajectory(case):
    """Its log Z is the trajectory's, its best configuration the best one that has the trajectory."""
    answer = case.lattice.compressed()
    scores = [(reference.trajectory_of(config, case.is_chain), score) for config, score in case.scored]
    for trajectory in list(brute_trajectories(case))[:5]:
        best = max(score for s, score in scores if s == trajectory)
        if not trajectory or best == -np.inf:
            continue
        places = answer.lattice(trajectory)
        assert_allclose(places.viterbi()[1], best, rtol=1e-12, atol=case.atol)
        held = places.log_partition() - case.lattice.log_partition()
        assert_allclose(held, answer.log_probability(trajectory), rtol=1e-12, atol=2 * case.atol)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["tame", "peaked"])
def test_four_states_seven_positions(kind, seed):
    case = four_states(7, seed, kind)
    known = brute_trajectories(case)
    answer = case.lattice.compressed()
    assert_allclose(answer.lengths, reference.length_distribution(known, 7), rtol=0, atol=1e-12)
    ranked = sorted(known, key=known.__getitem__, reverse=True)
    best = answer.best(10)
    assert best.trajectories == ranked[:10]
    assert_allclose(best.probabilities, [known[s] for s in ranked[:10]], rtol=1e-10, atol=0)
    for c in range(1, 8):
        joint = reference.place_marginals(known, c, 4)
        assert_allclose(answer.marginals(c), joint / joint.sum(axis=1, keepdims=True), rtol=1e-9, atol=1e-12)
    for trajectory in ranked[:20]:
        assert_allclose(np.exp(answer.log_probability(trajectory)), known[trajectory], rtol=1e-10, atol=0)


@settings(max_examples=20)
@given(chain_problems(min_times=1))
def test_reference_recursions(problem):
    """The recursions of docs/notation.md in log space: enumeration, and the kernel on the same chain."""
    arrays = problem.unary, problem.transition, problem.start, problem.end
    known = reference.trajectories(problem.scored, True)
    n = problem.n_times
    assert_allclose(reference.lengths(*arrays), reference.length_distribution(known, n), rtol=0, atol=10 * problem.atol)
    answer = problem.lattice().compressed()
    for trajectory, p in list(known.items())[:5]:
        value = reference.log_probability(trajectory, *arrays)
        assert_allclose(np.exp(value), p, rtol=0, atol=10 * problem.atol)
        assert_allclose(answer.log_probability(trajectory), value, rtol=1e-10, atol=10 * problem.atol)
    c = int(np.argmax(reference.lengths(*arrays)))
    assert_allclose(answer.marginals(c), reference.marginals(c, *arrays), rtol=0, atol=1e-8 + 100 * problem.atol)


# Limiting cases -------------------------------------------------------------------------------------


def test_the_example_of_the_paper():
    """s s j j j w w r r and s s j j j j w r r have one trajectory, s s j j w j w r r has another."""
    lattice = sc.ChainLattice(np.zeros((9, 4)), np.zeros((4, 4)))
    answer = lattice.compressed()
    # C(8, 3) ways to place three transitions, each labelling having probability 4^-9
    assert_allclose(np.exp(answer.log_probability((0, 1, 2, 3))), 56 / 4**9, rtol=1e-12, atol=0)
    assert_allclose(answer.boundaries((0, 1, 2, 3)).sum(axis=1), 1.0, rtol=1e-12, atol=0)
    # the third state starts at t if two transitions are before and one after: (t - 1)(8 - t) / 56
    expected = [(t - 1) * (8 - t) / 56 if t > 0 else 0.0 for t in range(9)]
    assert_allclose(answer.boundaries((0, 1, 2, 3))[2], expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("trajectory", [(0,), (1, 0), (2, 0, 2)])
def test_first_order_patterns_are_the_dense_chain(trajectory):
    rng = np.random.default_rng(0)
    unary, transition = rng.normal(size=(30, 3)), rng.normal(size=(3, 3))
    patterns = [(y,) for y in range(3)] + [(i, j) for i in range(3) for j in range(3)]
    scores = np.concatenate([unary, np.tile(transition.ravel(), (30, 1))], axis=1)
    scores[0, 3:] = 0.0
    one = sc.ChainLattice(unary, transition).compressed()
    other = sc.ChainLattice.from_patterns(scores, patterns, 3).compressed()
    assert_allclose(one.lengths, other.lengths, rtol=1e-10, atol=1e-300)
    assert_allclose(one.log_probability(trajectory), other.log_probability(trajectory), rtol=1e-12, atol=0)
    assert_allclose(one.marginals(9), other.marginals(9), rtol=1e-9, atol=1e-12)
    assert_allclose(one.boundaries(trajectory), other.boundaries(trajectory), rtol=0, atol=1e-12)
    assert one.predict() == other.predict()


def test_segments_that_never_repeat_a_label_are_a_chain():
    """Segment labels that may not follow themselves, additive scores: the trajectories of the chain."""
    rng = np.random.default_rng(1)
    n, size = 6, 3
    unary, transition = rng.normal(size=(n, size)), rng.normal(size=(size, size))
    np.fill_diagonal(transition, 0.0)
    chain = sc.ChainLattice(unary, transition).compressed()
    patterns = [(y,) for y in range(size)] + [(i, j) for i in range(size) for j in range(size)]
    pairs = transition.copy()
    np.fill_diagonal(pairs, -np.inf)
    start = np.concatenate([np.zeros(size), pairs.ravel()])
    inside = np.concatenate([unary, np.zeros((n, size * size))], axis=1)
    segments = sc.SegmentLattice.from_parts(patterns, size, n, start=start, inside=inside).compressed()
    assert_allclose(chain.lengths, segments.lengths, rtol=0, atol=1e-12)
    assert chain.predict() == segments.predict()
    one, other = chain.best(5), segments.best(5)
    assert one.trajectories == other.trajectories
    assert_allclose(one.probabilities, other.probabilities, rtol=1e-10, atol=0)


def test_segments_keep_equal_neighbours():
    answer = sc.SegmentLattice(np.zeros((3, 3, 1)), [(0,)], 1).compressed()
    assert_allclose(answer.lengths, [0, 1 / 4, 2 / 4, 1 / 4], rtol=1e-12, atol=0)
    assert_allclose(np.exp(answer.log_probability((0, 0))), 0.5, rtol=1e-12, atol=0)
    assert answer.best(3).trajectories[0] == (0, 0)


def test_empty_sequence():
    for lattice in (
        sc.ChainLattice(np.zeros((0, 2)), np.zeros((2, 2))),
        sc.SegmentLattice(np.zeros((0, 1, 1)), [(0,)], 2),
    ):
        answer = lattice.compressed()
        assert_allclose(answer.lengths, [1.0], rtol=0, atol=0)
        assert answer.predict() == ()
        assert answer.best().trajectories == [()]
        assert list(answer.best().probabilities) == [1.0]
        assert answer.log_probability(()) == 0.0
        assert answer.log_probability((0,)) == -np.inf
        assert answer.marginals(0).shape == (0, 2)
        assert answer.sample(2, 0) == [(), ()]


# Samples --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["chain", "segments"])
def test_samples_follow_the_probabilities(form):
    rng = np.random.default_rng(3)
    if form == "chain":
        lattice = sc.ChainLattice(rng.normal(size=(4, 3)), rng.normal(size=(3, 3)) + np.eye(3))
    else:
        lattice = sc.SegmentLattice(rng.normal(size=(4, 2, 2)), [(0,), (1,)], 2)
    answer = lattice.compressed()
    drawn = answer.sample(20_000, 0)
    assert all(isinstance(s, tuple) for s in drawn)
    for trajectory, p in answer.best(5):
        frequency = drawn.count(trajectory) / len(drawn)
        assert abs(frequency - p) < 5 * np.sqrt(p * (1 - p) / len(drawn))
    assert answer.sample(3, 7) == answer.sample(3, 7)


# Long sequences, large scores -----------------------------------------------------------------------


def test_long_sequence_of_zeros():
    """Every labelling is equally likely: the number of changes is binomial, P(length c) = B(T - 1, 1/2)(c - 1)."""
    from scipy.stats import binom

    n = 10_000
    lattice = sc.ChainLattice(np.zeros((n, 2)), np.zeros((2, 2)))
    answer = lattice.compressed(max_length=40)
    assert answer.lengths.shape == (41,)
    trajectory = tuple(i % 2 for i in range(5_000))
    for places in (3, 5_000):
        expected = binom.logpmf(places - 1, n - 1, 0.5) - np.log(2)
        assert_allclose(answer.log_probability(trajectory[:places]), expected, rtol=1e-9, atol=0)


def test_trajectories_of_a_hundred_places():
    """The paper's labelling looks at short lengths first: the likeliest must be found beyond them."""
    from scipy.stats import binom

    n = 200
    answer = sc.ChainLattice(np.zeros((n, 2)), np.zeros((2, 2))).compressed()
    expected = binom.pmf(np.arange(n), n - 1, 0.5)
    assert_allclose(answer.lengths[1:], expected, rtol=1e-9, atol=1e-300)
    found = answer.predict()
    assert len(found) in (100, 101)  # equally likely
    assert answer.lengths[len(found)] == answer.lengths.max()
    few = sc.ChainLattice(np.zeros((n, 2)), np.zeros((2, 2))).compressed(max_length=70)
    assert len(few.predict()) == 70


def test_ways_that_vanish_beside_each_other_in_one_column():
    """All ways into label 1 at the end are below 1e-200 of the best transition: the sum must not be of what is left."""
    case = Case(
        ChainProblem(
            np.array([[0.0, 5.0], [0.0, 900.0], [0.0, 0.0]]), np.array([[0.0, -714.0], [-50.0, -705.0]]), None, None, ()
        ),
        None,
    )
    lengths = case.lattice.compressed().lengths
    expected = np.zeros(4)
    for trajectory, p in brute_trajectories(case).items():
        expected[len(trajectory)] += p
    assert_allclose(lengths, expected, rtol=1e-9, atol=0)
    assert_allclose(lengths[3], 8.3e-7, rtol=0.01, atol=0)


@pytest.mark.parametrize("shift", [0.0, -1e4, 1e4])
def test_long_sequence_with_few_changes(shift):
    """Sticky labels, 10,000 positions: changes are Bernoulli in the stationary chain."""
    from scipy.stats import binom

    n, p = 10_000, 0.00065
    transition = np.log(np.array([[1 - p, p], [p, 1 - p]])) + shift
    answer = sc.ChainLattice(np.zeros((n, 2)), transition).compressed(max_length=30)
    expected = binom.pmf(np.arange(30), n - 1, p)
    assert answer.lengths[0] == 0.0
    assert_allclose(answer.lengths[1:], expected, rtol=1e-6, atol=1e-300)
    assert_allclose(answer.marginals(8), 0.5, rtol=1e-9, atol=0)
    assert len(answer.predict()) == int(np.argmax(expected)) + 1
    best = answer.best(2)
    assert best.proven
    assert_allclose(best.probabilities, expected.max() / 2, rtol=1e-6, atol=0)
    assert_allclose(answer.log_probability((0, 1, 0)), np.log(expected[2] / 2), rtol=1e-6, atol=0)
    starts = answer.boundaries((0, 1))
    assert_allclose(starts[1, 1:], 1 / (n - 1), rtol=1e-4, atol=1e-9)


def test_dominating_dead_end():
    """Label 0 leads by e^100 a time but cannot end the sequence."""
    n = 60
    unary = np.zeros((n, 2))
    unary[:50, 1] = -100.0
    lattice = sc.ChainLattice(unary, np.array([[0.0, -np.inf], [-np.inf, 0.0]]), end=np.array([-np.inf, 0.0]))
    answer = lattice.compressed()
    assert_allclose(answer.lengths[:3], [0.0, 1.0, 0.0], rtol=1e-12, atol=0)
    assert answer.predict() == (1,)
    assert answer.best(3).trajectories == [(1,)]
    assert_allclose(answer.log_probability((1,)), 0.0, rtol=0, atol=1e-9)
    assert answer.log_probability((0,)) == -np.inf


def test_probabilities_far_below_the_smallest_double():
    n = 3_000
    unary = np.zeros((n, 2))
    unary[:, 1] = -1.0
    answer = sc.ChainLattice(unary, np.full((2, 2), 0.5)).compressed(max_length=3)
    assert_allclose(answer.log_probability((1,)), -n * np.log1p(np.e), rtol=1e-12, atol=0)
    with pytest.raises(ValueError, match="max_length = 3 leaves no trajectory"):
        answer.predict()


# Errors ---------------------------------------------------------------------------------------------


def test_errors_name_the_argument_and_the_value():
    answer = sc.ChainLattice(np.zeros((4, 3)), np.zeros((3, 3))).compressed()
    with pytest.raises(ValueError, match=r"trajectory\[1\] = 0 is the label before it again"):
        answer.log_probability((0, 0))
    with pytest.raises(ValueError, match=r"trajectory\[1\] = 3 is out of range"):
        answer.log_probability((0, 3))
    with pytest.raises(ValueError, match="trajectory must be a sequence of labels"):
        answer.log_probability("abc")
    with pytest.raises(ValueError, match="trajectory must be an array of integers"):
        answer.log_probability([0.5])
    with pytest.raises(ValueError, match=r"trajectories\[1\]\[1\] = 0 is the label before it again"):
        answer.log_probabilities([(0, 1), (0, 0)])
    with pytest.raises(ValueError, match="trajectories must be a list of sequences of labels, got 3"):
        answer.log_probabilities(3)
    with pytest.raises(ValueError, match=r"cells must be pairs \(place, label\), got \[3\]"):
        answer.probability([3])
    with pytest.raises(ValueError, match=r"cells\[0\]\[0\] must be at least 0, got -1"):
        answer.probability([(-1, 0)])
    with pytest.raises(ValueError, match=r"labels of cells\[0\] = 7 is out of range"):
        answer.probability([(0, 7)])
    with pytest.raises(ValueError, match="trajectory of length 5 is impossible"):
        answer.lattice((0, 1, 0, 1, 0))
    with pytest.raises(ValueError, match="length 5 is impossible"):
        answer.marginals(5)
    with pytest.raises(ValueError, match="length must be an integer"):
        answer.marginals(1.5)
    with pytest.raises(ValueError, match="k must be at least 1, got 0"):
        answer.best(0)
    with pytest.raises(ValueError, match="budget must be at least 1, got 0"):
        answer.best(budget=0)
    with pytest.raises(ValueError, match="max_length must be at least 1, got 0"):
        sc.ChainLattice(np.zeros((4, 3)), np.zeros((3, 3))).compressed(max_length=0)
    held = sc.ChainLattice(np.zeros((2, 2)), np.zeros((2, 2))).constrain(labels=[0, -1])
    with pytest.raises(ValueError, match=r"no configuration is possible: the trajectory \(1,\)"):
        held.compressed().lattice((1,))
    with pytest.raises(ValueError, match="length 2 has probability 0"):
        held.constrain(labels=[0, 0]).compressed().marginals(2)
    dead = sc.ChainLattice(np.full((2, 2), -np.inf), np.zeros((2, 2)))
    with pytest.raises(ValueError, match="no configuration is possible"):
        dead.compressed()


# Batches, threads, documentation --------------------------------------------------------------------


@pytest.mark.parametrize("form", ["chain", "patterns", "segments"])
def test_batches_answer_as_one_by_one_and_with_any_number_of_threads(form):
    from scansion.lattice.compressed import best_all, predict_all

    rng = np.random.default_rng(9)
    offsets = np.array([0, 6, 6, 13, 14])
    patterns = [(0,), (1,), (2,), (0, 1), (2, 1, 0)]
    if form == "chain":
        unary, transition = rng.normal(size=(14, 3)), rng.normal(size=(3, 3))
        one, two = (sc.ChainBatch(unary, offsets, transition, n_jobs=n) for n in (1, 3))
    elif form == "patterns":
        scores = rng.normal(size=(14, 5))
        one, two = (sc.ChainBatch.from_patterns(scores, offsets, patterns, 3, n_jobs=n) for n in (1, 3))
    else:
        scores = rng.normal(size=(14, 3, 5))
        one, two = (sc.SegmentBatch(scores, offsets, patterns, 3, n_jobs=n) for n in (1, 3))
    assert predict_all(one) == predict_all(two) == [one[b].compressed().predict() for b in range(4)]
    for a, b, i in zip(best_all(one, 3), best_all(two, 3), range(4), strict=True):
        alone = one[i].compressed().best(3)
        assert a.trajectories == b.trajectories == alone.trajectories
        assert_array_equal(a.probabilities, b.probabilities)
        assert_array_equal(a.probabilities, alone.probabilities)
        assert (a.bound, a.expanded, a.proven) == (b.bound, b.expanded, b.proven)


def test_documentation():
    import doctest
    from pathlib import Path

    import scansion.data.trajectory
    import scansion.lattice.chain

    page = Path(__file__).parent.parent / "docs" / "concepts" / "compressed.md"
    result = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert result.attempted > 0 and result.failed == 0
    for module in (scansion.lattice.chain, scansion.data.trajectory):
        result = doctest.testmod(module)
        assert result.attempted > 0 and result.failed == 0


# Hidden Markov models -------------------------------------------------------------------------------


def test_hmm_lattice_is_the_posterior_of_the_hmm():
    rng = np.random.default_rng(5)
    start, matrix = np.array([0.7, 0.3, 0.0]), rng.dirichlet(np.ones(3), size=3)
    matrix[0] = [0.5, 0.0, 0.5]
    emission = np.log(rng.random((5, 3)))
    lattice = sc.ChainLattice.from_hmm(start, matrix, emission)
    forward = start * np.exp(emission[0])
    for row in emission[1:]:
        forward = forward @ matrix * np.exp(row)
    assert_allclose(lattice.log_partition(), np.log(forward.sum()), rtol=1e-12, atol=0)
    assert lattice.score([0, 1, 1, 1, 1]) == -np.inf and lattice.score([2, 2, 2, 2, 2]) == -np.inf
    steps = np.broadcast_to(matrix, (4, 3, 3))
    by_time = sc.ChainLattice.from_hmm(start, steps, emission)
    assert_allclose(by_time.log_partition(), lattice.log_partition(), rtol=1e-12, atol=0)
    assert lattice.compressed().best(4).trajectories == by_time.compressed().best(4).trajectories


def test_hmm_of_hmmlearn():
    hmm = pytest.importorskip("hmmlearn.hmm")
    model = hmm.CategoricalHMM(n_components=3, random_state=0)
    model.startprob_, model.transmat_ = np.full(3, 1 / 3), np.full((3, 3), 0.1) + 0.7 * np.eye(3)
    model.emissionprob_ = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])
    x = np.array([[0], [0], [1], [1], [2], [2], [2]])
    lattice = sc.ChainLattice.from_hmm(model.startprob_, model.transmat_, model._compute_log_likelihood(x))
    assert_allclose(lattice.log_partition(), model.score(x), rtol=1e-10, atol=0)
    assert lattice.compressed().predict() == (0, 1, 2)


def test_hmm_errors():
    emission = np.zeros((4, 2))
    good = np.full((2, 2), 0.5)
    with pytest.raises(ValueError, match=r"startprob must sum to 1, got 0.9"):
        sc.ChainLattice.from_hmm([0.5, 0.4], good, emission)
    with pytest.raises(ValueError, match=r"transmat\[1\] must sum to 1, got 1.5"):
        sc.ChainLattice.from_hmm([0.5, 0.5], [[0.5, 0.5], [0.5, 1.0]], emission)
    with pytest.raises(ValueError, match=r"transmat\[0, 1\] = -0.5 is not a probability"):
        sc.ChainLattice.from_hmm([0.5, 0.5], [[1.5, -0.5], [0.5, 0.5]], emission)
    with pytest.raises(ValueError, match=r"startprob must have shape \(2,\), got \(3,\)"):
        sc.ChainLattice.from_hmm([0.5, 0.5, 0.0], good, emission)
    with pytest.raises(ValueError, match=r"emission_logprob\[1, 0\] is nan"):
        sc.ChainLattice.from_hmm([0.5, 0.5], good, [[0.0, 0.0], [np.nan, 0.0]])
