"""The Sum-Difference engine: against enumeration, its reference and the automaton; the guard; engines of CRF."""

from __future__ import annotations

import numpy as np
import pytest
from flat_oracle import Problem, data
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from strategies import PatternProblem, pattern_problems, with_constraints
from test_reference import PATTERNS, TABLE_11, TABLE_14, TWO_DIGITS

import scansion as sc
from scansion import _core
from scansion.lattice.patterns import PatternAutomaton
from scansion.reference import enumeration as brute
from scansion.reference.sum_difference import best_labels, pattern_sets, sum_difference

LOG_Z, EXPECTATION = 1e-9, 1e-8


def native(scores, patterns, n_labels, fires=None, allowed=None):
    """log Z, posteriors, kappa, whether the guard lets them pass."""
    out = np.full(scores.shape, np.nan)
    log_z, kappa, passed = _core.sum_difference(
        PatternAutomaton(patterns, n_labels)._native,
        np.ascontiguousarray(scores),
        None if fires is None else np.ascontiguousarray(fires, dtype=np.uint8),
        None if allowed is None else np.ascontiguousarray(allowed, dtype=np.uint8),
        out,
    )
    return log_z, out, kappa, passed


def allowed_labels(known, problem: PatternProblem):
    if known.labels is None:
        return None
    if known.labels.dtype == np.bool_:
        return known.labels
    return (known.labels[:, None] == np.arange(problem.n_labels)) | (known.labels[:, None] < 0)


# The lattice ---------------------------------------------------------------------------------------


def test_worked_example():
    """Paper 001, appendix B, with table 14: LOL fires at the sixth position only, or everywhere with weight 0."""
    for fires in (TABLE_11 != 0, None):
        log_z, posteriors, _, passed = native(TABLE_11, PATTERNS, 3, fires)
        assert passed
        assert_allclose(log_z, 12.696, rtol=0, atol=5e-4)
        known = np.ones(TABLE_14.shape, bool) if fires is None else fires
        assert_allclose(posteriors[known], TABLE_14[known], rtol=0, atol=TWO_DIGITS)


def test_pattern_sets_hold_what_later_positions_need():
    patterns = [(0,), (1,), (0, 1, 0)]
    fires = np.zeros((5, 3), bool)
    fires[3, 2] = True
    sets = [{z for z in s if len(z) > 1} for s in pattern_sets(fires, patterns, 2)]
    assert sets == [set(), set(), {(0, 1)}, {(0, 1, 0)}, set()]


@given(pattern_problems(min_times=1), st.integers(0, 2**32 - 1), st.booleans())
def test_reference_is_enumeration(problem, seed, everywhere):
    fires = np.random.default_rng(seed).random(problem.scores.shape) < (1.0 if everywhere else 0.5)
    scores = np.clip(problem.scores, -4.0, 4.0)
    scored = brute.enumerate_patterns(np.where(fires, scores, 0.0), problem.patterns, problem.n_labels)
    log_z, posteriors = sum_difference(scores, problem.patterns, problem.n_labels, fires)
    assert_allclose(log_z, brute.log_partition(scored), atol=1e-7)
    expected = brute.pattern_marginals(scored, problem.patterns, problem.n_times, 1)[:, 0]
    assert_allclose(posteriors, np.where(fires, expected, 0.0), atol=1e-6)
    labels, score = best_labels(scores, problem.patterns, problem.n_labels, fires)
    assert_allclose(score, brute.best(scored)[1], atol=1e-9)
    assert_allclose(
        brute.pattern_score(brute.as_segments(labels), np.where(fires, scores, 0.0), problem.patterns), score, atol=1e-9
    )


@given(with_constraints(pattern_problems(min_times=1)), st.integers(0, 2**32 - 1), st.booleans())
def test_kernel_is_enumeration(pair, seed, everywhere):
    """All scales of scores, -inf, BOS and EOS, patterns that fire here and there, allowed labels."""
    problem, known = pair
    fires = np.random.default_rng(seed).random(problem.scores.shape) < (1.0 if everywhere else 0.5)
    used = np.where(fires, problem.scores, 0.0)
    scored = brute.constrain(brute.enumerate_patterns(used, problem.patterns, problem.n_labels), known.labels)
    allowed = allowed_labels(known, problem)
    log_z, posteriors, kappa, passed = native(problem.scores, problem.patterns, problem.n_labels, fires, allowed)
    if not passed:
        assert not kappa <= _core.MOST_KAPPA
        return
    truth = brute.log_partition(scored)
    assert_allclose(log_z, truth, rtol=LOG_Z, atol=LOG_Z)
    expected = brute.pattern_marginals(scored, problem.patterns, problem.n_times, 1)[:, 0]
    assert_allclose(np.where(fires, posteriors, 0.0), np.where(fires, expected, 0.0), atol=EXPECTATION)


def test_kernel_is_its_reference():
    rng = np.random.default_rng(0)
    patterns = [(0,), (1,), (2,), (0, 1), (1, 2), (0, 1, 2), (2, 2), (1, 0, 1, 2), (-1, 0), (2, -2)]
    scores, fires = rng.normal(size=(9, len(patterns))), rng.random((9, len(patterns))) < 0.6
    log_z, posteriors, _, passed = native(scores, patterns, 3, fires)
    expected, rows = sum_difference(scores, patterns, 3, fires)
    assert passed
    assert_allclose(log_z, expected, rtol=1e-13)
    assert_allclose(np.where(fires, posteriors, 0.0), rows, atol=1e-12)


# The guard -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("weight", [0.0, -5.0, -9.0, -12.0, -30.0, -50.0])
def test_cancellation_is_refused_or_right(weight):
    """Only one label may stand at the position before, and its pattern takes all of the label's weight away."""
    patterns = [(0,), (1,), (0, 1), (0, 0)]
    scores = np.zeros((3, 4))
    scores[:, 2:] = weight
    allowed = np.array([[True, False], [True, True], [True, True]])
    log_z, posteriors, kappa, passed = native(scores, patterns, 2, None, allowed)
    lattice = sc.ChainLattice.from_patterns(scores, patterns, 2).constrain(allowed)
    assert passed == (weight > -9.5)
    assert passed == (kappa <= _core.MOST_KAPPA)
    if passed:
        assert_allclose(log_z, lattice.log_partition(), atol=LOG_Z)
        assert_allclose(posteriors, lattice.marginals().patterns, atol=EXPECTATION)


@given(st.integers(0, 2**32 - 1), st.sampled_from([1.0, 10.0, 50.0]))
@settings(deadline=None)
def test_adversarial_weights_through_the_objective(seed, scale):
    """Weights up to +-50 on nested patterns: refused sequences go to the automaton, so that all is equal."""
    rng = np.random.default_rng(seed)
    X = [[[f"a{rng.integers(3)}"] for _ in range(int(rng.integers(1, 9)))] for _ in range(9)]
    y = [[int(rng.integers(3)) for _ in x] for x in X]
    y[0] = [None if rng.random() < 0.5 else label for label in y[0]]
    y[1] = [{0, label} for label in y[1]]
    one, other = (sc.CRF(4, engine=e).problem(X, y) for e in ("automaton", "sum-difference"))
    w = rng.choice([-scale, scale, 0.0, scale / 3], size=one[0].n_weights)
    a, b = np.empty_like(w), np.empty_like(w)
    loss = one[1].log_loss(w, a, 1)
    assert_allclose(other[1].log_loss(w, b, 1), loss, rtol=LOG_Z, atol=1e-8)
    assert_allclose(b, a, atol=EXPECTATION)
    c = np.empty_like(w)
    assert other[1].log_loss(w, c, 2) == other[1].log_loss(w, b, 1)
    assert_array_equal(b, c)


def test_guard_is_counted():
    X = [[["a"], ["b"], ["a"]]] * 5
    y = [["U", "V", "U"], ["V", "V", "U"], ["U", "V", "V"], ["U", None, "V"], [{"V"}, None, None]]
    crf = sc.CRF(2, engine="sum-difference")
    model, objective = crf.problem(X, y)
    gradient = np.empty(model.n_weights)
    objective.log_loss(np.zeros(model.n_weights), gradient, 1)
    assert objective.native.refused() == 0
    # U V is what is known of a sequence, and its weight is far below all others
    w = np.zeros(model.n_weights)
    for z, pattern in enumerate(model.patterns[model.n_labels :]):
        if model.labels[pattern[-1]] == "V" and len(pattern) == 2:
            w[z] = -50.0
    plain = sc.CRF(2, engine="automaton").problem(X, y)[1]
    expected = np.empty_like(gradient)
    loss = plain.log_loss(w, expected, 1)
    assert_allclose(objective.log_loss(w, gradient, 1), loss, rtol=LOG_Z)
    assert_allclose(gradient, expected, atol=EXPECTATION)
    assert 0 < objective.native.refused() <= 7
    w[: model.n_bias] = 1000.0  # beyond what an exponential can hold
    assert_allclose(objective.log_loss(w, gradient, 1), plain.log_loss(w, expected, 1), rtol=LOG_Z)
    assert objective.native.refused() == 7
    objective.log_loss(np.zeros(model.n_weights), gradient, 1)
    assert objective.native.refused() == 0


# The objective -------------------------------------------------------------------------------------

MODELS = {
    "order 1": {"order": 1},
    "order 3": {"order": 3},
    "attributes on pairs": {"order": 2, "attribute_orders": {"pair.": 1, "both.": (0, 1, 2)}},
    "variable order": {"order": 3, "bias_order": 1, "attribute_orders": {"pair.": (1, 2, 3), "both.": (0, 3)}},
    # a pair that only attributes carry is a suffix of an always-on pattern, and another its prefix
    "holes": {
        "patterns": [("X", "Y", "Z"), ("Z", "X", "Y", "Z"), ("Y", "Z"), ("X", "X")],
        "attribute_orders": {"pair.": (1, 2), "both.": (0, 3)},
        "min_freq": 0.0,
    },
    "nothing always on": {"order": 2, "bias_order": 0, "attribute_orders": {"pair.": (1, 2)}},
    "ends": {"patterns": [(sc.BOS, "X"), ("X", "Y"), ("Y", "Z", "X"), ("Z", sc.EOS), ("X", "Y", "Z", sc.EOS)]},
    "ends with attributes": {
        "patterns": [(sc.BOS, "X", "Y"), ("Y", "Z"), ("Z", "Y", sc.EOS), ("Y", sc.EOS)],
        "attribute_orders": {"pair.": (1, 2), "both.": (0, 1)},
    },
}


@pytest.mark.parametrize("partial", [False, True])
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("seed", range(3))
def test_loss_is_enumeration(name, partial, seed):
    X, y = data(seed, partial=partial)
    rng = np.random.default_rng(seed)
    problem = Problem.of(sc.CRF(engine="sum-difference", **MODELS[name]), X, y, rng.random(len(X)) + 0.5)
    w = problem.weights(rng)
    loss, gradient = problem.log_loss(w)
    expected, slope = problem.oracle.log_loss(w)
    assert problem.objective.native.refused() == 0
    assert problem.objective.native.sum_difference_size()[0] > 0
    assert_allclose(loss, expected, rtol=1e-10, atol=1e-10)
    assert_allclose(gradient, slope, atol=1e-9)
    assert_array_equal(problem.log_loss(w, n_jobs=3)[1], gradient)


@pytest.mark.parametrize("name", ["attributes on pairs", "variable order", "ends with attributes"])
@pytest.mark.parametrize("seed", range(4))
def test_engines_agree_at_large_weights(name, seed):
    """Weights of attributes outweigh those of the pairs they are tied to, and the other way round."""
    X, y = data(seed, partial=True)
    one, other = (Problem.of(sc.CRF(engine=e, **MODELS[name]), X, y) for e in ("automaton", "sum-difference"))
    rng = np.random.default_rng(seed)
    for large in (5.0, 50.0):
        w = rng.choice([-large, -1.0, 0.0, 1.0, large], size=one.model.n_weights)
        (expected, slope), (loss, gradient) = one.log_loss(w), other.log_loss(w)
        assert_allclose(loss, expected, rtol=LOG_Z)
        assert_allclose(gradient, slope, rtol=0, atol=EXPECTATION)


@pytest.mark.parametrize("name", MODELS)
def test_gradient_is_finite_differences(name):
    X, y = data(5, partial=True)
    problem = Problem.of(sc.CRF(engine="sum-difference", **MODELS[name]), X, y)
    rng = np.random.default_rng(5)
    w, direction = problem.weights(rng), rng.normal(size=problem.model.n_weights)
    step = 1e-5
    losses = [problem.log_loss(w + k * step * direction)[0] for k in (-2, -1, 1, 2)]
    slope = (losses[0] - 8 * losses[1] + 8 * losses[2] - losses[3]) / (12 * step)
    assert_allclose(slope, problem.log_loss(w)[1] @ direction, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("tied", [False, True])
def test_engines_find_the_same_labels(name, tied):
    X, y = data(7, n=8)
    one, other = (sc.CRF(engine=e, max_iterations=3, **MODELS[name]).fit(X, y) for e in ("automaton", "sum-difference"))
    assert_allclose(one.loss_, other.loss_, rtol=1e-9)
    rng = np.random.default_rng(0)
    w = rng.integers(-1, 2, one.model_.n_weights).astype(float) * (0.0 if tied else 1.0)
    for crf in (one, other):
        crf.model_ = crf.model_.weighted(w + (0.0 if tied else 1e-3 * np.sin(np.arange(len(w)))))
    assert other.engine_ == "sum-difference"
    assert one.predict(X) == other.predict(X)
    known = [[label if rng.random() < 0.4 else None for label in row] for row in y]
    assert one.predict(X, known) == other.predict(X, known)
    assert one.score(X, y) == other.score(X, y)
    assert other.predict([]) == [] and other.predict([[]]) == [[]]
    labels = [[int(one.classes_.index(v)) for v in row] for row in other.predict(X)]
    for lattice, row in zip((other.lattice(x) for x in X), labels, strict=True):
        if row:
            assert_allclose(lattice.score(np.array(row)), lattice.viterbi()[1], atol=1e-9)


def test_positions_with_equal_sets_share_them():
    rng = np.random.default_rng(0)
    X = [[["a"]] * 50 for _ in range(20)]
    y = [[int(v) for v in rng.integers(0, 3, 50)] for _ in X]
    objective = sc.CRF(3, engine="sum-difference").problem(X, y)[1]
    sets, nodes, _ = objective.native.sum_difference_size()
    assert sets <= 6  # near the start long patterns do not fit yet
    assert nodes > 900 * 20


def test_patterns_live_only_where_their_attributes_fire():
    X = [[["a"], ["b"], ["a"], ["b"], ["rare"], ["a"], ["b"]]]
    y = [["U", "V", "U", "U", "V", "U", "V"]]
    crf = sc.CRF(3, bias_order=0, attribute_orders={"rare": 3}, engine="sum-difference")
    _, nodes, _ = crf.problem(X, y).objective.native.sum_difference_size()
    # one pattern of four labels at one position: itself there, its prefixes of three and two labels before
    assert nodes == 7 * 2 + 3


# Choosing patterns ---------------------------------------------------------------------------------


def patterned(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        row = [int(v) for v in rng.integers(0, 3, 2)]
        while len(row) < 12:
            row.append((row[-1] + row[-2]) % 3 if rng.random() < 0.9 else int(rng.integers(3)))
        y.append([f"L{v}" for v in row])
        X.append([[f"o{v if rng.random() < 0.5 else rng.integers(3)}"] for v in row])
    return X, y


def test_min_freq_per_order():
    X, y = patterned()
    all_of_them = sc.CRF(3, max_iterations=1).fit(X, y).patterns_
    some = sc.CRF(3, max_iterations=1, min_freq=(0, 0, 20, 50)).fit(X, y).patterns_
    counts: dict[tuple[str, ...], int] = {}
    for row in y:
        for size in (2, 3, 4):
            for i in range(len(row) - size + 1):
                counts[tuple(row[i : i + size])] = counts.get(tuple(row[i : i + size]), 0) + 1
    least = {2: 0, 3: 20, 4: 50}
    assert some == [p for p in all_of_them if counts[p] >= least[len(p)]]
    assert len(some) < len(all_of_them)
    # a number for all orders is what it was
    assert sc.CRF(3, max_iterations=1, min_freq=20).fit(X, y).patterns_ == [p for p in all_of_them if counts[p] >= 20]
    for wrong in ([], [1, -1], "ab", [True]):
        with pytest.raises(ValueError, match="min_freq must be"):
            sc.CRF(min_freq=wrong).fit(X, y)


def test_growth_keeps_what_gains():
    X, y = patterned()
    X_dev, y_dev = patterned(seed=1)
    first = sc.CRF(1, c2=0.1).fit(X, y)
    grown = sc.CRF(3, c2=0.1, grow={"budget": 12, "rounds": 3, "iterations": 10}).fit(X, y)
    log = grown.growth_log_
    assert [entry["patterns"] for entry in log] == [9, 13, 17, 21]
    assert all(log[i + 1]["loss"] < log[i]["loss"] for i in range(3))
    assert len(grown.patterns_) == 21
    assert set(grown.patterns_) == set(first.patterns_) | {p for entry in log for p in entry["added"]}
    for pattern in grown.patterns_:  # what a pattern extends is there too
        assert len(pattern) == 2 or {pattern[1:], pattern[:-1]} <= set(grown.patterns_)
    assert grown.log_likelihood(X_dev, y_dev) > first.log_likelihood(X_dev, y_dev) + 100.0
    # the second-order structure of the data is found before anything longer
    assert all(len(p) == 3 for p in log[1]["added"])
    assert list(log[1]["added"].values()) == sorted(log[1]["added"].values(), reverse=True)
    stopped = sc.CRF(3, c2=0.1, grow=60).fit(X, y, X_dev=X_dev, y_dev=y_dev)
    scores = [entry["dev_score"] for entry in stopped.growth_log_]
    assert all(b > a for a, b in zip(scores[:-2], scores[1:-1], strict=True))
    assert len(stopped.patterns_) <= 9 + 60
    assert sc.CRF(1).fit(X, y).set_params(grow=None).fit(X, y).patterns_ == first.patterns_


@pytest.mark.parametrize("c2", [0.0, 0.1])
def test_active_patterns_are_those_of_the_optimum(c2):
    X, y = patterned(40)
    exact = {"c1": 2.0, "c2": c2, "epsilon": 1e-7, "delta": 0.0, "max_iterations": 2000}
    whole = sc.CRF(4, **exact).fit(X, y)
    active = sc.CRF(4, grow="active", **exact).fit(X, y)
    assert_allclose(active.loss_, whole.loss_, rtol=1e-6)
    assert set(active.patterns_) < set(whole.patterns_)
    nonzero = {p for p, w in zip(whole.patterns_, whole.model_.weights, strict=False) if abs(w) > 1e-3}
    assert nonzero <= set(active.patterns_)
    assert_allclose(active.log_likelihood(X, y), whole.log_likelihood(X, y), rtol=1e-3)
    log = active.growth_log_
    assert len(log) > 1 and not log[-1]["added"]
    assert all(after["loss"] < before["loss"] for before, after in zip(log[:-1], log[1:], strict=True))


def test_active_patterns_need_a_penalty():
    X, y = patterned(5)
    with pytest.raises(ValueError, match="c1 must be > 0, got 0"):
        sc.CRF(3, grow="active").fit(X, y)
    with pytest.raises(ValueError, match="development data"):
        sc.CRF(3, grow="active", c1=1.0).fit(X, y, X, y)


@pytest.mark.parametrize("grow", [0, -1, "all", {"rounds": 3}, {"budget": 3, "speed": 1}])
def test_growth_plans_are_checked(grow):
    with pytest.raises(ValueError, match="grow"):
        sc.CRF(2, grow=grow).fit(*patterned(5))


def test_growth_or_patterns():
    with pytest.raises(ValueError, match="either grow or patterns"):
        sc.CRF(2, grow=3, patterns=[("L0", "L1")]).fit(*patterned(5))


def test_engines_are_checked_and_chosen():
    X, y = patterned()
    with pytest.raises(ValueError, match="engine must be one of auto, automaton, sum-difference, got 'fast'"):
        sc.CRF(engine="fast").fit(X, y)
    assert sc.CRF(1, max_iterations=1).fit(X, y).engine_ == "automaton"
    assert sc.CRF(3, max_iterations=1).fit(X, y).engine_ == "sum-difference"


def test_the_engine_is_chosen_by_the_patterns_that_are_alive(tmp_path):
    rng = np.random.default_rng(0)
    labels = [str(i) for i in range(20)]
    y = [[labels[i] for i in rng.integers(20, size=12)] for _ in range(60)]
    X = [[{"w": str(rng.integers(400))} for _ in row] for row in y]
    crf = sc.CRF(2, bias_order=1, attribute_orders={"w": [0, 2]}, max_iterations=1).fit(X, y)
    model = crf.model_
    assert model.alive() < len(model.patterns) / 2
    assert crf.engine_ == "sum-difference"
    crf.save(tmp_path / "model")
    loaded = sc.load(tmp_path / "model")
    assert loaded.model_.alive() == len(model.patterns)  # nothing was counted yet
    assert loaded.predict(X) == crf.predict(X)
    assert loaded.model_.alive() == pytest.approx(model.alive())
    assert loaded.engine_ == "sum-difference"


def test_variable_order_models_are_saved(tmp_path):
    X, y = data(3, n=8)
    crf = sc.CRF(max_iterations=5, **MODELS["variable order"]).fit(X, y)
    crf.save(tmp_path / "model.safetensors")
    again = sc.load(tmp_path / "model.safetensors")
    assert again.predict(X) == crf.predict(X)
    assert again.patterns_ == crf.patterns_
    assert_allclose(again.log_likelihood(X, y), crf.log_likelihood(X, y), rtol=1e-12)
