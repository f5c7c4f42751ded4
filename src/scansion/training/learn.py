"""The learning algorithms of the flat models, by the names CRFsuite gave them.

Each takes a native objective and starting weights and returns `Learnt`. Batch algorithms hand an objective
``f(w) -> (loss, gradient)`` to an optimiser that knows nothing else; online ones make passes over the sequences in an
order drawn from the seed.

    lbfgs   log loss + c2 |w|^2 + c1 |w|_1, by L-BFGS, or OWL-QN if c1 > 0
    l2sgd   log loss + c2 |w|^2, by stochastic gradients with a calibrated rate (Bottou)
    asgd    the same, with the mean of the weights along the way from the second pass on (Polyak, Ruppert): close to the
            optimum in a few passes
    mm      max-margin: sum_b max_y [w.f(y) + Hamming(y)] - w.f(y_b), + c2 |w|^2, by stochastic subgradients (Pegasos)
    ap      averaged perceptron (Collins 2002)
    pa      passive-aggressive (Crammer et al. 2006)
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, get_args

import numpy as np

from scansion import _checks as checks
from scansion import _core
from scansion._checks import Floats, Ints
from scansion.training.history import dot
from scansion.training.optimizers import LineSearch, lbfgs
from scansion.training.progress import Progress

__all__ = ["ALGORITHMS", "Development", "Learnt", "Settings", "learn", "log_objective", "margin_objective", "strengths"]

ALGORITHMS = ("lbfgs", "l2sgd", "asgd", "mm", "ap", "pa")


@dataclass
class Settings:
    """Parameters of the algorithms; the names and defaults are CRFsuite's. Checked when made."""

    algorithm: str = "lbfgs"
    c1: float | Floats = 0.0
    c2: float | Floats = 1.0
    max_iterations: int | None = None
    num_memories: int = 6
    epsilon: float = 1e-5
    period: int = 10
    delta: float = 1e-5
    linesearch: str = "MoreThuente"
    max_linesearch: int = 20
    calibration_eta: float = 0.1
    calibration_rate: float = 2.0
    calibration_samples: int = 1000
    calibration_candidates: int = 10
    calibration_max_trials: int = 20
    pa_type: int = 1
    c: float = 1.0
    error_sensitive: bool = True
    averaging: bool = True
    n_jobs: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        _one_of("algorithm", self.algorithm, ALGORITHMS)
        _one_of("linesearch", self.linesearch, get_args(LineSearch))
        _one_of("pa_type", self.pa_type, (0, 1, 2))
        for name in ("num_memories", "max_linesearch", "calibration_samples", "calibration_candidates"):
            checks.count(name, getattr(self, name), 1)
        for name in ("period", "calibration_max_trials"):
            checks.count(name, getattr(self, name), 0)
        for name in ("epsilon", "delta"):
            _number(name, getattr(self, name), ">= 0", lambda x: x >= 0)
        for name in ("calibration_eta", "c"):
            _number(name, getattr(self, name), "> 0", lambda x: x > 0)
        _number("calibration_rate", self.calibration_rate, "> 1", lambda x: x > 1)
        c1, c2 = np.atleast_1d(self.c1), np.atleast_1d(self.c2)
        if self.algorithm in ("l2sgd", "asgd", "mm"):
            if c2.min() <= 0.0:
                raise ValueError(
                    f"algorithm={self.algorithm!r} needs c2 > 0, which sets its learning rate; got {c2.min()}"
                )
            if c2.min() != c2.max():
                raise ValueError(f"algorithm={self.algorithm!r} takes one c2 for all orders, got several; use 'lbfgs'")
        if self.algorithm != "lbfgs" and c1.max() > 0.0:
            raise ValueError(f"algorithm={self.algorithm!r} has no L1 penalty: set c1=0, or use 'lbfgs'")


def strengths(name: str, value: Any) -> float | Floats:
    """c1 or c2: a number >= 0, or an array of one for each order."""
    values = value.tolist() if isinstance(value, np.ndarray) else value
    several = isinstance(values, Sequence) and not isinstance(values, str)
    given = list(values) if several else [values]
    if not given or not all(_is_number(v) and v >= 0 for v in given):
        raise ValueError(f"{name} must be a number >= 0, or one for each order, got {value!r}")
    return np.array(given, np.float64) if several else float(given[0])


def _is_number(value: Any) -> bool:
    return not isinstance(value, (bool, np.bool_)) and isinstance(value, Real) and math.isfinite(value)


def _number(name: str, value: Any, wanted: str, fits: Callable[[float], bool]) -> None:
    if not _is_number(value) or not fits(value):
        raise ValueError(f"{name} must be a number {wanted}, got {value!r}")


def _one_of(name: str, value: Any, choices: tuple[Any, ...]) -> None:
    if isinstance(value, bool) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(str, choices))}, got {value!r}")


@dataclass
class Learnt:
    """Weights, final objective, and what happened on the way."""

    weights: Floats
    loss: float
    message: str
    log: list[dict[str, Any]] = field(default_factory=list)


class Development:
    """Scores development data after each iteration; remembers the best weights and says when to stop.

    Parameters
    ----------
    score : callable, optional
        From weights to their score, the higher the better; None: there is no such data.
    patience : int
        Iterations without a better score before training stops.
    """

    def __init__(self, score: Callable[[Floats], float] | None = None, patience: int = 10) -> None:
        self.score = score
        self.patience = patience
        self.best = -math.inf
        self.iterations = self.best_iteration = 0
        self.weights: Floats | None = None

    def look(self, weights: Floats) -> tuple[float | None, bool]:
        """The score (None: no data) after one more iteration, and whether to stop."""
        if self.score is None:
            return None, False
        value = self.score(weights)
        self.iterations += 1
        if value > self.best:
            self.best, self.best_iteration, self.weights = value, self.iterations, np.array(weights)
        return value, self.iterations - self.best_iteration >= self.patience

    def choose(self, learnt: Learnt) -> Learnt:
        """What was learnt, with the weights that scored best."""
        if self.weights is None:
            return learnt
        loss = learnt.log[self.best_iteration - 1]["loss"] if learnt.log else learnt.loss
        return Learnt(self.weights, loss, learnt.message, learnt.log)


def log_objective(
    objective: _core.FlatObjective, c2: float | Floats, n_jobs: int
) -> Callable[[Floats], tuple[float, Floats]]:
    """``f(w)`` = negative log likelihood of what is known + c2 |w|^2, and its gradient."""
    gradient: Floats = np.empty(0)

    def function(w: Floats) -> tuple[float, Floats]:
        nonlocal gradient
        if gradient.shape != w.shape:
            gradient = np.empty_like(w)
        loss = objective.log_loss(w, gradient, n_jobs)
        return _penalised(loss, gradient, w, c2, n_jobs)

    return function


def margin_objective(
    objective: _core.FlatObjective, c2: float | Floats, n_jobs: int
) -> Callable[[Floats], tuple[float, Floats]]:
    """``f(w)`` = summed margin violations (Hamming cost) + c2 |w|^2, and a subgradient."""

    def function(w: Floats) -> tuple[float, Floats]:
        gradient = np.empty_like(w)
        loss = objective.margin_loss(w, gradient, n_jobs)
        return _penalised(loss, gradient, w, c2, n_jobs)

    return function


def _penalised(loss: float, gradient: Floats, w: Floats, c2: float | Floats, n_jobs: int) -> tuple[float, Floats]:
    if not isinstance(c2, np.ndarray):
        return loss + c2 * _core.add_scaled_and_square(gradient, w, 2.0 * c2, n_jobs), gradient
    pull = c2 * w
    gradient += 2.0 * pull
    return loss + dot(pull, w), gradient


def learn(
    objective: _core.FlatObjective,
    w0: Floats,
    sequences: Ints,
    settings: Settings,
    development: Development,
    progress: Progress,
) -> Learnt:
    """Run an algorithm from w0; online ones make their passes over `sequences`, those of which something is known."""
    run = {"lbfgs": _lbfgs, "l2sgd": _sgd, "asgd": _sgd, "mm": _sgd, "ap": _mistakes, "pa": _mistakes}[
        settings.algorithm
    ]
    return development.choose(run(objective, w0, sequences, settings, development, progress))


_EARLY = "stopped early: the score on the development data no longer rose"


def _lbfgs(
    objective: _core.FlatObjective,
    w0: Floats,
    sequences: Ints,
    settings: Settings,
    development: Development,
    progress: Progress,
) -> Learnt:
    log: list[dict[str, Any]] = []

    def report(state: Any) -> bool:
        dev, stop = development.look(state.w)
        entry = {
            "iteration": state.iteration,
            "loss": state.loss,
            "gradient_norm": state.gradient_norm,
            "active": state.n_active,
            "evaluations": state.evaluations,
            "seconds": state.seconds,
            "dev_score": dev,
        }
        log.append(entry)
        progress.update(entry)
        return stop

    result = lbfgs(
        log_objective(objective, settings.c2, settings.n_jobs),
        w0,
        memory=settings.num_memories,
        max_iterations=settings.max_iterations,
        epsilon=settings.epsilon,
        period=settings.period,
        delta=settings.delta,
        linesearch=settings.linesearch,  # type: ignore[arg-type]  # checked there
        max_linesearch=settings.max_linesearch,
        c1=settings.c1,
        callback=report,
        n_jobs=settings.n_jobs,
    )
    return Learnt(result.w, result.loss, _EARLY if result.status == "callback" else result.message, log)


def _sgd(
    objective: _core.FlatObjective,
    w0: Floats,
    sequences: Ints,
    settings: Settings,
    development: Development,
    progress: Progress,
) -> Learnt:
    c2 = float(np.max(settings.c2))
    kind = _core.Algorithm.margin if settings.algorithm == "mm" else _core.Algorithm.likelihood
    averaged = settings.algorithm == "asgd"
    rng = np.random.default_rng(settings.seed)
    strength = 2.0 * c2 / max(1, len(sequences))

    def start(eta: float) -> _core.Online:
        online = _core.Online(kind)
        online.strength = strength
        online.t0 = 1.0 / (strength * eta)
        return online

    def settle(online: _core.Online, w: Floats) -> None:
        w *= online.scale
        online.scale = 1.0

    begun = time.perf_counter()
    eta = _calibrated(objective, start, settle, w0, sequences, strength, settings, rng)
    online = start(eta)
    w, total = w0.copy(), np.zeros_like(w0) if averaged else np.empty(0)
    best, best_loss = w0.copy(), np.inf
    log: list[dict[str, Any]] = []
    message = "the maximum number of passes was made"
    passes = 1000 if settings.max_iterations is None else settings.max_iterations
    try:
        for iteration in range(1, passes + 1):
            online.average = averaged and iteration > 1
            loss = objective.run_pass(online, rng.permutation(sequences), w, total)
            settle(online, w)
            current = total / online.steps if online.steps else w.copy()
            loss += c2 * dot(current, current)
            if averaged or loss < best_loss:
                best, best_loss = current, loss
            now = time.perf_counter()
            dev, stop = development.look(current)
            entry = {"iteration": iteration, "loss": loss, "seconds": now - begun, "dev_score": dev, "rate": eta}
            begun = time.perf_counter()
            log.append(entry)
            progress.update(entry)
            if stop:
                message = _EARLY
                break
            if 0 < settings.period < iteration:
                before = log[-1 - settings.period]["loss"]
                if (before - loss) / max(abs(loss), 1e-300) < settings.delta:
                    message = f"the loss fell by less than delta over {settings.period} passes"
                    break
    except KeyboardInterrupt:
        message = "interrupted; the weights of the best pass so far are kept"
    return Learnt(best, float(best_loss) if log else math.nan, message, log)


def _calibrated(
    objective: _core.FlatObjective,
    start: Callable[[float], _core.Online],
    settle: Callable[[_core.Online, Floats], None],
    w0: Floats,
    sequences: Ints,
    strength: float,
    settings: Settings,
    rng: np.random.Generator,
) -> float:
    """The first rate that makes most of one pass over a sample, tried up and down from `calibration_eta`."""
    sample = rng.permutation(sequences)[: settings.calibration_samples]
    nothing = np.empty(0)

    def loss_of(eta: float) -> float:
        online, w = start(eta), w0.copy()
        loss = objective.run_pass(online, sample, w, nothing)
        settle(online, w)
        loss += 0.5 * strength * len(sample) * dot(w, w)
        return float(loss) if np.isfinite(loss) else np.inf

    eta = settings.calibration_eta
    if settings.calibration_candidates == 1:
        return eta
    tried = {eta: loss_of(eta)}
    factor, rising = settings.calibration_rate, True
    for _ in range(settings.calibration_max_trials):
        if len(tried) > settings.calibration_candidates:
            break
        candidate = eta * factor if rising else eta / factor
        tried[candidate] = loss_of(candidate)
        worse = tried[candidate] > tried[eta]
        if worse and rising and len(tried) == 2:
            rising = False  # nothing to gain above: look below
        elif worse:
            break
        else:
            eta = candidate
    return min(tried, key=lambda e: tried[e])


def _mistakes(
    objective: _core.FlatObjective,
    w0: Floats,
    sequences: Ints,
    settings: Settings,
    development: Development,
    progress: Progress,
) -> Learnt:
    perceptron = settings.algorithm == "ap"
    online = _core.Online(_core.Algorithm.perceptron if perceptron else _core.Algorithm.passive_aggressive)
    online.average = perceptron or settings.averaging
    online.pa_type = settings.pa_type
    online.aggressiveness = settings.c
    online.error_sensitive = settings.error_sensitive
    rng = np.random.default_rng(settings.seed)
    w, total = w0.copy(), np.zeros_like(w0)

    def current() -> Floats:
        return w - total / online.steps if online.average and online.steps else w.copy()

    log: list[dict[str, Any]] = []
    message = "the maximum number of passes was made"
    passes = 100 if settings.max_iterations is None else settings.max_iterations
    begun = time.perf_counter()
    loss = np.nan
    try:
        for iteration in range(1, passes + 1):
            loss = objective.run_pass(online, rng.permutation(sequences), w, total)
            now = time.perf_counter()
            dev, stop = development.look(current())
            entry = {"iteration": iteration, "loss": loss, "seconds": now - begun, "dev_score": dev}
            begun = time.perf_counter()
            log.append(entry)
            progress.update(entry)
            if stop:
                message = _EARLY
                break
            if loss / max(1, len(sequences)) < settings.epsilon:
                message = "no more mistakes on the training data"
                break
    except KeyboardInterrupt:
        message = "interrupted; the weights of the last pass are kept"
    return Learnt(current(), float(loss), message, log)
