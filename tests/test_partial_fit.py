"""partial_fit: a pass at a time, with labels and attributes that come later."""

import copy
import pickle
import random

import numpy as np
import pytest
from test_shards import nested, sequences

import scansion as sc
from scansion import data
from scansion.features.lengths import label_lengths, named_length

CUTS = [0, 7, 8, 25, 40]
ALGORITHMS = ["l2sgd", "asgd", "mm", "ap", "pa", "arow"]


def batches(X, y, cuts=CUTS):
    return [(X[a:b], y[a:b]) for a, b in zip(cuts, cuts[1:], strict=False)]


def growing(n=40):
    """X, y of n sequences in which labels and attributes appear one after another."""
    X, y = sequences(n)
    later = [min(3, 1 + b // 6) for b in range(n)]
    y = [
        [labels[t] if "ABC".index(labels[t]) < k else "A" for t in range(len(labels))]
        for labels, k in zip(y, later, strict=True)
    ]
    return [[[*token, f"late{b // 5}"] for token in x] for b, x in enumerate(X)], y


def ends(x, start, stop):
    return [x[start][0] + x[stop - 1][0]]


def features(model, lengths=True):
    """All features by name, whatever their weights."""
    found = set()
    for block in model.blocks:
        if lengths or block.part != "length":
            rows, columns = model.row_names(block), model.column_names(block)
            found |= {
                (*block.key, rows[r], columns[c])
                for r, c in zip(block.row.tolist(), block.columns.tolist(), strict=True)
            }
    return found


KINDS = {
    "crf": lambda **given: sc.CRF(**given),
    "order 2": lambda **given: sc.CRF(order=2, attribute_orders={"c": (0, 1)}, bias_order=1, **given),
    "seen": lambda **given: sc.CRF(transitions="seen", **given),
    "everything": lambda **given: sc.CRF(all_possible_states=True, all_possible_transitions=True, **given),
    "segments": lambda **given: sc.SemiCRF(length_features=("segment", "bins", "length"), **given),
    "segments that do not repeat": lambda **given: sc.SemiCRF(transitions="seen", repeats=False, **given),
    "spans": lambda **given: sc.SemiCRF(segment_features=ends, attribute_parts={"c": ("start", "end")}, **given),
    "levels": lambda **given: sc.HierarchicalCRF(["top", "low"], max_length={"low": 1}, **given),
    "seen levels": lambda **given: sc.HierarchicalCRF(
        ["top", "low"],
        transitions="seen",
        topology="seen",
        max_length={"top": None},
        length_features=("bins",),
        **given,
    ),
}


@pytest.mark.parametrize("algorithm", ["asgd", "pa"])
@pytest.mark.parametrize("kind", KINDS)
def test_batches_give_the_features_of_the_whole(kind, algorithm):
    X, y = growing()
    y = nested(y) if "levels" in kind else y
    make = KINDS[kind]
    whole = make(algorithm=algorithm, max_iterations=1).fit(X, y).model_
    part = make(algorithm=algorithm)
    had = set()
    for some in batches(X, y):
        part.partial_fit(*some)
        now = features(part.model_)
        assert had <= now
        had = now
    lengths = "spans" not in kind and "repeat" not in kind  # adaptive bins: those of the batch that saw a label first
    assert features(part.model_, lengths) == features(whole, lengths)
    assert [level.labels for level in part.model_.levels] == [level.labels for level in whole.levels]
    assert [level.max_length for level in part.model_.levels] == [level.max_length for level in whole.levels]
    for ours, theirs in zip(part.model_.levels, whole.levels, strict=True):
        if theirs.length_counts is not None:
            np.testing.assert_array_equal(ours.length_counts, theirs.length_counts)
        for name in ("limits", "shortest"):
            assert (getattr(ours, name) is None) == (getattr(theirs, name) is None)
    if "levels" in kind:
        for k in range(2):
            np.testing.assert_array_equal(part.model_.children[k], whole.children[k])
            for name, mask in whole.possible[k].items():
                np.testing.assert_array_equal(part.model_.possible[k][name], mask)
    else:
        forbidden = [set(m.patterns[len(m.patterns) - m.n_forbidden :]) for m in (part.model_, whole)]
        assert forbidden[0] == forbidden[1]
        for name in ("first", "last"):
            np.testing.assert_array_equal(getattr(part.model_, name), getattr(whole, name))
    assert part.predict(X[:3]) and part.n_iter_ == len(CUTS) - 1


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("kind", ["crf", "segments", "levels"])
def test_one_call_is_one_pass_of_fit(kind, algorithm):
    X, y = sequences()
    y = nested(y) if kind == "levels" else y
    one, other = (KINDS[kind](algorithm=algorithm, max_iterations=1, random_state=3) for _ in range(2))
    weights = [one.fit(X, y).model_, other.partial_fit(X, y).model_]
    np.testing.assert_array_equal(weights[0].weights, weights[1].weights)


@pytest.mark.parametrize("algorithm", ["ap", "pa", "arow"])
def test_sequence_by_sequence_is_a_pass_in_that_order(algorithm):
    X, y = sequences()
    given = {"labels": ["A", "B", "C"], "all_possible_states": True, "all_possible_transitions": True}
    crf = sc.CRF(algorithm=algorithm, **given)
    for some in batches(X, y, range(len(X) + 1)):
        with_all = crf.partial_fit(*some)
    model, objective = sc.CRF(**given).problem(X, y)
    from scansion.training.learn import mistake_driven

    online, w = mistake_driven(crf.settings()), np.zeros(model.n_weights)
    total = np.full_like(w, 1.0 if algorithm == "arow" else 0.0)
    objective.run_pass(online, np.arange(len(X)), w, total)
    expected = model.weighted(w - total / online.steps if online.average else w)
    found = {(*b.key, row, column): value for b, row, column, value in with_all.model_.named_features()}
    wanted = {(*b.key, row, column): value for b, row, column, value in expected.named_features()}
    assert found.keys() == wanted.keys() and len(found) > 20
    np.testing.assert_allclose([found[key] for key in wanted], list(wanted.values()), rtol=1e-12, atol=1e-14)


def test_averages_weigh_passes_by_their_numbers():
    X, y = sequences()
    crf = sc.CRF(algorithm="asgd", random_state=1)
    means = []
    for _ in range(4):
        crf.partial_fit(X, y)
        stream = crf._partial.stream
        means.append((stream.total.copy(), stream.steps))
    # the sums of each pass alone, from those that fade by (k - 1) / k
    own = [means[0][0] * 0]
    snapshots = [0.0]
    for k in range(1, 4):
        own.append(means[k][0] - means[k - 1][0] * k / (k + 1))
        snapshots.append(means[k][1] - means[k - 1][1] * k / (k + 1))
    expected = sum(k * one for k, one in enumerate(own, 1)) / sum(k * n for k, n in enumerate(snapshots, 1))
    np.testing.assert_allclose(crf.model_.weights, expected, rtol=1e-10)
    assert min(snapshots[1:]) == pytest.approx(max(snapshots[1:])) and snapshots[1] > 10


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_what_was_learnt_before_stays(algorithm):
    first = [[["red"], ["green"]], [["green"], ["red"]]] * 5, [["R", "G"], ["G", "R"]] * 5
    second = [[["blue"], ["black"], ["blue"]]] * 5, [["B", "K", "B"]] * 5
    crf = sc.CRF(algorithm=algorithm, random_state=0)
    for _ in range(3):
        crf.partial_fit(*first)
    had = {(*b.key, row, column) for b, row, column, _ in crf.model_.named_features()}
    for _ in range(6):
        crf.partial_fit(*second)
    assert crf.classes_ == ["R", "G", "B", "K"]
    assert crf.predict([first[0][0], second[0][0]]) == [["R", "G"], ["B", "K", "B"]]
    assert had <= {(*b.key, row, column) for b, row, column, _ in crf.model_.named_features()}


@pytest.mark.parametrize("kind", ["crf", "segments", "levels"])
def test_batches_learn_what_passes_over_all_learn(kind):
    X, y = sequences(300)
    y = nested(y) if kind == "levels" else y
    test = X[200:], y[200:]
    X, y = X[:200], y[:200]
    whole = KINDS[kind](algorithm="asgd", max_iterations=3).fit(X, y)
    part = KINDS[kind](algorithm="asgd")
    for _ in range(3):
        for some in batches(X, y, range(0, 201, 20)):
            part.partial_fit(*some)
    assert part.score(*test) > whole.score(*test) - 0.03


def test_it_goes_on_after_fit_files_and_copies(tmp_path):
    X, y = sequences()
    crf = sc.CRF(algorithm="asgd", max_iterations=3).fit(X[:20], y[:20])
    crf.save(tmp_path / "model")
    loaded = sc.load(tmp_path / "model")
    for model in (crf, loaded):
        model.partial_fit(X[20:30], y[20:30])
    np.testing.assert_array_equal(crf.model_.weights, loaded.model_.weights)
    again, other = copy.deepcopy(crf), pickle.loads(pickle.dumps(crf))
    for model in (crf, again, other):
        model.partial_fit(X[30:], y[30:])
    np.testing.assert_array_equal(crf.model_.weights, again.model_.weights)
    np.testing.assert_array_equal(crf.model_.weights, other.model_.weights)
    assert crf.n_iter_ == 2 and "2 passes" in crf.message_
    crf.set_params(algorithm="ap").partial_fit(X[30:], y[30:])
    assert crf.n_iter_ == 1


def test_arrays_partial_labels_weights_and_data_sets():
    rng = np.random.default_rng(0)
    X, y = sequences()
    X = [rng.normal([0.0, 1.0], [1.0, 2.0], (len(x), 2)) for x in X]
    y = [["A" if row[0] > 0 else "B" for row in x] for x in X]
    y[5] = [None if t % 2 else {"A", "B"} for t in range(len(y[5]))]
    crf = sc.CRF(algorithm="asgd", c2=0.1)
    for _ in range(5):
        for some in batches(X, y):
            crf.partial_fit(*some, sample_weight=np.full(len(some[0]), 0.5))
    assert crf.score(X, y) > 0.9 and crf.n_features_in_ == 2
    with pytest.raises(ValueError, match="X has 3 columns"):
        crf.partial_fit([np.ones((2, 3))], [["A", "B"]])
    words = sc.CRF(algorithm="pa")
    X, y = sequences()
    for some in batches(X, y):
        words.partial_fit(data.encode(some[0]), some[1])
    assert len(words.model_.vocabulary) == len(data.encode(X).vocabulary)
    before = words.model_.weights.copy()
    words.partial_fit(X[:2], [None, None])  # nothing is known of them
    np.testing.assert_array_equal(before, words.model_.weights)


def test_errors_leave_the_model_as_it_is():
    X, y = sequences()
    crf = sc.CRF(algorithm="asgd").partial_fit(X, y)
    before = crf.model_
    for bad in ((X, y[:3]), (["a string"], [["A"]]), ([], [])):
        with pytest.raises((TypeError, ValueError)):
            crf.partial_fit(*bad)
    assert crf.model_ is before
    for given, told in (
        ({"algorithm": "lbfgs"}, "partial_fit makes passes: algorithm must be one of 'l2sgd', .* got 'lbfgs'"),
        ({"c2": "cv"}, "c2='cv' does not go with partial_fit"),
        ({"init": "counts"}, "init does not go with partial_fit"),
        ({"grow": 3}, "grow does not go with partial_fit"),
    ):
        with pytest.raises(ValueError, match=told):
            sc.CRF(**{"algorithm": "asgd", **given}).partial_fit(X, y)
    with pytest.raises(TypeError, match="one part at a time"):
        crf.partial_fit(data.Partitions([X], None), y)


def test_functions_of_the_length_by_name():
    counts = np.array([random.Random(0).choices([0, 1, 9], k=12), [3] * 12])
    for kinds in (
        ("segment", "adaptive", "bins", "length", "log"),
        ("negative binomial",),
        ("histogram",),
        ((1, 4, 7),),
    ):
        basis, names, _ = label_lengths(kinds, ["A", "B"], counts)
        for row, name in zip(basis, names, strict=True):
            np.testing.assert_allclose(named_length(name, 12), row, rtol=1e-12)
    with pytest.raises(ValueError, match="'width'"):
        named_length("width", 3)
