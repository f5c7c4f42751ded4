"""algorithm="auto": the optimum of lbfgs, from another start and in other coordinates, and their curvature."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import scansion as sc

TIGHT = {"epsilon": 1e-9, "delta": 0.0, "max_iterations": 2000}


def sentences(seed=0, n=30):
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        states = rng.integers(3, size=int(rng.integers(2, 8)))
        X.append([{f"w{s if rng.random() < 0.8 else rng.integers(3)}": 1.0, "n": float(rng.normal())} for s in states])
        y.append([f"L{s}" for s in states])
    return X, y


def make(kind):
    X, y = sentences()
    if kind == "segments":
        return sc.SemiCRF(c2=0.3), X, y
    if kind == "levels":
        tree = [{"all": [(0, len(row), row[0])], "label": row} for row in y]
        return sc.HierarchicalCRF(["all", "label"], max_length={"label": 1}, c2=0.3), X, tree
    if kind == "arrays":
        return sc.CRF(c2=0.3), [np.array([[40.0 + token["n"], len(token)] for token in x]) for x in X], y
    if kind == "partial":
        return sc.CRF(c2=0.3), X, [[None if t == 1 else label for t, label in enumerate(row)] for row in y]
    return {"L1": sc.CRF(c1=0.5, c2=0.1), "order 2": sc.CRF(order=2, c2=0.3), "plain": sc.CRF(c2=0.3)}[kind], X, y


@pytest.mark.parametrize("kind", ["plain", "order 2", "L1", "arrays", "segments", "levels"])
def test_the_optimum_is_that_of_lbfgs(kind):
    one, X, y = make(kind)
    other, _, _ = make(kind)
    one.set_params(algorithm="lbfgs", **TIGHT).fit(X, y)
    other.set_params(algorithm="auto", **TIGHT).fit(X, y)
    assert_allclose(other.loss_, one.loss_, rtol=1e-9)
    for theirs, ours in zip(one.level_marginals(X), other.level_marginals(X), strict=True):
        assert_allclose(ours, theirs, rtol=0, atol=1e-4)  # intercepts, which cost nothing, may differ by a constant
    assert [entry["iteration"] for entry in other.training_log_] == list(range(1, other.n_iter_ + 1))


def test_unknown_labels_and_no_penalty():
    crf, X, y = make("partial")
    assert crf.set_params(algorithm="auto").fit(X, y).score(X, sentences()[1]) > 0.6
    plain = sc.CRF(c2=0.0, max_iterations=20).fit(X, sentences()[1])
    auto = sc.CRF(algorithm="auto", c2=0.0, max_iterations=20).fit(X, sentences()[1])
    assert auto.loss_ == plain.loss_  # nothing sets a rate: no passes


def test_iterations_count_passes():
    crf, X, y = make("plain")
    assert crf.set_params(algorithm="auto", max_iterations=3).fit(X, y).n_iter_ == 3


def test_the_curvature_of_state_features():
    """sum over tokens of p (1 - p), and of values times their unit."""
    X, y = sentences()
    crf = sc.CRF(c2=0.3).fit(X, y)
    model, objective = crf.problem(X, y)
    w, found = crf.model_.weights, np.empty(model.n_weights)
    objective.curvature(w, None, found, 1)
    marginals = np.concatenate(crf.level_marginals(X))
    tokens = [token for x in X for token in x]
    block, where = next((block, where) for block, where in model.parts() if block.tokens)
    names = model.vocabulary.names()
    for row, column, value in zip(block.row, block.columns, found[where], strict=True):
        if names[row] != "n":
            p = np.array([marginals[t, column] for t, token in enumerate(tokens) if names[row] in token])
            assert_allclose(value, (p * (1 - p)).sum(), rtol=1e-9)
    again = np.empty_like(found)
    objective.curvature(w, np.ones_like(w), again, 2)
    assert_allclose(again, found, rtol=1e-12)
    objective.curvature(w, np.full_like(w, 1e-3), again, 1)
    assert (again <= found + 1e-12).all() and again.max() > 0
