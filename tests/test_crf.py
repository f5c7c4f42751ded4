"""CRF: its objective and answers by definition, its training beside CRFsuite."""

from __future__ import annotations

import doctest
import itertools
import math
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import flat_oracle
import numpy as np
import pytest
from flat_oracle import BOS, EOS, Problem
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import scansion as sc
from scansion.data import encode
from scansion.training.optimizers import gradient_check

CASES = {
    "order 0": {"order": 0},
    "order 1": {"order": 1},
    "order 2": {"order": 2},
    "order 3": {"order": 3},
    "attributes on pairs": {"order": 1, "attribute_orders": {"pair.": 1, "both.": (0, 1)}},
    "attributes on triples": {"order": 2, "attribute_orders": {"pair.": 2, "both.": (0, 1, 2)}},
    "all possible": {"order": 1, "all_possible_states": True, "all_possible_transitions": True},
    "all possible, order 2": {
        "order": 2,
        "all_possible_states": True,
        "all_possible_transitions": True,
        "attribute_orders": {"both.": (0, 2)},
    },
    "given patterns": {"patterns": [("X", "Y"), ("Y", "Y", "X"), ("Z", "X")]},
    "given patterns at the ends": {
        "patterns": [(BOS, "X"), ("Y", EOS), (BOS, "X", "Y", EOS), ("X", "X", EOS), ("Z", "X")],
        "attribute_orders": {"pair.": (1, 2), "both.": (0, 1)},
    },
}
cases = pytest.mark.parametrize("case", CASES)


def problem(case: str, seed: int, *, partial: bool = False, weighted: bool = False) -> Problem:
    X, y = flat_oracle.data(seed, partial=partial)
    weight = np.random.default_rng(seed).uniform(0.0, 2.0, size=len(X)) if weighted else None
    return Problem.of(sc.CRF(**CASES[case]), X, y, weight)


# The objective ------------------------------------------------------------------------------------


@cases
@pytest.mark.parametrize("partial", [False, True])
def test_loss_and_gradient_are_those_of_all_configurations(case, partial):
    for seed in range(4):
        p = problem(case, seed, partial=partial, weighted=seed % 2 == 1)
        w = p.weights(np.random.default_rng(seed))
        loss, gradient = p.log_loss(w)
        wanted, slope = p.oracle.log_loss(w)
        assert loss == pytest.approx(wanted, rel=1e-10, abs=1e-10)
        assert_allclose(gradient, slope, rtol=1e-9, atol=1e-10)


@cases
@pytest.mark.parametrize("partial", [False, True])
def test_gradient_is_that_of_finite_differences(case, partial):
    p = problem(case, 7, partial=partial, weighted=True)
    assert gradient_check(p.log_loss, p.weights(np.random.default_rng(1)), n=40) < 1e-6


@cases
@pytest.mark.parametrize("partial", [False, True])
def test_margin_loss_and_subgradient(case, partial):
    p = problem(case, 11, partial=partial, weighted=True)
    w = p.weights(np.random.default_rng(2))  # no ties: differentiable
    loss, _ = p.margin_loss(w)
    assert loss == pytest.approx(p.oracle.margin_loss(w), rel=1e-10, abs=1e-10)
    assert gradient_check(p.margin_loss, w, n=40, step=1e-7) < 1e-5


@cases
def test_threads_give_the_same_bits(case):
    X, y = flat_oracle.data(3, partial=True, n=30)
    model, objective = sc.CRF(**CASES[case]).problem(X, y)
    w = np.random.default_rng(0).normal(size=model.n_weights)
    answers = []
    for n_jobs in (1, 2, 3):
        gradient = np.empty_like(w)
        answers.append((objective.log_loss(w, gradient, n_jobs), gradient.tobytes()))
    assert answers[0] == answers[1] == answers[2]


def test_dense_and_pattern_engines_agree():
    X, y = flat_oracle.data(5, n=12)
    _, partial = flat_oracle.data(5, n=12, partial=True)
    rules = {"attribute_orders": {"pair.": 1}, "all_possible_transitions": True}
    for target in (y, partial):
        dense = sc.CRF(**rules).problem(X, target)
        # a pattern that never matches takes the model off the first-order kernel
        pairs = [*itertools.product(dense[0].labels, repeat=2), (*dense[0].labels, *dense[0].labels)]
        general = sc.CRF(patterns=pairs, attribute_orders=rules["attribute_orders"]).problem(X, target)
        assert dense[0].dense and not general[0].dense
        n = dense[0].n_bias
        w = np.random.default_rng(1).normal(size=dense[0].n_weights)
        wide = np.insert(w, n, 0.0)
        one, other = np.empty_like(w), np.empty_like(wide)
        assert dense[1].log_loss(w, one, 1) == pytest.approx(general[1].log_loss(wide, other, 1), rel=1e-12)
        assert_allclose(np.delete(other, n), one, rtol=1e-9, atol=1e-11)


@cases
def test_loss_is_minus_the_log_likelihood_of_the_lattices(case):
    X, y = flat_oracle.data(9, n=8)
    crf = sc.CRF(**CASES[case], c2=0.3, max_iterations=5).fit(X, y)
    batch = crf.lattices(X)
    rows = [np.array([crf.classes_.index(label) for label in row], np.int64) for row in y]
    by_lattices = float(batch.log_probability(rows).sum())
    assert crf.loss_ == pytest.approx(-by_lattices + 0.3 * crf.model_.weights @ crf.model_.weights, rel=1e-10)
    assert crf.log_likelihood(X, y) == pytest.approx(by_lattices, rel=1e-10)
    _, partial = flat_oracle.data(9, n=8, partial=True)
    held = crf.lattices(X, constraints=partial)
    assert crf.log_likelihood(X, partial) == pytest.approx(
        float((held.log_partition() - batch.log_partition()).sum()), rel=1e-10
    )


# Answers ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["order 1", "attributes on triples", "given patterns at the ends"])
def fitted(request):
    X, y = flat_oracle.data(21, n=10)
    crf = sc.CRF(**CASES[request.param], c2=0.05).fit(X, y)
    return crf, X, y, flat_oracle.Oracle.of(crf.model_, X, y)


def names(crf, config):
    return [crf.classes_[y] for _, _, y in config]


def test_predict(fitted):
    crf, X, _, oracle = fitted
    for answer, configs, f in zip(crf.predict(X), oracle.configs, oracle.counts, strict=True):
        scores = f @ crf.model_.weights
        at = [names(crf, c) for c in configs].index(answer)
        assert scores[at] == pytest.approx(scores.max(), rel=1e-12)
    assert crf.predict(X) == [crf.predict_single(x) for x in X]


def test_predict_single_of_any_form(fitted):
    crf, X, _, _ = fitted
    x, answer = X[0], crf.predict(X[:1])[0]
    for same in (tuple(x), iter(x), encode([x]), (token for token in x)):
        assert crf.predict_single(same) == answer
    assert crf.predict_single([]) == []
    with pytest.raises(TypeError, match="sequence 0, position 1: the token is the string 'b'"):
        crf.predict_single([["a"], "b"])


def test_predict_single_follows_the_weights():
    X, y = [[["a"], ["b"]]] * 2, [["A", "B"], ["A", "B"]]
    crf = sc.CRF(warm_start=True).fit(X, y)
    assert crf.predict_single(X[0]) == ["A", "B"]
    crf.fit(X, [["B", "A"], ["B", "A"]])
    assert crf.predict_single(X[0]) == ["B", "A"]
    crf.model_ = crf.model_.weighted(-crf.model_.weights)
    assert crf.predict_single(X[0]) == crf.predict(X)[0] == ["A", "B"]


def test_predict_marginals(fitted):
    crf, X, _, oracle = fitted
    for rows, configs, f in zip(crf.predict_marginals(X), oracle.configs, oracle.counts, strict=True):
        scores = f @ crf.model_.weights
        p = np.exp(scores - np.logaddexp.reduce(scores))
        for t, row in enumerate(rows):
            for label, value in row.items():
                wanted = sum(p[i] for i, c in enumerate(configs) if names(crf, c)[t] == label)
                assert value == pytest.approx(wanted, rel=1e-9, abs=1e-12)
    assert crf.predict_marginals_single(X[0]) == crf.predict_marginals(X)[0]


def test_predict_kbest(fitted):
    crf, X, _, oracle = fitted
    for found, f, configs in zip(crf.predict_kbest(X, 5), oracle.counts, oracle.configs, strict=True):
        scores = f @ crf.model_.weights
        wanted = np.sort(scores - np.logaddexp.reduce(scores))[::-1][:5]
        assert_allclose([p for _, p in found], wanted, rtol=1e-9, atol=1e-12)
        by_name = {tuple(names(crf, c)): s for c, s in zip(configs, scores, strict=True)}
        assert_allclose([by_name[tuple(c)] for c, _ in found], wanted + np.logaddexp.reduce(scores), rtol=1e-9)
        assert len({tuple(c) for c, _ in found}) == len(found)


def test_sample(fitted):
    crf, X, _, _ = fitted
    drawn = crf.sample(X, 400, random_state=3)
    assert drawn == crf.sample(X, 400, random_state=3)
    assert [len(d) for d in drawn] == [400] * len(X)
    for x, samples, rows in zip(X, drawn, crf.predict_marginals(X), strict=True):
        for t in range(len(x)):
            for label, p in rows[t].items():
                share = np.mean([s[t] == label for s in samples])
                assert abs(share - p) <= 5 * math.sqrt(p * (1 - p) / 400) + 1e-9


def test_predict_under_constraints(fitted):
    crf, X, _, oracle = fitted
    rng = np.random.default_rng(4)
    for _ in range(5):
        known = [flat_oracle.partial_labels(rng, row) for row in crf.predict(X)]
        known = [None if row is None else [None if y is None else {"X", "Y"} for y in row] for row in known]
        marginals = crf.predict_marginals(X, constraints=known)
        for answer, target, configs, f, rows in zip(
            crf.predict(X, constraints=known), known, oracle.configs, oracle.counts, marginals, strict=True
        ):
            scores = f @ crf.model_.weights
            possible = np.array([flat_oracle.agrees(c, target, crf.classes_, False) for c in configs])
            at = [names(crf, c) for c in configs].index(answer)
            assert possible[at] and scores[at] == pytest.approx(scores[possible].max(), rel=1e-12)
            assert all(row["Z"] == 0.0 for row, t in zip(rows, target or [], strict=False) if t is not None)
        best = [found[0][0] for found in crf.predict_kbest(X, 2, constraints=known)]
        assert best == crf.predict(X, constraints=known)


def test_score_counts_what_is_known(fitted):
    crf, X, y, _ = fitted
    guess = crf.predict(X)
    pairs = [(a, b) for row, g in zip(y, guess, strict=True) for a, b in zip(row, g, strict=True)]
    assert crf.score(X, y) == pytest.approx(np.mean([a == b for a, b in pairs]), rel=1e-12)
    assert crf.score(X, guess) == 1.0
    hidden = [None if b == 0 else [None if t else label for t, label in enumerate(row)] for b, row in enumerate(guess)]
    assert crf.score(X, hidden) == 1.0
    assert crf.score(X, [[{label, "X"} for label in row] for row in guess]) == 1.0
    never = [["never seen"] * len(row) for row in guess]
    assert crf.score(X, never) == 0.0


def test_lattice_has_the_scores_of_every_pattern(fitted):
    crf, X, y, _ = fitted
    x, row = X[0], [crf.classes_.index(label) for label in y[0]]
    lattice = crf.lattice(x)
    assert lattice.log_partition() == pytest.approx(float(crf.lattices(X).log_partition()[0]), rel=1e-12)
    assert_allclose(
        lattice.marginals().labels,
        [[p[label] for label in crf.classes_] for p in crf.predict_marginals([x])[0]],
        rtol=1e-12,
    )
    assert lattice.log_probability(row) == pytest.approx(crf.log_likelihood([x], [y[0]]), rel=1e-10)
    if not crf.model_.dense:
        assert lattice.marginals().patterns.shape == (len(x), len(crf.classes_) + len(crf.patterns_))


def test_blocks_give_the_same_answers(fitted, monkeypatch):
    crf, X, y, _ = fitted
    whole = crf.predict(X), crf.predict_marginals(X), crf.score(X, y), crf.predict_kbest(X, 2)
    likelihood = crf.log_likelihood(X, y)
    monkeypatch.setattr("scansion.models.fitted._TOKENS_AT_ONCE", 4)
    assert (crf.predict(X), crf.predict_marginals(X), crf.score(X, y), crf.predict_kbest(X, 2)) == whole
    assert crf.log_likelihood(X, y) == pytest.approx(likelihood, rel=1e-12)
    assert crf.predict(X, constraints=whole[0]) == whole[0]


# Data in ------------------------------------------------------------------------------------------

DICTS = [
    [{"w": "the", "len": 3.0, "caps": True, "ctx": {"-1": "in"}}, {"w": "cat", "tags": ["a", "b"]}],
    [{"w": "a", "len": 1.0}, {"w": "dog", "caps": False}, {"w": "runs"}],
]
DICT_LABELS = [["D", "N"], ["D", "N", "V"]]


def test_forms_of_x_that_mean_the_same():
    crf = sc.CRF().fit(DICTS, DICT_LABELS)
    wanted = crf.predict_marginals(DICTS)
    assert crf.state_features_.keys() >= {("w:the", "D"), ("len", "D"), ("ctx:-1:in", "D"), ("tags:a", "N")}
    forms = {
        "generator": lambda: (iter(x) for x in DICTS),
        "tuples": lambda: tuple(map(tuple, DICTS)),
        "dataset": lambda: encode(DICTS),
    }
    for form in forms.values():
        again = sc.CRF().fit(form(), (iter(row) for row in DICT_LABELS))
        assert again.predict_marginals(form()) == wanted
        assert crf.predict_marginals(form()) == wanted
        assert crf.score(form(), DICT_LABELS) == crf.score(DICTS, DICT_LABELS)


def test_strings_and_sets_of_strings():
    lists = [[["w=a", "x"], ["w=b"]], [["w=b"], []]]
    y = [["A", "B"], ["B", "B"]]
    sets = [[set(token) for token in x] for x in lists]
    assert_array_equal(sc.CRF().fit(lists, y).loss_, sc.CRF().fit(sets, y).loss_)


def test_arrays_and_sparse_matrices():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(5, 3))
    arrays = [rng.normal(size=(int(rng.integers(1, 8)), 5)) for _ in range(60)]
    y = [[LETTERS[i] for i in (x @ truth).argmax(axis=1)] for x in arrays]
    crf = sc.CRF(c2=0.01).fit(arrays, y)
    assert crf.score(arrays, y) > 0.97
    assert len(crf.state_features_) == 15  # also those whose values sum to less than 0
    matrices = [sparse.csr_matrix(x) for x in arrays]
    assert crf.predict(matrices) == crf.predict(arrays)
    assert sc.CRF(c2=0.01).fit(matrices, y).loss_ == crf.loss_
    stacked = np.stack([x[:1] for x in arrays])
    assert crf.predict(stacked) == crf.predict([x[:1] for x in arrays])


LETTERS = "ABC"


def test_labels_may_be_numbers():
    X = [[["a"], ["b"]], [["b"], ["a"]]]
    y = [np.array([3, 7]), np.array([7, 3])]
    crf = sc.CRF(c2=0.1).fit(X, y)
    assert crf.classes_ == [3, 7] and all(type(label) is int for label in crf.classes_)
    assert crf.predict(X) == [[3, 7], [7, 3]]
    assert crf.transition_features_.keys() == {(3, 7), (7, 3)}
    tuples = [[("a", 1), ("b", 2)], [("b", 2), ("a", 1)]]
    assert sc.CRF(c2=0.1).fit(X, tuples).predict(X) == tuples


def test_empty_sequences_and_no_sequences():
    X, y = [[], [["a"]], [["b"]], []], [[], ["A"], ["B"], []]
    crf = sc.CRF(c2=0.1).fit(X, y)
    assert crf.predict(X) == y
    assert crf.predict_marginals([[]]) == [[]]
    assert crf.predict_kbest([[]], 3) == [[([], 0.0)]]
    assert crf.sample([[]], 2) == [[[], []]]
    assert crf.predict([]) == crf.predict_marginals([]) == crf.predict_kbest([], 2) == crf.sample([]) == []
    assert crf.log_likelihood([], []) == 0.0
    assert crf.log_likelihood([[]], [[]]) == 0.0
    assert len(crf.lattices([])) == 0


def test_tokens_without_attributes_and_unknown_attributes():
    X, y = [[["a"], []], [[], ["b"]]], [["A", "B"], ["A", "B"]]
    crf = sc.CRF().fit(X, y)
    assert crf.predict_marginals([[["never seen"], ["a", "nor this"]]]) == crf.predict_marginals([[[], ["a"]]])
    nothing = sc.CRF(order=0).fit([[[], []]], [["A", "B"]])  # no feature at all
    assert nothing.model_.n_weights == 0
    assert nothing.predict_marginals([[[]]]) == [[{"A": 0.5, "B": 0.5}]]


def test_features_by_prefix_and_order():
    X = [[{"w": "a", "p": "x"}, {"w": "b", "p": "y"}, {"w": "c", "p": "x"}]]
    y = [["A", "B", "A"]]
    crf = sc.CRF(order=2, attribute_orders={"w:": (0, 2), "p:": 1, "p:y": 0}, c2=0.1).fit(X, y)
    assert crf.state_features_.keys() == {("w:a", "A"), ("w:b", "B"), ("w:c", "A"), ("p:y", "B")}
    assert crf.attribute_pattern_features_.keys() == {("w:c", ("A", "B", "A")), ("p:x", ("B", "A"))}
    assert crf.pattern_features_.keys() == {("A", "B"), ("B", "A"), ("A", "B", "A")}
    assert crf.transition_features_.keys() == {("A", "B"), ("B", "A")}
    assert crf.patterns_ == [("A", "B"), ("B", "A"), ("A", "B", "A")]
    assert crf.attributes_ == ["p:x", "p:y", "w:a", "w:b", "w:c"]
    assert crf.size_ == 9


def test_no_feature_reaches_over_what_is_unknown():
    X = [[["a"], ["b"], ["c"], ["d"]]]
    crf = sc.CRF(order=2).fit(X, [["A", None, "B", "B"]])
    assert crf.patterns_ == [("B", "B")]
    assert crf.attributes_ == ["a", "c", "d"]
    crf = sc.CRF(order=3).fit([x[0:2] for x in X * 2], [["A", "B"], ["B", "A"]])
    assert crf.patterns_ == [("A", "B"), ("B", "A")]  # nor over the end of a sequence


def test_partial_labels_beat_the_labelled_fraction():
    rng = np.random.default_rng(0)

    def sentences(n):
        X, y = [], []
        for _ in range(n):
            row, state = [], int(rng.integers(3))
            for _ in range(10):
                state = (state + int(rng.random() < 0.8)) % 3
                row.append(state)
            X.append([[f"w{state}{rng.integers(6)}" if rng.random() < 0.7 else f"n{rng.integers(6)}"] for state in row])
            y.append(row)
        return X, y

    X, y = sentences(60)
    test = sentences(100)
    hidden = [[label if rng.random() < 0.3 else None for label in row] for row in y]
    blurred = [
        [{label, int(rng.integers(3))} if seen is None else seen for label, seen in zip(row, known, strict=True)]
        for row, known in zip(y, hidden, strict=True)
    ]
    complete = [b for b, row in enumerate(hidden) if None not in row]
    assert not complete  # training on complete sequences alone would have nothing
    some = sc.CRF(c2=0.1).fit(X, hidden).score(*test)
    more = sc.CRF(c2=0.1).fit(X, blurred).score(*test)
    everything = sc.CRF(c2=0.1).fit(X, y).score(*test)
    assert 0.6 < some < everything + 0.02
    assert some - 0.02 < more < everything + 0.02


def test_sequences_of_which_nothing_is_known_change_nothing():
    X, y = flat_oracle.data(31, n=6)
    alone = sc.CRF().fit(X, y)
    beside = sc.CRF().fit([*X, [{"other": 1.0}] * 3], [*y, None])
    assert beside.loss_ == pytest.approx(alone.loss_, rel=1e-12)
    assert beside.log_likelihood([*X, X[0]], [*y, None]) == pytest.approx(alone.log_likelihood(X, y), rel=1e-9)
    for algorithm in ("l2sgd", "ap", "pa", "mm"):
        sc.CRF(algorithm=algorithm, max_iterations=3).fit([*X, X[0]], [*y, None])


def test_sample_weights_count_sequences():
    X, y = flat_oracle.data(33, n=5)
    counts = np.array([1, 2, 0, 1, 3])
    again = [b for b, n in enumerate(counts) for _ in range(n)]
    tight = {"epsilon": 1e-8, "period": 0, "all_possible_states": True, "all_possible_transitions": True}
    weighted = sc.CRF(**tight).fit(X, y, sample_weight=counts)
    repeated = sc.CRF(**tight).fit([X[b] for b in again], [y[b] for b in again])
    assert weighted.loss_ == pytest.approx(repeated.loss_, rel=1e-9)


# Documentation ------------------------------------------------------------------------------------

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("page", ["concepts/crf.md", "concepts/semicrf.md", "coming-from-crfsuite.md"])
def test_pages(page):
    result = doctest.testfile(str(ROOT / "docs" / page), module_relative=False, encoding="utf-8")
    assert result.attempted > 0 and result.failed == 0


def test_docstrings():
    import scansion.models.crf
    import scansion.models.semicrf

    for module in (scansion.models.crf, scansion.models.semicrf):
        result = doctest.testmod(module)
        assert result.attempted > 0 and result.failed == 0


def test_example():
    script = ROOT / "examples" / "tagging.py"
    done = subprocess.run([sys.executable, "-W", "error", str(script)], check=True, capture_output=True, text=True)
    assert "Anna/person Lopez/person" in done.stdout and "Buenos Aires: place" in done.stdout


# Beside CRFsuite ----------------------------------------------------------------------------------


def random_tagging(seed: int, n: int = 12):
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        labels = rng.integers(3, size=int(rng.integers(1, 7)))
        X.append([
            {f"w{int(rng.integers(4)) + 3 * int(label)}": 1.0, "value": float(rng.random()), f"n{rng.integers(3)}": 2.0}
            for label in labels
        ])  # fmt: skip
        y.append([LETTERS[label] for label in labels])
    return X, y


class Crfsuite:
    """A model that python-crfsuite trained."""

    def __init__(self, path, X, y, **params):
        pycrfsuite = pytest.importorskip("pycrfsuite")
        trainer = pycrfsuite.Trainer(verbose=False)
        for x, row in zip(X, y, strict=True):
            trainer.append(x, row)
        trainer.set_params(params)
        trainer.train(str(path))
        self.n_features = trainer.logparser.featgen_num_features
        self.loss = trainer.logparser.last_iteration["loss"]
        self.tagger = pycrfsuite.Tagger()
        self.tagger.open(str(path))
        info = self.tagger.info()
        self.transitions, self.states = info.transitions, info.state_features


TIGHT = {"epsilon": 1e-7, "period": 10, "delta": 1e-14, "max_iterations": 2000}


@pytest.mark.parametrize("c1, c2", [(0.0, 1.0), (0.0, 0.1), (0.5, 0.0), (0.2, 0.3)])
def test_same_optimum_as_crfsuite(tmp_path, c1, c2):
    for seed in range(4):
        X, y = random_tagging(seed)
        theirs = Crfsuite(tmp_path / "model", X, y, c1=c1, c2=c2, **TIGHT)
        ours = sc.CRF(c1=c1, c2=c2, **TIGHT).fit(X, y)
        assert ours.model_.n_weights == theirs.n_features
        assert ours.loss_ == pytest.approx(theirs.loss, rel=1e-6)
        if c2 == 0.0:
            continue  # the optimum need not be one point
        for found, wanted in (
            (ours.transition_features_, theirs.transitions),
            (ours.state_features_, theirs.states),
        ):
            for key in found.keys() | wanted.keys():
                assert found.get(key, 0.0) == pytest.approx(wanted.get(key, 0.0), abs=2e-3)
        for x, guess, rows in zip(X, ours.predict(X), ours.predict_marginals(X), strict=True):
            theirs.tagger.set(x)
            assert guess == theirs.tagger.tag()
            for t, row in enumerate(rows):
                for label, p in row.items():
                    assert p == pytest.approx(theirs.tagger.marginal(label, t), abs=1e-3)


@pytest.mark.parametrize("min_freq", [0.0, 1.5, 3.0])
@pytest.mark.parametrize("states", [False, True])
@pytest.mark.parametrize("transitions", [False, True])
def test_same_features_as_crfsuite(tmp_path, min_freq, states, transitions):
    for seed in range(3):
        X, y = random_tagging(seed, 8)
        params = {"feature.minfreq": min_freq, "feature.possible_states": states}
        theirs = Crfsuite(
            tmp_path / "m", X, y, c2=1.0, max_iterations=1, **params, **{"feature.possible_transitions": transitions}
        )
        ours = sc.CRF(
            min_freq=min_freq, all_possible_states=states, all_possible_transitions=transitions, max_iterations=1
        )
        told = pytest.warns(UserWarning, match="has no effect") if states and min_freq else nullcontext()
        with told:
            ours.fit(X, y)
        assert ours.model_.n_weights == theirs.n_features


def test_min_freq_counts_longer_patterns_too():
    X = [[[], [], []]] * 3
    y = [["A", "B", "A"], ["A", "B", "A"], ["B", "B", "B"]]
    assert sc.CRF(order=2, min_freq=2).fit(X, y).patterns_ == [("A", "B"), ("B", "A"), ("B", "B"), ("A", "B", "A")]
    assert sc.CRF(order=2, min_freq=3).fit(X, y).patterns_ == []
