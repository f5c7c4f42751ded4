"""The learning algorithms, by the names CRFsuite gave them.

Each takes an objective and starting weights and returns `Learnt`. Batch algorithms hand a function
``f(w) -> (loss, gradient)`` to an optimiser that knows nothing else; online ones make passes over the sequences in an
order drawn from the seed.

    lbfgs   log loss + c2 |w|^2 + c1 |w|_1, by L-BFGS, or OWL-QN if c1 > 0, in coordinates in which features of all
            units are alike (`scansion.training.coordinates`)
    auto    passes of asgd, then lbfgs from there in coordinates in which the loss is about as curved along each weight:
            the optimum of lbfgs in a fraction of its iterations
    l2sgd   log loss + c2 |w|^2, by stochastic gradients with a calibrated rate (Bottou)
    asgd    the same, with the mean of the weights along the way from the second pass on (Polyak, Ruppert): close to the
            optimum in a few passes
    mm      max-margin: sum_b max_y [w.f(y) + Hamming(y)] - w.f(y_b), + c2 |w|^2, by stochastic subgradients (Pegasos)
    ap      averaged perceptron (Collins 2002)
    pa      passive-aggressive (Crammer et al. 2006)
    arow    adaptive regularisation of weights (Crammer, Kulesza and Dredze 2009), variances on the diagonal
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from scansion import _checks as checks
from scansion import _core
from scansion._checks import Floats
from scansion.training.convergence import warn
from scansion.training.coordinates import Coordinates
from scansion.training.history import dot
from scansion.training.objective import Objective
from scansion.training.optimizers import OptimizeResult, lbfgs
from scansion.training.penalty import Penalty
from scansion.training.progress import Progress

if TYPE_CHECKING:
    from scansion.models.parameters import CheckedSettings

__all__ = [
    "ALGORITHMS",
    "Descent",
    "Development",
    "Learnt",
    "check_range",
    "learn",
    "log_objective",
    "margin_objective",
    "mistake_driven",
]


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
    objective: Objective, penalty: Penalty | float | Floats, n_jobs: int
) -> Callable[[Floats], tuple[float, Floats]]:
    """``f(w)`` = negative log likelihood of what is known + the smooth penalties (a number: c2), and its gradient."""
    cost = penalty if isinstance(penalty, Penalty) else Penalty(c2=penalty)
    gradient: Floats = np.empty(0)

    def function(w: Floats) -> tuple[float, Floats]:
        nonlocal gradient
        if gradient.shape != w.shape:
            gradient = np.empty_like(w)
        loss = objective.log_loss(w, gradient, n_jobs)
        return cost.add_smooth(loss, gradient, w, n_jobs), gradient

    return function


def margin_objective(
    objective: Objective, penalty: Penalty | float | Floats, n_jobs: int
) -> Callable[[Floats], tuple[float, Floats]]:
    """``f(w)`` = summed margin violations (Hamming cost) + the smooth penalties (a number: c2), and a subgradient."""
    cost = penalty if isinstance(penalty, Penalty) else Penalty(c2=penalty)

    def function(w: Floats) -> tuple[float, Floats]:
        gradient = np.empty_like(w)
        loss = objective.margin_loss(w, gradient, n_jobs)
        return cost.add_smooth(loss, gradient, w, n_jobs), gradient

    return function


_EARLY = "stopped early: the score on the development data no longer rose"


@dataclass
class _Job:
    """What an algorithm works on: an objective and the weights it starts from; and what it is watched by."""

    objective: Objective
    w0: Floats
    settings: CheckedSettings
    penalty: Penalty
    coordinates: Coordinates | None
    development: Development
    progress: Progress
    log: list[dict[str, Any]] = field(default_factory=list)

    def note(self, weights: Floats, entry: dict[str, Any]) -> bool:
        """Log an iteration and show it; whether the development data say that it is time to stop."""
        dev, stop = self.development.look(weights)
        entry["dev_score"] = dev
        self.log.append(entry)
        self.progress.update(entry)
        return stop


def learn(
    objective: Objective,
    w0: Floats,
    settings: CheckedSettings,
    penalty: Penalty,
    coordinates: Coordinates | None,
    development: Development,
    progress: Progress,
) -> Learnt:
    """Run an algorithm from w0; coordinates (None: the weights themselves) are those in which lbfgs works."""
    job = _Job(objective, w0, settings, penalty, coordinates, development, progress)
    learnt = development.choose(_ALGORITHMS[settings.algorithm](job))
    check_range(learnt.weights, learnt.loss if learnt.log else 0.0, settings.algorithm, len(learnt.log))
    return learnt


def check_range(weights: Floats, loss: float, algorithm: str, iterations: int) -> None:
    """Raise if training went where numbers end."""
    large = ~(np.abs(weights) <= checks.MOST_WEIGHT)
    if large.any() or not math.isfinite(loss):
        at = int(np.argmax(large))
        what = f"weight {at} is {weights[at]}" if large.any() else f"the loss is {loss}"
        raise ValueError(
            f"training with algorithm={algorithm!r} went out of range: {what} after {iterations} iterations. Attribute "
            "values, sample weights or learning rates are too large: scale them down"
        )


def _lbfgs(job: _Job) -> Learnt:
    settings, penalty, to = job.settings, job.penalty, job.coordinates

    def report(state: Any) -> bool:
        entry = {
            "iteration": len(job.log) + 1,
            "loss": state.loss,
            "gradient_norm": state.gradient_norm,
            "active": state.n_active,
            "step": state.step,
            "trials": state.trials,
            "evaluations": state.evaluations,
            "seconds": state.seconds,
        }
        return job.note(state.w if to is None else to.weights(state.w), entry)

    function = log_objective(job.objective, penalty, settings.n_jobs)

    result = lbfgs(
        function if to is None else to.seen_from(function),
        job.w0 if to is None else to.of(job.w0),
        memory=settings.num_memories,
        max_iterations=settings.max_iterations,
        epsilon=settings.epsilon,
        period=settings.period,
        delta=settings.delta,
        linesearch=settings.linesearch,
        max_linesearch=settings.max_linesearch,
        c1=penalty.c1 if to is None else penalty.c1 * to.scale,
        relative=True,
        callback=report,
        n_jobs=settings.n_jobs,
    )
    _warn_early(result, settings)
    weights = result.w if to is None else to.weights(result.w)
    return Learnt(weights, result.loss, _EARLY if result.status == "callback" else result.message, job.log)


def _warn_early(result: OptimizeResult, settings: CheckedSettings) -> None:
    """Warn if the loss was still falling."""
    if result.status == "max_iterations" and result.falling > settings.delta:
        warn(
            f"training stopped at max_iterations = {settings.max_iterations}, while the loss, {result.loss:.6g}, still "
            f"fell by {100 * result.falling:.2g} % in {min(settings.period, result.iterations)} iterations: raise "
            "max_iterations, or give X_dev and y_dev, which stop training where the score no longer rises"
        )
    elif result.status == "linesearch failed" and result.falling > settings.delta:
        warn(
            f"training stopped after {result.iterations} iterations at the loss {result.loss:.6g}, because no step "
            "made it smaller: are there values of very different size in X, or is a penalty (c2) almost 0? Divide "
            "such values by their standard deviation, or raise c2"
        )


_PIECES = 20  # of a pass, after each of which weights get the penalty of their own


class Descent:
    """Stochastic (sub)gradients: step t has the rate 1 / (strength (t0 + t)), eta at first.

    n: of how many examples there are in all the penalty is.
    """

    def __init__(
        self,
        objective: Objective,
        settings: CheckedSettings,
        penalty: Penalty,
        w0: Floats,
        n: int,
        rng: np.random.Generator,
    ) -> None:
        self.objective, self.settings, self.w0, self.n, self.rng = objective, settings, w0, max(1, n), rng
        self.examples = objective.examples
        self.kind = _core.Algorithm.margin if settings.algorithm == "mm" else _core.Algorithm.likelihood
        c2 = penalty.squares(len(w0))
        self.c2 = c2
        # one strength sets the rates and shrinks all weights on the way; `run` mends that where weights differ in it
        self.strength = 2.0 * float(np.mean(c2)) / self.n
        self.more = 2.0 / self.n * c2 - self.strength if isinstance(c2, np.ndarray) and np.ptp(c2) > 0.0 else None

    def order(self) -> Any:
        """The examples as the next pass takes them."""
        return self.rng.permutation(self.examples)

    def start(self, eta: float) -> _core.Online:
        """The algorithm before its first step."""
        online = _core.Online(self.kind)
        online.strength = self.strength
        online.t0 = 1.0 / max(self.strength * eta, sys.float_info.min)
        return online

    def run(self, online: _core.Online, order: Any, w: Floats, total: Floats) -> float:
        """One pass; the weights are w itself afterwards."""
        loss = 0.0
        pieces = 1 if self.more is None else min(_PIECES, max(1, len(order)))
        for piece in np.array_split(order, pieces):
            before = online.t
            loss += self.objective.run_pass(online, piece, w, total)
            w *= online.scale
            online.scale = 1.0
            if self.more is not None:
                # step t shrinks by rate_t strength; the rates of a piece add up to about this
                rates = math.log((online.t0 + online.t) / (online.t0 + before)) / self.strength
                w *= np.exp(-np.clip(self.more * rates, -1.0, 50.0))
        return loss

    def cost(self, w: Floats) -> float:
        """The penalty."""
        return dot(self.c2 * w, w) if isinstance(self.c2, np.ndarray) else self.c2 * dot(w, w)

    def calibrated(self) -> float:
        """The first rate that makes most of one pass over a sample, tried up and down from `calibration_eta`."""
        settings = self.settings
        sample = self.rng.permutation(self.examples)[: settings.calibration_samples]

        def loss_of(eta: float) -> float:
            w = self.w0.copy()
            loss = self.run(self.start(eta), sample, w, np.empty(0))
            loss += self.cost(w) * len(sample) / self.n
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


def _sgd(job: _Job) -> Learnt:
    settings, log = job.settings, job.log
    averaged = settings.algorithm == "asgd"
    rng, n = np.random.default_rng(settings.random_state), len(job.objective.examples)
    descent = Descent(job.objective, settings, job.penalty, job.w0, n, rng)
    begun = time.perf_counter()
    eta = descent.calibrated()
    online = descent.start(eta)
    w, total = job.w0.copy(), np.zeros_like(job.w0) if averaged else np.empty(0)
    best, best_loss = job.w0.copy(), np.inf
    message = "the maximum number of passes was made"
    passes = 1000 if settings.max_iterations is None else settings.max_iterations
    try:
        for iteration in range(1, passes + 1):
            online.average = averaged and iteration > 1
            loss = descent.run(online, descent.order(), w, total)
            current = total / online.steps if online.steps else w.copy()
            loss += descent.cost(current)
            if averaged or loss < best_loss:
                best, best_loss = current, loss
            entry = {"iteration": iteration, "loss": loss, "seconds": time.perf_counter() - begun, "rate": eta}
            stop = job.note(current, entry)
            begun = time.perf_counter()
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


_NO_MORE = "no more mistakes on the training data"
_MISTAKES = {
    "ap": _core.Algorithm.perceptron,
    "pa": _core.Algorithm.passive_aggressive,
    "arow": _core.Algorithm.arow,
}


def mistake_driven(settings: CheckedSettings) -> _core.Online:
    """ap, pa or arow before its first step."""
    online = _core.Online(_MISTAKES[settings.algorithm])
    online.average = settings.algorithm == "ap" or (settings.algorithm == "pa" and bool(settings.averaging))
    online.gamma = settings.gamma
    online.pa_type = int(settings.pa_type)
    online.aggressiveness = settings.c
    online.error_sensitive = bool(settings.error_sensitive)
    return online


def _mistakes(job: _Job) -> Learnt:
    settings = job.settings
    adaptive = settings.algorithm == "arow"
    online = mistake_driven(settings)
    rng = np.random.default_rng(settings.random_state)
    examples = job.objective.examples
    # total: what is averaged, or the variances of arow
    w, total = job.w0.copy(), np.full_like(job.w0, settings.variance if adaptive else 0.0)

    def current() -> Floats:
        return w - total / online.steps if online.average and online.steps else w.copy()

    message = "the maximum number of passes was made"
    passes = 100 if settings.max_iterations is None else settings.max_iterations
    begun = time.perf_counter()
    loss = np.nan
    try:
        for iteration in range(1, passes + 1):
            loss = job.objective.run_pass(online, rng.permutation(examples), w, total)
            entry = {"iteration": iteration, "loss": loss, "seconds": time.perf_counter() - begun}
            stop = job.note(current(), entry)
            begun = time.perf_counter()
            if stop:
                message = _EARLY
                break
            mean = loss / max(1, len(examples))
            if mean < settings.epsilon or (adaptive and mean == settings.epsilon):  # as CRFsuite has it
                message = "few mistakes are left on the training data" if mean else _NO_MORE
                break
    except KeyboardInterrupt:
        message = "interrupted; the weights of the last pass are kept"
    return Learnt(current(), float(loss), message, job.log)


# Of auto: at most so many passes, until the loss falls by less than this share of itself in one.
_FIRST_PASSES, _FIRST_FALL = 10, 0.05
_LEAST_CURVATURE = 1e-2


def _auto(job: _Job) -> Learnt:
    settings = job.settings
    c2 = job.penalty.squares(len(job.w0))
    if not np.mean(c2) > 0.0:
        return _lbfgs(job)  # nothing sets a rate
    limit = settings.max_iterations
    passes = _FIRST_PASSES if limit is None else min(_FIRST_PASSES, limit)
    first = replace(settings, algorithm="asgd", max_iterations=passes, period=1, delta=_FIRST_FALL)
    learnt = _sgd(replace(job, settings=first))
    left = None if limit is None else limit - len(job.log)
    if learnt.message == _EARLY or learnt.message.startswith("interrupted") or left == 0:
        return learnt
    again = replace(job, settings=replace(settings, max_iterations=left), w0=learnt.weights)
    return _lbfgs(replace(again, coordinates=_by_curvature(again)))


def _by_curvature(job: _Job) -> Coordinates:
    """Coordinates in which the loss is about as curved along each weight as along the others, where the job starts."""
    units, w = job.coordinates, job.w0
    scale = np.ones(len(w)) if units is None else units.scale
    curvature = np.empty_like(w)
    job.objective.curvature(w, None if units is None else scale, curvature, job.settings.n_jobs)
    curved = np.maximum(2.0 * job.penalty.squares(len(w)) + curvature / scale**2, _LEAST_CURVATURE)
    return Coordinates(1.0 / np.sqrt(curved), None if units is None else units.shift)


_ALGORITHMS: dict[str, Callable[[_Job], Learnt]] = {
    "lbfgs": _lbfgs,
    "auto": _auto,
    "l2sgd": _sgd,
    "asgd": _sgd,
    "mm": _sgd,
    "ap": _mistakes,
    "pa": _mistakes,
    "arow": _mistakes,
}
ALGORITHMS = tuple(_ALGORITHMS)
