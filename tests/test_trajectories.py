"""Learning from trajectories, and predicting them: finite differences, enumeration, mixtures with other targets."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

import scansion as sc
from scansion.reference import compressed as reference
from scansion.reference import enumeration as brute

X = [
    [{"a": 1.0, "b": 0.5}, {"b": 1.0}, {"a": -0.5, "c": 1.0}, {"c": 2.0}, {"a": 1.0}],
    [{"c": 1.0}, {"a": 0.3}, {"b": 1.0, "c": 0.2}],
    [{"a": 1.0}, {"a": 1.0}, {"b": 1.0}, {"c": 1.0}],
    [{"b": 1.0}, {"c": 1.0}],
    [{"a": 1.0}, {"b": 1.0}],
]
Y = [sc.Trajectory(["x", "y", "x"]), sc.Trajectory(["z"]), ["x", "x", "y", "z"], [{"y", "x"}, None], None]
SEGMENTS = [sc.Trajectory(["x", "x", "y"]), sc.Trajectory(["z", "y"]), [(0, 2, "x"), (2, 3, "y"), (3, 4, "z")]]
SEGMENTS += [[(0, 1, "y")], None]

CASES = {
    "order 0": (sc.CRF(order=0), Y),
    "order 1": (sc.CRF(), Y),
    "order 2": (sc.CRF(order=2), Y),
    "varying": (sc.CRF(attribute_orders={"a": (0, 1)}), Y),
    "varying, order 2": (sc.CRF(order=2, attribute_orders={"a": (0, 1, 2)}), Y),
    "segments": (sc.SemiCRF(max_length=3), SEGMENTS),
    "order 3": (sc.CRF(order=3), Y),
    "ends": (sc.CRF(patterns=[(sc.BOS, "x"), ("x", "x", "y"), ("y", "x", sc.EOS), ("z", sc.EOS)]), Y),
    "segments, ends": (
        sc.SemiCRF(max_length=3, patterns=[(sc.BOS, "x", "x"), ("x", "y"), ("x", "x", "y", sc.EOS), ("y", sc.EOS)]),
        SEGMENTS,
    ),
    "segments, order 2": (sc.SemiCRF(order=2, max_length=3, length_features=("length",)), SEGMENTS),
    "segments, parts": (
        sc.SemiCRF(max_length=4, attribute_parts={"a": "start", "b": ("end", "inner")}, attribute_orders={"c": (0, 1)}),
        SEGMENTS,
    ),
    "segments, cells": (
        sc.SemiCRF(max_length=3, segment_features=lambda x, start, stop: {"n": stop - start, "a": 0.5}),
        SEGMENTS,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_gradient_is_that_of_finite_differences(name):
    estimator, y = CASES[name]
    model, objective = estimator.problem(X, y)
    rng = np.random.default_rng(0)
    w = rng.normal(size=model.n_weights)
    gradient = np.empty_like(w)
    loss = objective.log_loss(w, gradient, 1)
    scratch = np.empty_like(w)
    expected = np.empty_like(w)
    for i in range(len(w)):
        step = np.zeros_like(w)
        step[i] = 1e-5
        expected[i] = (objective.log_loss(w + step, scratch, 1) - objective.log_loss(w - step, scratch, 1)) / 2e-5
    assert_allclose(gradient, expected, rtol=0, atol=1e-7)
    again = objective.log_loss(w, scratch, 2)
    assert loss == again
    np.testing.assert_array_equal(gradient, scratch)


@pytest.mark.parametrize("name", CASES)
def test_loss_is_the_log_probability_by_enumeration(name):
    estimator, y = CASES[name]
    model, objective = estimator.problem(X[:2], y[:2])
    model.weights = np.random.default_rng(1).normal(size=model.n_weights)
    loss = objective.log_loss(model.weights, np.empty(model.n_weights), 1)
    fitted = type(estimator)(**estimator.get_params())
    fitted.model_ = model
    total = 0.0
    for x, one in zip(X[:2], y[:2], strict=True):
        lattice = fitted.lattice(x)
        chain = isinstance(lattice, sc.ChainLattice)
        if chain:
            configs = brute.labelings(len(x), model.n_labels)
            scored = [(c, lattice.score(np.array(brute.label_sequence(c)))) for c in configs]
        else:
            configs = brute.segmentations(len(x), model.n_labels, model.max_length)
            scored = [(c, lattice.score(list(c))) for c in configs]
        labels = tuple(model.labels.index(label) for label in one)
        p = reference.trajectories(scored, chain)[labels]
        total -= np.log(p)
        assert_allclose(lattice.compressed().log_probability(labels), np.log(p), rtol=1e-9, atol=1e-12)
    assert_allclose(loss, total, rtol=1e-9, atol=0)
    assert_allclose(fitted.log_likelihood(X[:2], y[:2]), -total, rtol=1e-9, atol=0)


@pytest.mark.parametrize("places", [1, 7, 1000])
def test_segment_trajectories_of_any_length(places):
    """Without weights all segmentations are equal: C(c, T - c) ways to cut T positions into c parts of 1 or 2."""
    size = places + places // 2
    labels = [["x", "y", "z"][i % 3] for i in range(places)]
    model, objective = sc.SemiCRF(max_length=2).problem([[["a"]] * size], [sc.Trajectory(labels)])
    known = np.empty(1)
    objective.native.log_partitions(np.zeros(model.n_weights), True, known, 1)
    assert_allclose(known, math.log(math.comb(places, size - places)), rtol=1e-12, atol=1e-12)


def noisy(labels, size, rng):
    """A sequence that passes through the labels, a position showing its label two times in three."""
    cuts = np.sort(rng.choice(np.arange(1, size), len(labels) - 1, replace=False))
    y = [labels[i] for i in np.searchsorted(cuts, np.arange(size), side="right")]
    return [{f"see={label if rng.random() < 0.7 else rng.choice(list('sjwr'))}": 1.0} for label in y], y


@pytest.mark.parametrize("algorithm", ["lbfgs", "l2sgd", "mm", "ap", "pa"])
@pytest.mark.parametrize("estimator", [sc.CRF(), sc.CRF(order=2), sc.SemiCRF(max_length=24)], ids=repr)
def test_every_algorithm_learns_from_a_mixture(estimator, algorithm):
    """Trajectories, labels and half of the labels in one data set."""
    rng = np.random.default_rng(1)
    orders = [list(rng.permutation(list("sjwr"))[: rng.integers(2, 5)]) for _ in range(60)]
    pairs = [noisy(order, 24, rng) for order in orders]
    x, y = [x for x, _ in pairs], [y for _, y in pairs]
    known = [
        sc.Trajectory(orders[b]) if b % 3 == 0 else y[b] if b % 3 == 1 else y[b][:12] + [None] * 12 for b in range(40)
    ]
    fitted = type(estimator)(**{**estimator.get_params(), "algorithm": algorithm, "c2": 0.1, "max_iterations": 30})
    fitted.fit(x[:40], known)
    labels = fitted.predict(x[40:])
    if labels and isinstance(labels[0][0], sc.Segment):
        labels = [[s.label for s in one for _ in range(s.start, s.stop)] for one in labels]
    assert (
        np.mean([a == b for one, two in zip(labels, y[40:], strict=True) for a, b in zip(one, two, strict=True)]) > 0.8
    )


def test_trajectories_alone_teach_to_label():
    """Transcripts only: no position of any sequence has a label, and positions are labelled well afterwards."""
    rng = np.random.default_rng(0)
    orders = [list(rng.permutation(list("sjwr"))[: rng.integers(2, 5)]) for _ in range(60)]
    pairs = [noisy(order, 24, rng) for order in orders]
    model = sc.CRF(c2=0.1).fit([x for x, _ in pairs[:40]], [sc.Trajectory(order) for order in orders[:40]])
    assert model.score([x for x, _ in pairs[40:]], [y for _, y in pairs[40:]]) > 0.8


def test_errors():
    with pytest.raises(ValueError, match=r"y\[0\] is a trajectory of 3 places, but sequence 0 of X has 2 tokens"):
        sc.CRF().fit([X[3]], [sc.Trajectory("xyz"[i] for i in range(3))])
    with pytest.raises(ValueError, match=r"y\[0\], place 1 of the trajectory, is the label 'x' before it again"):
        sc.CRF().fit([X[0]], [sc.Trajectory(["x", "x"])])
    with pytest.raises(ValueError, match=r"y\[0\] is a trajectory of 0 places"):
        sc.CRF().fit([X[0]], [sc.Trajectory([])])
    with pytest.raises(ValueError, match=r"y\[0\] cannot be satisfied: no configuration of sequence 0"):
        sc.SemiCRF(max_length=2).fit([X[0]], [sc.Trajectory(["x", "y"])])
    with pytest.raises(ValueError, match=r"labels\[1\] = None is not a label"):
        sc.Trajectory(["x", None])
    with pytest.raises(TypeError, match="labels must be a list of labels"):
        sc.Trajectory("xyz")
    fitted = sc.CRF().fit(X[:1], Y[:1])
    with pytest.raises(ValueError, match=r"constraints\[0\] is a Trajectory"):
        fitted.predict(X[:1], constraints=Y[:1])
    with pytest.raises(ValueError, match="method must be 'places', 'best' or 'paper', got 'mean'"):
        fitted.predict_compressed(X, method="mean")


def test_a_trajectory_is_a_value():
    assert sc.Trajectory(["a", "b"]) == sc.Trajectory(("a", "b")) != sc.Trajectory(["a"])
    assert len({sc.Trajectory(["a"]), sc.Trajectory(["a"])}) == 1
    assert repr(sc.Trajectory(["a"])) == "Trajectory(['a'])"
