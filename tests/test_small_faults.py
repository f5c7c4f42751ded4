"""What no other test would notice if it were wrong: each of these fails on one small fault (`fuzz.mutants`)."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import scansion as sc
from scansion.cli import main
from scansion.models.growth import _observed
from scansion.training.orthant import L1Penalty


@pytest.mark.parametrize(("pa_type", "c", "tau"), [(0, 0.1, 1 / 4), (1, 0.1, 0.1), (1, 1.0, 1 / 4), (2, 0.1, 1 / 9)])
def test_one_step_of_each_passive_aggressive_type(pa_type, c, tau):
    """B is mistaken for A, the first label: a loss of 1, an update of squared norm 4. A is right from the start."""
    given = {"algorithm": "pa", "pa_type": pa_type, "c": c, "averaging": False, "error_sensitive": False}
    model = sc.CRF(**given, max_iterations=1).fit([[{"w": 1.0}], [{"v": 2.0}]], [["A"], ["B"]])
    assert_allclose(model.state_features_[("v", "B")], 2.0 * tau, rtol=1e-12, atol=0)
    assert model.state_features_.get(("w", "A"), 0.0) == 0.0


def test_a_step_that_forgets_everything():
    """With t0 = 1 the first step of l2sgd takes the weights to zero, those of the table by rows, too."""
    X, y = [[["a"], ["b"]]], [["A", "B"]]
    given = {"c2": 0.5, "calibration_eta": 1.0, "calibration_candidates": 1, "max_iterations": 1}
    fresh = sc.CRF(algorithm="l2sgd", **given).fit(X, y)
    model = sc.CRF(max_iterations=5).fit(X, y)
    assert model.state_features_[("a", "A")] > 0.01
    model.set_params(algorithm="l2sgd", warm_start=True, **given).fit(X, y)
    assert model.state_features_ == fresh.state_features_
    assert model.transition_features_ == fresh.transition_features_


def test_orthants():
    """Directions keep what descends, points what stays in the orthant; weights without a penalty are left alone."""
    penalty = L1Penalty(np.array([1.0, 1.0, 1.0, 1.0, 0.0]), 5)
    w, g = np.array([2.0, -1.0, 0.0, 0.0, 3.0]), np.array([-3.0, 0.5, 0.5, -4.0, 1.0])
    v, scratch = np.empty(5), np.empty(5)
    penalty.pseudo_gradient(w, g, scratch, v)
    assert v.tolist() == [-2.0, -0.5, 0.0, -3.0, 1.0]
    d = np.array([1.0, -1.0, 1.0, 2.0, 5.0])
    penalty.align(d, v, scratch)
    assert d.tolist() == [1.0, 0.0, 0.0, 2.0, 5.0]
    at = np.array([-0.5, -2.0, 1.0, 1.0, -7.0])
    penalty.project(at, scratch)
    assert at.tolist() == [0.0, -2.0, 0.0, 1.0, -7.0]


def test_growing_counts_sample_weights():
    y = [["A", "B", "A", "B"], ["A", "B"], ["B", {"A"}, "B"]]
    assert _observed({("A", "B")}, y, [2.0, 0.5, 7.0]) == {("A", "B"): 4.5}
    assert _observed({("A", "B")}, y, None) == {("A", "B"): 3.0}


def test_nested_models_keep_what_is_as_frequent_as_asked():
    X = [[["a", "once"], ["a"]], [["b"], ["b", "c", "c"]]]
    y = [{"top": [(0, 2, "P")], "low": ["A", "B"]}, {"top": [(0, 2, "P")], "low": ["A", "B"]}]
    model = sc.HierarchicalCRF(["top", "low"], min_freq=2.0, max_iterations=2).fit(X, y)
    kept = [key for key in model.state_features_ if key[0] == "low"]
    assert kept == [("low", "c", "B")]


def test_tagging_words_alone(tmp_path, capsys):
    """A file of one column has no labels: the column is the words."""
    data, words, model = (tmp_path / name for name in ("data.txt", "words.txt", "model"))
    data.write_text("the D\nman N\n\nthe D\ndog N\n\n")
    words.write_text("the\nman\n\n")
    assert main(["train", str(data), "-o", str(model), "-q", "--features", "words"]) == 0
    capsys.readouterr()
    assert main(["tag", str(model), str(words)]) == 0
    assert [line.split() for line in capsys.readouterr().out.splitlines() if line] == [["the", "D"], ["man", "N"]]
