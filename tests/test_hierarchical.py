"""HierarchicalCRF: its objective and answers by definition, over all trees of tiny sequences."""

from __future__ import annotations

import nested_oracle
import numpy as np
import pytest
from nested_oracle import Oracle
from numpy.testing import assert_allclose

import scansion as sc
from scansion.training.optimizers import gradient_check


def span_dict(x, start, stop):
    """A function of the span: what the first and the last token have in common."""
    both = {name: x[start][name] * x[stop - 1][name] for name in x[start] if name in x[stop - 1]}
    return {**both, f"size {stop - start}": 1.0}


EVERYWHERE = ("inside", "start", "end", "inner", "transition", "initialisation", "ending")
PARTS = {
    "top": {"": "inside", "edge.": ("start", "end"), "pair.": ("transition", "initialisation", "ending")},
    "low": {"a": "inner", "edge.c": ("start", "ending"), "edge.d": (), "pair.": ("inside", "transition")},
}
TWO, BOUNDS = ["top", "low"], {"top": 3, "low": 2}
CASES = {
    "two levels": {"levels": TWO, "max_length": BOUNDS},
    "single steps": {"levels": TWO, "max_length": {"top": 3, "low": 1}},
    "no bound": {"levels": TWO, "max_length": "free"},
    "no bound above single steps": {"levels": TWO, "max_length": {"top": "free", "low": 1}},
    "a bound above none": {"levels": TWO, "max_length": {"top": 4, "low": "free"}, "length_features": {"top": "log"}},
    "parts": {"levels": TWO, "max_length": BOUNDS, "attribute_parts": PARTS},
    "all parts": {"levels": TWO, "max_length": BOUNDS, "attribute_parts": {"top": EVERYWHERE, "low": EVERYWHERE}},
    "all parts, no bound": {
        "levels": TWO,
        "max_length": "free",
        "attribute_parts": {"top": EVERYWHERE, "low": PARTS["low"]},
    },
    "lengths": {"levels": TWO, "max_length": BOUNDS, "length_features": ("bins", "length", "log")},
    "length, no bound": {
        "levels": TWO,
        "max_length": "free",
        "length_features": "length",
        "attribute_parts": {"low": ()},
    },
    "spans": {"levels": TWO, "max_length": BOUNDS, "segment_features": {"top": span_dict, "low": [span_dict]}},
    "everything there is": {
        "levels": TWO,
        "max_length": BOUNDS,
        "attribute_parts": PARTS,
        "length_features": {"top": ("length", "log")},
        "segment_features": {"top": span_dict},
        "all_possible_states": True,
        "topology": "all",
    },
    "only what is seen": {"levels": TWO, "max_length": BOUNDS, "all_possible_transitions": False, "min_freq": 0.1},
    "topology": {"levels": TWO, "max_length": BOUNDS, "topology": {"X": ["p", "q", "r"], "Y": ["p", "q", "r", "new"]}},
    "one level": {"levels": ["low"], "max_length": 2, "length_features": "log"},
    "one level of steps": {"levels": ["low"], "max_length": 1, "attribute_parts": {"low": ("inside", "transition")}},
    "three levels": {"levels": ["top", "middle", "low"], "max_length": {"top": 4, "middle": "free", "low": 1}},
}
cases = pytest.mark.parametrize("case", CASES)
hidden = pytest.mark.parametrize("hidden", [False, True], ids=["complete", "partial"])


def problem(case: str, seed: int, hidden: bool, weighted: bool = False, n: int = 3):
    settings = CASES[case]
    given = settings["max_length"]
    limits = [given.get(name) if isinstance(given, dict) else given for name in settings["levels"]]
    bounds = [4 if limit == "free" else limit for limit in limits]
    X, y = nested_oracle.data(seed, settings["levels"], bounds, hidden=hidden, n=n)
    weight = np.random.default_rng(seed).choice([0.0, 0.5, 2.0], size=len(X)) if weighted else None
    model = sc.HierarchicalCRF(**{"repeats": True, **settings})
    model._check()
    built, objective, _ = model._problem(X, y, weight)
    oracle = Oracle(built, X, y, dict.fromkeys(settings.get("segment_features", ()), span_dict), weight)

    def function(w):
        gradient = np.empty_like(w)
        return objective.log_loss(w, gradient, 1), gradient

    return built, function, oracle, X, y


# The objective ------------------------------------------------------------------------------------


@cases
@hidden
def test_loss_and_gradient_are_those_of_all_trees(case, hidden):
    for seed in range(2):
        built, function, oracle, *_ = problem(case, seed, hidden, weighted=seed % 2 == 1)
        w = np.random.default_rng(seed).normal(scale=0.7, size=built.n_weights)
        loss, gradient = function(w)
        wanted, slope = oracle.log_loss(w)
        assert loss == pytest.approx(wanted, rel=1e-10, abs=1e-10)
        assert_allclose(gradient, slope, rtol=1e-9, atol=1e-10)


@cases
@hidden
def test_gradient_is_that_of_finite_differences(case, hidden):
    built, function, *_ = problem(case, 5, hidden)
    w = np.random.default_rng(1).normal(scale=0.7, size=built.n_weights)
    assert gradient_check(function, w, n=15) < 1e-6
