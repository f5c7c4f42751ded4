"""Penalties by group, units of features, coordinates of the optimiser: what leads to the optimum, and which one."""

import warnings

import numpy as np
import pytest

import scansion as sc
from scansion.training.coordinates import Coordinates, Shift
from scansion.training.optimizers import gradient_check
from scansion.training.penalty import Penalty, Walk


def penalty(rng, n=7):
    walk = Walk(np.array([1, 2, 4]), np.array([2, 3, 5]), np.array([0.5, 2.0, 1.0]))
    return Penalty(0.0, rng.uniform(0, 2, n), walk, rng.normal(size=n))


def test_gradient_of_the_penalty():
    rng = np.random.default_rng(0)
    cost = penalty(rng)

    def function(w):
        gradient = np.zeros_like(w)
        return cost.add_smooth(0.0, gradient, w, 1), gradient

    w = rng.normal(size=7)
    assert gradient_check(function, w) < 1e-9
    walk = cost.walk
    by_hand = np.sum(cost.c2 * (w - cost.centre) ** 2) + np.sum(walk.strength * (w[walk.right] - w[walk.left]) ** 2)
    assert cost.value(w) == pytest.approx(by_hand, rel=1e-12)


def test_coordinates_are_linear_and_invertible():
    rng = np.random.default_rng(1)
    shift = Shift(np.array([0, 0, 1]), np.array([2, 3, 4]), rng.normal(size=3))
    to = Coordinates(rng.uniform(0.1, 10, 5), shift)
    matrix = np.array([to.weights(row) for row in np.eye(5)]).T
    v, g = rng.normal(size=(2, 5))
    assert to.weights(v) == pytest.approx(matrix @ v, rel=1e-12)
    assert to.of(to.weights(v)) == pytest.approx(v, rel=1e-12)
    assert to.gradient(g) == pytest.approx(matrix.T @ g, rel=1e-12)
    assert not to.plain and Coordinates(np.ones(5)).plain


def dense(n=60, seed=0):
    """Sequences of three columns, and labels of a noisy linear rule."""
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(6, 3)) for _ in range(n)]
    truth = rng.normal(size=(3, 3))
    y = [["ABC"[k] for k in (x @ truth + rng.gumbel(size=(6, 3))).argmax(axis=1)] for x in X]
    return X, y


@pytest.mark.parametrize("make", [sc.CRF, sc.SemiCRF, lambda **k: sc.HierarchicalCRF(["a", "b"], **k)])
@pytest.mark.parametrize("c1", [0.0, 0.5])
def test_units_and_origins_do_not_matter(make, c1):
    X, y = dense(30)
    if isinstance(make(), sc.HierarchicalCRF):
        y = [[["P"] * 6, row] for row in y]
    settings = {"c1": c1, "c2": 0.3, "epsilon": 1e-7, "delta": 0.0, "period": 0, "max_iterations": 400}
    plain = make(**settings).fit(X, y)
    unit, origin = np.array([1e-3, 1.0, 1e4]), np.array([3.0, -200.0, 0.5])
    moved = [(x + origin) * unit for x in X]
    other = make(**settings).fit(moved, y)
    assert other.loss_ == pytest.approx(plain.loss_, rel=1e-7)
    assert other.log_likelihood(moved, y) == pytest.approx(plain.log_likelihood(X, y), rel=1e-4)
    assert other.predict(moved) == plain.predict(X)


def test_columns_of_any_units_converge_soon():
    X, y = dense(100)
    crf = sc.CRF().fit([(x + 20.0) * [1e-3, 1.0, 1e3] for x in X], y)
    assert crf.n_iter_ < 80
    assert crf.loss_ == pytest.approx(sc.CRF().fit(X, y).loss_, rel=1e-4)
    assert set(crf.intercepts_) == {"A", "B", "C"}
    assert sc.CRF(standardize=False).fit(X, y).intercepts_ == {}


def test_indicators_are_their_own_units():
    X, y = dense(20)
    signs = [(x > 0).astype(float) for x in X]
    names = [[[str(k) for k in np.flatnonzero(row)] for row in x] for x in signs]
    assert sc.CRF().fit(signs, y).loss_ == sc.CRF().fit(names, y).loss_


def test_numbers_among_words():
    X, y = dense(40)
    mixed = [[{"w": f"w{row[0] > 0}", "size": 1000.0 + 50.0 * row[1]} for row in x] for x in X]
    scaled = [[{"w": f"w{row[0] > 0}", "size": row[1]} for row in x] for x in X]
    a, b = (sc.CRF(standardize=True, epsilon=1e-7, period=0).fit(data, y) for data in (mixed, scaled))
    assert a.loss_ == pytest.approx(b.loss_, rel=1e-7)


def test_twice_the_data_takes_the_same_steps():
    X, y = dense(30)
    once = sc.CRF(c2=0.5).fit(X, y)
    twice = sc.CRF(c2=1.0).fit(X, y, sample_weight=np.full(30, 2.0))
    assert twice.n_iter_ == once.n_iter_
    assert twice.loss_ == pytest.approx(2 * once.loss_, rel=1e-9)


def test_intercepts_and_columns_are_in_the_file(tmp_path):
    X, y = dense(30)
    crf = sc.CRF().fit([x * 100.0 + 7.0 for x in X], y)
    crf.save(tmp_path / "model")
    again = sc.load(tmp_path / "model")
    assert again.intercepts_ == crf.intercepts_
    assert again.log_likelihood([x * 100.0 + 7.0 for x in X], y) == crf.log_likelihood([x * 100.0 + 7.0 for x in X], y)
    warm = sc.CRF(warm_start=True)
    warm.model_ = crf.model_
    assert warm.fit([x * 100.0 + 7.0 for x in X], y).n_iter_ < crf.n_iter_


WORDS = [[["w=a", "s=x"], ["w=b", "s=y"], ["w=a", "s=y"], ["w=c", "s=x"]]] * 3
SEGMENTS = [[(0, 2, "A"), (2, 3, "B"), (3, 4, "A")], [(0, 1, "B"), (1, 4, "A")], [(0, 1, "A"), (1, 4, "B")]]


def largest(model, wanted):
    return max((abs(w) for name, w in model.items() if wanted(name)), default=0.0)


@pytest.mark.parametrize("name", ["c1", "c2"])
def test_penalties_by_group(name):
    def fit(**groups):
        return sc.SemiCRF(length_features=("bins",), **{"c2": 0.1, name: {"": 0.1, **groups}}).fit(WORDS, SEGMENTS)

    def of(prefix):
        return lambda key: key[0].startswith(prefix)

    huge = 1e4
    assert largest(fit(**{"w=": huge}).state_features_, of("w=")) < 1e-3
    assert largest(fit(**{"w=": huge}).state_features_, of("s=")) > 1e-2
    assert largest(fit(**{"w=": huge, "w=a": 0.0}).state_features_, of("w=a")) > 1e-2
    assert largest(fit(transitions=huge).transition_features_, lambda key: True) < 1e-3
    assert largest(fit(lengths=huge).state_features_, of("length")) < 1e-2
    assert largest(fit(lengths=0.1).state_features_, of("length")) > 1e-2


def test_penalties_by_level_and_group():
    y = [[[(0, 4, "P")], [(0, 1, "A"), (1, 4, "B")]], [[(0, 2, "P"), (2, 4, "Q")], list("ABAB")]]

    def fit(c2):
        return sc.HierarchicalCRF(["top", "low"], c2=c2).fit(WORDS[:2], y)

    assert fit({"top": 2.0}).loss_ == fit({"top": {"": 2.0}}).loss_
    model = fit({"top": 0.1, "low": {"w=": 1e4, "": 0.1}})
    assert largest(model.state_features_, lambda key: key[0] == "low" and key[1].startswith("w=")) < 1e-3
    assert largest(model.state_features_, lambda key: key[0] == "top" and key[1].startswith("w=")) > 1e-2
    flat = fit({"transitions": 1e4})
    cliques = {**flat.transition_features_, **flat.initialisation_features_, **flat.ending_features_}
    assert largest(cliques, lambda key: True) < 1e-3


def test_neighbouring_lengths_are_similar():
    lengths = [3, 5, 7, 3, 5, 7, 5]
    y = [[(0, n, "A"), (n, 10, "B")] for n in lengths]
    X = [[["x"]] * 10 for _ in lengths]
    settings = {"max_length": 10, "length_features": ("bins",)}
    steps = []
    for strength in (0.01, 10.0):
        model = sc.SemiCRF(**settings, c2={"lengths": strength}).fit(X, y)
        bins = [w for (name, label), w in model.state_features_.items() if name.startswith("length") and label == "A"]
        steps.append(np.abs(np.diff(bins)).max())
    assert steps[1] < 0.2 * steps[0]


def test_stochastic_gradients_take_penalties_by_group():
    X, y = dense(60)
    words = [[[f"{k}={v:.0f}" for k, v in enumerate(row)] for row in x] for x in X]
    c2 = {"0=": 20.0, "": 0.5}
    best = sc.CRF(c2=c2).fit(words, y)
    near = sc.CRF(algorithm="asgd", c2=c2, max_iterations=30, random_state=0).fit(words, y)
    plain = sc.CRF(c2=0.5).fit(words, y)

    def size(model):
        return largest(model.state_features_, lambda key: key[0].startswith("0="))

    assert size(near) == pytest.approx(size(best), rel=0.15)
    assert size(plain) > 2 * size(best)
    assert near.loss_ < 1.02 * best.loss_


def test_says_when_it_stopped_early():
    X, y = dense(40)
    with pytest.warns(sc.ConvergenceWarning, match="max_iterations = 3, while the loss, .* raise max_iterations"):
        sc.CRF(max_iterations=3).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sc.CRF().fit(X, y)
        sc.CRF(max_iterations=500).fit(X, y)


def test_the_command_takes_groups():
    from scansion.cli.parser import _strength

    assert _strength("0.5") == 0.5
    assert _strength("0.1,1") == [0.1, 1.0]
    assert _strength("lengths=0.1,w==2,=0.5") == {"lengths": 0.1, "w=": 2.0, "": 0.5}
