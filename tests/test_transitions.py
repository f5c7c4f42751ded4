"""Transitions that are ruled out: what was never seen, or is not given, has no probability at all."""

from __future__ import annotations

import flat_oracle
import numpy as np
import pytest
from flat_oracle import BOS, EOS, LABELS, Problem
from numpy.testing import assert_allclose

import scansion as sc

X = [[["a"], ["b"], ["a"]], [["b"], ["b"], ["a"], ["a"]]]
Y = [["in", "mid", "out"], ["out", "mid", "mid", "in"]]
ALL = [(a, b) for a in LABELS for b in LABELS]
KINDS = {
    "chain": sc.CRF(transitions="seen"),
    "chain, attributes on pairs": sc.CRF(transitions="seen", attribute_orders={"pair.": 1, "both.": (0, 1)}),
    "chain of order 2": sc.CRF(2, transitions="seen", attribute_orders={"pair.": (1, 2)}),
    "segments": sc.SemiCRF(transitions="seen", attribute_parts={"end.": "end"}),
    "segments of order 2": sc.SemiCRF(2, transitions="seen", attribute_orders={"pair.": (1, 2)}, length_features=()),
}
kinds = pytest.mark.parametrize("kind", KINDS)


def few(seed: int, segments: bool):
    """Sequences of which two are labelled, so that pairs are missing, and a third to ask about."""
    data, y = flat_oracle.data(seed, longest=2 if segments else 1, n=3)
    return data, [*y[:2], None]


@kinds
def test_loss_and_gradient_are_those_of_all_that_is_left(kind):
    for seed in range(3):
        data, y = few(seed, "segments" in kind)
        p = Problem.of(KINDS[kind], data, y)
        w = p.weights(np.random.default_rng(seed))
        assert p.model.n_forbidden and p.model.first is not None and p.model.last is not None
        loss, gradient = p.log_loss(w)
        wanted, slope = p.oracle.log_loss(w)
        assert loss == pytest.approx(wanted, rel=1e-10, abs=1e-10)
        assert_allclose(gradient, slope, rtol=1e-9, atol=1e-10)
        assert p.margin_loss(w)[0] == pytest.approx(p.oracle.margin_loss(w), rel=1e-10, abs=1e-10)


@kinds
def test_answers_keep_to_it(kind, tmp_path):
    data, y = few(1, "segments" in kind)
    model = sc.SemiCRF if "segments" in kind else sc.CRF
    fitted = model(**KINDS[kind].get_params()).fit(data, y)
    fitted.save(tmp_path / "model")
    loaded = sc.load(tmp_path / "model")
    pairs = {(a, b) for row in y[:2] for a, b in zip(labels(row), labels(row)[1:], strict=False)}
    firsts, lasts = {labels(row)[0] for row in y[:2]}, {labels(row)[-1] for row in y[:2]}
    drawn = [row for rows in fitted.sample(data, 30, random_state=0) for row in rows]
    best = [config for rows in loaded.predict_kbest(data, 8) for config, _ in rows]
    for row in [*drawn, *best, *fitted.predict(data), *loaded.predict(data)]:
        path = labels(row)
        assert not path or (path[0] in firsts and path[-1] in lasts)
        assert set(zip(path, path[1:], strict=False)) <= pairs
    assert loaded.log_likelihood(data[:2], y[:2]) == pytest.approx(fitted.log_likelihood(data[:2], y[:2]), rel=1e-12)
    for algorithm in ("ap", "pa", "l2sgd"):
        model(**{**KINDS[kind].get_params(), "algorithm": algorithm, "max_iterations": 3}).fit(data, y)


def labels(row):
    """Labels of a configuration, one for each segment or token."""
    return [y if isinstance(y, str) else y[2] for y in row]


def test_transitions_given():
    pairs = [("in", "in"), ("in", "mid"), ("mid", "mid"), ("mid", "out"), ("mid", "in"), ("out", "mid")]
    crf = sc.CRF(transitions=pairs).fit(X, Y)
    assert crf.model_.first is None and crf.model_.last is None
    assert crf.model_.n_forbidden == 3
    assert set(crf.patterns_) <= set(pairs)
    drawn = crf.sample([[["a"]] * 5], 200, random_state=1)[0]
    assert {(a, b) for row in drawn for a, b in zip(row, row[1:], strict=False)} == set(pairs)
    ends = sc.CRF(transitions=[*pairs, (BOS, "out"), (BOS, "in"), ("out", EOS), ("in", EOS)]).fit(X, Y)
    drawn = ends.sample([[["a"]] * 5], 200, random_state=1)[0]
    assert {row[0] for row in drawn} == {row[-1] for row in drawn} == {"in", "out"}
    trajectories = sc.CRF(transitions="seen").fit(X, [Y[0], sc.Trajectory(["out", "mid", "in"])])
    assert trajectories.transition_features_.keys() == {("in", "mid"), ("mid", "out"), *((y, y) for y in Y[0])} | {
        ("out", "mid"),
        ("mid", "in"),
    }


def test_transitions_that_y_breaks_are_errors():
    with pytest.raises(ValueError, match=r"transitions do not have \('mid', 'out'\), which occurs in y"):
        sc.CRF(transitions=[("in", "mid"), ("mid", "mid"), ("mid", "in"), ("out", "mid")]).fit(X, Y)
    with pytest.raises(ValueError, match=r"transitions do not have \(-1, 'out'\), which occurs in y"):
        sc.SemiCRF(transitions=[(BOS, "in"), *((a, b) for a in Y[0] for b in Y[0])]).fit(X, Y)
    with pytest.raises(ValueError, match=r"transitions\[0\] = \('in', 'up'\): 'up' is no label of the training data"):
        sc.CRF(transitions=[("in", "up")]).fit(X, Y)
    with pytest.raises(ValueError, match="transitions must be pairs of labels, got"):
        sc.CRF(transitions=[("in", "mid", "out")]).fit(X, Y)
    with pytest.raises(ValueError, match=r"y\[1\] leaves no labels: beyond position 2 every one is forbidden"):
        sc.CRF(transitions="seen").fit(X, [Y[0], ["mid", None, "in", None]])
    with pytest.raises(ValueError, match="engine='sum-difference' takes all transitions"):
        sc.CRF(2, transitions="seen", engine="sum-difference").fit(X, Y)
    seen = sc.CRF(transitions="seen").fit(X, Y)
    with pytest.raises(ValueError, match=r"constraints\[0\] leaves no labels"):
        seen.predict(X[:1], constraints=[["in", "in", None]])
