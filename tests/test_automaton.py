"""The pattern automaton: states, arcs and matching patterns, by definition and for large sets."""

import numpy as np
import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import scansion as sc
from scansion.reference import enumeration as brute
from scansion.reference import segment

BOS, EOS = sc.BOS, sc.EOS


@st.composite
def pattern_sets(draw):
    n_labels = draw(st.integers(1, 4))
    return draw(strategies.pattern_sets(n_labels)), n_labels


def walk(net, labels):
    """The state after each label, the initial one first."""
    states = [net.initial]
    for y in labels:
        states.append(int(net.next[states[-1], y]))
    return states


def reference(patterns, n_labels):
    """The automaton of the specification, which gives EOS no arc of its own: there a label sequence that EOS closes
    need not be a state. Longer patterns make it one.
    """
    bodies = [pattern[:-1] for pattern in patterns if pattern[-1] == EOS]
    return segment.pattern_automaton([*patterns, *((*body, 0) for body in bodies)], n_labels)


def ends_with(history, pattern):
    return len(pattern) <= len(history) and tuple(history[len(history) - len(pattern) :]) == tuple(pattern)


# By definition -------------------------------------------------------------------------------------


@given(pattern_sets())
def test_states_and_arcs_equal_the_reference(drawn):
    patterns, n_labels = drawn
    net, expected = sc.PatternAutomaton(patterns, n_labels), reference(patterns, n_labels)
    states = net.states
    assert len(states) == net.n_states == len(set(states))
    assert set(states) == set(expected.states)
    assert states[net.initial] == expected.states[expected.start]
    place = {state: p for p, state in enumerate(expected.states)}
    assert net.next.shape == (net.n_states, n_labels)
    for p, state in enumerate(states):
        for y in range(n_labels):
            assert states[net.next[p, y]] == expected.states[expected.next[place[state], y]]
            found = net.matches(p, y)
            assert sorted(found) == np.flatnonzero(expected.matches[place[state], y, : len(patterns)]).tolist()
            lengths = [len(patterns[z]) for z in found]
            assert lengths == sorted(lengths, reverse=True)


@given(pattern_sets(), st.data())
def test_walks_equal_a_search_for_patterns(drawn, data):
    """Along any labelling: the state is the longest suffix among the states, and the matches are all matches."""
    patterns, n_labels = drawn
    net = sc.PatternAutomaton(patterns, n_labels)
    labels = data.draw(st.lists(st.integers(0, n_labels - 1), max_size=12))
    states, at = net.states, walk(net, labels)
    for t, y in enumerate(labels):
        history = (BOS, *labels[: t + 1])
        suffixes = [state for state in states if ends_with(history, state)]
        assert states[at[t + 1]] == max(suffixes, key=len)
        expected = [z for z, pattern in enumerate(patterns) if ends_with(history, pattern)]
        assert sorted(net.matches(at[t], y)) == expected


@given(pattern_sets(), st.data())
def test_scores_count_the_matches(drawn, data):
    """With a score of 1 for every pattern, the score of a labelling is its number of matches, EOS included."""
    patterns, n_labels = drawn
    labels = data.draw(st.lists(st.integers(0, n_labels - 1), min_size=1, max_size=8))
    lattice = sc.ChainLattice.from_patterns(np.ones((len(labels), len(patterns))), patterns, n_labels)
    matches = list(brute.matching_patterns(brute.as_segments(labels), patterns))
    assert lattice.score(labels) == len(matches)


@given(pattern_sets(), st.randoms(use_true_random=False))
def test_order_of_patterns_does_not_matter(drawn, random):
    patterns, n_labels = drawn
    shuffled = random.sample(patterns, len(patterns))
    net, other = sc.PatternAutomaton(patterns, n_labels), sc.PatternAutomaton(shuffled, n_labels)
    assert net.states == other.states
    assert_array_equal(net.next, other.next)
    for p in range(net.n_states):
        for y in range(n_labels):
            assert [patterns[z] for z in net.matches(p, y)] == [shuffled[z] for z in other.matches(p, y)]


# By hand -------------------------------------------------------------------------------------------


def test_worked_example():
    """Paper 001, Appendix B: labels P, O, L and the pattern LOL."""
    P, O, L = 0, 1, 2
    net = sc.PatternAutomaton([(P,), (O,), (L,), (L, O, L)], 3)
    assert set(net.states) == {(), (P,), (O,), (L,), (L, O)}
    state = {symbols: p for p, symbols in enumerate(net.states)}
    assert net.initial == state[()]
    assert net.next[state[(L,)], O] == state[(L, O)]
    assert net.next[state[(L, O)], L] == state[(L,)]
    assert net.next[state[(L, O)], O] == state[(O,)]
    assert net.matches(state[(L, O)], L) == [3, 2]
    assert net.matches(state[(O,)], L) == [2]


def test_start_of_the_sequence():
    net = sc.PatternAutomaton([(BOS, 0), (BOS, 0, 1), (1,)], 2)
    assert net.states[net.initial] == (BOS,)
    assert set(net.states) == {(), (BOS,), (BOS, 0), (0,), (1,)}
    at = walk(net, [0, 1, 0, 1])
    assert net.matches(at[0], 0) == [0]
    assert net.matches(at[1], 1) == [1, 2]
    assert net.matches(at[2], 0) == []
    assert net.matches(at[3], 1) == [2]


def test_end_of_the_sequence():
    """A pattern that ends in EOS needs its labels as a state, and scores on its last label."""
    patterns = [(0, 1, EOS), (1, EOS), (BOS, 1, EOS)]
    net = sc.PatternAutomaton(patterns, 2)
    assert {(0, 1), (1,), (BOS, 1)} <= set(net.states)
    assert all(net.matches(p, y) == [] for p in range(net.n_states) for y in range(2))
    scores = np.array([[1.0, 10.0, 100.0]])
    for labels, expected in (([0, 1], 11.0), ([1, 1], 10.0), ([1], 110.0), ([0], 0.0), ([1, 0], 0.0)):
        lattice = sc.ChainLattice.from_patterns(np.repeat(scores, len(labels), axis=0), patterns, 2)
        assert lattice.score(labels) == expected


def test_labels_without_patterns_are_states():
    net = sc.PatternAutomaton([(3,)], 5)
    assert set(net.states) == {(), (0,), (1,), (2,), (3,), (4,)}


def test_an_automaton_can_be_shared():
    patterns = [(0,), (1,), (0, 1, 1)]
    net = sc.PatternAutomaton(patterns, 2)
    scores = np.random.default_rng(0).normal(size=(9, 3))
    expected = sc.ChainLattice.from_patterns(scores, patterns, 2).log_partition()
    assert sc.ChainLattice.from_patterns(scores, net, 2).log_partition() == expected
    assert sc.SegmentLattice(scores[:, None], net, 2).log_partition() == pytest.approx(expected, rel=1e-13)
    with pytest.raises(ValueError, match="n_labels"):
        sc.ChainLattice.from_patterns(scores, net, 3)


# Large sets ----------------------------------------------------------------------------------------


def test_twenty_thousand_patterns():
    n_labels, count = 40, 20_000
    rng = np.random.default_rng(1)
    chosen = {(y,) for y in range(n_labels)}
    while len(chosen) < count:
        size = int(rng.integers(2, 7))
        body = np.minimum(rng.geometric(0.12, size) - 1, n_labels - 1).tolist()
        chosen.add(tuple([BOS] * (rng.random() < 0.02) + body + [EOS] * (rng.random() < 0.02)))
    patterns = sorted(chosen)
    index = {pattern: z for z, pattern in enumerate(patterns)}
    net = sc.PatternAutomaton(patterns, n_labels)
    states = net.states
    bodies = [pattern[: len(pattern) - (pattern[-1] == EOS)] for pattern in patterns]
    # a label sequence closed by EOS is a state: the end of the sequence is no label that could still be taken
    prefixes = {body[:n] for body in bodies for n in range(len(body))}
    prefixes |= {body for body, pattern in zip(bodies, patterns, strict=True) if pattern[-1] == EOS}
    prefixes |= {(y,) for y in range(n_labels)}
    assert set(states) == prefixes
    assert len(states) == len(prefixes)
    place = {state: p for p, state in enumerate(states)}
    step = net.next
    for p in rng.integers(0, len(states), size=300).tolist():
        y = int(rng.integers(0, n_labels)) if rng.random() < 0.5 else int(rng.geometric(0.3) - 1) % n_labels
        history = (*states[p], y)
        suffixes = [history[i:] for i in range(len(history) + 1)]
        assert step[p, y] == next(place[suffix] for suffix in suffixes if suffix in place)
        assert net.matches(p, y) == [index[suffix] for suffix in suffixes if suffix in index]


def test_many_patterns_score_like_their_definition():
    n_labels = 12
    rng = np.random.default_rng(2)
    text = rng.integers(0, n_labels, size=(60, 30))
    text[:, 1::2] = text[:, ::2]  # repeats, so that long patterns come back
    patterns = sorted({tuple(row[i : i + k].tolist()) for row in text for k in range(1, 6) for i in range(30 - k)})
    scores = rng.normal(size=(30, len(patterns)))
    lattice = sc.ChainLattice.from_patterns(scores, patterns, n_labels)
    for row in text[:5]:
        expected = sum(
            scores[t, z]
            for t in range(30)
            for z, pattern in enumerate(patterns)
            if ends_with(row[: t + 1].tolist(), pattern)
        )
        assert lattice.score(row) == pytest.approx(expected, rel=1e-12)
