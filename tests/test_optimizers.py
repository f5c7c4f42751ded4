"""L-BFGS and OWL-QN against analytic solutions, SciPy, proximal gradients and their own stopping rules."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from scansion.training.history import History, dot
from scansion.training.linesearch import backtracking, more_thuente
from scansion.training.optimizers import (
    OptimizeState,
    gradient_check,
    lbfgs,
)
from scansion.training.orthant import L1Penalty

Vector = NDArray[np.float64]
Objective = Callable[[Vector], "tuple[float, Vector]"]

LINE_SEARCHES = ["MoreThuente", "Backtracking", "StrongBacktracking"]
TIGHT = {"epsilon": 1e-9, "period": 0}
SNUG = {"epsilon": 1e-6, "period": 0}  # for losses that do not vanish: their rounding hides smaller gradients


def quadratic(scales: Vector, centre: Vector) -> Objective:
    def function(w: Vector) -> tuple[float, Vector]:
        difference = w - centre
        return 0.5 * float(np.dot(scales * difference, difference)), scales * difference

    return function


def rosenbrock(w: Vector) -> tuple[float, Vector]:
    x, y = w[:-1], w[1:]
    gradient = np.zeros_like(w)
    gradient[:-1] = -400.0 * x * (y - x**2) - 2.0 * (1.0 - x)
    gradient[1:] += 200.0 * (y - x**2)
    return float(np.sum(100.0 * (y - x**2) ** 2 + (1.0 - x) ** 2)), gradient


def logistic(seed: int, n_samples: int = 80, n: int = 12, c2: float = 0.1) -> Objective:
    """Sum of log(1 + exp(-y x.w)) + c2 |w|^2: the shape of a CRF's loss."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n_samples, n)) * rng.uniform(0.3, 3.0, size=n)
    truth = rng.normal(size=n) * (rng.uniform(size=n) < 0.4)
    y = np.where(rng.uniform(size=n_samples) < 1.0 / (1.0 + np.exp(-x @ truth)), 1.0, -1.0)
    signed = x * y[:, None]

    def function(w: Vector) -> tuple[float, Vector]:
        margin = signed @ w
        loss = float(np.logaddexp(0.0, -margin).sum()) + c2 * float(w @ w)
        return loss, -signed.T @ (0.5 * (1.0 - np.tanh(0.5 * margin))) + 2.0 * c2 * w

    return function


def proximal_gradient(function: Objective, n: int, c1: float | Vector, n_iterations: int = 20_000) -> Vector:
    """Minimise f + c1 |w|_1 by FISTA with restarts: slow, simple, and nothing in common with OWL-QN."""
    w = momentum = np.zeros(n)
    step, t = 1.0, 1.0
    for _ in range(n_iterations):
        f, g = function(momentum)
        while True:
            moved = momentum - step * g
            new = np.sign(moved) * np.maximum(np.abs(moved) - step * np.asarray(c1), 0.0)
            difference = new - momentum
            bound = f + g @ difference + difference @ difference / (2.0 * step)
            if function(new)[0] <= bound + 1e-12 * abs(f):
                break
            step *= 0.5
        if (momentum - new) @ (new - w) > 0.0:
            t = 1.0
        t_new = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * t * t))
        momentum = new + (t - 1.0) / t_new * (new - w)
        if np.array_equal(new, w):
            break
        w, t = new, t_new
    return w


def two_loops(pairs: list[tuple[Vector, Vector]], g: Vector) -> Vector:
    """Liu and Nocedal's recursion as printed, the specification of ``History.direction``."""
    q, alphas = g.copy(), []
    for s, y in reversed(pairs):
        alphas.append(s @ q / (s @ y))
        q = q - alphas[-1] * y
    s, y = pairs[-1]
    r = s @ y / (y @ y) * q
    for (s, y), alpha in zip(pairs, reversed(alphas), strict=True):
        r = r + (alpha - y @ r / (s @ y)) * s
    return -r


# Smooth minimisation


@pytest.mark.parametrize("linesearch", LINE_SEARCHES)
def test_quadratic(linesearch: str) -> None:
    rng = np.random.default_rng(0)
    centre = rng.normal(size=30)
    result = lbfgs(quadratic(rng.uniform(0.5, 20.0, 30), centre), np.zeros(30), linesearch=linesearch, **TIGHT)
    assert result.status == "converged"
    np.testing.assert_allclose(result.w, centre, rtol=0, atol=1e-7)
    assert result.loss == pytest.approx(0.0, abs=1e-13)


@pytest.mark.parametrize("linesearch", LINE_SEARCHES)
@pytest.mark.parametrize("n", [2, 10])
def test_rosenbrock(linesearch: str, n: int) -> None:
    w0 = np.tile([-1.2, 1.0], n // 2)
    result = lbfgs(rosenbrock, w0, linesearch=linesearch, max_iterations=500, **TIGHT)
    assert result.status == "converged"
    if n == 2:
        np.testing.assert_allclose(result.w, 1.0, rtol=1e-6)
    assert np.linalg.norm(rosenbrock(result.w)[1]) < 1e-7


@pytest.mark.parametrize("linesearch", LINE_SEARCHES)
@pytest.mark.parametrize("seed", range(3))
def test_logistic_regression_equals_scipy(linesearch: str, seed: int) -> None:
    optimize = pytest.importorskip("scipy.optimize")
    function = logistic(seed)
    expected = optimize.minimize(function, np.zeros(12), jac=True, method="BFGS", options={"gtol": 1e-9})
    result = lbfgs(function, np.zeros(12), linesearch=linesearch, **SNUG)
    assert result.status == "converged"
    assert result.loss == pytest.approx(expected.fun, rel=1e-12)
    np.testing.assert_allclose(result.w, expected.x, rtol=0, atol=1e-5)


def test_default_search_needs_about_as_many_evaluations_as_scipy() -> None:
    optimize = pytest.importorskip("scipy.optimize")
    function = logistic(5, n_samples=400, n=60)
    options = {"maxcor": 6, "gtol": 1e-6, "ftol": 0.0}
    expected = optimize.minimize(function, np.zeros(60), jac=True, method="L-BFGS-B", options=options)
    result = lbfgs(function, np.zeros(60), epsilon=1e-6, period=0)
    assert result.evaluations <= 1.5 * expected.nfev + 5


@pytest.mark.parametrize("linesearch", LINE_SEARCHES)
def test_ill_scaled_quadratic(linesearch: str) -> None:
    scales = np.logspace(-3, 4, 15)
    result = lbfgs(quadratic(scales, np.ones(15)), np.zeros(15), linesearch=linesearch, period=0, epsilon=1e-6)
    assert result.status == "converged"
    assert np.linalg.norm(scales * (result.w - 1.0)) <= 1e-6 * np.linalg.norm(result.w)


@pytest.mark.parametrize("factor", [1e-8, 1.0, 1e8, 1e100])
def test_scaled_losses(factor: float) -> None:
    def function(w: Vector) -> tuple[float, Vector]:
        loss, gradient = rosenbrock(w)
        return factor * loss, factor * gradient

    result = lbfgs(function, np.array([-1.2, 1.0]), period=0, epsilon=1e-9 * factor)
    assert result.status == "converged"
    np.testing.assert_allclose(result.w, 1.0, rtol=1e-6)


def test_negative_losses() -> None:
    """The delta rule must not take a negative loss for one that has stopped falling."""
    smooth = logistic(1)
    shifted = lbfgs(lambda w: (smooth(w)[0] - 1e3, smooth(w)[1]), np.zeros(12), period=1, delta=1e-12)
    assert shifted.loss + 1e3 == pytest.approx(lbfgs(smooth, np.zeros(12), **SNUG).loss, rel=1e-6)


@pytest.mark.parametrize("memory", [1, 2, 6, 50])
def test_memory(memory: int) -> None:
    function = logistic(3)
    result = lbfgs(function, np.zeros(12), memory=memory, **SNUG)
    assert result.status == "converged"
    assert np.linalg.norm(function(result.w)[1]) <= 1e-6 * np.linalg.norm(result.w)


@given(seed=st.integers(0, 2**32 - 1), n_pairs=st.integers(1, 9), memory=st.integers(1, 5))
@settings(max_examples=50, deadline=None)
def test_direction_equals_two_loops(seed: int, n_pairs: int, memory: int) -> None:
    rng = np.random.default_rng(seed)
    n = 11
    root = rng.normal(size=(n, n))
    hessian = root @ root.T + np.eye(n)
    history, pairs = History(memory, n, 1), []
    g, out = rng.normal(size=n), np.empty(n)
    for _ in range(n_pairs):
        w_old, w_new = rng.normal(size=(2, n))
        assert history.add(w_old, w_new, hessian @ w_old, hessian @ w_new, g)
        pairs.append((w_new - w_old, hessian @ w_new - hessian @ w_old))
    assert history.direction(g, out) == pytest.approx(g @ out, rel=1e-12)
    expected = two_loops(pairs[-memory:], g)
    np.testing.assert_allclose(out, expected, rtol=0, atol=1e-9 * float(np.abs(expected).max()))
    assert g @ out < 0.0


def test_pairs_without_curvature_are_not_remembered() -> None:
    history = History(2, 3, 1)
    zero, one, e = np.zeros(3), np.ones(3), np.eye(3)
    for k in range(3):
        assert history.add(zero, e[k], zero, (k + 1.0) * e[k], one)
    assert history.add(zero, e[0], zero, -e[0], one)  # overwrites the pair of e[1]
    assert len(history) == 1
    out = np.empty(3)
    history.direction(one, out)
    np.testing.assert_allclose(out, two_loops([(e[2], 3.0 * e[2])], np.ones(3)), rtol=1e-14)
    assert history.add(zero, e[1], zero, 2.0 * e[1], one)
    history.direction(one, out)
    np.testing.assert_allclose(out, two_loops([(e[2], 3.0 * e[2]), (e[1], 2.0 * e[1])], np.ones(3)), rtol=1e-14)
    assert not history.add(e[0], e[0], zero, zero, one)


@pytest.mark.parametrize("n", [0, 1, 5, 2048, 2049, 100_003])
def test_sums_over_vectors_do_not_depend_on_threads(n: int) -> None:
    rng = np.random.default_rng(n)
    a, b, c, d = rng.normal(size=(4, n))
    assert dot(a, b, 1) == dot(a, b, 3) == pytest.approx(math.fsum(a * b), rel=0, abs=1e-12 * (1.0 + n))
    histories = [History(2, n, threads) for threads in (1, 4)]
    moved = [history.add(a, b, c, c + (b - a), d) for history in histories]
    assert moved == [n > 0] * 2
    if n > 0:
        outs = [np.empty(n) for _ in histories]
        slopes = [history.direction(d, out) for history, out in zip(histories, outs, strict=True)]
        assert slopes[0] == slopes[1]
        np.testing.assert_array_equal(outs[0], outs[1])
        np.testing.assert_allclose(outs[0], -d, rtol=0, atol=1e-9)  # the Hessian is the identity


def test_non_convex_loss() -> None:
    """Regions of negative curvature give no descent direction by themselves."""

    def function(w: Vector) -> tuple[float, Vector]:
        return float(np.sum(np.cos(w) + 0.01 * w**2)), -np.sin(w) + 0.02 * w

    for linesearch in LINE_SEARCHES:
        result = lbfgs(function, np.linspace(0.05, 1.0, 20), linesearch=linesearch, **SNUG)
        assert result.status == "converged"
        assert np.all(-np.cos(result.w) + 0.02 > 0.0)  # a minimum, no saddle


# Line searches on functions of one variable


@given(
    minimum=st.floats(0.05, 50.0),
    power=st.sampled_from([2, 4]),
    step=st.floats(1e-3, 1e3),
    wiggle=st.floats(0.0, 0.3),
)
@settings(max_examples=200, deadline=None)
def test_more_thuente_satisfies_the_strong_wolfe_conditions(
    minimum: float, power: int, step: float, wiggle: float
) -> None:
    calls = []

    def phi(t: float) -> tuple[float, float]:
        calls.append(t)
        u = (t - minimum) / minimum
        f = abs(u) ** power + wiggle * math.sin(7.0 * u)
        return f, (power * abs(u) ** (power - 1) * math.copysign(1.0, u) + 7.0 * wiggle * math.cos(7.0 * u)) / minimum

    f0, slope0 = phi(0.0)
    assume(slope0 < 0.0)
    found = more_thuente(phi, f0, slope0, step, 40)
    assert found is not None
    assert found == calls[-1]
    f, slope = phi(found)
    assert f <= f0 + 1e-4 * found * slope0
    assert abs(slope) <= 0.9 * abs(slope0)


@pytest.mark.parametrize("step", [1e-3, 1e-1, 1e1, 1e3])
@pytest.mark.parametrize("strong", [False, True])
def test_backtracking_satisfies_the_wolfe_conditions(step: float, strong: bool) -> None:
    def phi(t: float) -> tuple[float, float]:
        return (t - 1.0) ** 4, 4.0 * (t - 1.0) ** 3

    found = backtracking(phi, 1.0, -4.0, step, 30, strong=strong)
    assert found is not None
    f, slope = phi(found)
    assert f <= 1.0 - 4e-4 * found
    assert slope >= -3.6
    assert not strong or slope <= 3.6


def test_line_searches_give_up() -> None:
    """A slope of the wrong sign: the loss grows wherever we go."""

    def phi(t: float) -> tuple[float, float]:
        return t, 1.0

    assert more_thuente(phi, 0.0, -1.0, 1.0, 20) is None
    assert backtracking(phi, 0.0, -1.0, 1.0, 20, strong=False) is None
    assert backtracking(phi, 0.0, -1.0, 1.0, 1000, strong=True) is None


# L1


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("c1", [1.0, 3.0, 10.0])
def test_l1_equals_proximal_gradient(seed: int, c1: float) -> None:
    function = logistic(seed)
    expected = proximal_gradient(function, 12, c1)
    result = lbfgs(function, np.zeros(12), c1=c1, **TIGHT)
    assert result.status in ("converged", "linesearch failed")  # the latter at the limit of precision
    optimum = function(expected)[0] + c1 * np.abs(expected).sum()
    assert result.loss == pytest.approx(optimum, rel=1e-10)
    np.testing.assert_array_equal(result.w == 0.0, expected == 0.0)
    np.testing.assert_allclose(result.w, expected, rtol=0, atol=1e-6)
    assert c1 < 3.0 or np.any(result.w == 0.0)


@pytest.mark.parametrize("seed", range(3))
def test_l1_array_with_unpenalised_weights(seed: int) -> None:
    function = logistic(seed, c2=0.01)
    c1 = np.linspace(0.0, 8.0, 12)
    c1[5] = 0.0
    expected = proximal_gradient(function, 12, c1)
    result = lbfgs(function, np.full(12, 0.5), c1=c1, **TIGHT)
    optimum = function(expected)[0] + c1 @ np.abs(expected)
    assert result.loss == pytest.approx(optimum, rel=1e-10)
    np.testing.assert_array_equal(result.w == 0.0, expected == 0.0)
    assert not np.any(np.signbit(result.w[result.w == 0.0]))
    assert result.w[0] != 0.0
    assert result.w[5] != 0.0


def test_l1_array_of_one_value_equals_the_value() -> None:
    function = logistic(2)
    one = lbfgs(function, np.zeros(12), c1=2.0)
    many = lbfgs(function, np.zeros(12), c1=np.full(12, 2.0))
    np.testing.assert_allclose(many.w, one.w, rtol=0, atol=1e-9)
    assert many.iterations == one.iterations


def test_l1_of_zero_is_plain_lbfgs() -> None:
    function = logistic(2)
    plain, zeros = lbfgs(function, np.zeros(12)), lbfgs(function, np.zeros(12), c1=np.zeros(12))
    np.testing.assert_array_equal(plain.w, zeros.w)


def test_l1_strong_enough_leaves_nothing() -> None:
    function = logistic(0)
    c1 = 1.01 * float(np.abs(function(np.zeros(12))[1]).max())
    result = lbfgs(function, np.zeros(12), c1=c1)
    assert (result.status, result.iterations, result.evaluations) == ("converged", 0, 1)
    away = lbfgs(function, np.ones(12), c1=c1)
    assert away.status == "converged"
    assert not away.w.any()


def test_soft_threshold() -> None:
    """A separable quadratic has the shrunken centre as its minimum."""
    centre = np.array([3.0, -2.0, 0.5, -0.1, 0.0])
    result = lbfgs(quadratic(np.ones(5), centre), np.zeros(5), c1=0.6, **TIGHT)
    np.testing.assert_allclose(result.w, [2.4, -1.4, 0.0, 0.0, 0.0], rtol=1e-8)
    assert result.loss == pytest.approx(0.5 * (0.36 + 0.36 + 0.25 + 0.01) + 0.6 * 3.8, rel=1e-12)


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=50, deadline=None)
def test_pseudo_gradient_is_the_subgradient_of_least_norm(seed: int) -> None:
    rng = np.random.default_rng(seed)
    w = rng.integers(-2, 3, size=9).astype(float)
    g = rng.integers(-3, 4, size=9).astype(float)
    c1 = rng.integers(0, 3, size=9).astype(float)
    c1[0] = 1.0
    penalty = L1Penalty.from_argument(c1, 9)
    assert penalty is not None
    out = np.empty(9)
    penalty.pseudo_gradient(w, g, np.empty(9), out)
    for i in range(9):
        if w[i] != 0.0:
            expected = g[i] + c1[i] * np.sign(w[i])
        else:
            expected = max(g[i] - c1[i], 0.0) + min(g[i] + c1[i], 0.0)
        assert out[i] == expected


# Stopping


def test_stops_by_delta_at_the_iteration_that_the_rule_says() -> None:
    losses = [logistic(4)(np.zeros(12))[0]]

    def record(state: OptimizeState) -> None:
        losses.append(state.loss)

    result = lbfgs(logistic(4), np.zeros(12), epsilon=0.0, period=3, delta=1e-3, callback=record)
    assert result.status == "stopped by delta"
    falls = [(losses[k - 3] - losses[k]) / losses[k] for k in range(3, len(losses))]
    assert all(fall >= 1e-3 for fall in falls[:-1])
    assert falls[-1] < 1e-3
    assert result.iterations == len(losses) - 1


def test_delta_needs_a_whole_period() -> None:
    result = lbfgs(logistic(4), np.zeros(12), epsilon=0.0, period=5, delta=1e9)
    assert (result.status, result.iterations) == ("stopped by delta", 5)


def test_epsilon_is_relative_to_the_weights() -> None:
    norms = []
    function = quadratic(np.logspace(0, 2, 20), np.full(20, 1e3))
    lbfgs(
        function,
        np.zeros(20),
        epsilon=1e-3,
        period=0,
        callback=lambda s: norms.append((s.gradient_norm, s.w_norm)),
    )
    assert all(g / w > 1e-3 for g, w in norms[:-1])
    assert norms[-1][0] / norms[-1][1] <= 1e-3


@pytest.mark.parametrize("limit", [0, 1, 7])
def test_max_iterations(limit: int) -> None:
    result = lbfgs(rosenbrock, np.array([-1.2, 1.0]), max_iterations=limit)
    assert (result.status, result.iterations) == ("max_iterations", limit)
    assert result.loss == rosenbrock(result.w)[0]


def test_first_step_has_length_one() -> None:
    points = []

    def function(w: Vector) -> tuple[float, Vector]:
        points.append(w.copy())
        return rosenbrock(w)

    lbfgs(function, np.array([-1.2, 1.0]), max_iterations=1)
    assert np.linalg.norm(points[1] - points[0]) == pytest.approx(1.0, rel=1e-12)


def test_starts_at_the_minimum() -> None:
    result = lbfgs(rosenbrock, np.ones(2))
    assert (result.status, result.iterations, result.evaluations) == ("converged", 0, 1)


def test_wrong_gradient_fails_in_the_line_search() -> None:
    result = lbfgs(lambda w: (rosenbrock(w)[0], -rosenbrock(w)[1]), np.array([-1.2, 1.0]))
    assert result.status == "linesearch failed"
    np.testing.assert_array_equal(result.w, [-1.2, 1.0])
    assert result.evaluations == 1 + 20


# Callback and interrupt


def test_callback_sees_each_iteration() -> None:
    states = []
    function = logistic(6)
    result = lbfgs(function, np.zeros(12), c1=1.0, callback=lambda s: states.append((s, s.w.copy())))
    assert [s.iteration for s, _ in states] == list(range(1, result.iterations + 1))
    losses = [s.loss for s, _ in states]
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] == result.loss
    assert states[-1][0].evaluations == result.evaluations == 1 + sum(s.trials for s, _ in states)
    for state, w in states:
        assert state.loss == pytest.approx(function(w)[0] + np.abs(w).sum(), rel=1e-14)
        assert state.w_norm == pytest.approx(float(np.linalg.norm(w)))
        assert state.n_active == np.count_nonzero(w)
        assert state.step > 0.0
        assert 0.0 <= state.seconds <= state.elapsed
        assert not state.w.flags.writeable
    np.testing.assert_array_equal(states[-1][1], result.w)


@pytest.mark.parametrize("c1", [0.0, 1.0])
@pytest.mark.parametrize("raises", [False, True])
def test_callback_stops(c1: float, raises: bool) -> None:
    def callback(state: OptimizeState) -> bool:
        if state.iteration == 4 and raises:
            raise StopIteration
        return state.iteration == 4

    function = logistic(6)
    result = lbfgs(function, np.zeros(12), c1=c1, callback=callback)
    assert (result.status, result.iterations) == ("callback", 4)
    assert result.loss == pytest.approx(function(result.w)[0] + c1 * np.abs(result.w).sum(), rel=1e-14)


@pytest.mark.parametrize("c1", [0.0, 1.0])
@pytest.mark.parametrize("after", range(12))
def test_interrupt_returns_the_last_accepted_point(c1: float, after: int) -> None:
    smooth = logistic(7)
    accepted = [(np.zeros(12), math.nan)]
    calls = 0

    def function(w: Vector) -> tuple[float, Vector]:
        nonlocal calls
        calls += 1
        if calls > after:
            w[:] = 99.0  # whatever happens to the trial point is no matter
            raise KeyboardInterrupt
        if calls == 1:
            accepted[0] = (w.copy(), smooth(w)[0])
        return smooth(w)

    result = lbfgs(function, np.zeros(12), c1=c1, callback=lambda s: accepted.append((s.w.copy(), s.loss)))
    assert result.status == "interrupted"
    assert result.iterations == len(accepted) - 1
    assert result.evaluations == after
    if after > 0:
        np.testing.assert_array_equal(result.w, accepted[-1][0])
        assert result.loss == accepted[-1][1]


def test_interrupt_in_the_callback() -> None:
    def callback(state: OptimizeState) -> None:
        if state.iteration == 3:
            raise KeyboardInterrupt

    result = lbfgs(logistic(7), np.zeros(12), callback=callback)
    assert (result.status, result.iterations) == ("interrupted", 3)
    assert result.loss == logistic(7)(result.w)[0]


def test_other_exceptions_pass() -> None:
    def function(w: Vector) -> tuple[float, Vector]:
        raise StopIteration("not from the callback")

    with pytest.raises(StopIteration, match="not from"):
        lbfgs(function, np.zeros(2))


# Border


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_non_finite_start(bad: float) -> None:
    with pytest.raises(ValueError, match="loss at w0"):
        lbfgs(lambda w: (bad, w), np.zeros(3))
    with pytest.raises(ValueError, match="index 1"):
        lbfgs(lambda w: (0.0, np.array([0.0, bad, 0.0])), np.zeros(3))
    with pytest.raises(ValueError, match=r"w0\[2\]"):
        lbfgs(rosenbrock, np.array([0.0, 0.0, bad]))


@pytest.mark.parametrize("linesearch", LINE_SEARCHES)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", ["loss", "gradient"])
@pytest.mark.parametrize("c1", [0.0, 0.01])
def test_non_finite_trials_shorten_the_step(linesearch: str, bad: float, where: str, c1: float) -> None:
    """A barrier: x - log(x) around 1 is undefined for x <= 0, and first steps from 1e-3 land there."""
    centre = np.array([1.0, 2.0, 0.5])

    def function(w: Vector) -> tuple[float, Vector]:
        if np.any(w <= 0.0) or np.any(w > 3.0):
            gradient = np.zeros(3)
            if where == "loss":
                return bad, gradient
            gradient[1] = bad
            return -1e9, gradient
        return float(np.sum(w / centre - np.log(w))), 1.0 / centre - 1.0 / w

    result = lbfgs(function, np.array([2.9, 2.9, 2.9]), linesearch=linesearch, c1=c1, epsilon=1e-7, period=0)
    assert result.status == "converged"
    np.testing.assert_allclose(result.w, 1.0 / (1.0 / centre + c1), rtol=1e-5)


def test_non_finite_everywhere_else() -> None:
    def function(w: Vector) -> tuple[float, Vector]:
        return (1.0 if not w.any() else math.nan), np.ones(3)

    for linesearch in LINE_SEARCHES:
        result = lbfgs(function, np.zeros(3), linesearch=linesearch)
        assert result.status == "linesearch failed"
        assert not result.w.any()


def test_reused_gradient_buffer() -> None:
    smooth, buffer = logistic(8), np.empty(12)

    def function(w: Vector) -> tuple[float, Vector]:
        loss, buffer[:] = smooth(w)
        return loss, buffer

    for c1 in (0.0, 1.0):
        np.testing.assert_array_equal(lbfgs(function, np.zeros(12), c1=c1).w, lbfgs(smooth, np.zeros(12), c1=c1).w)


def test_gradient_that_is_the_argument() -> None:
    """f = |w|^2 / 2 may return its argument as the gradient."""
    result = lbfgs(lambda w: (0.5 * float(w @ w), w), np.arange(5.0), **TIGHT)
    np.testing.assert_allclose(result.w, 0.0, atol=1e-8)


def test_start_is_unchanged_and_may_be_read_only() -> None:
    w0 = np.array([-1.2, 1.0])
    w0.flags.writeable = False
    result = lbfgs(rosenbrock, w0)
    np.testing.assert_array_equal(w0, [-1.2, 1.0])
    assert not np.shares_memory(result.w, w0)
    still = lbfgs(rosenbrock, w0, max_iterations=0)
    assert not np.shares_memory(still.w, w0)


def test_strided_lists_and_float32() -> None:
    expected = lbfgs(rosenbrock, np.array([-1.0, 1.0])).w
    np.testing.assert_array_equal(lbfgs(rosenbrock, [-1.0, 1.0]).w, expected)
    np.testing.assert_array_equal(lbfgs(rosenbrock, np.array([-1.0, 9.0, 1.0])[::2]).w, expected)
    np.testing.assert_array_equal(lbfgs(rosenbrock, np.array([-1, 1], dtype=np.float32)).w, expected)


@pytest.mark.parametrize("c1", [0.0, 1.0])
def test_deterministic(c1: float) -> None:
    first, second = (lbfgs(logistic(9), np.zeros(12), c1=c1) for _ in range(2))
    np.testing.assert_array_equal(first.w, second.w)
    assert (first.loss, first.evaluations) == (second.loss, second.evaluations)


def test_no_weights() -> None:
    result = lbfgs(lambda w: (3.0, w), np.zeros(0))
    assert (result.status, result.loss, result.w.shape) == ("converged", 3.0, (0,))


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"memory": 0}, "memory"),
        ({"max_iterations": -1}, "max_iterations"),
        ({"max_linesearch": 0}, "max_linesearch"),
        ({"period": -1}, "period"),
        ({"epsilon": -1e-5}, "epsilon"),
        ({"delta": math.nan}, "delta"),
        ({"linesearch": "Wolfe"}, "Wolfe"),
        ({"c1": -1.0}, "c1"),
        ({"c1": [0.0, math.nan]}, "c1"),
        ({"c1": np.ones(3)}, "c1"),
    ],
)
def test_bad_arguments(arguments: dict[str, object], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        lbfgs(rosenbrock, np.zeros(2), **arguments)


def test_bad_shapes() -> None:
    with pytest.raises(ValueError, match="one dimension"):
        lbfgs(rosenbrock, np.zeros((2, 2)))
    with pytest.raises(ValueError, match=r"\(3,\)"):
        lbfgs(lambda w: (0.0, np.ones(3)), np.zeros(2))


# Gradient check


def test_gradient_check() -> None:
    w = np.random.default_rng(0).normal(size=12)
    assert gradient_check(logistic(0), w) < 1e-9
    assert gradient_check(rosenbrock, w, n=5, seed=3) < 1e-8

    def wrong(v: Vector) -> tuple[float, Vector]:
        loss, gradient = rosenbrock(v)
        gradient[3] *= 1.001
        return loss, gradient

    assert 1e-4 < gradient_check(wrong, w) < 2e-3


def test_gradient_check_leaves_the_point_alone() -> None:
    w = np.ones(4)
    w.flags.writeable = False
    gradient_check(logistic(0, n=4), w)
    assert gradient_check(lambda v: (math.nan, v), np.ones(3)) != 0.0
    assert gradient_check(lambda v: (0.0, v), np.zeros(0)) == 0.0
