"""Several root states: a level whose segments span the whole sequence makes `HierarchicalCRF` a classifier."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose

import scansion as sc

STEPS = {"cook": ("fetch", "fry", "wash"), "rest": ("fetch", "sleep", "wash"), "work": ("type", "fetch", "talk")}
LIMITS = {"activity": "whole", "step": 1}


def simulated(n: int, seed: int):
    """Activities of steps, and what is seen of them; classes differ in their steps and in the order of them."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        activity = list(STEPS)[rng.integers(3)]
        first, size = rng.integers(3), rng.integers(3, 8)
        steps = [STEPS[activity][(first + t) % 3] if rng.random() < 0.8 else "fetch" for t in range(size)]
        X.append([[f"sees {step}" if rng.random() < 0.6 else "nothing"] for step in steps])
        y.append({"activity": activity, "step": steps})
    return X, y


DATA, TARGETS = simulated(60, 0)
TEST, TRUTH = simulated(40, 1)


@pytest.fixture(scope="module")
def fitted():
    return sc.HierarchicalCRF(["activity", "step"], max_length=LIMITS, c2=0.1).fit(DATA, TARGETS)


def classes(answers):
    return [answer["activity"][0].label for answer in answers]


def test_classes_are_learnt_with_what_lies_below(fitted):
    answers = fitted.predict(TEST)
    for answer, x in zip(answers, TEST, strict=True):
        assert [segment[:2] for segment in answer["activity"]] == [(0, len(x))]
    right = np.mean([label == row["activity"] for label, row in zip(classes(answers), TRUTH, strict=True)])
    assert right == fitted.scores(TEST, TRUTH)["activity"]["f1"] > 0.85
    # the steps within each class help: a model of the classes alone has to do without their order
    alone = sc.HierarchicalCRF(["activity"], max_length="whole", c2=0.1)
    alone.fit(DATA, [{"activity": row["activity"]} for row in TARGETS])
    assert right > alone.scores(TEST, [[row["activity"]] for row in TRUTH])["activity"]["f1"]


def test_probabilities_are_those_of_all_trees(fitted):
    x = TEST[0][:3]
    weights = [fitted.state_features_, fitted.transition_features_, fitted.initialisation_features_]
    weights = {key: w for found in weights for key, w in found.items()}
    ending = fitted.ending_features_
    total = dict.fromkeys(STEPS, 0.0)
    for activity in STEPS:
        score = weights.get(("activity", None, activity), 0.0) + ending.get(("activity", None, activity), 0.0)
        score += sum(weights.get(("activity", token[0], activity), 0.0) for token in x)
        for steps in itertools.product(fitted.topology_["activity"][activity], repeat=len(x)):
            s = score + weights.get(("step", activity, steps[0]), 0.0) + ending.get(("step", activity, steps[-1]), 0.0)
            s += sum(weights.get(("step", token[0], step), 0.0) for token, step in zip(x, steps, strict=True))
            s += sum(weights.get(("step", activity, *pair), 0.0) for pair in itertools.pairwise(steps))
            total[activity] += np.exp(s)
    z = sum(total.values())
    (found,) = fitted.predict_marginals([x])
    for position in found["activity"]:
        assert_allclose([position[label] for label in total], [value / z for value in total.values()], rtol=1e-9)


def test_one_whole_level_is_logistic_regression():
    linear = pytest.importorskip("sklearn.linear_model")
    labels = [row["activity"] for row in TARGETS]
    model = sc.HierarchicalCRF(
        ["activity"], max_length="whole", c2=0.5, all_possible_states=True, epsilon=1e-8, delta=0
    )
    model.fit(DATA, [{"activity": label} for label in labels])
    names = sorted({token[0] for x in DATA for token in x})

    def table(X):
        counts = [[sum(token[0] == name for token in x) for name in names] for x in X]
        return np.hstack([np.array(counts, float), np.full((len(X), 1), np.sqrt(2.0))])  # two always-on features

    peer = linear.LogisticRegression(C=1.0, fit_intercept=False, tol=1e-10, max_iter=10_000).fit(table(DATA), labels)
    wanted = peer.predict_proba(table(TEST))
    found = [[rows["activity"][0][label] for label in peer.classes_] for rows in model.predict_marginals(TEST)]
    assert_allclose(found, wanted, atol=1e-5)


def test_classes_may_be_unknown_or_one_of_several(fitted, tmp_path):
    some = [
        row if b % 3 else {"activity": {row["activity"], "work"}, "step": row["step"]} for b, row in enumerate(TARGETS)
    ]
    some[1] = {"activity": None, "step": TARGETS[1]["step"]}
    some[2] = ["rest", None]
    model = sc.HierarchicalCRF(["activity", "step"], max_length=LIMITS, c2=0.1, topology="all").fit(DATA, some)
    assert model.scores(TEST, TRUTH)["activity"]["f1"] > 0.8
    told = model.predict(TEST, constraints=[{"activity": row["activity"]} for row in TRUTH])
    assert classes(told) == [row["activity"] for row in TRUTH]
    model.save(tmp_path / "model")
    again = sc.load(tmp_path / "model")
    assert again.predict(TEST, [{"activity": row["activity"]} for row in TRUTH]) == told
    assert again.predict([[]])[0]["activity"] == []


def test_a_second_label_of_each_segment():
    """Below the top, one label for each segment of the level above."""
    X = [[["a"], ["a"], ["b"], ["b"]], [["b"], ["a"], ["a"], ["a"]]]
    y = [
        {"part": [(0, 2, "A"), (2, 4, "B")], "mood": ["up", "up", "down", "down"]},
        {"part": [(0, 1, "B"), (1, 4, "A")], "mood": ["up", "down", "down", "down"]},
    ]
    model = sc.HierarchicalCRF(["part", "mood"], max_length={"mood": "whole"}, c2=0.01).fit(X, y)
    for tree, _ in model.predict_kbest(X, 50)[0]:
        assert [s[:2] for s in tree["part"]] == [s[:2] for s in tree["mood"]]


def test_errors_name_the_level():
    model = sc.HierarchicalCRF(["activity", "step"], max_length=LIMITS)
    with pytest.raises(ValueError, match=r"y\[0\], level 'activity': 'b' at position 1 follows 'a'.*'whole'"):
        model.fit([[["x"], ["x"]]], [{"activity": ["a", "b"], "step": ["u", "v"]}])
    with pytest.raises(ValueError, match="segment_features, which need a max_length other than 'whole'"):
        model.set_params(segment_features={"activity": lambda x, u, v: ["z"]}).fit(DATA, TARGETS)
    with pytest.raises(TypeError, match="level 'step'.*must be a list of labels, got the string"):
        sc.HierarchicalCRF(["activity", "step"], max_length=LIMITS).fit([[["x"]]], [{"activity": "a", "step": "u"}])
