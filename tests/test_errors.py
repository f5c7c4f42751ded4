"""Every error that a user of the estimators will meet, and what it says."""

from __future__ import annotations

import re

import numpy as np
import pytest

import scansion as sc
from scansion.data import encode
from scansion.models.fitted import NotFittedError
from scansion.training.learn import ALGORITHMS

X = [[["a"], ["b"]], [["b"], ["c"], ["a"]]]
Y = [["A", "B"], ["B", "B", "A"]]
SEGMENTS = [[(0, 2, "A")], [(0, 1, "B"), (1, 3, "A")]]
both = pytest.mark.parametrize("make", [sc.CRF, sc.SemiCRF])


@pytest.fixture(scope="module")
def crf():
    return sc.CRF().fit(X, Y)


@pytest.fixture(scope="module")
def semi():
    return sc.SemiCRF().fit(X, SEGMENTS)


# X and y ------------------------------------------------------------------------------------------


@both
def test_unequal_numbers_of_sequences(make):
    with pytest.raises(ValueError, match="y has 1 sequences, but X has 2"):
        make().fit(X, Y[:1])
    with pytest.raises(ValueError, match="y has 3 sequences, but X has 2"):
        make().fit(X, [*Y, Y[0]])
    fitted = make().fit(X, Y)
    for ask in (fitted.score, fitted.log_likelihood, lambda X, y: fitted.predict(X, constraints=y)):
        with pytest.raises(ValueError, match="y has 1 sequences, but X has 2"):
            ask(X, Y[:1])


@both
def test_unequal_lengths_of_a_sequence(make):
    with pytest.raises(ValueError, match=r"y\[1\] has 2 labels, but sequence 1 of X has 3 tokens"):
        make().fit(X, [["A", "B"], ["A", "B"]])
    with pytest.raises(ValueError, match=r"y\[0\] has 3 labels, but sequence 0 of X has 2 tokens"):
        make().fit(X, Y).score(X, [["A", "B", None], Y[1]])


@both
def test_nothing_to_learn_from(make):
    with pytest.raises(ValueError, match="X is empty: there is nothing to learn from"):
        make().fit([], [])
    with pytest.raises(ValueError, match="y holds no label at all: there is nothing to learn from"):
        make().fit(X, [None, None])
    with pytest.raises(ValueError, match="y holds no label at all"):
        make().fit([[], []], [[], []])
    with pytest.raises(ValueError, match="there is nothing to compare with"):
        make().fit(X, Y).score(X, [None, None])


@both
@pytest.mark.parametrize(
    "wrong, message",
    [
        ("ab", "X must be a list of sequences, got the string 'ab'"),
        (["ab", "cd"], "sequence 0 must be a list of tokens, got the string 'ab'"),
        ([["ab", "cd"]], "sequence 0, position 0: the token is the string 'ab'"),
        ([{"a": 1.0}], "sequence 0 must be a list of tokens, got an object of type dict"),
        ({"a": 1.0}, "X must be a list of sequences, got an object of type dict"),
        (None, "X must be a list of sequences, got an object of type NoneType"),
        (7, "X must be a list of sequences, got an object of type int"),
        ([[7]], "sequence 0, position 0: the token is of type int"),
        ([np.zeros(3)], r"sequence 0 is an array of shape \(3,\).*must be 2-D"),
    ],
)
def test_x_of_the_wrong_form(make, wrong, message):
    fitted = make().fit(X, Y)
    for ask in (lambda: make().fit(wrong, [["A"]]), lambda: fitted.predict(wrong), lambda: fitted.lattices(wrong)):
        with pytest.raises((TypeError, ValueError), match=message):
            ask()


@both
def test_values_that_are_not_finite(make):
    fitted = make().fit(X, Y)
    for value in (float("nan"), float("inf")):
        for wrong in ([[{"w": "x"}, {"v": value}]], [np.array([[1.0], [value]])]):
            pattern = f"sequence 0, position 1: attribute '.' has the value {value}: values must be finite"
            with pytest.raises(ValueError, match=pattern):
                make().fit(wrong, [["A", "B"]])
            with pytest.raises(ValueError, match=pattern):
                fitted.predict(wrong)


@both
def test_y_of_the_wrong_form(make):
    for wrong, error, message in (
        ("AB", TypeError, "y must be a list of sequences, got an object of type str"),
        (["AB", "BBA"], TypeError, r"y\[0\] must be a list of labels, got the string 'AB'"),
        ([["A", ["B"]], Y[1]], TypeError, r"y\[0\]\[1\] is of type list, which cannot be a label"),
        ([["A", float("nan")], Y[1]], ValueError, r"y\[0\]\[1\] is the label nan.*write None for unknown"),
        (None, TypeError, "y must be a list of sequences, got an object of type NoneType"),
    ):
        with pytest.raises(error, match=message):
            make().fit(X, wrong)


@both
def test_contradictory_partial_labels(make):
    with pytest.raises(ValueError, match=r"y\[1\]\[2\] is an empty set: no label is possible"):
        make().fit(X, [Y[0], ["B", "B", set()]])
    with pytest.raises(ValueError, match=r"y\[1\]\[0\] is an empty set: no label is possible"):
        make().fit(X, Y).predict(X, constraints=[None, [set(), None, None]])
    with pytest.raises(ValueError, match=r"y\[0\]\[0\] is a set that holds None: write None alone for unknown"):
        make().fit(X, [[{"A", None}, "B"], Y[1]])


@both
def test_labels_that_the_model_does_not_know(make):
    fitted = make().fit(X, Y)
    unknown = [["A", "Q"], None]
    for ask in (
        lambda: fitted.predict(X, constraints=unknown),
        lambda: fitted.predict_marginals(X, constraints=unknown),
        lambda: fitted.predict_kbest(X, 2, constraints=unknown),
        lambda: fitted.lattices(X, constraints=unknown),
        lambda: fitted.log_likelihood(X, unknown),
    ):
        with pytest.raises(ValueError, match=r"y\[0\]\[1\] is the label 'Q', which is not one of .* known: 'A', 'B'"):
            ask()
    assert fitted.score(X, [["A", "Q"], Y[1]]) < 1.0  # it is missed, no error: tests may hold rare labels


@both
def test_sample_weights(make):
    for wrong, message in (
        ([1.0], r"sample_weight must have shape \(2,\), got \(1,\)"),
        ([1.0, -2.0], r"sample_weight\[1\] = -2.0 must not be negative"),
        ([np.nan, 1.0], r"sample_weight\[0\] is nan"),
        (["a", "b"], "sample_weight must be an array of real numbers"),
    ):
        with pytest.raises(ValueError, match=message):
            make().fit(X, Y, sample_weight=wrong)


@both
def test_development_data_come_together(make):
    for given in ({"X_dev": X}, {"y_dev": Y}):
        with pytest.raises(ValueError, match="X_dev and y_dev must be given together"):
            make().fit(X, Y, **given)
    with pytest.raises(ValueError, match="y has 1 sequences, but X has 2"):
        make().fit(X, Y, X_dev=X, y_dev=Y[:1])


# Segments -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "row, message",
    [
        ([(0, 2, "A"), (1, 3, "B")], r"y\[1\] has overlapping segments: \(0, 2, 'A'\) and \(1, 3, 'B'\)"),
        ([(0, 4, "A")], r"y\[1\]\[0\] = \(0, 4, 'A'\) leaves sequence 1 of X, which has 3 tokens"),
        ([(-1, 2, "A")], r"y\[1\]\[0\] = \(-1, 2, 'A'\) leaves sequence 1 of X"),
        ([(2, 2, "A")], r"y\[1\]\[0\] = \(2, 2, 'A'\) is empty or reversed"),
        ([(0, 1, "A"), "B"], r"y\[1\]\[1\] = 'B' is not a segment \(start, stop, label\)"),
        ([(0, 1, set())], r"y\[1\], segment \(0, 1\), is an empty set: no label is possible"),
    ],
)
def test_segments_that_cannot_be(row, message, semi):
    with pytest.raises(ValueError, match=message):
        sc.SemiCRF().fit(X, [SEGMENTS[0], row])
    with pytest.raises(ValueError, match=message):
        semi.predict(X, constraints=[None, row])


def test_segments_that_are_too_long(semi):
    message = r"y\[1\] has a segment \(0, 3\) of 3 tokens, longer than max_length = 2"
    with pytest.raises(ValueError, match=message):
        sc.SemiCRF(max_length=2).fit(X, [SEGMENTS[0], [(0, 3, "A")]])
    with pytest.raises(ValueError, match=message):
        semi.log_likelihood(X, [None, [(0, 3, "A")]])
    split = sc.SemiCRF(max_length=2, long_segments="split").fit(X, [SEGMENTS[0], [(0, 3, "A")]])
    assert split.predict(X, constraints=[None, [(0, 3, "A")]])[1] == [(0, 2, "A"), (2, 3, "A")]


def test_a_longest_segment_that_cannot_be_learnt():
    with pytest.raises(ValueError, match="y holds no segment whose two ends are known: give max_length"):
        sc.SemiCRF().fit(X, [[{"A", "B"}] * 2, None])
    sc.SemiCRF(max_length=2).fit(X, [[{"A", "B"}] * 2, None])


def test_parameters_of_segments():
    for params, message in (
        ({"order": "l2sgd"}, "order must be an integer, got 'l2sgd'"),
        ({"max_length": 0}, "max_length must be at least 1, got 0"),
        ({"max_length": 2.5}, "max_length must be an integer, got 2.5"),
        ({"max_length": "by word"}, "max_length must be a number, None or 'by label', got 'by word'"),
        ({"repeats": "no"}, "repeats must be True, False or None, got 'no'"),
        ({"long_segments": "cut"}, "long_segments must be 'error' or 'split', got 'cut'"),
        ({"length_features": "words"}, "length_features must be among 'segment', .*, or first lengths .* got 'words'"),
        ({"length_features": ("bins", 3)}, "length_features must be names or first lengths of bins, got 3"),
        ({"length_features": (5, 2)}, r"length_features: first lengths of bins must ascend, got \(5, 2\)"),
        ({"length_features": {"A": "words"}}, "length_features must be among 'segment', .* got 'words'"),
        ({"slack": -1}, "slack must be a number >= 0, got -1"),
        ({"min_length": "short"}, "min_length must be a number, None or 'by label', got 'short'"),
        ({"max_length": {"A": 0}}, r"max_length\['A'\] must be at least 1, got 0"),
        ({"transitions": "some"}, "transitions must be 'all', 'seen' or pairs of labels, got 'some'"),
        ({"segment_features": 5}, r"segment_features must be a function f\(x, start, stop\) or a list of such, got 5"),
        ({"segment_features": [len, 5]}, "segment_features must be a function"),
        ({"attribute_parts": {"a": "middle"}}, r"attribute_parts\['a'\] must name parts among start, .*'middle'"),
        ({"attribute_parts": {"a": 3}}, r"attribute_parts\['a'\] must name parts among start, inside, .* got 3"),
        ({"attribute_parts": {"a": ()}}, r"attribute_parts\['a'\] names no part"),
        ({"attribute_parts": "start"}, "attribute_parts must be a dict with attribute prefixes as keys, got 'start'"),
    ):
        with pytest.raises(ValueError, match=message):
            sc.SemiCRF(**params).fit(X, SEGMENTS)


def test_segment_features_need_tokens(semi):
    with_features = sc.SemiCRF(segment_features=lambda x, u, v: ["s"])
    with pytest.raises(ValueError, match="segment_features need the tokens themselves: give sequences, not an encoded"):
        with_features.fit(encode(X), SEGMENTS)
    with_features.fit(X, SEGMENTS)
    with pytest.raises(ValueError, match="set this parameter to the same functions"):
        with_features.set_params(segment_features=None).predict(X)

    def broken(x, start, stop):
        raise RuntimeError("a user's own error")

    with pytest.raises(RuntimeError, match="a user's own error"):
        sc.SemiCRF(segment_features=broken).fit(X, SEGMENTS)
    with pytest.raises(TypeError, match="int"):
        sc.SemiCRF(segment_features=lambda x, u, v: 7).fit(X, SEGMENTS)


# Parameters ---------------------------------------------------------------------------------------

PARAMETERS = [
    ({"algorithm": "adam"}, f"algorithm must be one of {', '.join(ALGORITHMS)}, got 'adam'"),
    ({"order": -1}, "order must be at least 0, got -1"),
    ({"order": "second"}, "order must be an integer, got 'second'"),
    ({"order": True}, "order must be an integer, got True"),
    ({"c2": -1.0}, "c2 must be a number >= 0, or one for each order, got -1.0"),
    ({"c1": "a"}, "c1 must be a number >= 0, or one for each order, got 'a'"),
    ({"c1": float("nan")}, "c1 must be a number >= 0, or one for each order, got nan"),
    ({"c2": []}, r"c2 must be a number >= 0, or one for each order, got \[\]"),
    ({"c2": [1.0, None]}, "c2 must be a number >= 0, or one for each order"),
    ({"c2": True}, "c2 must be a number >= 0"),
    ({"algorithm": "l2sgd", "c2": 0.0}, "algorithm='l2sgd' needs c2 > 0.*got 0.0"),
    ({"algorithm": "mm", "c2": 0}, "algorithm='mm' needs c2 > 0"),
    ({"algorithm": "l2sgd", "c2": [0.0, 0.0]}, "algorithm='l2sgd' needs c2 > 0.*got 0.0"),
    ({"c2": {"lengths": -1.0}}, "c2 must be a number >= 0 for each group, got -1.0 for 'lengths'"),
    ({"c2": {3: 1.0}}, "c2 must have names of groups or prefixes of attributes as keys, got 3"),
    ({"standardize": "yes"}, "standardize must be True, False or None, got 'yes'"),
    ({"algorithm": "l2sgd", "c1": 0.5}, "algorithm='l2sgd' has no L1 penalty: set c1=0, or use 'lbfgs'"),
    ({"algorithm": "ap", "c1": [0.0, 0.5]}, "algorithm='ap' has no L1 penalty"),
    ({"max_iterations": -1}, "max_iterations must be at least 0, got -1"),
    ({"max_iterations": 2.0}, "max_iterations must be an integer, got 2.0"),
    ({"min_freq": -1}, "min_freq must be a number >= 0, got -1"),
    ({"min_freq": "a"}, "min_freq must be a number >= 0, got 'a'"),
    ({"num_memories": 0}, "num_memories must be at least 1, got 0"),
    ({"epsilon": -1e-5}, "epsilon must be a number >= 0, got -1e-05"),
    ({"delta": float("inf")}, "delta must be a number >= 0, got inf"),
    ({"period": -1}, "period must be at least 0, got -1"),
    ({"linesearch": "Wolfe"}, "linesearch must be one of MoreThuente, Backtracking, StrongBacktracking, got 'Wolfe'"),
    ({"max_linesearch": 0}, "max_linesearch must be at least 1, got 0"),
    ({"calibration_eta": 0.0}, "calibration_eta must be a number > 0, got 0.0"),
    ({"calibration_rate": 1.0}, "calibration_rate must be a number > 1, got 1.0"),
    ({"calibration_samples": 0}, "calibration_samples must be at least 1, got 0"),
    ({"pa_type": 3}, "pa_type must be one of 0, 1, 2, got 3"),
    ({"c": 0}, "c must be a number > 0, got 0"),
    ({"n_jobs": 0}, "n_jobs must not be 0: give a number of threads, or -1 for all processors"),
    ({"random_state": -1}, "random_state must be at least 0, got -1"),
    ({"random_state": "seed"}, "random_state must be an integer, got 'seed'"),
    ({"patience": 0}, "patience must be at least 1, got 0"),
    ({"attribute_orders": {"a": -1}}, r"attribute_orders\['a'\] must be at least 0, got -1"),
    ({"attribute_orders": {"a": "1"}}, r"attribute_orders\['a'\] must be an integer, got '1'"),
    ({"attribute_orders": {"a": (0, 40)}}, r"attribute_orders\['a'\] must be at most 31, got 40"),
    ({"attribute_orders": {"a": []}}, r"attribute_orders\['a'\] names no order"),
    ({"attribute_orders": {1: 1}}, "attribute_orders must be a dict with attribute prefixes as keys"),
    ({"attribute_orders": ["a"]}, "attribute_orders must be a dict with attribute prefixes as keys"),
    ({"patterns": "AB"}, "patterns must be a list of label tuples, got 'AB'"),
    ({"patterns": ["AB"]}, r"patterns\[0\] must be a tuple of labels, got 'AB'"),
    ({"patterns": [()]}, r"patterns\[0\] must be a tuple of labels, got \(\)"),
    ({"patterns": [("A", "B"), ("A", "Q")]}, r"patterns\[1\] = \('A', 'Q'\): 'Q' is no label of the training data"),
    ({"patterns": [("A", sc.BOS)]}, r"patterns\[0\] = \('A', -1\): -1 is no label .*BOS may only stand first"),
    ({"patterns": [(sc.BOS, sc.EOS)]}, "must hold at least one label beside BOS and EOS"),
]


@both
@pytest.mark.parametrize("params, message", PARAMETERS, ids=lambda value: value if isinstance(value, str) else "")
def test_parameters(make, params, message):
    estimator = make(**params)  # nothing is checked before fit
    with pytest.raises(ValueError, match=message):
        estimator.fit(X, Y)
    assert not hasattr(estimator, "model_")


def test_bad_settings_are_found_before_the_data_are_read():
    def never():
        raise AssertionError("X was read")
        yield

    for params in ({"c2": -1.0}, {"algorithm": "adam"}, {"epsilon": -1.0}, {"n_jobs": 0}):
        with pytest.raises(ValueError, match="must"):
            sc.CRF(**params).fit(never(), Y)


def test_a_failed_fit_leaves_the_old_model(crf):
    old = sc.CRF().fit(X, Y)
    answers = old.predict_marginals(X)
    with pytest.raises(ValueError, match="y has 1 sequences"):
        old.set_params(warm_start=True).fit([*X[:1], [["new"]]], Y[:1])
    assert old.predict_marginals(X) == answers and old.classes_ == ["A", "B"]


# Questions ----------------------------------------------------------------------------------------


@both
def test_questions_before_fit(make):
    fresh = make()
    name = make.__name__
    for ask in (
        lambda: fresh.predict(X),
        lambda: fresh.predict_single(X[0]),
        lambda: fresh.predict_marginals(X),
        lambda: fresh.predict_kbest(X, 2),
        lambda: fresh.sample(X),
        lambda: fresh.score(X, Y),
        lambda: fresh.log_likelihood(X, Y),
        lambda: fresh.lattice(X[0]),
        lambda: fresh.classes_,
        lambda: fresh.state_features_,
        lambda: fresh.save("nowhere"),
    ):
        with pytest.raises(NotFittedError, match=f"this {name} is not fitted yet: call fit first"):
            ask()


def test_numbers_of_answers(crf):
    with pytest.raises(ValueError, match="k must be at least 1, got 0"):
        crf.predict_kbest(X, 0)
    with pytest.raises(ValueError, match="n must be at least 0, got -1"):
        crf.sample(X, -1)
    with pytest.raises(ValueError, match="random_state must be an integer, got 'x'"):
        crf.sample(X, 1, random_state="x")
    with pytest.raises(ValueError, match="n_jobs must not be 0"):
        sc.CRF().fit(X, Y).set_params(n_jobs=0).predict(X)


@pytest.mark.parametrize("label", [("A", 1), 1.5, True, b"A"])
def test_labels_that_cannot_be_saved(label, tmp_path):
    crf = sc.CRF().fit([[["a"], ["b"]]], [["x", label]])
    assert label in crf.classes_
    message = f"only str and int labels can be saved, got {label!r} of type {type(label).__name__}"
    with pytest.raises(TypeError, match=re.escape(message)):
        crf.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []
