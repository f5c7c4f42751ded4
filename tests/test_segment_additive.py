"""Segments of additive scores with long durations: inner products along the lengths give what rows of scores give."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import scansion as sc
from scansion.reference import segment as reference

SHAPES = [(2, 5, 12), (3, 30, 12), (2, 60, 40), (3, 90, 200)]  # labels, positions, longest segment: from 12 on


def parts(rng, n_labels, length, longest, scale, holes):
    """Additive scores of labels and pairs (and a triple), pairs by their start alone."""
    patterns = (
        [(y,) for y in range(n_labels)] + [(i, j) for i in range(n_labels) for j in range(n_labels)] + [(0, 1, 0)]
    )
    shape = (length, len(patterns))
    start, inside, end = rng.normal(size=shape) * scale * 0.3, np.zeros(shape), np.zeros(shape)
    inside[:, :n_labels] = rng.normal(size=(length, n_labels)) * scale
    end[:, :n_labels] = rng.normal(size=(length, n_labels)) * scale * 0.3
    lengths = np.zeros((longest, len(patterns)))
    lengths[:, :n_labels] = rng.normal(size=(longest, n_labels)) * scale
    if holes:
        inside[:, :n_labels][rng.random((length, n_labels)) < 0.02] = -np.inf
        start[:, n_labels:][rng.random((length, len(patterns) - n_labels)) < 0.1] = -np.inf
        lengths[: longest // 3, 0] = -np.inf
        lengths[longest // 2 :, 1] = -np.inf
        lengths[longest // 4, 1] = -np.inf
    return patterns, {"start": start, "inside": inside, "end": end, "length": lengths}


def added_up(patterns, n_labels, longest, start, inside, end, length):
    """The same scores segment by segment."""
    rows = len(start)
    full = np.full((rows, longest, len(patterns)), -np.inf)
    for u in range(rows):
        within = np.zeros(len(patterns))
        for d in range(1, min(longest, rows - u) + 1):
            within = within + inside[u + d - 1]
            full[u, d - 1] = start[u] + within + end[u + d - 1] + length[d - 1]
    full[:, :, n_labels:] = start[:, None, n_labels:]
    return full


def known(rng, n_labels, length):
    labels, boundaries = np.full(length, -1), np.full(length, -1)
    some = rng.choice(length, size=length // 10 + 1, replace=False)
    labels[some] = rng.integers(n_labels, size=len(some))
    some = rng.choice(length, size=length // 10 + 1, replace=False)
    boundaries[some] = rng.integers(2, size=len(some))
    boundaries[-1] = 1
    return labels, boundaries


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("scale", [0.3, 3.0, 50.0, 1000.0])
@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("constrained", [False, True])
def test_sums_and_expectations_are_those_of_rows(shape, scale, holes, constrained):
    n_labels, length, longest = shape
    rng = np.random.default_rng(length + longest)
    for _ in range(2):
        patterns, scores = parts(rng, *shape, scale, holes)
        full = added_up(patterns, n_labels, longest, **scores)
        pair = [
            sc.SegmentLattice.from_parts(patterns, n_labels, longest, **scores),
            sc.SegmentLattice(full, patterns, n_labels),
        ]
        if constrained:
            found = []
            labels, boundaries = known(rng, n_labels, length)
            for lattice in pair:
                try:
                    found.append(lattice.constrain(labels=labels, boundaries=boundaries))
                except ValueError as error:
                    found.append(str(error))
            if isinstance(found[0], str):
                assert found[0] == found[1]
                continue
            pair = found
        additive, plain = pair
        assert additive.log_partition() == pytest.approx(plain.log_partition(), rel=1e-11, abs=1e-9)
        wanted = plain.marginals()
        assert_allclose(additive.marginals().labels, wanted.labels, rtol=0, atol=1e-9)
        assert_allclose(additive.marginals().boundaries, wanted.boundaries, rtol=0, atol=1e-9)
        gradient = additive._batch._core.posteriors(1, gradient=True)
        assert_allclose(gradient["by_length"][:, :n_labels], wanted.segments.sum(axis=0), rtol=0, atol=1e-9)
        assert_allclose(gradient["inside"][:, :n_labels], wanted.labels, rtol=0, atol=1e-9)
        assert_allclose(gradient["starts"][:, n_labels:], wanted.patterns.sum(axis=1)[:, n_labels:], rtol=0, atol=1e-9)


def test_the_reference_agrees():
    rng = np.random.default_rng(3)
    patterns, scores = parts(rng, 2, 16, 12, 1.5, True)
    net = reference.pattern_automaton(patterns, 2)
    psi = reference.arc_scores(net, added_up(patterns, 2, 12, **scores))
    lattice = sc.SegmentLattice.from_parts(patterns, 2, 12, **scores)
    assert lattice.log_partition() == pytest.approx(reference.log_partition(net, psi), rel=1e-12)
    assert_allclose(lattice.marginals().labels, reference.marginals(net, psi).labels, rtol=0, atol=1e-11)


def test_long_sequences_drift_and_come_back():
    """A label falls behind by thousands of nats over one window, and comes back; lengths differ by thousands."""
    rng = np.random.default_rng(5)
    length, longest = 900, 300
    patterns = [(0,), (1,), (0, 1), (1, 0)]
    inside, by_length = np.zeros((length, 4)), np.zeros((longest, 4))
    inside[:, 0] = np.where(np.arange(length) // 300 % 2, 9.0, -9.0) + rng.normal(size=length)
    by_length[:, 0] = -np.arange(longest) * 7.0
    by_length[:, 1] = np.arange(longest) * 0.5
    additive = sc.SegmentLattice.from_parts(patterns, 2, longest, inside=inside, length=by_length, start=np.zeros(4))
    sums = np.concatenate([np.zeros((1, 4)), np.cumsum(inside, axis=0)])
    full = np.zeros((length, longest, 4))
    for d in range(1, longest + 1):
        full[: length - d + 1, d - 1] = sums[d:] - sums[: length - d + 1] + by_length[d - 1]
    plain = sc.SegmentLattice(full, patterns, 2)
    assert additive.log_partition() == pytest.approx(plain.log_partition(), rel=1e-12)
    assert_allclose(additive.marginals().labels, plain.marginals().labels, rtol=0, atol=1e-9)
    gradient = additive._batch._core.posteriors(1, gradient=True)
    assert gradient["escaped"] == 0
    assert_allclose(gradient["by_length"][:, :2], plain.marginals().segments.sum(axis=0), rtol=0, atol=1e-9)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("scale", [1.0, 1000.0, 3e5])
@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("constrained", [False, True])
def test_the_best_is_that_of_rows_ties_included(shape, scale, holes, constrained):
    """Whole scores, which doubles add without rounding: the best ones are many, and the same one wins."""
    n_labels, length, longest = shape
    rng = np.random.default_rng(length + longest)
    answered = 0
    for _ in range(4):
        patterns, scores = parts(rng, *shape, 1.0, holes)
        scores = {name: np.round(array) * scale for name, array in scores.items()}
        pair = [
            sc.SegmentLattice.from_parts(patterns, n_labels, longest, **scores),
            sc.SegmentLattice(added_up(patterns, n_labels, longest, **scores), patterns, n_labels),
        ]
        try:
            if constrained:
                labels, boundaries = known(rng, n_labels, length)
                pair = [lattice.constrain(labels=labels, boundaries=boundaries) for lattice in pair]
            expected = pair[1].viterbi()
        except ValueError:
            continue  # nothing is possible
        answered += 1
        assert pair[0].viterbi() == expected
        assert pair[0].kbest(3) == pair[1].kbest(3)
    assert answered or (holes and constrained)


def test_the_best_of_a_long_drift():
    """Prefix sums of 1e5 positions have lost the digits in which two lengths differ: rows decide."""
    length, longest = 100_000, 30
    inside = np.zeros((length, 2))
    inside[:, 0], inside[:, 1] = 1000.25, 1000.25 + 1e-9
    lattice = sc.SegmentLattice.from_parts([(0,), (1,)], 2, longest, inside=inside)
    segments, score = lattice.viterbi()
    assert {y for _, _, y in segments} == {1}
    assert_allclose(score, length * (1000.25 + 1e-9), rtol=1e-15)
