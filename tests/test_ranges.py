"""Automata of many states, where most arcs leave ranges of neighbouring states: against the specification."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import scansion as sc
from scansion.reference import segment

N_LABELS = 5


def problem(seed, kind, max_length, ends):
    """Scores (T, M, P) of random patterns of up to four labels, and the specification's automaton."""
    rng = np.random.default_rng(seed)
    patterns = {(y,) for y in range(N_LABELS)}
    while len(patterns) < 60:
        pattern = tuple(int(y) for y in rng.integers(0, N_LABELS, rng.integers(2, 5)))
        if ends and rng.random() < 0.2:
            pattern = (sc.BOS, *pattern) if rng.random() < 0.5 else (*pattern, sc.EOS)
        patterns.add(pattern)
    listed = sorted(patterns, key=lambda z: (len(z), z))
    shape = (6, max_length, len(listed))
    if kind == "integer":
        scores = rng.integers(-1, 2, shape).astype(float)
    else:
        scores = rng.normal(size=shape) * {"tame": 1.0, "large": 1e3, "huge": 1e7}[kind]
        scores[rng.random(shape) < 0.05] = -np.inf
        scores[:, :, :2] = np.maximum(scores[:, :, :2], -1.0)
    automaton = segment.pattern_automaton(listed, N_LABELS)
    return scores, listed, automaton, segment.arc_scores(automaton, scores)


def lattice_of(scores, patterns):
    if scores.shape[1] == 1:
        return sc.ChainLattice.from_patterns(scores[:, 0], patterns, N_LABELS)
    return sc.SegmentLattice(scores, patterns, N_LABELS)


def as_configuration(found, max_length):
    if max_length == 1:
        return tuple((t, t + 1, int(y)) for t, y in enumerate(found))
    return tuple((int(a), int(b), int(y)) for a, b, y in found)


@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize("max_length", [1, 3])
@pytest.mark.parametrize("kind", ["tame", "integer", "large", "huge"])
def test_many_states_equal_the_reference(kind, max_length, ends):
    for seed in range(3):
        scores, patterns, automaton, psi = problem(seed, kind, max_length, ends)
        size = np.abs(scores[np.isfinite(scores)]).max()
        lattice = lattice_of(scores, patterns)
        log_z = segment.log_partition(automaton, psi)
        assert_allclose(lattice.log_partition(), log_z, rtol=1e-12, atol=1e-12 * size)
        best, score = lattice.viterbi()
        if kind != "huge":  # the specification adds up in doubles
            assert as_configuration(best, max_length) == segment.viterbi(automaton, psi)[0]
            expected = segment.marginals(automaton, psi)
            assert_allclose(lattice.marginals().labels, expected.labels, rtol=0, atol=1e-11 * max(1.0, size))
            assert_allclose(lattice.entropy(), segment.entropy(automaton, psi), rtol=1e-9, atol=1e-11 * max(1.0, size))
        found = lattice.kbest(20)
        assert as_configuration(found[0][0], max_length) == as_configuration(best, max_length)
        assert_allclose([s for _, s in found], sorted((s for _, s in found), reverse=True), rtol=0, atol=0)
        assert len({as_configuration(one, max_length) for one, _ in found}) == 20
        assert_allclose(found[0][1], score, rtol=1e-12)


@pytest.mark.parametrize("max_length", [1, 2])
def test_samples_of_many_states(max_length):
    scores, patterns, automaton, psi = problem(0, "tame", max_length, True)
    lattice = lattice_of(scores, patterns)
    drawn = lattice.sample(20_000, 0)
    if max_length == 1:
        counted = np.array([(np.asarray(drawn) == y).mean(axis=0) for y in range(N_LABELS)]).T
    else:
        counted = np.zeros((6, N_LABELS))
        for one in drawn:
            for start, stop, y in one:
                counted[start:stop, y] += 1 / len(drawn)
    assert_allclose(counted, segment.marginals(automaton, psi).labels, rtol=0, atol=0.02)


def words(seed, n):
    rng = np.random.default_rng(seed)
    y = [[f"L{v}" for v in rng.integers(0, 6, int(t))] for t in rng.integers(0, 10, n)]
    X = [[[f"a{rng.integers(4)}", f"b{rng.integers(4)}"] for _ in row] for row in y]
    return X, y


@pytest.mark.parametrize("scale", [0.0, 1.0, 0.3, 1e5])
def test_chains_side_by_side_are_decoded_like_one(scale):
    """Weights that leave many ties, or none, or that doubles cannot add up; sequences of all lengths, 0 included."""
    X, y = words(0, 41)
    crf = sc.CRF(3, max_iterations=1).fit(X, y)
    rng = np.random.default_rng(1)
    w = rng.integers(-1, 2, crf.model_.n_weights) * scale
    crf.model_ = crf.model_.weighted(w * rng.normal(size=len(w)) if scale == 0.3 else w)

    def one_by_one(*given):
        return [[crf.classes_[v] for v in labels] for labels in crf.lattices(X, *given).viterbi()[0]]

    alone = one_by_one()
    assert crf.predict(X) == alone
    assert [crf.predict_single(x) for x in X] == alone
    known = [[label if rng.random() < 0.4 else None for label in row] for row in y]
    assert crf.predict(X, known) == one_by_one(known)
    for n in (1, 2, 3, 5):
        assert crf.predict(X[:n]) == alone[:n]
