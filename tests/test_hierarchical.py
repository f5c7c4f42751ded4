"""HierarchicalCRF: its objective and answers by definition, over all trees of tiny sequences."""

from __future__ import annotations

import copy
import doctest
import runpy
from pathlib import Path

import hierarchical_oracle
import numpy as np
import pytest
from hierarchical_oracle import Oracle
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import scansion as sc
from scansion import _core
from scansion.training.optimizers import gradient_check


def span_dict(x, start, stop):
    """A function of the span: what the first and the last token have in common."""
    both = {name: x[start][name] * x[stop - 1][name] for name in x[start] if name in x[stop - 1]}
    return {**both, f"size {stop - start}": 1.0}


EVERYWHERE = ("inside", "start", "end", "inner", "transition", "initialisation", "ending")
PARTS = {
    "top": {"": "inside", "edge.": ("start", "end"), "pair.": ("transition", "initialisation", "ending")},
    "low": {"a": "inner", "edge.c": ("start", "ending"), "edge.d": (), "pair.": ("inside", "transition")},
}
TWO, BOUNDS = ["top", "low"], {"top": 3, "low": 2}
CASES = {
    "two levels": {"levels": TWO, "max_length": BOUNDS},
    "single steps": {"levels": TWO, "max_length": {"top": 3, "low": 1}},
    "no bound": {"levels": TWO, "max_length": "free"},
    "no bound above single steps": {"levels": TWO, "max_length": {"top": "free", "low": 1}},
    "a bound above none": {"levels": TWO, "max_length": {"top": 4, "low": "free"}, "length_features": {"top": "log"}},
    "parts": {"levels": TWO, "max_length": BOUNDS, "attribute_parts": PARTS},
    "all parts": {"levels": TWO, "max_length": BOUNDS, "attribute_parts": {"top": EVERYWHERE, "low": EVERYWHERE}},
    "all parts, no bound": {
        "levels": TWO,
        "max_length": "free",
        "attribute_parts": {"top": EVERYWHERE, "low": PARTS["low"]},
    },
    "lengths": {"levels": TWO, "max_length": BOUNDS, "length_features": ("bins", "length", "log")},
    "length, no bound": {
        "levels": TWO,
        "max_length": "free",
        "length_features": "length",
        "attribute_parts": {"low": ()},
    },
    "spans": {"levels": TWO, "max_length": BOUNDS, "segment_features": {"top": span_dict, "low": [span_dict]}},
    "everything there is": {
        "levels": TWO,
        "max_length": BOUNDS,
        "attribute_parts": PARTS,
        "length_features": {"top": ("length", "log")},
        "segment_features": {"top": span_dict},
        "all_possible_states": True,
        "topology": "all",
    },
    "only what is seen": {"levels": TWO, "max_length": BOUNDS, "all_possible_transitions": False, "min_freq": 0.1},
    "topology": {"levels": TWO, "max_length": BOUNDS, "topology": {"X": ["p", "q", "r"], "Y": ["p", "q", "r", "new"]}},
    "one level": {"levels": ["low"], "max_length": 2, "length_features": "log"},
    "one level of steps": {"levels": ["low"], "max_length": 1, "attribute_parts": {"low": ("inside", "transition")}},
    "three levels": {"levels": ["top", "middle", "low"], "max_length": {"top": 4, "middle": "free", "low": 1}},
}
cases = pytest.mark.parametrize("case", CASES)
hidden = pytest.mark.parametrize("hidden", [False, True], ids=["complete", "partial"])


def problem(case: str, seed: int, hidden: bool, weighted: bool = False, n: int = 3):
    settings = CASES[case]
    given = settings["max_length"]
    limits = [given.get(name) if isinstance(given, dict) else given for name in settings["levels"]]
    bounds = [4 if limit == "free" else limit for limit in limits]
    longest = 4 if case in ("two levels", "single steps", "one level") else 3
    X, y = hierarchical_oracle.data(seed, settings["levels"], bounds, hidden=hidden, n=n, longest=longest)
    weight = np.random.default_rng(seed).choice([0.0, 0.5, 2.0], size=len(X)) if weighted else None
    model = sc.HierarchicalCRF(**{"repeats": True, **settings})
    built, objective = model.problem(X, y, weight)
    spans = dict.fromkeys(settings.get("segment_features", ()), span_dict)

    def function(w):
        gradient = np.empty_like(w)
        return objective.log_loss(w, gradient, 1), gradient

    return built, function, lambda: Oracle(built, X, y, spans, weight), X, y


# The objective ------------------------------------------------------------------------------------


@cases
@hidden
def test_loss_and_gradient_are_those_of_all_trees(case, hidden):
    for seed in range(2):
        built, function, oracle, *_ = problem(case, seed, hidden, weighted=seed % 2 == 1)
        w = np.random.default_rng(seed).normal(scale=0.7, size=built.n_weights)
        loss, gradient = function(w)
        wanted, slope = oracle().log_loss(w)
        assert loss == pytest.approx(wanted, rel=1e-10, abs=1e-10)
        assert_allclose(gradient, slope, rtol=1e-9, atol=1e-10)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=15)
def test_loss_and_gradient_of_any_settings(seed):
    """Whatever the features and the topology; what is said to be impossible is."""
    rng = np.random.default_rng(seed)
    parts = {name: tuple(part for part in EVERYWHERE if rng.random() < 0.4) for name in TWO}
    limit = ["auto", None, "free", 3][rng.integers(4)]
    lengths = [(), ("length",), ("log", "bins")][rng.integers(2 if limit == "free" else 3)]
    model = sc.HierarchicalCRF(
        TWO,
        max_length=limit,
        length_features=lengths,
        attribute_parts=parts,
        topology=[None, "seen", "all"][rng.integers(3)],
        transitions=str(rng.choice(["all", "seen"])),
        all_possible_states=bool(rng.integers(2)),
        all_possible_transitions=bool(rng.integers(2)),
        min_freq=float(rng.choice([0.0, 0.5])),
    )
    X, y = hierarchical_oracle.data(seed, TWO, [3, 2], hidden=bool(rng.integers(2)), n=3, longest=3)
    try:
        built, objective = model.problem(X, y)
    except ValueError as error:
        assert "leaves no tree" in str(error)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("scansion.models.estimator.Estimator._check_partial", lambda *_: None)
            built = model.problem(X, y)[0]
        wrong = int(str(error)[2])  # y[.]
        assert not any(Oracle(built, [X[wrong]], [y[wrong]]).rows[0][2])
        return
    w = rng.normal(size=built.n_weights)
    gradient = np.empty_like(w)
    loss = objective.log_loss(w, gradient, 2)
    told = objective.examples
    wanted, slope = Oracle(built, [X[b] for b in told], [y[b] for b in told]).log_loss(w)
    assert loss == pytest.approx(wanted, rel=1e-9, abs=1e-9)
    assert_allclose(gradient, slope, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("case", ["two levels", "all parts, no bound", "everything there is", "three levels"])
@hidden
def test_gradient_is_that_of_finite_differences(case, hidden):
    built, function, *_ = problem(case, 5, hidden)
    w = np.random.default_rng(1).normal(scale=0.7, size=built.n_weights)
    assert gradient_check(function, w, n=10) < 1e-6


def weighted(case: str, seed: int, hidden: bool = False):
    """An estimator whose model has random weights, with the oracle of some sequences."""
    built, _, oracle, X, y = problem(case, seed, hidden)
    w = np.random.default_rng(seed).normal(scale=0.7, size=built.n_weights)
    model = sc.HierarchicalCRF(**CASES[case])
    model.model_ = built.weighted(w)
    return model, oracle(), X, y, w


# Answers ------------------------------------------------------------------------------------------


def named(model, config):
    built = model.model_
    return [[(u, v, level.labels[s]) for u, v, s in config[k + 1]] for k, level in enumerate(built.levels)]


@pytest.mark.parametrize("case", ["two levels", "all parts, no bound", "everything there is", "three levels"])
def test_answers_are_those_of_all_trees(case):
    model, oracle, X, y, w = weighted(case, 3, hidden=True)
    free, held = model.predict_kbest(X, 3), model.predict_kbest(X, 3, constraints=y)
    marginals = model.predict_marginals(X, constraints=y)
    total = 0.0
    for b, (configs, features, kept) in enumerate(oracle.rows):
        scores = features @ w
        log_z, known = np.logaddexp.reduce(scores), np.logaddexp.reduce(scores[kept])
        total += known - log_z
        for found, chosen, norm in ((free[b], np.ones(len(kept), bool), log_z), (held[b], kept, known)):
            wanted = np.sort(scores[chosen])[::-1][:3] - norm
            assert_allclose([p for _, p in found], wanted, rtol=1e-9, atol=1e-9)
            best = configs[int(np.argmax(np.where(chosen, scores, -np.inf)))]
            assert found[0][0] == named(model, best)
        for k, level in enumerate(model.model_.levels):
            wanted = np.zeros((len(X[b]), level.size))
            for config, score, ok in zip(configs, scores, kept, strict=True):
                if ok:
                    for u, v, s in config[k + 1]:
                        wanted[u:v, s] += np.exp(score - known)
            got = [[row[label] for label in level.labels] for row in marginals[b][level.name]]
            assert_allclose(np.array(got), wanted, rtol=1e-8, atol=1e-10)
    assert model.log_likelihood(X, y) == pytest.approx(total, rel=1e-9)
    assert model.predict(X) == [found[0][0] for found in free]
    assert model.predict(X, constraints=y) == [found[0][0] for found in held]
    assert model.predict_single(X[0]) == free[0][0][0]
    assert model.predict_marginals_single(X[0]) == model.predict_marginals(X[:1])[0]


def test_samples_have_the_frequencies_of_the_model():
    model, oracle, X, _, w = weighted("two levels", 1)
    b = int(np.argmin([len(configs) for configs, _, _ in oracle.rows]))
    configs, features, _ = oracle.rows[b]
    p = np.exp(features @ w - np.logaddexp.reduce(features @ w))
    drawn = model.sample([X[b]], 2000, random_state=0)[0]
    known = [named(model, config) for config in configs]
    counts = np.bincount([known.index(one) for one in drawn], minlength=len(known)) / len(drawn)
    assert (np.abs(counts - p) <= 5.0 * np.sqrt(p * (1.0 - p) / len(drawn))).all()  # five standard deviations
    assert model.sample([X[b]], 5, random_state=3) == model.sample([X[b]], 5, random_state=3)


def test_lattices():
    model, _, X, y, _ = weighted("two levels", 3, hidden=True)
    batch = model.lattices(X, constraints=y)
    assert isinstance(batch, sc.NestedBatch) and len(batch) == len(X)
    assert batch.sizes == (1, *(len(labels) for labels in model.classes_.values()))
    lattice = model.lattice(X[0])
    assert isinstance(lattice, sc.NestedLattice)
    best, score = lattice.viterbi()
    assert model.predict_kbest(X[:1], 1)[0][0][1] == pytest.approx(score - lattice.log_partition(), rel=1e-9)
    assert named(model, best) == model.predict_single(X[0])


def test_blocks_give_the_same_answers(monkeypatch):
    model, _, X, y, _ = weighted("everything there is", 4, hidden=True)
    asked = model.predict(X), model.predict_marginals(X, constraints=y), model.log_likelihood(X, y)
    monkeypatch.setattr("scansion.models.fitted._TOKENS_AT_ONCE", 3)
    assert (model.predict(X), model.predict_marginals(X, constraints=y), model.log_likelihood(X, y)) == asked


def test_the_objective_is_the_sum_of_those_of_the_sequences():
    built, function, _, X, y = problem("everything there is", 4, True)
    w = np.random.default_rng(0).normal(size=built.n_weights)
    loss, gradient = function(w)
    model = sc.HierarchicalCRF(**{"repeats": True, **CASES["everything there is"]})
    again, slope, one = 0.0, np.zeros_like(w), np.empty_like(w)
    for b in range(len(X)):
        again += model.problem(X, y, np.eye(len(X))[b]).objective.log_loss(w, one, 1)
        slope += one
    assert again == pytest.approx(loss, rel=1e-12)
    assert_allclose(slope, gradient, rtol=1e-10, atol=1e-12)


# Special cases ------------------------------------------------------------------------------------


def flat_loss(flat, X, y, seed):
    """The loss of a flat model at random weights, and the weights by name."""
    model, objective = flat.problem(X, y)
    w = np.random.default_rng(seed).normal(size=model.n_weights)
    weighted = model.weighted(w)
    names = {(block.part, name, pattern): value for block, name, pattern, value in weighted.named_features()}
    return objective.log_loss(w, np.empty_like(w), 1), names


def nested_loss(nested, X, y, weights):
    """The loss of a model of one level at the weights of a flat one; what the flat one does not have is 0."""
    model, objective = nested.problem(X, y)
    w = np.zeros(model.n_weights)
    used = set()
    for block, where in model.parts():
        rows, columns = model.row_names(block), model.column_names(block)
        for i, (r, c) in enumerate(zip(block.row.tolist(), block.columns.tolist(), strict=True)):
            column = columns[c][1:] if block.part == "transition" else columns[c]
            key = ("pattern" if block.part == "transition" else block.part, rows[r], column)
            if key in weights:
                used.add(key)
                w[where.start + i] = weights[key]
    assert used == set(weights)
    return objective.log_loss(w, np.empty_like(w), 1)


@hidden
def test_one_level_of_single_steps_is_a_crf(hidden):
    rng = np.random.default_rng(7)
    X = [hierarchical_oracle.tokens(rng, 5) for _ in range(4)]
    y = [[str(rng.choice(["p", "q", "r"])) for _ in x] for x in X]
    if hidden:
        y[1:] = [[None if rng.random() < 0.4 else {label, "p"} for label in row] for row in y[1:]]
    loss, weights = flat_loss(sc.CRF(), X, y, 0)
    weights = {("inside" if block == "start" else block, name, p): w for (block, name, p), w in weights.items()}
    nested = sc.HierarchicalCRF(["low"], max_length=1, all_possible_transitions=False)
    assert nested_loss(nested, X, [[row] for row in y], weights) == pytest.approx(loss, rel=1e-10)


@hidden
def test_one_level_with_durations_is_a_semicrf(hidden):
    X, rows = hierarchical_oracle.data(4, ["low"], [3], hidden=hidden, n=5)
    y = [None if row is None or isinstance(row.get("low"), dict) else row.get("low") for row in rows]
    settings = {"max_length": 3, "length_features": ("length", "log")}
    parts = {"a": ("start", "inner"), "edge.": ("inside", "end")}
    flat = sc.SemiCRF(
        **settings,
        repeats=True,
        attribute_parts=parts,
        segment_features=span_dict,
        all_possible_transitions=False,
    )
    loss, weights = flat_loss(flat, X, y, 1)
    nested = sc.HierarchicalCRF(
        ["low"],
        **settings,
        repeats=True,
        attribute_parts={"low": parts},
        segment_features={"low": span_dict},
        all_possible_transitions=False,
    )
    wanted = nested_loss(nested, X, [None if row is None else [row] for row in y], weights)
    assert wanted == pytest.approx(loss, rel=1e-10)


# Learning -----------------------------------------------------------------------------------------


def simulated(n: int, seed: int):
    """Activities of steps: who cooks never sleeps, and steps have their habits and their noisy positions."""
    rng = np.random.default_rng(seed)
    steps = {"cook": ["fetch", "chop", "fry"], "rest": ["fetch", "sleep"]}
    place = {"fetch": (0.0, 0.0), "chop": (2.0, 0.0), "fry": (2.0, 2.0), "sleep": (0.0, 3.0)}
    X, y = [], []
    for _ in range(n):
        x, top, low = [], [], []
        for activity in rng.permutation(["cook", "rest", "cook"])[: rng.integers(1, 4)].tolist():
            begin = len(x)
            for step in steps[activity]:
                start = len(x)
                for _ in range(int(rng.integers(1, 4))):
                    dx, dy = rng.normal(scale=0.5, size=2)
                    x.append({"bias": 1.0, "x": place[step][0] + dx, "y": place[step][1] + dy})
                low.append((start, len(x), step))
            top.append((begin, len(x), activity))
        X.append(x)
        y.append({"activity": top, "step": low})
    return X, y


DATA, TARGETS = simulated(25, 0)
TEST, TRUTH = simulated(15, 1)
NAMES = ["activity", "step"]
LIMITS = {"activity": "free", "step": None}
FAST = {"c2": 0.1, "max_iterations": 40}


@pytest.fixture(scope="module")
def fitted():
    return sc.HierarchicalCRF(NAMES, max_length=LIMITS, **FAST).fit(DATA, TARGETS)


def test_learning_recovers_a_simulated_model(fitted):
    assert fitted.topology_ == {"activity": {"cook": ["fetch", "chop", "fry"], "rest": ["fetch", "sleep"]}}
    assert fitted.max_length_ == {"activity": None, "step": 3}
    found = fitted.scores(TEST, TRUTH)
    assert set(found) == set(NAMES)
    assert found["activity"]["accuracy"] > 0.95 and found["step"]["f1"] > 0.9
    assert fitted.score(TEST, TRUTH) == pytest.approx(np.mean([found[name]["f1"] for name in NAMES]))
    assert fitted.score(TEST, TRUTH, level="step") == found["step"]["f1"]
    weights = fitted.transition_features_
    assert weights["step", "cook", "fetch", "chop"] > weights["step", "cook", "fetch", "fry"]
    first = fitted.initialisation_features_
    assert first["step", "cook", "fetch"] > first["step", "cook", "fry"]
    assert fitted.ending_features_["step", "rest", "sleep"] > fitted.ending_features_["step", "rest", "fetch"]
    assert fitted.state_features_["step", "x", "fry"] > fitted.state_features_["step", "x", "fetch"]
    assert fitted.attributes_ == ["bias", "x", "y"] and 0 < fitted.size_ <= fitted.model_.n_weights


def test_constraints_help(fitted):
    for level, other in (NAMES, NAMES[::-1]):
        known = [{level: row[level]} for row in TRUTH]
        found = fitted.predict(TEST, constraints=known)
        assert all(guess[level] == row[level] for guess, row in zip(found, TRUTH, strict=True))
        right = [set(guess[other]) & set(map(tuple, row[other])) for guess, row in zip(found, TRUTH, strict=True)]
        assert fitted.scores(TEST, TRUTH, constraints=known)[level] == {"accuracy": 1.0, "f1": 1.0}
        free = fitted.scores(TEST, TRUTH)[other]["f1"]
        assert sum(map(len, right)) / sum(len(row[other]) for row in TRUTH) >= free - 0.02


def test_partial_labels(fitted):
    rng = np.random.default_rng(0)
    some = []
    for x, row in zip(DATA, TARGETS, strict=True):
        hidden = {}
        for name in NAMES:
            labels = [label for u, v, label in row[name] for _ in range(u, v)]
            hidden[name] = {"labels": [label if rng.random() < 0.5 else None for label in labels]}
        assert len(x) == len(hidden["step"]["labels"])
        some.append(hidden)
    steps = {"cook": ["fetch", "chop", "fry"], "rest": ["fetch", "sleep"]}
    limits, repeats = {"activity": "free", "step": 3}, {"activity": True, "step": False}
    model = sc.HierarchicalCRF(NAMES, max_length=limits, topology=steps, repeats=repeats, **FAST).fit(DATA, some)
    assert model.scores(TEST, TRUTH)["step"]["accuracy"] > 0.85
    assert model.log_likelihood(DATA, some) > model.log_likelihood(DATA, TARGETS)


@pytest.mark.parametrize("algorithm", ["l2sgd", "asgd"])
def test_stochastic_gradients_come_near_the_optimum(fitted, algorithm):
    settings = {"max_length": LIMITS, "c2": 0.1, "max_iterations": 25, "algorithm": algorithm}
    settings.update(random_state=1, batch_size=8, period=0)
    model = sc.HierarchicalCRF(NAMES, **settings).fit(DATA, TARGETS)
    again = sc.HierarchicalCRF(NAMES, **settings, n_jobs=2).fit(DATA, TARGETS)
    assert np.array_equal(model.model_.weights, again.model_.weights)
    w = model.model_.weights
    loss = -model.log_likelihood(DATA, TARGETS) + 0.1 * float(w @ w)
    assert loss < 1.3 * fitted.loss_
    assert len(model.training_log_) == model.n_iter_ == 25


def test_the_number_of_threads_changes_nothing(fitted):
    again = sc.HierarchicalCRF(NAMES, max_length=LIMITS, n_jobs=3, **FAST).fit(DATA, TARGETS)
    assert np.array_equal(again.model_.weights, fitted.model_.weights)
    assert again.predict(TEST) == fitted.predict(TEST)


def test_steps_that_are_too_large_do_no_harm():
    built, function, *_ = problem("two levels", 0, False)
    assert function(np.full(built.n_weights, 1e200))[0] == np.inf
    assert function(np.full(built.n_weights, np.nan))[0] == np.inf
    settings = {"algorithm": "l2sgd", "max_iterations": 3, "random_state": 0, "c2": 1e-3, "calibration_max_trials": 3}
    model = sc.HierarchicalCRF(NAMES, **settings, calibration_eta=1e40).fit(DATA[:5], TARGETS[:5])
    w, objective = model.model_.weights, model.problem(DATA[:5], TARGETS[:5])[1]
    assert model.loss_ == pytest.approx(objective.log_loss(w, np.empty_like(w), 1) + 1e-3 * w @ w, rel=1e-9)
    with pytest.raises(ValueError, match="algorithm='l2sgd' went out of range: weight 0 is"):
        sc.HierarchicalCRF(NAMES, **settings, calibration_eta=1e120).fit(DATA[:5], TARGETS[:5])


def test_l1_makes_weights_zero():
    model = sc.HierarchicalCRF(NAMES, max_length=LIMITS, c1=2.0, c2=0.0).fit(DATA, TARGETS)
    assert 0 < model.size_ < 0.7 * model.model_.n_weights
    assert model.score(TEST, TRUTH) > 0.8


def test_penalties_by_level():
    strong = sc.HierarchicalCRF(NAMES, max_length=LIMITS, c2={"activity": 1e4, "step": 0.1})
    strong.set_params(max_iterations=20).fit(DATA, TARGETS)
    top = [abs(w) for (level, *_), w in strong.state_features_.items() if level == "activity"]
    low = [abs(w) for (level, *_), w in strong.state_features_.items() if level == "step"]
    assert max(top) < 0.1 < max(low)


def test_weights_of_sequences(fitted):
    weight = np.where(np.arange(len(DATA)) < 20, 1.0, 0.0)
    some = sc.HierarchicalCRF(NAMES, max_length=LIMITS, **FAST).fit(DATA, TARGETS, sample_weight=weight)
    fewer = sc.HierarchicalCRF(NAMES, max_length=LIMITS, **FAST).fit(DATA[:20], TARGETS[:20])
    assert some.loss_ == pytest.approx(fewer.loss_, rel=1e-6)
    with pytest.raises(ValueError, match=r"sample_weight\[0\] = -1"):
        fitted.fit(DATA[:1], TARGETS[:1], sample_weight=[-1.0])


def test_warm_start(fitted):
    first = sc.HierarchicalCRF(NAMES, max_length=LIMITS, warm_start=True, **FAST).fit(DATA[:20], TARGETS[:20])
    old = first.state_features_
    X, y = [*DATA, [{"x": 9.0, "z": 1.0}] * 4], [*TARGETS, {"activity": [(0, 4, "walk")], "step": [(0, 4, "stroll")]}]
    start = copy.copy(first)
    start.model_ = first.problem(X, y)[0]  # the weights of the last fit, and 0 for what is new
    assert start.state_features_ == old and start.model_.n_weights > first.model_.n_weights
    first.set_params(max_iterations=1).fit(X, y)
    assert first.classes_["step"][-1] == "stroll" and first.max_length_["step"] == 4
    cold = sc.HierarchicalCRF(NAMES, max_length=LIMITS, c2=0.1, max_iterations=1).fit(X, y)
    assert first.loss_ < 0.5 * cold.loss_
    with pytest.raises(ValueError, match="warm_start needs the levels of the last fit"):
        first.set_params(levels=["a", "b"], max_length=None).fit(X, y)


def test_development_data_and_progress(capsys):
    model = sc.HierarchicalCRF(NAMES, max_length=LIMITS, verbose=True, patience=2, c2=1e-3)
    model.fit(DATA[:8], TARGETS[:8], X_dev=TEST[:5], y_dev=TRUTH[:5])
    scores = [entry["dev_score"] for entry in model.training_log_]
    assert model.score(TEST[:5], TRUTH[:5]) == max(scores)
    assert "dev score" in capsys.readouterr().err


def test_an_interrupt_keeps_the_weights(monkeypatch):
    calls = []
    whole = _core.NestedObjective.log_loss

    def interrupted(self, *args):
        calls.append(1)
        if len(calls) > 6:
            raise KeyboardInterrupt
        return whole(self, *args)

    monkeypatch.setattr(_core.NestedObjective, "log_loss", interrupted)
    model = sc.HierarchicalCRF(NAMES, max_length=LIMITS).fit(DATA[:8], TARGETS[:8])
    assert "nterrupt" in model.message_ and np.abs(model.model_.weights).max() > 0
    assert model.predict(TEST[:1])


def test_repeats_and_transitions_as_seen():
    y = [{"top": [(0, 4, "A")], "low": [(0, 2, "x"), (2, 3, "y"), (3, 4, "x")]}]
    X = [[{"w": str(t)} for t in range(4)]]
    learnt = sc.HierarchicalCRF(["top", "low"], max_iterations=2).fit(X, y)
    possible = learnt.model_.possible[1]["transition"][0]
    assert possible.tolist() == [[False, True], [True, False]]
    assert sc.HierarchicalCRF(["top", "low"], repeats=True).fit(X, y).model_.possible[1]["transition"].all()
    strict = sc.HierarchicalCRF(["top", "low"], transitions="seen").fit(X, y)
    assert strict.model_.possible[1]["initialisation"].tolist() == [[True, False]]
    assert strict.model_.possible[1]["ending"].tolist() == [[True, False]]
    assert all(guess["low"][0].label == "x" for guess in strict.predict([X[0], X[0][:3], X[0][1:]]))


def test_bounds_by_default():
    y = [{"top": [(0, 4, "A")], "low": [(0, 2, "x"), (2, 3, "y"), (3, 4, "x")]}]
    steps = [{"top": [(0, 4, "A")], "low": [(t, t + 1, "xy"[t % 2]) for t in range(4)]}]
    X = [[{"w": float(t)} for t in range(4)]]

    def bounds(y, **settings):
        return sc.HierarchicalCRF(["top", "low"], max_iterations=1, **settings).fit(X, y).max_length_

    assert bounds(y) == bounds(y, max_length={}) == {"top": None, "low": None}
    assert bounds(steps) == {"top": None, "low": 1}
    assert bounds(y, max_length=None) == {"top": 4, "low": 2}
    assert bounds(y, length_features="log") == {"top": 4, "low": 2}
    assert bounds(y, length_features="length") == {"top": None, "low": None}
    assert bounds(y, max_length={"top": 7}, segment_features={"low": span_dict}) == {"top": 7, "low": 2}
    unknown = {"low": {"labels": ["x", None, None, "y"], "boundaries": [1, None, None, 1]}, "top": ["A"] * 4}
    assert bounds([unknown]) == {"top": None, "low": None}


def test_numeric_arrays_and_sparse_matrices():
    from scipy import sparse

    X = [np.array([[token["x"], token["y"]] for token in x]) for x in DATA[:8]]
    model = sc.HierarchicalCRF(NAMES, max_length=LIMITS, max_iterations=5).fit(X, TARGETS[:8])
    assert model.predict([sparse.csr_matrix(x) for x in X]) == model.predict(X)
    assert model.attributes_ == ["0", "1"]


def test_empty_sequences():
    model = sc.HierarchicalCRF(NAMES, max_iterations=3).fit(
        [*DATA[:5], []], [*TARGETS[:5], {"activity": [], "step": []}]
    )
    assert model.predict([[], DATA[0]])[0] == [[], []]
    assert model.predict_marginals([[]]) == [[[], []]]


def test_no_trajectories(fitted):
    assert not hasattr(fitted, "predict_compressed")
    with pytest.raises(AttributeError, match="trajectories are defined for chains and segments"):
        fitted.predict_compressed(TEST)


# Errors -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"levels": "ab"}, "levels must be a list of names"),
        ({"levels": ["a", "a"]}, "levels must be one or more distinct names"),
        ({"max_length": 0}, "max_length must be at least 1"),
        ({"max_length": "long"}, "max_length must be a number, None, 'auto', 'free' or 'whole'"),
        ({"max_length": {"tip": 2}}, "max_length has the level 'tip', which is not one of the levels: activity, step"),
        ({"max_length": "free", "length_features": "log"}, "level 'activity' has no bound on its length"),
        ({"max_length": "free", "segment_features": {"step": span_dict}}, "level 'step' has segment_features, which"),
        ({"segment_features": span_dict}, "segment_features must be a dict level -> function"),
        ({"segment_features": {"step": 3}}, r"segment_features must be a function f\(x, start, stop\)"),
        ({"length_features": ("tall",)}, "length_features must be among"),
        ({"length_features": 3}, "length_features must be among"),
        ({"attribute_parts": "inside"}, "attribute_parts must be a dict level -> parts"),
        ({"attribute_parts": {"step": "outside"}}, r"attribute_parts\['step'\]\[''\] must name parts among inside"),
        ({"attribute_parts": {"step": {"x": 3}}}, r"attribute_parts\['step'\]\['x'\] must name parts"),
        ({"topology": 3}, "topology must be None, 'seen', 'all' or a dict"),
        ({"topology": {"cook": "fry"}}, r"topology\['cook'\] must be a list of child labels"),
        ({"topology": {"cook": ["fry"]}}, r"y\[\d\], level 'step': '.*' at position 0 lies in 'cook' of level"),
        ({"levels": ["a", "b", "c"], "topology": {"x": ["y"]}}, "topology of 3 levels must have one dict"),
        ({"repeats": 3}, "repeats must be True, False or None"),
        ({"transitions": "some"}, "transitions must be 'all' or 'seen'"),
        ({"min_freq": -1}, "min_freq must be a number >= 0"),
        ({"algorithm": "up"}, "algorithm must be one of lbfgs, auto, l2sgd, asgd, mm, ap, pa, arow"),
        ({"batch_size": 0}, "batch_size must be at least 1"),
        ({"c2": {"step": -1.0}}, "c2 must be a number >= 0"),
        ({"c2": [1.0, 2.0]}, "c2 must be a number >= 0, or a dict level"),
        ({"c1": {"stop": 1.0}}, "c1 has the level 'stop'"),
        ({"n_jobs": 0}, "n_jobs must not be 0"),
        ({"patience": 0}, "patience must be at least 1"),
    ],
)  # fmt: skip
def test_wrong_parameters(settings, message):
    with pytest.raises(ValueError, match=message):
        sc.HierarchicalCRF(**{"levels": NAMES, **settings}).fit(DATA[:4], TARGETS[:4])


def test_wrong_targets():
    X = [[{"a": 1.0}] * 4]
    model = sc.HierarchicalCRF(["top", "low"], max_length=None)
    with pytest.raises(ValueError, match="X is empty"):
        model.fit([], [])
    with pytest.raises(ValueError, match=r"y\[0\] does not nest: at level 'low' the segment \(1, 3, 'x'\)"):
        model.fit(X, [{"top": [(0, 2, "A"), (2, 4, "B")], "low": [(0, 1, "y"), (1, 3, "x"), (3, 4, "x")]}])
    with pytest.raises(ValueError, match="y holds no label of level 'low'"):
        model.fit(X, [{"top": [(0, 4, "A")]}])
    with pytest.raises(ValueError, match="y holds no segment of level 'low' whose two ends are known"):
        model.fit(X, [{"top": [(0, 4, "A")], "low": {"labels": ["x", None, None, None]}}])
    with pytest.raises(ValueError, match="follows 'x' under the same parent, but repeats is False"):
        y = [{"top": [(0, 4, "A")], "low": [(0, 2, "x"), (2, 4, "x")]}]
        sc.HierarchicalCRF(["top", "low"], repeats=False).fit(X, y)
    y = [
        {"top": [(0, 4, "A")], "low": [(0, 2, "x"), (2, 4, "y")]},
        {"low": {"boundaries": [1, 1, 1, 1], "labels": ["x"] * 4}},
    ]
    with pytest.raises(ValueError, match=r"y\[1\].*(repeats|leaves no tree)"):
        sc.HierarchicalCRF(["top", "low"], repeats=False).fit(X * 2, y)


def test_impossible_constraints(fitted):
    known = [None, {"activity": [(0, 1, "rest")], "step": [(0, 1, "fry")]}]
    with pytest.raises(ValueError, match=r"constraints\[1\] leaves no tree"):
        fitted.predict(TEST[:2], constraints=known)
    with pytest.raises(ValueError, match=r"constraints\[1\] leaves no tree"):
        fitted.lattices(TEST[:2], constraints=known)
    with pytest.raises(ValueError, match="is the label 'swim', which is not one of the labels known"):
        fitted.predict(TEST[:1], constraints=[{"step": [(0, 1, "swim")]}])
    assert fitted.score(TEST[:1], [{"activity": TRUTH[0]["activity"], "step": [(0, 1, "swim")]}]) <= 0.5
    with pytest.raises(ValueError, match="there is nothing to compare with"):
        fitted.score(TEST[:1], [None])
    with pytest.raises(ValueError, match="level must be one of activity, step, got 'tip'"):
        fitted.score(TEST, TRUTH, level="tip")


def test_scores_of_partial_targets(fitted):
    y = [{"step": {"labels": [None] * (len(x) - 1) + ["fry"]}} for x in TEST]
    found = fitted.scores(TEST, y)
    assert np.isnan(found["activity"]["accuracy"]) and np.isnan(found["activity"]["f1"])
    last = [guess["step"][-1].label == "fry" for guess in fitted.predict(TEST)]
    assert found["step"]["accuracy"] == pytest.approx(np.mean(last))


def test_scores_of_columns():
    """At a level of single steps each label of a column is one segment."""
    X = [[{"w": w} for w in "aabba"]]
    y = [{"top": ["A", "A", "B", "B", "A"], "low": list("aabba")}]
    model = sc.HierarchicalCRF(["top", "low"], max_length={"top": "free", "low": 1}, c2=0.01).fit(X, y)
    assert model.scores(X, y) == {"top": {"accuracy": 1.0, "f1": 1.0}, "low": {"accuracy": 1.0, "f1": 1.0}}
    assert len(model.predict(X, constraints=[{"low": list("aabbb")}])[0]["low"]) == 5


def test_segments_are_named(fitted):
    guess = fitted.predict(TEST[:1])[0]
    assert guess.names == NAMES and all(isinstance(s, sc.Segment) for s in guess["step"])
    assert guess["activity"][-1].stop == guess["step"][-1].stop == len(TEST[0])


def test_the_manual():
    from scansion.data import levels
    from scansion.models import hierarchical

    page = Path(__file__).parents[1] / "docs" / "concepts" / "hierarchical.md"
    result = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert result.failed == 0 and result.attempted > 10
    for module in (levels, hierarchical):
        result = doctest.testmod(module)
        assert result.failed == 0 and result.attempted > 0


def test_the_example(capsys):
    script = Path(__file__).parents[1] / "examples" / "activities.py"
    runpy.run_path(str(script), run_name="__main__")
    shown = capsys.readouterr().out
    assert "learnt: " in shown and "activities given:     activity 100.0 %" in shown


def test_answers_are_lists_in_the_form_of_y_and_know_the_names_of_levels(fitted):
    answers = fitted.predict(TEST)
    for answer in answers:
        assert answer["activity"] == answer[0] and answer["step"] == answer[-1]
        assert [name for name, _ in answer.items()] == NAMES and len(answer) == len(NAMES)
    again = copy.deepcopy(answers)
    assert again == [[list(level) for level in answer] for answer in answers] and again[0]["step"] == answers[0][1]
    assert fitted.predict(TEST, constraints=answers) == answers
    with pytest.raises(KeyError, match="no level 'steps'; the levels are activity, step"):
        answers[0]["steps"]
