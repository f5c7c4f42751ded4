"""Features of lengths by label: bins from the data, bins of one's own, families; bounds by label."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import scansion as sc
from scansion.features.lengths import KINDS, label_lengths

rng = np.random.default_rng(0)
COUNTS = np.zeros((3, 40), np.int64)
COUNTS[0] = np.bincount(np.minimum(rng.poisson(20, size=400), 40), minlength=41)[1:]
COUNTS[1, [2, 7]] = 3, 4  # few; of the third label there is none
LABELS = ["helix", "loop", "never"]


def of_label(wanted, y):
    basis, names, (rows, columns) = label_lengths(wanted, LABELS, COUNTS)
    chosen = [i for i in range(len(names)) if y in columns[rows[i] : rows[i + 1]]]
    return basis[chosen], [names[i] for i in chosen]


@pytest.mark.parametrize("y", range(3))
@pytest.mark.parametrize("kind", ["adaptive", "bins", "histogram", (1, 5, 17)])
def test_bins_share_out_all_lengths(kind, y):
    basis, names = of_label(kind, y)
    assert_array_equal(basis.sum(axis=0), np.ones(40))
    assert set(np.unique(basis)) <= {0.0, 1.0}
    assert len(set(names)) == len(names)


def test_adaptive_bins_follow_the_data():
    basis, _ = of_label("adaptive", 0)
    mass = basis @ COUNTS[0]
    assert 10 <= len(basis) <= 22
    seen = np.flatnonzero(COUNTS[0])
    single = basis.sum(axis=1) == 1
    assert (mass[(mass > 0) & ~single] < 400 / 20 + COUNTS[0].max()).all()
    assert not basis[mass == 0][:, seen].any()
    assert len(of_label("adaptive", 1)[0]) == 4  # shorter than those seen, from each of them on, longer
    assert len(of_label("adaptive", 2)[0]) == 1


def test_families_hold_their_distributions():
    length = np.arange(1, 41)
    for kind, log in (
        ("gamma", stats.gamma(3.0, scale=4.0).logpdf(length)),
        ("gamma", stats.expon(scale=4.0).logpdf(length)),
        ("histogram", stats.poisson(9).logpmf(length)),
    ):
        basis, _ = of_label(("segment", kind), 0)
        weights = np.linalg.lstsq(basis.T, log, rcond=None)[0]
        assert_allclose(weights @ basis, log, rtol=1e-9, atol=1e-9)
    drawn = np.random.default_rng(1).negative_binomial(5, 0.3, size=4000)
    counts = np.bincount(np.minimum(drawn, 39), minlength=40)[None]
    basis, names, _ = label_lengths(("segment", "negative binomial"), ["a"], counts)
    r = float(names[-1].split()[3].rstrip(",")) + 2
    assert r == pytest.approx(5, rel=0.15)
    log = stats.nbinom(r, 0.3).logpmf(length - 1)
    weights = np.linalg.lstsq(basis.T, log, rcond=None)[0]
    assert_allclose(weights @ basis, log, rtol=1e-9, atol=1e-9)
    assert weights[-1] == pytest.approx(1.0, rel=1e-9)


def test_labels_have_features_of_their_own():
    basis, names, (rows, columns) = label_lengths({"helix": "gamma", "loop": (1, 3)}, LABELS, COUNTS)
    having = {name: columns[rows[i] : rows[i + 1]].tolist() for i, name in enumerate(names)}
    assert having == {
        "length": [0],
        "log(length)": [0],
        "length >= 1 and < 3": [1],
        "length >= 3": [1],
        "segment": [2],
    }
    with pytest.raises(ValueError, match="length_features name 'sheet', which is no label"):
        label_lengths({"sheet": "gamma"}, LABELS, COUNTS)
    for kind in KINDS:
        assert np.isfinite(label_lengths(kind, LABELS, COUNTS)[0]).all()


X = [[["a"]] * 12] * 2
Y = [[(0, 4, "A"), (4, 6, "B"), (6, 12, "A")], [(0, 3, "B"), (3, 8, "A"), (8, 10, "B"), (10, 12, "B")]]


def drawn_lengths(semi):
    drawn = semi.sample([[["a"]] * 30], 300, random_state=0)[0]
    return {y: {v - u for row in drawn for u, v, label in row if label == y} for y in "AB"}


def test_bounds_by_label():
    exact = sc.SemiCRF(min_length="by label", slack=0).fit(X, Y)
    assert drawn_lengths(exact) == {"A": {4, 5, 6}, "B": {2, 3}}
    given = sc.SemiCRF(min_length={"A": 3}, max_length={"A": 6, "B": 9}).fit(X, Y)
    found = drawn_lengths(given)
    assert found["A"] == {3, 4, 5, 6} and {1, 2, 3, 4, 5, 6, 7} <= found["B"] <= set(range(1, 10))
    wide = sc.SemiCRF(min_length="by label").fit(X, Y)
    assert wide.model_.max_length == 6
    assert wide.model_.level.limits is None and wide.model_.level.shortest is None  # of few, slack is wide
    many = sc.SemiCRF(min_length="by label").fit(X * 20, Y * 20).model_.level
    assert many.limits.tolist() == [6, 4] and many.shortest.tolist() == [3, 1]
    everything = sc.SemiCRF(max_length=7, min_length=2).fit(X, Y)
    assert drawn_lengths(everything) == {y: set(range(2, 8)) for y in "AB"}
    with pytest.raises(ValueError, match=r"X\[0\] leaves no segmentation: none gets beyond position 0"):
        exact.predict([[["a"]]])


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"max_length": {"A": 5}}, "y holds a segment 'A' of 6 tokens, but max_length of that label is 5"),
        ({"min_length": 3}, "y holds a segment 'B' of 2 tokens, but min_length of that label is 3"),
        ({"max_length": {"C": 5}}, "max_length names 'C', which is no label of the training data"),
        ({"min_length": {"A": 0}}, r"min_length\['A'\] must be at least 1, got 0"),
    ],
)
def test_bounds_that_are_wrong(params, message):
    with pytest.raises(ValueError, match=message):
        sc.SemiCRF(**params).fit(X, Y)


def test_repeats_are_taken_from_many_segments():
    rows = [[(t, t + 1, "AB"[t % 2]) for t in range(12)]] * 2
    assert sc.SemiCRF().fit(X, rows).model_.n_forbidden == 2
    assert sc.SemiCRF().fit(X, [rows[0], None]).model_.n_forbidden == 0  # not complete
    assert sc.SemiCRF().fit(X[:1], rows[:1]).model_.n_forbidden == 0  # too few to tell
    assert sc.SemiCRF().fit(X, Y).model_.n_forbidden == 0


def test_pairs_never_seen_have_a_weight():
    semi = sc.SemiCRF().fit(X, Y)
    assert semi.transition_features_[("A", "A")] < 0
    assert set(semi.patterns_) == {(a, b) for a in "AB" for b in "AB"}
    assert {("segment", "A"), ("segment", "B")} <= set(semi.state_features_)
