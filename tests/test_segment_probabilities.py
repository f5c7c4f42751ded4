"""How probable segments and boundaries are, from estimators: against the likelihood of partial labels, and sums."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from test_decode import data

import scansion as sc
from scansion import rules

X, LABELS, SEGMENTS, NESTED = data(12)


LIMITS = {
    "free": "free",
    "timed": None,
    "mixed": {"outer": "free", "inner": None},
    "short": {"outer": None, "inner": 3},
}
KINDS = ("chain", "segments", *LIMITS)


def fitted(kind):
    if kind == "chain":
        return sc.CRF(max_iterations=10).fit(X, LABELS)
    if kind == "segments":
        return sc.SemiCRF(max_iterations=10).fit(X, SEGMENTS)
    model = sc.HierarchicalCRF(["outer", "inner"], max_length=LIMITS[kind], max_iterations=10, topology="all")
    return model.fit(X, NESTED)


@pytest.fixture(scope="module", params=KINDS)
def model(request):
    return fitted(request.param)


def alone(model, k, segment, size):
    """What y would say if nothing but one segment were known."""
    if isinstance(model, sc.CRF):
        return [segment[2] if t == segment[0] else None for t in range(size)]
    return [segment] if isinstance(model, sc.SemiCRF) else [[segment] if k == d else None for d in range(2)]


def by_level(model, answer):
    if isinstance(model, sc.CRF):
        return [[(t, t + 1, y) for t, y in enumerate(answer)]]
    return model.by_level(answer)


def levels(model, found):
    return list(found) if isinstance(model, sc.HierarchicalCRF) else [found]


def test_segments_are_as_probable_as_the_labels_that_tell_them(model):
    for x, answer, found in zip(
        X[:4], model.predict(X[:4]), model.segment_probabilities(X[:4], model.predict(X[:4])), strict=True
    ):
        for k, (segments, p) in enumerate(zip(by_level(model, answer), levels(model, found), strict=True)):
            wanted = [np.exp(model.log_likelihood([x], [alone(model, k, s, len(x))])) for s in segments]
            assert_allclose(p, wanted, rtol=1e-9)
    if isinstance(model, sc.HierarchicalCRF):
        assert found["inner"] == found[1]


def test_labels_of_a_chain_have_their_marginals():
    model = fitted("chain")
    answers, marginals = model.predict(X), model.predict_marginals(X)
    for y, p, rows in zip(answers, model.segment_probabilities(X, answers), marginals, strict=True):
        assert_allclose(p, [row[label] for label, row in zip(y, rows, strict=True)], rtol=1e-12)


def test_boundaries_are_where_segments_end(model):
    """The most probable segmentations, nearly all of them, say how probable a boundary is."""
    if isinstance(model, sc.CRF):
        return  # it has none
    x = X[0][:3]
    (found,) = model.predict_boundaries([x])
    total = [np.zeros(3) for _ in levels(model, found)]
    for answer, log_p in model.predict_kbest([x], 10_000)[0]:
        for column, segments in zip(total, by_level(model, answer), strict=True):
            for _, stop, _ in segments:
                column[stop - 1] += np.exp(log_p)
    for mine, column in zip(levels(model, found), total, strict=True):
        assert_allclose(mine, column, rtol=1e-8)
    assert model.predict_boundaries([[]]) == [[]] or list(model.predict_boundaries([[]])[0]) == [[], []]


def test_under_constraints_and_rules(model):
    """What is given has the probability 1; under rules probabilities are those among what keeps them."""
    answers = model.predict(X[:3])
    for found in model.segment_probabilities(X[:3], answers, constraints=answers):
        assert_allclose(np.concatenate(levels(model, found)), 1.0, rtol=1e-9)
    level = {"level": "inner"} if isinstance(model, sc.HierarchicalCRF) else {}
    rule = rules.at_most(1, "0", **level)
    x = X[0][:4]
    (best,) = model.predict([x], rules=[rule])
    (found,) = model.segment_probabilities([x], [best], rules=[rule])
    total = {}
    for answer, log_p in model.predict_kbest([x], 100_000, rules=[rule])[0]:
        for k, segments in enumerate(by_level(model, answer)):
            for segment in segments:
                total[(k, *segment)] = total.get((k, *segment), 0.0) + np.exp(log_p)
    for k, (segments, p) in enumerate(zip(by_level(model, best), levels(model, found), strict=True)):
        assert_allclose(p, [total[(k, *segment)] for segment in segments], rtol=1e-8)


def test_errors():
    crf, semi = fitted("chain"), fitted("segments")
    with pytest.raises(AttributeError, match="has no segments: train a SemiCRF"):
        crf.predict_boundaries(X)
    with pytest.raises(ValueError, match=r"y\[0\] is no complete answer in the labels of the model: \['a'"):
        crf.segment_probabilities(X[:1], [["a"] * len(X[0])])
    with pytest.raises(ValueError, match="y"):
        semi.segment_probabilities(X[:2], SEGMENTS[:1])
    with pytest.raises(ValueError, match=r"y\[0\] covers positions 0..1, but the sequence has length 3"):
        semi.segment_probabilities(X[:1], [[(0, 1, "0")]])
    assert semi.segment_probabilities([], []) == []
