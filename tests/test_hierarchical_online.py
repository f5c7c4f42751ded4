"""Hierarchical models by the algorithms that learn from mistakes: ap, pa, arow and mm (passes: test_objective.py)."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from test_hierarchical import DATA, LIMITS, NAMES, TARGETS, TEST, TRUTH

import scansion as sc

ALGORITHMS = pytest.mark.parametrize("algorithm", ["ap", "pa", "arow", "mm"])


def test_one_step_of_the_perceptron_by_hand():
    """At weights of 0 all trees are alike; the step is the features of the right one less those of the first found."""
    X = [[["a"], ["b"], ["a"]]]
    y = [{"top": [(0, 2, "A"), (2, 3, "B")], "low": ["x", "y", "x"]}]
    model = sc.HierarchicalCRF(["top", "low"], max_length={"low": 1}, topology="all", repeats=True, algorithm="ap")
    built, objective = model.set_params(all_possible_states=True).problem(X, y)
    before = sc.HierarchicalCRF(["top", "low"], **{k: v for k, v in model.get_params().items() if k != "levels"})
    before._finish(built, [], 0.0, "")
    guess = before.predict(X)[0]
    assert guess != [list(map(tuple, y[0]["top"])), [(t, t + 1, label) for t, label in enumerate("xyx")]]

    def counted(tops, lows):
        """The features of a tree, from the definition."""
        found = {}

        def add(*names):
            found[names] = found.get(names, 0) + 1

        for k, (level, segments) in enumerate((("top", tops), ("low", lows))):
            for u, v, label in segments:
                for t in range(u, v):
                    add("state", level, X[0][t][0], label)
            parents = tops if k else [(0, 3, None)]
            for i, j, parent in parents:
                inside = [label for u, _, label in segments if i <= u < j]
                add("initialisation", level, parent, inside[0])
                add("ending", level, parent, inside[-1])
                for pair in zip(inside, inside[1:], strict=False):
                    add("transition", level, parent, *pair)
        return found

    right = counted(y[0]["top"], [(t, t + 1, label) for t, label in enumerate("xyx")])
    wrong = counted(*guess)
    model.set_params(max_iterations=1).fit(X, y)
    learnt = {}
    for kind in ("state", "transition", "initialisation", "ending"):
        for names, w in getattr(model, f"{kind}_features_").items():
            learnt[(kind, *names)] = w
    difference = {key: right.get(key, 0) - wrong.get(key, 0) for key in {*right, *wrong}}
    assert learnt == {key: n for key, n in difference.items() if n}


@ALGORITHMS
def test_mistakes_become_fewer_and_threads_change_nothing(algorithm):
    settings = {"max_length": LIMITS, "algorithm": algorithm, "max_iterations": 12, "random_state": 3, "c2": 0.1}
    model = sc.HierarchicalCRF(NAMES, batch_size=4, **settings).fit(DATA, TARGETS)
    losses = [entry["loss"] for entry in model.training_log_]
    assert losses[-1] < 0.5 * losses[0]
    assert all(found["accuracy"] > 0.9 for found in model.scores(TEST, TRUTH).values())
    again = sc.HierarchicalCRF(NAMES, batch_size=4, n_jobs=3, **settings).fit(DATA, TARGETS)
    assert_array_equal(model.model_.weights, again.model_.weights)


@ALGORITHMS
def test_one_level_of_single_steps_learns_what_a_crf_does(algorithm):
    """A CRF that sees the first and the last position has the same features; the same steps lead to equal weights."""
    rng = np.random.default_rng(0)
    X, y = [], []
    for _ in range(12):
        labels = [str(label) for label in rng.integers(3, size=rng.integers(2, 7))]
        X.append([[f"w{label}" if rng.random() < 0.8 else "w?", f"r{rng.integers(3)}"] for label in labels])
        y.append(labels)
    settings = {"algorithm": algorithm, "max_iterations": 5, "random_state": 1, "c2": 0.3}
    settings.update(all_possible_states=True, all_possible_transitions=True)
    nested = sc.HierarchicalCRF(["step"], max_length=1, batch_size=1, **settings).fit(X, [{"step": row} for row in y])
    marked = [[[*x, *["first"] * (t == 0), *["last"] * (t == len(row) - 1)] for t, x in enumerate(row)] for row in X]
    flat = sc.CRF(1, **settings).fit(marked, y)
    for (_, attribute, label), w in nested.state_features_.items():
        assert_allclose(w, flat.state_features_.get((attribute, label), 0.0), rtol=1e-9, atol=1e-12)
    for (_, _, *labels), w in nested.transition_features_.items():
        assert_allclose(w, flat.transition_features_.get(tuple(labels), 0.0), rtol=1e-9, atol=1e-12)
    for name, found in (("first", nested.initialisation_features_), ("last", nested.ending_features_)):
        for (_, _, label), w in found.items():
            assert_allclose(w, flat.state_features_.get((name, label), 0.0), rtol=1e-9, atol=1e-12)
    assert nested.training_log_[-1]["loss"] == pytest.approx(flat.training_log_[-1]["loss"], rel=1e-9)


def test_partial_labels_and_sizes_of_batches():
    some = [{"activity": row["activity"], "step": None} if b % 2 else row for b, row in enumerate(TARGETS)]
    settings = {"max_length": {"activity": "free", "step": 3}, "random_state": 0, "max_iterations": 8}
    model = sc.HierarchicalCRF(NAMES, algorithm="ap", repeats=True, **settings).fit(DATA, some)
    assert model.scores(TEST, TRUTH)["activity"]["accuracy"] > 0.8
    with pytest.raises(ValueError, match="batch_size must be at least 1"):
        sc.HierarchicalCRF(NAMES, batch_size=0).fit(DATA, some)
