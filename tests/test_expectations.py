"""Expectations as supervision: exact gradients on every lattice, labels that y never shows."""

import itertools
import warnings

import numpy as np
import pytest

import scansion as sc
from scansion.models.supervision import supervised
from scansion.training.expectations import directional
from scansion.training.optimizers import gradient_check

RNG = np.random.default_rng(0)
X = [[[f"w={RNG.integers(4)}", f"s={RNG.integers(3)}"] for _ in range(n)] for n in (5, 3, 6, 4, 1)]
Y = [[["A", "B", "C"][RNG.integers(3)] for _ in x] for x in X]
PARTIAL = [[label if label == "A" else None for label in row] for row in Y]
NESTED = [[["P"] * len(row), row] for row in PARTIAL]
BANDS = {"A": (0.2, 0.02), ("B", "C"): (0.5, 0.1)}
LENGTHS = {"A": {"count": (0.5, 0.1), "length": (2.5, 0.2), "share": (0.2, 0.0)}}
CASES = {
    "chain": (sc.CRF(labels=["A", "B", "C"], expectations=BANDS), PARTIAL),
    "second order": (sc.CRF(2, labels=["A", "B", "C"], expectations=BANDS), PARTIAL),
    "segments": (
        sc.SemiCRF(max_length=4, labels=["A", "B", "C"], length_features=("bins",), expectations=LENGTHS),
        PARTIAL,
    ),
    "nested": (
        sc.HierarchicalCRF(["top", "low"], topology={"P": ["A", "B", "C"]}, expectations={"low": {"A": (0.1, 0.01)}}),
        NESTED,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_gradient_is_that_of_the_loss(name):
    estimator, y = CASES[name]
    model, objective = estimator.problem(X, y)
    whole = supervised(estimator, model, objective, 1)
    w = 0.5 * np.random.default_rng(1).normal(size=model.n_weights)

    def function(v):
        gradient = np.empty_like(v)
        return whole.log_loss(v, gradient, 1), gradient

    plain = np.empty_like(w)
    assert whole.log_loss(w, np.empty_like(w), 1) > objective.log_loss(w, plain, 1) + 1e-3  # outside the bands
    assert gradient_check(function, w, n=30) < 1e-6


def test_covariance_by_enumeration():
    """The derivative along a direction is the covariance of all features with what the direction counts."""
    estimator = sc.CRF(labels=["A", "B", "C"], intercept=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model, _ = estimator.problem(X[:1], [["A", None, None, None, None]])
    w = np.random.default_rng(2).normal(size=model.n_weights)
    configurations = list(itertools.product(range(3), repeat=5))
    features = []
    for config in configurations:  # f(y) is the change of -log P(y) with the weights: E[f] - gradient
        _, objective = estimator.problem(X[:1], [["A", None, None, None, None]])
        known, _ = estimator._selection().encode([["ABC"[k] for k in config]], [5], [["A", "B", "C"]], [1])
        gradient = np.empty_like(w)
        model.objective(objective.inputs, known, None).log_loss(w, gradient, 1)
        features.append(-gradient)
    features = np.array(features)  # up to E[f], the same for all
    scores = features @ w
    p = np.exp(scores - scores.max())
    p /= p.sum()
    u = np.random.default_rng(3).normal(size=model.n_weights)
    counts = features @ u
    covariance = (p[:, None] * features).T @ counts - (p @ features) * (p @ counts)
    known, _ = estimator._selection().encode([["A"] * 5], [5], [["A", "B", "C"]], [1])
    free = model.objective(objective.inputs, known, None)
    step = 0.02 / (np.abs(counts).max())
    assert directional(free, w, u, step, 1) == pytest.approx(covariance, rel=1e-7, abs=1e-8)


def test_values_are_the_expected_shares():
    estimator = sc.CRF(labels=["A", "B", "C"], expectations={"A": (0.2, 0.01), "B": (0.3, 0.01)}).fit(X, PARTIAL)
    marginals = np.concatenate(estimator.level_marginals(X))
    assert marginals[:, 0].mean() == pytest.approx(0.2, rel=0.25)
    model, objective = estimator.problem(X, PARTIAL)
    values = supervised(estimator, model, objective, 1).values(estimator.model_.weights)
    assert values == pytest.approx(marginals.mean(axis=0)[:2].tolist(), rel=1e-9)


def test_entities_alone():
    """Of tokens whose word tells the label, only entities are known: the share keeps the rest from becoming one."""
    rng = np.random.default_rng(4)
    words = rng.integers(30, size=(60, 10))
    x = [[[f"w={k}"] for k in row] for row in words]
    truth = [["E" if k < 6 else "O" for k in row] for row in words]
    y = [[label if label == "E" else None for label in row] for row in truth]
    crf = sc.CRF(labels=["O", "E"], expectations={"E": (0.2, 0.02)}, c2=0.1).fit(x, y)
    assert crf.score(x, truth) > 0.98
    assert crf.classes_ == ["O", "E"]


def test_labels_without_example_are_said():
    with pytest.warns(sc.ConvergenceWarning, match="no example of the label 'C'"):
        sc.CRF(labels=["A", "B", "C"]).fit(X, [["A", *["B"] * (len(x) - 1)] for x in X])
    with pytest.warns(sc.ConvergenceWarning, match="has no 'O'"):
        sc.CRF().fit(X, [["B-X", *[None] * (len(x) - 1)] for x in X])


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"expectations": {"A": 0.2}}, r"expectations\['A'\] must be \(target, margin\), got 0.2"),
        ({"expectations": {"A": (0.0, 0.1)}}, "must have a target > 0"),
        ({"expectations": {"A": (1.5, 0.1)}}, "must have a target > 0"),
        ({"expectations": {"A": {"height": (1.0, 0.1)}}}, "must be of share, count, length, got 'height'"),
        ({"expectations": {"Z": (0.2, 0.1)}}, "expectations name 'Z', which is no label"),
        ({"expectations": [1]}, "expectations must be a dict"),
        ({"expectations": {"A": {"count": (2.0, 0.1)}}}, "length_features with bins"),
        ({"expectations": {"A": (0.2, 0.1)}, "algorithm": "ap"}, "algorithm='ap' knows no expectations"),
        ({"expectations": {"A": (0.2, 0.1)}, "expectation_strength": 0}, "expectation_strength must be a number > 0"),
        ({"labels": ["A", "A"]}, "labels must be a list of distinct labels"),
    ],
)
def test_wrong_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        sc.CRF(**parameters).fit(X, Y)
