"""SemiCRF: its objective and answers by definition, over all segmentations of tiny sequences."""

from __future__ import annotations

import math

import flat_oracle
import numpy as np
import pytest
from flat_oracle import BOS, EOS, Oracle, Problem
from numpy.testing import assert_allclose
from scipy import sparse

import scansion as sc
from scansion import Segment
from scansion.data import encode
from scansion.metrics import segment_scores
from scansion.training.optimizers import gradient_check

PARTS = {"a": "start", "b": ("inside", "end"), "pair.": "start", "end.": "end", "inner.": "inner"}
CASES = {
    "order 0": {"order": 0},
    "order 1": {"order": 1},
    "order 2": {"order": 2},
    "parts": {"order": 1, "attribute_parts": PARTS},
    "all parts": {"order": 1, "attribute_parts": {"": ("start", "inside", "end", "inner")}},
    "lengths": {"order": 1, "length_features": ("bins", "length", "log"), "attribute_parts": PARTS},
    "attributes on pairs": {"order": 1, "attribute_orders": {"pair.": 1, "both.": (0, 1)}},
    "pairs with an extent": {
        "order": 2,
        "attribute_orders": {"pair.": (1, 2), "both.": (0, 1), "end.": 2},
        "attribute_parts": {"pair.": ("start", "inside"), "both.": "end", "end.": "inner"},
        "length_features": "log",
    },
    "whole segments": {"order": 1, "segment_features": flat_oracle.segment_dict},
    "everything": {
        "order": 2,
        "attribute_parts": PARTS,
        "attribute_orders": {"pair.": (0, 1), "both.": (1, 2)},
        "length_features": ("bins", "log"),
        "segment_features": [flat_oracle.segment_dict],
        "all_possible_states": True,
        "all_possible_transitions": True,
    },
    "given patterns": {
        "patterns": [(BOS, "X"), (BOS, "X", "Y"), ("X", "Y", "Z"), ("Z", "X")],
        "attribute_orders": {"pair.": (1, 2), "both.": (0, 1)},
        "attribute_parts": {"both.": "inside"},
    },
    "given patterns at the end": {
        "patterns": [("Y", EOS), (BOS, "X", "Y", EOS), ("X", "Y", "Z"), ("Z", "X"), ("X", "X", EOS)],
        "attribute_orders": {"pair.": (1, 2)},
        "length_features": "length",
    },
    "no repeats": {"order": 2, "repeats": False, "attribute_parts": PARTS, "attribute_orders": {"pair.": (1, 2)}},
    "no repeats, all transitions": {"repeats": False, "all_possible_transitions": True, "length_features": "bins"},
    "lengths by label": {"max_length": "by label", "attribute_parts": PARTS, "length_features": ("log", "bins")},
    "lengths by label, no repeats": {
        "max_length": "by label",
        "repeats": False,
        "attribute_orders": {"pair.": (1, 2), "both.": (0, 1)},
        "attribute_parts": {"both.": ("inside", "end")},
        "segment_features": flat_oracle.segment_dict,
    },
    "lengths by family": {
        "length_features": {"X": "histogram", "Y": ("segment", "negative binomial"), "Z": (1, 3)},
        "repeats": True,
    },
    "bounds by label": {
        "max_length": {"X": 3, "Y": 3},
        "min_length": {"Z": 1},
        "slack": 0.5,
        "length_features": ("segment", "adaptive", "gamma"),
    },
    "longest is 1": {"order": 1, "max_length": 1, "attribute_parts": PARTS},
}
cases = pytest.mark.parametrize("case", CASES)
forms = pytest.mark.parametrize("form", ["segments", "partial segments", "labels", "partial labels"])
LONGEST = 3


def apart(row):
    """Segments of known label, none of which has the label of the one before it."""
    if row is None:
        return None
    turn = {"X": "Y", "Y": "Z", "Z": "X"}
    result = []
    for u, v, label in row:
        before = result[-1] if result and result[-1][1] == u else (0, 0, None)
        if isinstance(label, str):  # of others, no label may be as long as they are
            label = turn[label] if before[2] == label else label
            result.append((u, v, label))
    return result


def targets(seed: int, form: str, n: int = 4, longest: int = LONGEST, no_repeats: bool = False):
    X, y = flat_oracle.data(seed, longest=longest, partial="partial" in form, labels_form="labels" in form, n=n)
    if "labels" not in form:
        y = [apart(row) if no_repeats else row for row in y]
    if longest == 1:  # equal neighbours would be one segment of more than one token
        y = [None if row is None else [(t, t + 1, label) for t, label in enumerate(row)] for row in y]
    return X, y


def bounded(case: str) -> bool:
    return CASES[case].get("repeats") is False or CASES[case].get("max_length") == "by label"


def for_case(case: str, seed: int, form: str, n: int):
    longest = 1 if CASES[case].get("max_length") == 1 else LONGEST
    return targets(seed, form, n, longest=longest, no_repeats=bounded(case))


def problem(case: str, seed: int, form: str, weighted: bool = False) -> Problem:
    settings = {"max_length": 5 if "labels" in form else LONGEST, **CASES[case]}
    longest = 1 if settings["max_length"] == 1 else LONGEST
    X, y = targets(seed, form, 3, longest=longest, no_repeats=bounded(case))
    weight = np.random.default_rng(seed).uniform(0.0, 2.0, size=len(X)) if weighted else None
    return Problem.of(sc.SemiCRF(**settings), X, y, weight)


# The objective ------------------------------------------------------------------------------------


@cases
@forms
def test_loss_and_gradient_are_those_of_all_segmentations(case, form):
    for seed in range(2):
        p = problem(case, seed, form, weighted=seed % 2 == 1)
        w = p.weights(np.random.default_rng(seed))
        loss, gradient = p.log_loss(w)
        wanted, slope = p.oracle.log_loss(w)
        assert loss == pytest.approx(wanted, rel=1e-10, abs=1e-10)
        assert_allclose(gradient, slope, rtol=1e-9, atol=1e-10)


@cases
@pytest.mark.parametrize("form", ["segments", "partial segments"])
def test_gradient_is_that_of_finite_differences(case, form):
    p = problem(case, 5, form, weighted=True)
    assert gradient_check(p.log_loss, p.weights(np.random.default_rng(1)), n=40) < 1e-6


@cases
@pytest.mark.parametrize("form", ["segments", "partial segments"])
def test_margin_loss_and_subgradient(case, form):
    p = problem(case, 8, form, weighted=True)
    w = p.weights(np.random.default_rng(2))  # no ties: differentiable
    assert p.margin_loss(w)[0] == pytest.approx(p.oracle.margin_loss(w), rel=1e-10, abs=1e-10)
    assert gradient_check(p.margin_loss, w, n=40, step=1e-7) < 1e-5


@cases
def test_threads_give_the_same_bits(case):
    X, y = for_case(case, 3, "partial segments", n=24)
    model, objective = sc.SemiCRF(**CASES[case]).problem(X, y)
    w = np.random.default_rng(0).normal(size=model.n_weights)
    answers = []
    for n_jobs in (1, 2, 3):
        gradient = np.empty_like(w)
        answers.append((objective.log_loss(w, gradient, n_jobs), gradient.tobytes()))
    assert answers[0] == answers[1] == answers[2]


@cases
def test_loss_is_minus_the_log_likelihood_of_the_lattices(case):
    X, y = for_case(case, 9, "segments", n=8)
    semi = sc.SemiCRF(**CASES[case], c2=0.3, max_iterations=5).fit(X, y)
    assert semi.model_.max_length == max(v - u for row in y for u, v, _ in row)
    batch = semi.lattices(X)
    rows = [[(u, v, semi.classes_.index(label)) for u, v, label in row] for row in y]
    by_lattices = float(batch.log_probability(rows).sum())
    assert semi.loss_ == pytest.approx(-by_lattices + 0.3 * semi.model_.weights @ semi.model_.weights, rel=1e-10)
    assert semi.log_likelihood(X, y) == pytest.approx(by_lattices, rel=1e-10)
    _, partial = for_case(case, 9, "partial segments", n=8)
    held = semi.lattices(X, constraints=partial)
    assert semi.log_likelihood(X, partial) == pytest.approx(
        float((held.log_partition() - batch.log_partition()).sum()), rel=1e-10
    )


def test_longest_one_is_a_crf():
    X, y = flat_oracle.data(4, n=10)
    segments = [[(t, t + 1, label) for t, label in enumerate(row)] for row in y]
    for order in (1, 2):
        crf = sc.CRF(order=order, c2=0.2).fit(X, y)
        plain = {"all_possible_transitions": False, "length_features": ()}
        semi = sc.SemiCRF(order=order, max_length=1, c2=0.2, **plain).fit(X, segments)
        assert semi.loss_ == pytest.approx(crf.loss_, rel=1e-6)
        assert semi.model_.n_weights == crf.model_.n_weights
        assert [[s.label for s in row] for row in semi.predict(X)] == crf.predict(X)


# Answers ------------------------------------------------------------------------------------------


@pytest.fixture(
    scope="module",
    params=[
        "order 1",
        "everything",
        "given patterns",
        "given patterns at the end",
        "pairs with an extent",
        "no repeats",
        "lengths by label",
    ],
)
def fitted(request):
    X, y = for_case(request.param, 21, "segments", n=8)
    semi = sc.SemiCRF(**CASES[request.param], c2=0.05).fit(X, y)
    functions = semi.segment_features or []
    functions = [functions] if callable(functions) else functions
    return semi, X, y, Oracle.of(semi.model_, X, y, functions=functions)


def named(semi, config):
    return [(u, v, semi.classes_[y]) for u, v, y in config]


def test_predict(fitted):
    semi, X, _, oracle = fitted
    for answer, configs, f in zip(semi.predict(X), oracle.configs, oracle.counts, strict=True):
        scores = f @ semi.model_.weights
        assert all(type(s) is Segment for s in answer)
        assert scores[[named(semi, c) for c in configs].index(answer)] == pytest.approx(scores.max(), rel=1e-12)
    assert semi.predict(X) == [semi.predict_single(x) for x in X]


def test_predict_single_says_where_nothing_is_possible():
    X = [[["a"], ["b"]], [["b"], ["a"]]]
    semi = sc.SemiCRF(max_length=1, repeats=False).fit(X, [[(0, 1, "A"), (1, 2, "B")], [(0, 1, "B"), (1, 2, "A")]])
    assert semi.predict_single(iter(X[0])) == semi.predict(X)[0] == [(0, 1, "A"), (1, 2, "B")]
    one = sc.SemiCRF(max_length=1, repeats=False).fit([[["a"]]], [[(0, 1, "A")]])
    for x in ([["a"], ["a"]], iter([["a"], ["a"]])):
        with pytest.raises(ValueError, match="leaves no segmentation"):
            one.predict_single(x)


def test_predict_marginals(fitted):
    semi, X, _, oracle = fitted
    for rows, configs, f in zip(semi.predict_marginals(X), oracle.configs, oracle.counts, strict=True):
        scores = f @ semi.model_.weights
        p = np.exp(scores - np.logaddexp.reduce(scores))
        wanted = [dict.fromkeys(semi.classes_, 0.0) for _ in rows]
        for config, q in zip(configs, p, strict=True):
            for u, v, y in config:
                for t in range(u, v):
                    wanted[t][semi.classes_[y]] += q
        for row, other in zip(rows, wanted, strict=True):
            assert row == pytest.approx(other, rel=1e-9, abs=1e-12)


def test_predict_kbest(fitted):
    semi, X, _, oracle = fitted
    for found, f, configs in zip(semi.predict_kbest(X, 5), oracle.counts, oracle.configs, strict=True):
        scores = f @ semi.model_.weights
        wanted = np.sort(scores - np.logaddexp.reduce(scores))[::-1][:5]
        assert_allclose([p for _, p in found], wanted, rtol=1e-9, atol=1e-12)
        by_name = {tuple(named(semi, c)): s for c, s in zip(configs, scores, strict=True)}
        for config, p in found:
            assert by_name[tuple(config)] - np.logaddexp.reduce(scores) == pytest.approx(p, rel=1e-9, abs=1e-12)


def test_sample(fitted):
    semi, X, _, _ = fitted
    drawn = semi.sample(X, 300, random_state=np.random.default_rng(5))
    for x, samples, rows in zip(X, drawn, semi.predict_marginals(X), strict=True):
        for t in range(len(x)):
            for label, p in rows[t].items():
                share = np.mean([any(u <= t < v and y == label for u, v, y in s) for s in samples])
                assert abs(share - p) <= 5 * math.sqrt(p * (1 - p) / 300) + 1e-9


def test_predict_under_constraints(fitted):
    semi, X, _, oracle = fitted
    for seed in range(3):
        rng = np.random.default_rng(seed)
        known = [flat_oracle.partial_segments(rng, drawn) for (drawn,) in semi.sample(X, 1, rng)]
        for answer, target, configs, f in zip(
            semi.predict(X, constraints=known), known, oracle.configs, oracle.counts, strict=True
        ):
            scores = f @ semi.model_.weights
            possible = np.array([flat_oracle.agrees(c, target, semi.classes_, True) for c in configs])
            at = [named(semi, c) for c in configs].index(answer)
            assert possible[at] and scores[at] == pytest.approx(scores[possible].max(), rel=1e-12)


def test_score_is_the_f1_of_segments(fitted):
    semi, X, y, _ = fitted
    wanted = segment_scores(y, semi.predict(X), scheme="plain").micro.f1
    assert semi.score(X, y) == pytest.approx(wanted, rel=1e-12)
    assert semi.score(X, semi.predict(X)) == 1.0
    assert semi.score(X, [[list(s) for s in row] for row in semi.predict(X)]) == 1.0


def test_score_counts_what_is_known(fitted):
    semi, X, _, _ = fitted
    guess = semi.predict(X)
    rng = np.random.default_rng(0)
    some = [[s for s in row if rng.random() < 0.5] for row in guess]
    assert semi.score(X, [None, *some[1:]]) == 1.0
    hidden = [[(u, v, None if rng.random() < 0.3 else label) for u, v, label in row] for row in guess]
    assert semi.score(X, hidden) == 1.0
    wrong = [[(u, v, "never seen") for u, v, _ in row] for row in guess]
    assert semi.score(X, wrong) == 0.0


def test_lattice_has_the_scores_of_every_pattern(fitted):
    semi, X, y, _ = fitted
    lattice = semi.lattice(X[0])
    rows = [(u, v, semi.classes_.index(label)) for u, v, label in y[0]]
    assert lattice.log_probability(rows) == pytest.approx(semi.log_likelihood(X[:1], y[:1]), rel=1e-10)
    marginals = lattice.marginals()
    patterns = marginals.patterns
    shape = patterns.shape if isinstance(patterns, np.ndarray) else patterns.start.shape
    assert shape[0] == len(X[0])
    assert shape[-1] == len(semi.classes_) + len(semi.patterns_) + semi.model_.n_forbidden
    assert_allclose(marginals.labels.sum(axis=1), 1.0, rtol=1e-12)


def test_blocks_give_the_same_answers(fitted, monkeypatch):
    semi, X, y, _ = fitted
    whole = semi.predict(X), semi.predict_marginals(X), semi.score(X, y)
    likelihood = semi.log_likelihood(X, y)
    monkeypatch.setattr("scansion.models.fitted._TOKENS_AT_ONCE", 4)
    assert (semi.predict(X), semi.predict_marginals(X), semi.score(X, y)) == whole
    assert semi.log_likelihood(X, y) == pytest.approx(likelihood, rel=1e-12)
    assert semi.predict(X, constraints=whole[0]) == whole[0]


# Data in ------------------------------------------------------------------------------------------

SENTENCES = [[["w=the"], ["w=old"], ["w=man"]], [["w=the"], ["w=boats"]]]
CHUNKS = [[(0, 2, "D"), (2, 3, "N")], [(0, 1, "D"), (1, 2, "N")]]


def test_forms_of_x_and_y_that_mean_the_same():
    semi = sc.SemiCRF(c2=0.1).fit(SENTENCES, CHUNKS)
    for X in ((iter(x) for x in SENTENCES), encode(SENTENCES), tuple(map(tuple, SENTENCES))):
        assert sc.SemiCRF(c2=0.1).fit(X, CHUNKS).loss_ == semi.loss_
    for y in ([["D", "D", "N"], ["D", "N"]], [list(reversed(row)) for row in CHUNKS]):
        assert sc.SemiCRF(c2=0.1, repeats=True).fit(SENTENCES, y).loss_ == semi.loss_
    assert semi.predict(encode(SENTENCES)) == semi.predict(SENTENCES)


def test_segment_features_of_any_x():
    def sizes(x, start, stop):
        return [f"rows={x[start:stop].shape[0]}"]

    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(4, 2)) for _ in range(5)]
    y = [[(0, 2, "A"), (2, 4, "B")]] * 5
    semi = sc.SemiCRF(segment_features=sizes).fit(arrays, y)
    assert ("segment:rows=2", "A") in semi.state_features_
    assert semi.predict([sparse.csr_matrix(x) for x in arrays]) == semi.predict(arrays)

    def words(x, start, stop):
        return {"first": x[start][0], "long": float(stop - start)}

    semi = sc.SemiCRF(segment_features=words, c2=0.1)
    semi.fit(map(iter, SENTENCES), iter(CHUNKS))
    assert semi.predict(map(iter, SENTENCES)) == semi.predict(SENTENCES)
    assert ("segment:first:w=the", "D") in semi.state_features_ and ("segment:long", "D") in semi.state_features_


def test_length_features_learn_durations():
    rng = np.random.default_rng(1)
    X, y = [], []
    for _ in range(40):
        row, start = [], 0
        for k in range(6):
            stop = start + (4 if k % 2 else 2)
            row.append((start, stop, "long" if k % 2 else "short"))
            start = stop
        X.append([[f"noise{rng.integers(3)}"] for _ in range(start)])
        y.append(row)
    for kind in ("bins", "length", "log"):
        semi = sc.SemiCRF(length_features=kind, c2=0.01).fit(X, y)
        if kind == "bins":
            assert semi.score(X, y) == 1.0
            weights = semi.state_features_
            assert weights["length >= 4 and < 5", "long"] > weights["length >= 2 and < 3", "long"]
    assert sc.SemiCRF(c2=0.01).fit(X, y).score(X, y) == 1.0
    assert sc.SemiCRF(c2=0.01, length_features=()).fit(X, y).score(X, y) < 1.0


def test_attributes_at_the_end_of_a_sequence():
    X, y = targets(0, "segments")
    semi = sc.SemiCRF(patterns=[("Y", EOS)], attribute_orders={"": 1}, attribute_parts={"": ("start", "end")})
    with pytest.raises(ValueError, match=r"\('Y', -2\) ends in EOS: attributes .* start .* only, but .* say 'end'"):
        semi.fit(X, [[(u, v, "Y") for u, v, _ in row] for row in y])


def test_max_length():
    X = [[["a"]] * 6, [["a"], ["b"]] * 3]
    y = [[(0, 5, "A"), (5, 6, "B")], [(0, 2, "A"), (2, 6, "B")]]
    assert sc.SemiCRF().fit(X, y).model_.max_length == 5
    assert sc.SemiCRF(max_length=7).fit(X, y).model_.max_length == 7
    with pytest.raises(ValueError, match=r"y\[0\] has a segment \(0, 5\) of 5 tokens, longer than max_length = 3"):
        sc.SemiCRF(max_length=3).fit(X, y)
    split = sc.SemiCRF(max_length=3, long_segments="split").fit(X, y)
    pieces = [[(0, 3, "A"), (3, 5, "A"), (5, 6, "B")], [(0, 2, "A"), (2, 5, "B"), (5, 6, "B")]]
    assert split.loss_ == sc.SemiCRF(max_length=3).fit(X, pieces).loss_
    assert split.log_likelihood(X, y) == pytest.approx(split.log_likelihood(X, pieces), rel=1e-12)
    short = sc.SemiCRF(max_length=3).fit(X, pieces)
    for question in (short.log_likelihood, lambda X, y: short.predict(X, constraints=y)):
        with pytest.raises(ValueError, match="longer than max_length = 3"):
            question(X, y)
    assert short.score(X, y) < 1.0  # what cannot be predicted is missed


def test_repeats():
    X = [[["a"], ["a"], ["b"]]] * 2
    labels = [["A", "A", "B"], ["B", "A", "A"]]
    segments = [[(0, 2, "A"), (2, 3, "B")], [(0, 1, "B"), (1, 3, "A")]]
    for y, repeats, wanted in (
        (labels, None, False),
        (labels, True, True),
        (segments, None, True),
        (segments, False, False),
        ([labels[0], segments[1]], None, True),
    ):
        semi = sc.SemiCRF(repeats=repeats, max_length=2).fit(X, y)
        drawn = semi.sample(X[:1], 200, random_state=0)[0]
        found = any(one.label == other.label for row in drawn for one, other in zip(row, row[1:], strict=False))
        assert found is wanted
    with pytest.raises(ValueError, match="repeats is False, but in y a segment 'A' follows another of that label"):
        sc.SemiCRF(repeats=False).fit(X, [[(0, 1, "A"), (1, 2, "A"), (2, 3, "B")], None])
    long = sc.SemiCRF(max_length=1, long_segments="split").fit(X, labels)
    assert long.predict(X, constraints=labels)[0] == [(0, 1, "A"), (1, 2, "A"), (2, 3, "B")]


def test_lengths_by_label():
    X = [[{"a": 1.0}] * 4] * 2
    y = [[(0, 3, "A"), (3, 4, "B")], [(0, 2, "B"), (2, 4, "A")]]
    semi = sc.SemiCRF(max_length="by label", slack=0).fit(X, y)
    drawn = semi.sample(X[:1], 300, random_state=0)[0]
    longest = {label: max(v - u for row in drawn for u, v, y in row if y == label) for label in "AB"}
    assert longest == {"A": 3, "B": 2} and semi.model_.max_length == 3
    y = [y[0], ["B", "B", None, "B"]]
    partial = sc.SemiCRF(max_length="by label", slack=0).fit(X, y)
    w = partial.model_.weights
    assert partial.loss_ == pytest.approx(Oracle.of(partial.model_, X, y).log_loss(w)[0] + w @ w, rel=1e-9)


def test_what_a_bounded_model_cannot_do(monkeypatch):
    X = [[["a"]] * 3, [["a"], ["b"]], [["a"]] * 5]
    y = [[(0, 3, "A")], [(0, 1, "A"), (1, 2, "B")]]
    semi = sc.SemiCRF(max_length="by label", slack=0, repeats=False).fit(X[:2], y)
    impossible = [None, None, [(0, 1, "B"), (1, 2, None), (2, 5, "B")]]
    monkeypatch.setattr("scansion.models.fitted._TOKENS_AT_ONCE", 3)  # each sequence is a block
    message = r"constraints\[2\] leaves no segmentation: none gets beyond position 2 without a segment that repeats"
    for ask in (semi.predict, semi.predict_marginals, lambda X, c: semi.predict_kbest(X, 2, c), semi.lattices):
        with pytest.raises(ValueError, match=message):
            ask(X, impossible)
    with pytest.raises(ValueError, match=message):
        semi.log_likelihood(X, impossible)
    with pytest.raises(ValueError, match=r"y\[1\] leaves no segmentation: none gets beyond position 3"):
        sc.SemiCRF(max_length=1, repeats=False).fit(X[1:], [["A", "B"], [(1, 2, "A"), (3, 4, "B")]])
    alone = sc.SemiCRF(max_length=3, repeats=False).fit(X[:1], y[:1])
    for ask in (alone.predict, alone.predict_marginals, alone.sample):
        with pytest.raises(ValueError, match=r"X\[1\] leaves no segmentation: none gets beyond position 3"):
            ask([X[0], X[2]])


def test_splitting_leaves_what_is_unknown_alone():
    X = [[["a"]] * 9]
    y = [["A", "A", "A", "A", None, None, None, None, "B"]]
    semi = sc.SemiCRF(max_length=3, long_segments="split", all_possible_states=True)
    one = semi.problem(X, y)
    other = sc.SemiCRF(max_length=3, all_possible_states=True).problem(X, [[(0, 3, "A"), (3, 4, "A"), (8, 9, "B")]])
    assert one[0].labels == other[0].labels
    w = np.zeros(one[0].n_weights)
    gradient = np.empty_like(w)
    loss = one[1].log_loss(w, gradient, 1)
    # the four unknown positions and the piece before them may be cut in any way that keeps the labels known
    configs = list(flat_oracle.brute.segmentations(9, 2, 3))
    wanted = [
        c for c in configs
        if (0, 3, 0) in c and any(u == 3 and y == 0 for u, _, y in c) and c[-1][2] == 1
    ]  # fmt: skip
    assert loss == pytest.approx(math.log(len(configs)) - math.log(len(wanted)), rel=1e-10)


def test_empty_sequences_and_unknown_attributes():
    X, y = [[], *SENTENCES], [[], *CHUNKS]
    semi = sc.SemiCRF().fit(X, y)
    assert semi.predict(X) == [[], *semi.predict(SENTENCES)]
    assert semi.predict([]) == [] and semi.predict_marginals([[]]) == [[]]
    assert semi.predict([[["never seen"], ["w=man"]]]) == semi.predict([[[], ["w=man"]]])


def test_state_features_tell_parts_apart():
    semi = sc.SemiCRF(attribute_parts={"w=the": ("start", "inside"), "w=man": "end"}, length_features="length")
    found = semi.fit(SENTENCES, CHUNKS).state_features_
    assert {("start:w=the", "D"), ("w=the", "D"), ("end:w=man", "N"), ("w=old", "D"), ("length", "D")} <= found.keys()
    assert semi.attributes_ == ["w=boats", "w=man", "w=old", "w=the"]


def test_any_partial_target_is_possible():
    for seed in range(10):
        for form in ("partial segments", "partial labels"):
            X, y = targets(seed, form, n=5)
            semi = sc.SemiCRF(max_iterations=1).fit(X, y)
            assert -math.inf < semi.log_likelihood(X, y) <= 1e-9
            b = min((b for b, target in enumerate(y) if target), key=lambda b: len(X[b]))
            expected = Oracle.of(semi.model_, [X[b]], [y[b]]).log_loss(semi.model_.weights)[0]
            assert_allclose(semi.log_likelihood([X[b]], [y[b]]), -expected, rtol=1e-9, atol=1e-12)
