"""Learning: every algorithm, early stopping, warm starts, interruptions, progress and logs."""

from __future__ import annotations

import math
import os
import re
import signal
import subprocess
import sys

import flat_oracle
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import scansion as sc
from scansion import _core
from scansion.reference import enumeration as brute
from scansion.training.learn import ALGORITHMS, Development, Learnt
from scansion.training.progress import Progress

ONLINE = ("l2sgd", "mm", "ap", "pa", "arow")


def separable(seed: int, n: int = 40):
    """Sentences whose words tell their labels, and labels that follow each other in a fixed order."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        states = (int(rng.integers(3)) + np.arange(int(rng.integers(1, 9)))) % 3
        X.append([[f"w{state}{rng.integers(4)}", f"n{rng.integers(5)}"] for state in states])
        y.append([f"L{state}" for state in states])
    return X, y


def noisy(seed: int, n: int = 60):
    rng = np.random.default_rng(seed)
    X, y = separable(seed, n)
    wrong = [[label if rng.random() < 0.8 else f"L{rng.integers(3)}" for label in row] for row in y]
    return X, wrong


def segments(y):
    """Label rows as segments of one or two tokens."""
    return [[(t, min(t + 2, len(row)), row[t]) for t in range(0, len(row), 2)] for row in y]


# Algorithms ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("order", [0, 1, 2])
def test_separable_data_are_learnt(algorithm, order):
    X, y = separable(0)
    crf = sc.CRF(order, algorithm=algorithm, c2=0.01).fit(X, y)
    # a perceptron stops at weights that make no mistakes; their average may make some where these won by a tie
    assert crf.score(X, y) >= (0.9 if algorithm == "ap" else 1.0)
    if order:
        assert crf.score(*separable(1)) > (0.9 if algorithm in ("ap", "arow") else 0.97)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_separable_segments_are_learnt(algorithm):
    X, y = separable(0)
    y = segments(y)
    X = [
        [[f"{word}|{t == u}" for word in x[t]] for u, v, _ in row for t in range(u, v)]
        for x, row in zip(X, y, strict=True)
    ]
    semi = sc.SemiCRF(algorithm=algorithm, c2=0.01, length_features="bins").fit(X, y)
    assert semi.score(X, y) >= (0.95 if algorithm == "ap" else 1.0)  # ties, as of chains


@pytest.mark.parametrize("algorithm", ["ap", "pa"])
@pytest.mark.parametrize("partial", [False, True])
def test_no_mistakes_are_left_on_separable_data(algorithm, partial):
    X, y = separable(2)
    if partial:
        rng = np.random.default_rng(0)
        y = [y[0], *([label if rng.random() < 0.5 else None for label in row] for row in y[1:])]
    crf = sc.CRF(algorithm=algorithm, epsilon=1e-9).fit(X, y)
    assert crf.training_log_[-1]["loss"] == 0.0 and crf.loss_ == 0.0
    assert crf.message_ == "no more mistakes on the training data"
    assert crf.n_iter_ < 100


def test_stochastic_gradients_come_close_to_the_optimum():
    X, y = noisy(0)
    best = sc.CRF(c2=1.0).fit(X, y)
    sgd = sc.CRF(c2=1.0, algorithm="l2sgd").fit(X, y)
    w = sgd.model_.weights
    loss = -sgd.log_likelihood(X, y) + w @ w
    assert best.loss_ <= loss < best.loss_ * 1.02
    assert sgd.loss_ == pytest.approx(loss, rel=0.02)
    hidden = [[label if t % 2 else None for t, label in enumerate(row)] for row in y]
    best, sgd = (sc.CRF(algorithm=a).fit(X, [y[0], *hidden[1:]]) for a in ("lbfgs", "l2sgd"))
    assert sgd.loss_ < best.loss_ * 1.1


def test_margins_are_widened():
    X, y = noisy(1)
    crf = sc.CRF(c2=1.0, algorithm="mm").fit(X, y)
    log = [entry["loss"] for entry in crf.training_log_]
    assert crf.loss_ == min(log) < 0.9 * log[0]
    model, objective = sc.CRF().problem(X, y)

    def full(w):
        gradient = np.empty_like(w)
        return objective.margin_loss(w, gradient, 1) + w @ w

    w = crf.model_.weights
    assert full(w) < full(np.zeros(model.n_weights))
    rng = np.random.default_rng(0)  # the objective is convex: nothing much better lies anywhere around
    assert all(full(w + 0.1 * rng.normal(size=w.shape)) > 0.99 * full(w) for _ in range(20))


@pytest.mark.parametrize("pa_type", [0, 1, 2])
@pytest.mark.parametrize("error_sensitive", [False, True])
@pytest.mark.parametrize("averaging", [False, True])
def test_passive_aggressive_variants(pa_type, error_sensitive, averaging):
    """A pass by hand, over all labellings: each mistake is mended by the least change, which `c` bounds or softens."""
    X, y = noisy(3, n=12)
    X, y = [[dict.fromkeys(token, 1.0) for token in x[:3]] for x in X], [row[:3] for row in y]
    given = {"pa_type": pa_type, "error_sensitive": error_sensitive, "averaging": averaging, "c": 0.3}
    crf = sc.CRF(algorithm="pa", **given, max_iterations=1, random_state=4).fit(X, y)
    oracle = flat_oracle.Oracle.of(crf.model_, X, y)
    w, steps = np.zeros(crf.model_.n_weights), []
    for b in np.random.default_rng(4).permutation(12):
        counts, configs = oracle.counts[b], oracle.configs[b]
        gold = int(np.argmax(oracle.open[b]))
        scores = counts @ w
        guess = min(range(len(configs)), key=lambda c: (-round(scores[c], 9), brute.tie_order(configs[c])))
        if guess != gold:
            wrong = sum(p[2] != q[2] for p, q in zip(configs[guess], configs[gold], strict=True))
            loss = scores[guess] - scores[gold] + (math.sqrt(wrong) if error_sensitive else 1.0)
            change = counts[gold] - counts[guess]
            tau = loss / (change @ change + (0.5 / 0.3 if pa_type == 2 else 0.0))
            w = w + (min(tau, 0.3) if pa_type == 1 else tau) * change
        steps.append(w)
    assert_allclose(crf.model_.weights, np.mean(steps, axis=0) if averaging else w, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("algorithm", ["ap", "pa"])
def test_the_average_is_that_of_the_weights_after_each_sequence(algorithm, order):
    X, y = noisy(5, n=12)
    crf = sc.CRF(order, algorithm=algorithm, max_iterations=1, random_state=4).fit(X, y)
    # follow the same sequences one by one
    model, objective = sc.CRF(order).problem(X, y)
    online = _core.Online(_core.Algorithm.perceptron if algorithm == "ap" else _core.Algorithm.passive_aggressive)
    w, steps = np.zeros(model.n_weights), []
    for b in np.random.default_rng(4).permutation(np.arange(12)):
        objective.run_pass(online, np.array([b]), w, np.empty(0))
        steps.append(w.copy())
    assert_allclose(crf.model_.weights, np.mean(steps, axis=0), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("algorithm", ["likelihood", "margin", "perceptron", "passive_aggressive"])
def test_a_pass_is_the_same_sequence_by_sequence(algorithm, order):
    X, y = noisy(6, n=12)
    model, objective = sc.CRF(order).problem(X, y)
    ends = []
    for parts in ([np.arange(12)], np.arange(12)[:, None]):
        online = _core.Online(getattr(_core.Algorithm, algorithm))
        online.strength, online.t0 = 0.1, 30.0
        w = np.zeros(model.n_weights)
        loss = sum(objective.run_pass(online, part, w, np.empty(0)) for part in parts)
        ends.append((w * online.scale, loss))
    assert_allclose(ends[0][0], ends[1][0], rtol=1e-9, atol=1e-12)
    assert ends[0][1] == pytest.approx(ends[1][1], rel=1e-9)


def test_defaults_and_stopping_rules_are_those_of_crfsuite():
    X, y = separable(3)
    chosen = {name: sc.CRF(algorithm=name).settings() for name in ALGORITHMS}
    assert {name: settings.epsilon for name, settings in chosen.items() if name != "lbfgs"} == dict.fromkeys(
        set(ALGORITHMS) - {"lbfgs"}, 0.0
    )
    assert chosen["lbfgs"].epsilon == chosen["lbfgs"].delta == 1e-5 and chosen["l2sgd"].delta == 1e-6
    for algorithm in ("ap", "pa"):  # without an epsilon they make all passes
        crf = sc.CRF(algorithm=algorithm).fit(X, y)
        assert crf.n_iter_ == 100 and crf.training_log_[-1]["loss"] == 0.0
        assert 1 < sc.CRF(algorithm=algorithm, epsilon=1e-3).fit(X, y).n_iter_ < 20
    crf = sc.CRF(algorithm="arow").fit(X, y)
    assert 1 < crf.n_iter_ < 100 and "no more mistakes" in crf.message_


def test_none_stands_for_the_default():
    X, y = separable(3)
    numbers = [name for name in sc.CRF()._parameter_names() if name not in ("order", "engine")]
    for algorithm in ALGORITHMS:
        given = {**dict.fromkeys(numbers), "algorithm": algorithm, "max_iterations": 3}
        wanted = sc.CRF(algorithm=algorithm, max_iterations=3).fit(X, y)
        assert_array_equal(sc.CRF(**given).fit(X, y).model_.weights, wanted.model_.weights)


def test_arow_needs_variances_above_0():
    for name in ("gamma", "variance"):
        with pytest.raises(ValueError, match=f"{name} must be a number > 0, got 0"):
            sc.CRF(algorithm="arow", **{name: 0}).fit(*separable(0))


@pytest.mark.parametrize("linesearch", ["MoreThuente", "Backtracking", "StrongBacktracking"])
def test_line_searches_find_the_same_optimum(linesearch):
    X, y = noisy(2)
    tight = {"epsilon": 1e-7, "period": 0}
    assert sc.CRF(linesearch=linesearch, **tight).fit(X, y).loss_ == pytest.approx(
        sc.CRF(**tight).fit(X, y).loss_, rel=1e-9
    )


def test_strengths_by_order():
    X, y = noisy(3)
    crf = sc.CRF(order=2, c2=[0.1, 1.0, 50.0]).fit(X, y)
    w, orders = crf.model_.weights, crf.model_.orders()
    c2 = np.array([0.1, 1.0, 50.0])[orders]
    assert crf.loss_ == pytest.approx(-crf.log_likelihood(X, y) + c2 @ w**2, rel=1e-9)
    assert np.abs(w[orders == 2]).max() < 0.2 * np.abs(w[orders == 0]).max()
    sparse = sc.CRF(order=2, c1=[0.0, 100.0], c2=0.1).fit(X, y)
    assert sparse.pattern_features_ == {} and sparse.size_ == len(sparse.state_features_) > 0
    assert sc.CRF(c2=np.float32(0.5)).fit(X, y).loss_ == sc.CRF(c2=0.5).fit(X, y).loss_
    assert sc.CRF(c2=np.array([1, 1])).fit(X, y).loss_ == sc.CRF(c2=np.int64(1)).fit(X, y).loss_


# Repeatability ------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_results_depend_on_the_seed_and_on_nothing_else(algorithm):
    X, y = noisy(4)
    settings = {"algorithm": algorithm, "max_iterations": 4, "c2": 0.1}
    one = sc.CRF(**settings, random_state=1).fit(X, y)
    for other in (
        sc.CRF(**settings, random_state=1).fit(X, y),
        sc.CRF(**settings, random_state=1, n_jobs=2).fit(X, y),
        sc.CRF(**settings, random_state=1, n_jobs=-1).fit(X, y),
    ):
        assert_array_equal(other.model_.weights, one.model_.weights)
        assert other.loss_ == one.loss_
        assert other.predict_marginals(X) == one.predict_marginals(X)
    if algorithm in ONLINE:
        assert not np.array_equal(sc.CRF(**settings, random_state=2).fit(X, y).model_.weights, one.model_.weights)
    state = np.random.RandomState(3)
    sc.CRF(**settings, random_state=state).fit(X, y).sample(X[:1], random_state=state)


def test_semicrf_does_not_depend_on_threads():
    X, y = noisy(6)
    answers = []
    for n_jobs in (1, 2):
        semi = sc.SemiCRF(order=2, n_jobs=n_jobs, max_iterations=8).fit(X, segments(y))
        answers.append((semi.model_.weights.tobytes(), semi.loss_, semi.predict(X), semi.predict_marginals(X)))
    assert answers[0] == answers[1]


# Logs and progress --------------------------------------------------------------------------------


def test_training_log():
    X, y = noisy(7)
    crf = sc.CRF(max_iterations=7).fit(X, y)
    assert [entry["iteration"] for entry in crf.training_log_] == list(range(1, 8))
    assert crf.n_iter_ == 7 and crf.message_ == "The limit of 7 iterations was reached."
    assert crf.loss_ == crf.training_log_[-1]["loss"]
    assert crf.training_log_[-1].keys() == {
        "iteration", "loss", "gradient_norm", "active", "step", "trials", "evaluations", "seconds", "dev_score"
    }  # fmt: skip
    losses = [entry["loss"] for entry in crf.training_log_]
    assert losses == sorted(losses, reverse=True)
    assert all(entry["seconds"] >= 0.0 and entry["dev_score"] is None for entry in crf.training_log_)
    assert crf.training_log_[-1]["active"] == crf.size_
    for algorithm in ONLINE:
        log = sc.CRF(algorithm=algorithm, max_iterations=3, epsilon=0.0).fit(X, y).training_log_
        assert [entry["iteration"] for entry in log] == [1, 2, 3]
        assert all({"loss", "seconds", "dev_score"} <= entry.keys() for entry in log)


def test_stopping_rules():
    X, y = noisy(8)
    assert "at most epsilon" in sc.CRF(epsilon=0.01, period=0).fit(X, y).message_
    assert "less than delta" in sc.CRF(epsilon=0.0, period=5, delta=0.01).fit(X, y).message_
    assert "less than delta over 3 passes" in sc.CRF(algorithm="l2sgd", period=3, delta=0.1).fit(X, y).message_
    assert sc.CRF(algorithm="l2sgd", period=0, max_iterations=12).fit(X, y).n_iter_ == 12
    for algorithm in ("lbfgs", "l2sgd"):
        assert sc.CRF(algorithm=algorithm, max_iterations=0, delta=0.01).fit(X, y).n_iter_ > 1  # no limit, as there


def test_verbose(capsys):
    X, y = noisy(9)
    sc.CRF(max_iterations=3).fit(X, y)
    assert capsys.readouterr() == ("", "")
    sc.CRF(max_iterations=3, verbose=True).fit(X, y, X_dev=X, y_dev=y)
    out, err = capsys.readouterr()
    lines = err.splitlines()
    assert out == "" and len(lines) == 4
    for k, line in enumerate(lines[:3], 1):
        assert line.split()[0] == f"{k}/3"
        assert all(word in line for word in ("loss ", "gradient norm ", "active ", "dev score ", " s"))
    assert lines[-1].startswith("The limit of 3 iterations was reached. (loss ")
    sc.CRF(max_iterations=2, verbose=True, algorithm="ap").fit(X, y)
    assert len(capsys.readouterr().err.splitlines()) == 3


def test_progress_on_a_terminal():
    class Terminal(list):
        def write(self, text):
            self.append(text)

        def flush(self):
            pass

        def isatty(self):
            return True

    terminal = Terminal()
    progress = Progress(True, 4, terminal)
    for k in (1, 4):
        progress.update({"iteration": k, "loss": 2.5, "gradient_norm": 0.25, "dev_score": 0.5, "seconds": 0.01})
    progress.close("done")
    assert re.fullmatch(r"\r\x1b\[2K\[#####\.{15}\]    1/4  loss 2.5  dev score 0.5000  [\d:]+( s)? left", terminal[0])
    assert "[####################]" in terminal[1]
    assert terminal[2] == "\ndone\n"


# Development data ---------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_weights_that_score_best_are_kept(algorithm):
    X, y = noisy(10)
    dev = separable(11)
    crf = sc.CRF(algorithm=algorithm, c2=0.001, max_iterations=30, patience=3).fit(X, y, X_dev=dev[0], y_dev=dev[1])
    scores = [entry["dev_score"] for entry in crf.training_log_]
    assert crf.score(*dev) == max(scores)
    best = scores.index(max(scores))
    assert crf.loss_ == crf.training_log_[best]["loss"]
    if crf.message_.startswith("stopped early"):
        assert len(scores) == best + 1 + 3
    else:
        assert len(scores) < best + 1 + 3


def test_training_stops_early():
    X, y = noisy(10)
    dev = separable(11)
    crf = sc.CRF(c2=1e-4, patience=2, epsilon=1e-9, period=0).fit(X, y, X_dev=iter(dev[0]), y_dev=iter(dev[1]))
    assert crf.message_ == "stopped early: the score on the development data no longer rose"
    assert crf.n_iter_ < 50
    semi = sc.SemiCRF(patience=2, segment_features=lambda x, u, v: [f"n{v - u}"], period=0)
    semi.fit(X, segments(y), X_dev=dev[0], y_dev=segments(dev[1]))
    assert max(entry["dev_score"] for entry in semi.training_log_) == semi.score(dev[0], segments(dev[1]))


def test_development_scores_that_never_come():
    development = Development()
    learnt = Learnt(np.zeros(1), 1.0, "")
    assert development.look(np.ones(1)) == (None, False) and development.choose(learnt) is learnt


# Warm starts --------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [sc.CRF, sc.SemiCRF])
def test_a_warm_start_goes_on_where_training_ended(make):
    X, y = noisy(12)
    if make is sc.SemiCRF:
        y = segments(y)
    extra = {"length_features": "bins"} if make is sc.SemiCRF else {}
    crf = make(order=2, warm_start=True, max_iterations=6, **extra).fit(X, y)
    before, weights = crf.loss_, crf.model_.weights.copy()
    crf.set_params(max_iterations=1).fit(X, y)
    assert crf.training_log_[0]["loss"] <= before
    assert crf.training_log_[0]["loss"] > 0.9 * before
    model, objective = crf.set_params(c2=0.0).problem(X, y)
    assert_array_equal(model.weights, crf.model_.weights)
    crf.set_params(max_iterations=None, c2=1.0).fit(X, y)
    assert crf.loss_ == pytest.approx(make(order=2, **extra).fit(X, y).loss_, rel=1e-3)
    cold = make(order=2, max_iterations=6, **extra).fit(X, y)
    assert_array_equal(cold.set_params(warm_start=False).fit(X, y).model_.weights, weights)


@pytest.mark.parametrize("make", [sc.CRF, sc.SemiCRF])
def test_a_warm_start_takes_new_labels_and_attributes(make):
    X, y = noisy(13, n=10)
    more = [[["new", "w00"], ["w11"]]], [["other", "L1"]]
    if make is sc.SemiCRF:
        y, more = segments(y), (more[0], [[(0, 1, "other"), (1, 2, "L1")]])
    crf = make(warm_start=True, max_iterations=20).fit(X, y)
    old = {**crf.state_features_, **crf.pattern_features_}
    model, _ = crf.problem([*X, *more[0]], [*y, *more[1]])
    assert model.labels == [*crf.classes_, "other"]
    crf.model_ = model
    new = {**crf.state_features_, **crf.pattern_features_}
    assert new == old  # the same by name, and zeros
    crf.set_params(c2=0.1).fit([*X, *more[0]], [*y, *more[1]])
    assert ("new", "other") in crf.state_features_ and ("other", "L1") in crf.transition_features_


def test_a_warm_start_from_a_file_or_a_dataset(tmp_path):
    X, y = noisy(14, n=15)
    crf = sc.CRF(c1=0.2, warm_start=True, max_iterations=5).fit(X, y)
    crf.save(tmp_path / "model")
    again = sc.load(tmp_path / "model")
    for data, target in ((X, y), (sc.data.encode(X), y), (sc.data.encode(X[::-1]), y[::-1])):
        model, _ = again.problem(data, target)
        probe = sc.CRF()
        probe.model_ = model
        assert probe.state_features_ == crf.state_features_
        assert probe.transition_features_ == crf.transition_features_
    again.set_params(max_iterations=1).fit(X, y)
    assert again.training_log_[0]["loss"] <= crf.loss_ * (1 + 1e-12)


def test_a_warm_start_with_longer_segments():
    X = [[["a"]] * 4, [["b"]] * 3]
    semi = sc.SemiCRF(warm_start=True, length_features=("bins", "length")).fit(
        X, [[(0, 2, "A"), (2, 4, "B")], ["A"] * 3]
    )
    before = semi.state_features_
    model, _ = semi.problem([[["a"]] * 6], [[(0, 5, "A"), (5, 6, "B")]])
    assert model.max_length == 5
    semi.model_ = model
    kept = {key: before[key] for key in semi.state_features_}
    assert semi.state_features_ == kept and ("length", "A") in kept
    model, _ = semi.problem(X[:1], [[(0, 1, "A"), (1, 4, "B")]])
    assert model.max_length == 5  # what the model could predict stays possible


# Interruptions ------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_an_interrupt_keeps_a_usable_model(algorithm, monkeypatch):
    X, y = noisy(15)
    seen = []

    def update(self, entry):
        seen.append(entry)
        if len(seen) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(Progress, "update", update)
    crf = sc.CRF(algorithm=algorithm, epsilon=0.0, c2=0.1).fit(X, y)
    assert crf.n_iter_ == 3 and "nterrupted" in crf.message_
    assert crf.score(X, y) > 0.5 and math.isfinite(crf.loss_)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_an_interrupt_before_the_first_iteration(algorithm, monkeypatch, tmp_path):
    X, y = noisy(15)

    def look(self, weights):
        raise KeyboardInterrupt

    monkeypatch.setattr(Development, "look", look)
    crf = sc.CRF(algorithm=algorithm).fit(X, y)
    assert crf.n_iter_ == 0 and len(crf.predict(X)) == len(X)
    crf.save(tmp_path / "model")
    assert sc.load(tmp_path / "model").predict(X) == crf.predict(X)


SCRIPT = """
import sys, numpy as np, scansion as sc
rng = np.random.default_rng(0)
X = [rng.normal(size=(30, 20)) for _ in range(200)]
y = [rng.integers(8, size=30) for _ in range(200)]
crf = sc.CRF(order=1, c2=1e-6, epsilon=0.0, period=0, algorithm=sys.argv[1], verbose=True, max_iterations=100000)
crf.fit(X, y)
print(crf.n_iter_, crf.score(X, y), crf.message_, flush=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="signals are sent")
@pytest.mark.parametrize("algorithm", ["lbfgs", "l2sgd"])
def test_ctrl_c_ends_training_and_keeps_the_model(algorithm):
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, algorithm], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    for _ in range(3):
        assert process.stderr.readline()  # iterations are under way
    for _ in range(3):  # one that falls into a destructor is lost
        process.send_signal(signal.SIGINT)
        try:
            out, err = process.communicate(timeout=20)
            break
        except subprocess.TimeoutExpired:
            pass
    assert process.returncode == 0, err
    iterations, score, message = out.split(" ", 2)
    assert int(iterations) >= 2 and float(score) > 0.125
    assert "nterrupted" in message and "nterrupted" in err
