"""Data in parts: the same model whoever holds them."""

import random

import numpy as np
import pytest

import scansion as sc
from scansion.data import Partitions
from scansion.training.shards import Here, Processes, Sharded, pairwise

CUTS = [0, 12, 13, 30, 40]


def sequences(n=40, seed=0):
    """X, y of n sequences whose attributes tell something of their labels."""
    r = random.Random(seed)
    y = [[r.choice("ABC") for _ in range(r.randint(1, 8))] for _ in range(n)]
    X = [
        [[f"w{r.randint(0, 20)}", f"c{ord(c) % 5 if r.random() < 0.8 else r.randint(0, 4)}"] for c in one] for one in y
    ]
    return X, y


def cut(whole, workers=None):
    """The parts of X or y."""
    return Partitions([whole[a:b] for a, b in zip(CUTS, CUTS[1:], strict=False)], workers or Here())


def ends(x, start, stop):
    """Attributes of a span."""
    return [x[start][0] + x[stop - 1][0]]


def assert_same_model(one, other):
    """The same vocabulary, labels and features; losses alike at every iteration."""
    a, b = one.model_, other.model_
    assert a.vocabulary.names() == b.vocabulary.names()
    assert [level.labels for level in a.levels] == [level.labels for level in b.levels]
    assert [block.key for block in a.blocks] == [block.key for block in b.blocks]
    for ours, theirs in zip(a.blocks, b.blocks, strict=True):
        np.testing.assert_array_equal(ours.rows, theirs.rows)
        np.testing.assert_array_equal(ours.columns, theirs.columns)
    for ours, theirs in zip(a.levels, b.levels, strict=True):
        assert ours.span_vocabulary.names() == theirs.span_vocabulary.names()
    losses = [[entry["loss"] for entry in model.training_log_] for model in (one, other)]
    assert len(losses[0]) > 3
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-10)


def nested(y):
    return [{"top": labels, "low": [label.lower() + str(t % 2) for t, label in enumerate(labels)]} for labels in y]


KINDS = {
    "crf": lambda: sc.CRF(),
    "frequencies by order": lambda: sc.CRF(order=2, min_freq=(3, 0, 2), attribute_orders={"c": (0, 1)}, c1=0.1),
    "all states": lambda: sc.CRF(all_possible_states=True, transitions="seen", intercept=True),
    "sum-difference": lambda: sc.CRF(order=2, engine="sum-difference"),
    "segments": lambda: sc.SemiCRF(min_freq=2),
    "spans": lambda: sc.SemiCRF(segment_features=ends, attribute_parts={"c": ("start", "end")}),
    "levels": lambda: sc.HierarchicalCRF(["top", "low"], min_freq=2, max_length={"low": 1}),
    "spans of levels": lambda: sc.HierarchicalCRF(
        ["top", "low"], max_length={"top": None, "low": 1}, segment_features={"top": ends}
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_parts_give_the_model_of_the_whole(kind):
    X, y = sequences()
    y = nested(y) if "levels" in kind else y
    make = KINDS[kind]
    assert_same_model(make().fit(X, y), make().fit(cut(X), cut(y)))


def test_parts_of_arrays_partial_labels_and_weights():
    rng = np.random.default_rng(0)
    X, y = sequences()
    X = [np.column_stack([rng.normal(5.0, 3.0, (len(x), 2)), rng.integers(0, 2, len(x))]) for x in X]
    y = [[None if rng.random() < 0.2 else {"A", "B"} if rng.random() < 0.1 else c for c in labels] for labels in y]
    weight = rng.uniform(0.5, 2.0, len(X))
    one = sc.CRF(transitions="all", order=1).fit(X, y, sample_weight=weight)
    other = sc.CRF(transitions="all", order=1).fit(cut(X), y, sample_weight=weight)
    assert_same_model(one, other)
    assert one.n_features_in_ == other.n_features_in_ == 3


def test_labels_without_an_example_and_a_warm_start():
    X, y = sequences()
    y = [[{"A", "D"} if c == "A" and t % 2 else c for t, c in enumerate(one)] for one in y]  # no token is sure to be D
    assert_same_model(sc.CRF().fit(X, y), sc.CRF().fit(cut(X), y))
    first = [sc.CRF(warm_start=True, max_iterations=5).fit(*sequences(10, seed=7)) for _ in range(2)]
    assert_same_model(first[0].fit(X, y), first[1].fit(cut(X), y))


def test_processes_give_the_same_bits():
    X, y = sequences()
    here = sc.CRF().fit(cut(X), y)
    with Processes(2) as workers:
        there = sc.CRF().fit(cut(X, workers), cut(y, workers))
        np.testing.assert_array_equal(here.model_.weights, there.model_.weights)
        assert [e["loss"] for e in here.training_log_] == [e["loss"] for e in there.training_log_]
        bad = [*X[:14], [["fine"], "a string"], *X[15:]]
        with pytest.raises(TypeError, match="in part 2: X, sequence 1, position 1"):
            sc.CRF().fit(cut(bad, workers), y)
        workers._processes[1].kill()
        with pytest.raises(RuntimeError, match="worker process 1 has ended"):
            sc.CRF().fit(cut(X, workers), y)


def test_the_seam_maps_in_the_order_of_the_parts():
    X, y = sequences()
    model, objective = sc.CRF().problem(cut(X), y)
    assert isinstance(objective, Sharded)
    w = np.random.default_rng(0).normal(size=model.n_weights)
    found = objective.map(w)
    gradient = np.empty_like(w)
    loss = objective.log_loss(w, gradient, 1)
    assert loss == pairwise([one for one, _ in found], lambda a, b: a + b)
    whole, expected = sc.CRF().problem(X, y)[1], np.empty_like(w)
    assert whole.log_loss(w, expected, 1) == pytest.approx(loss, rel=1e-12)
    np.testing.assert_allclose(gradient, expected, rtol=1e-9, atol=1e-9)
    for k, (a, b) in enumerate(zip(CUTS, CUTS[1:], strict=False)):
        alone = sc.CRF(warm_start=True)
        alone.model_ = model.weighted(w)
        assert -alone.log_likelihood(X[a:b], y[a:b]) == pytest.approx(found[k][0], rel=1e-10)


def test_pairwise_adds_neighbours_first():
    assert pairwise([*"abcdefg"], lambda a, b: f"({a}{b})") == "(((ab)(cd))((ef)g))"


def test_what_parts_cannot_do_is_said():
    X, y = sequences()
    with pytest.raises(ValueError, match="algorithm must be 'lbfgs' where data come in parts, got 'ap'"):
        sc.CRF(algorithm="ap").fit(cut(X), y)
    with pytest.raises(ValueError, match="train_with_rules"):
        sc.CRF(rules="at_most(9, A)", train_with_rules=True).fit(cut(X), y)
    with pytest.raises(ValueError, match="part 1 of y has 2 sequences, but that of X has 1"):
        sc.CRF().fit(cut(X), Partitions([y[:12], y[12:14], y[14:30], y[30:]], Here()))
    with pytest.raises(ValueError, match="c2='cv' does not go with data in parts"):
        sc.CRF(c2="cv").fit(cut(X), y)
    with pytest.raises(ValueError, match=r"y\[1\] is a Trajectory"):
        sc.CRF().fit(cut(X), [y[0], sc.Trajectory(y[1][:1]), *y[2:]])
    with pytest.raises(ValueError, match="X has no parts"):
        sc.CRF().fit(Partitions([], Here()), [])
    with pytest.raises(ValueError, match="min_freq = 2 counts attributes"):
        sc.CRF(min_freq=2).fit(cut([[{"a": 0.5}] * len(x) for x in X]), y)
    with pytest.raises(ValueError, match=r"y\[3\] has"):
        sc.CRF().fit(cut(X), [*y[:3], [*y[3], "A"], *y[4:]])
