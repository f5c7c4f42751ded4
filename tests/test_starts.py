"""Where learning starts, and how strong its penalty is: counts, scores of labels, folds that are left out."""

import numpy as np
import pytest

import scansion as sc
from scansion.models.choosing import folds

RNG = np.random.default_rng(0)
WORDS = [[[f"w={RNG.integers(5) + 3 * (t // 3 % 2)}"] for t in range(12)] for _ in range(20)]
LABELS = [["AB"[t // 3 % 2] for t in range(12)] for _ in range(20)]
TREES = [[["P"] * 6 + ["Q"] * 6, row] for row in LABELS]


def log_loss(estimator, X, y):
    return -estimator.log_likelihood(X, y)


@pytest.mark.parametrize(
    "make, y",
    [
        (lambda **k: sc.CRF(**k), LABELS),
        (lambda **k: sc.CRF(2, **k), LABELS),
        (lambda **k: sc.SemiCRF(length_features=("length", "log"), **k), LABELS),
        (lambda **k: sc.SemiCRF(length_features=("bins",), **k), LABELS),
        (lambda **k: sc.HierarchicalCRF(["top", "low"], length_features={"low": ("bins",)}, **k), TREES),
    ],
)
def test_counts_are_a_start(make, y):
    settings = {"c2": 0.1, "period": 0, "epsilon": 1e-6, "max_iterations": 300}
    plain, counted = make(**settings).fit(WORDS, y), make(init="counts", **settings).fit(WORDS, y)
    assert counted.loss_ == pytest.approx(plain.loss_, rel=1e-6)  # the same optimum
    zero = make(c2=0.1)
    model, objective = zero.problem(WORDS, y)
    at_zero = objective.log_loss(model.weights, np.empty(model.n_weights), 1)
    assert plain.loss_ <= counted.start_loss_ < 0.75 * at_zero


def test_counts_of_columns():
    rng = np.random.default_rng(1)
    means = np.array([[5.0, -3.0], [6.0, -3.5]])
    y = [rng.integers(2, size=8) for _ in range(30)]
    X = [(means[row] + rng.normal(size=(8, 2))) * [10.0, 0.1] for row in y]
    crf = sc.CRF(init="counts", max_iterations=1).fit(X, y)
    assert crf.start_loss_ < 0.9 * 30 * 8 * np.log(2)


def scores(n=40, seed=2):
    rng = np.random.default_rng(seed)
    y = [[k for k in rng.integers(3, size=4) for _ in range(4)] for _ in range(n)]
    X = [2.0 * np.eye(3)[row] + rng.normal(size=(16, 3)) * 1.5 for row in y]
    return X, [["abc"[k] for k in row] for row in y]


@pytest.mark.parametrize("make", [sc.CRF, sc.SemiCRF])
def test_scores_of_labels(make):
    X, y = scores()
    X_test, y_test = scores(seed=3)
    model = make(scores_of=["a", "b", "c"]).fit(X, y)
    answers = model.predict(X_test)
    if make is sc.SemiCRF:
        answers = [[s.label for s in row for _ in range(s.stop - s.start)] for row in answers]
    argmax = np.mean([np.array(list("abc"))[x.argmax(axis=1)] == row for x, row in zip(X_test, y_test, strict=True)])
    right = np.mean([np.array(a) == np.array(b) for a, b in zip(answers, y_test, strict=True)])
    assert right > argmax
    own = [model.state_features_[str(i), label] for i, label in enumerate("abc")]
    columns = [(name, label, w) for (name, label), w in model.state_features_.items() if name.isdigit()]
    other = [w for name, label, w in columns if name != str("abc".index(label))]
    assert min(own) > 5 * np.abs(other).max()
    with pytest.raises(ValueError, match="scores_of must name labels"):
        make(scores_of=["x", "y"]).fit(X, y)


def test_strength_by_what_is_left_out():
    X, y = scores(30)
    crf = sc.CRF(c2="cv", random_state=0).fit(X, y)
    table = crf.cv_results_
    best = min(table, key=lambda row: row["loss"])
    assert [row["c2"] for row in table] == sorted((row["c2"] for row in table), reverse=True)
    assert all(len(row["losses"]) == 3 for row in table)
    again = sc.CRF(c2=best["c2"]).fit(X, y)
    assert crf.loss_ == pytest.approx(again.loss_, rel=1e-4)
    groups = np.arange(30) % 2
    by_group = sc.CRF(c2="cv", cv=groups).fit(X, y).cv_results_[0]
    kept = [i for i in range(30) if groups[i] == 1]
    left = [i for i in range(30) if groups[i] == 0]
    alone = sc.CRF(c2=by_group["c2"]).fit([X[i] for i in kept], [y[i] for i in kept])
    assert by_group["losses"][0] == pytest.approx(log_loss(alone, [X[i] for i in left], [y[i] for i in left]), rel=0.02)


def test_folds():
    assert np.bincount(folds(4, 10, 0)).tolist() == [3, 3, 2, 2]
    assert folds(["x", "y", "x"], 3, 0).tolist() == [0, 1, 0]
    for wrong in (1, ["x", "x", "x"], ["x", "y"]):
        with pytest.raises(ValueError, match="cv must be"):
            folds(wrong, 3, 0)
    with pytest.raises(ValueError, match="'cv' is for c1 or for c2"):
        sc.CRF(c1="cv", c2="cv").fit(WORDS, LABELS)
    with pytest.raises(ValueError, match="init must be one of"):
        sc.CRF(init="zero").fit(WORDS, LABELS)


def test_picture_of_strengths():
    pytest.importorskip("matplotlib").use("Agg")
    table = [{"c2": 1.0, "loss": 5.0, "losses": [2.0, 3.0]}, {"c2": 0.1, "loss": 4.0, "losses": [2.0, 2.0]}]
    ax = sc.plot.strengths(table)
    assert ax.get_xscale() == "log" and ax.get_legend().get_texts()[0].get_text() == "c2=0.1"
    with pytest.raises(ValueError, match="results hold no strengths"):
        sc.plot.strengths([])


@pytest.mark.parametrize("make", [sc.CRF, lambda: sc.SemiCRF(max_length=12)])
def test_trajectories_alone_start_from_an_alignment(make):
    rng = np.random.default_rng(5)
    X, y = [], []
    for _ in range(60):
        row = [label for label in rng.permutation(list("abcd"))[:3] for _ in range(rng.integers(2, 7))]
        X.append([[f"w={ord(label) + rng.choice([0, 0, 0, 0, 1])}"] for label in row])
        y.append(row)
    model = make().fit(X, [sc.Trajectory([k for i, k in enumerate(row) if i == 0 or row[i - 1] != k]) for row in y])
    answers = model.predict(X)
    if not isinstance(answers[0][0], str):
        answers = [[s.label for s in row for _ in range(s.stop - s.start)] for row in answers]
    right = np.mean([a == b for one, two in zip(answers, y, strict=True) for a, b in zip(one, two, strict=True)])
    assert right > 0.8
