"""Batch optimisers for smooth losses with an optional L1 penalty.

The one entry point is :func:`lbfgs`, which minimises ``F(w) = f(w) + sum_i c1_i |w_i|`` given a function
that returns ``f(w)`` and its gradient. Without a penalty it is limited-memory BFGS [1]_ with a choice of
line searches, among them the one of Moré and Thuente [3]_; with one it is the orthant-wise variant OWL-QN
[2]_. :func:`gradient_check` compares a gradient with finite differences.

Conventions
-----------
- ``n`` is the number of weights, ``m`` the number of remembered pairs (``memory``).
- All vectors are float64, C-contiguous, of shape (n,). The loss is minimised.
- ``f`` may return the same gradient buffer on each call: nothing of it is kept across calls without a copy.
- ``f`` must neither change the array it is given nor keep it: the buffer is reused.
- Costs are in passes over vectors of length n; an iteration needs about ``4 m + 15`` of them besides
  calling ``f``, and ``(2 m + 4) n`` floats of memory (``(2 m + 7) n`` and a mask with L1).
- Results are reproducible bit by bit, whatever the number of threads (see ``history.py``).

Stopping rules and constants are those of CRFsuite, so that training takes about as many iterations and ends
at the same optimum. Where the code departs from it, the docstring of :func:`lbfgs` says so.

References
----------
.. [1] D. C. Liu and J. Nocedal, "On the limited memory BFGS method for large scale optimization",
   Mathematical Programming 45 (1989), 503-528.
.. [2] G. Andrew and J. Gao, "Scalable training of L1-regularized log-linear models", ICML 2007, 33-40.
.. [3] J. J. Moré and D. J. Thuente, "Line search algorithms with guaranteed sufficient decrease",
   ACM Transactions on Mathematical Software 20 (1994), 286-307.
.. [4] R. H. Byrd, J. Nocedal and R. B. Schnabel, "Representations of quasi-Newton matrices and their use in
   limited memory methods", Mathematical Programming 63 (1994), 129-156.
.. [5] J. Nocedal and S. J. Wright, "Numerical Optimization", 2nd edition, Springer 2006, chapters 3 and 7.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scansion.training.history import History, dot, norm
from scansion.training.linesearch import (
    MIN_STEP,
    NON_FINITE_SHORTER,
    SHORTER,
    SUFFICIENT_DECREASE,
    backtracking,
    more_thuente,
)
from scansion.training.orthant import L1Penalty

__all__ = ["OptimizeResult", "OptimizeState", "gradient_check", "lbfgs"]

LineSearch: TypeAlias = Literal["MoreThuente", "Backtracking", "StrongBacktracking"]
Vector: TypeAlias = NDArray[np.float64]
Objective: TypeAlias = Callable[[Vector], "tuple[float, Vector]"]
Status: TypeAlias = Literal[
    "converged", "stopped by delta", "max_iterations", "callback", "interrupted", "linesearch failed"
]


@dataclass(frozen=True)
class OptimizeState:
    """What a callback sees after each accepted iteration.

    Attributes
    ----------
    iteration : int
        Number of the iteration, from 1.
    loss : float
        ``f(w) + sum_i c1_i |w_i|``.
    gradient_norm : float
        Euclidean norm of the gradient, with L1 of the pseudo-gradient.
    step : float
        Accepted step length.
    trials : int
        Function evaluations of this iteration's line search.
    w_norm : float
        Euclidean norm of the weights.
    n_active : int
        Number of non-zero weights.
    evaluations : int
        Function evaluations so far.
    seconds : float
        Wall time of this iteration, without callbacks; the first includes the evaluation of the start.
    elapsed : float
        Wall time since the start.
    w : ndarray of shape (n,)
        The weights, read-only, valid during the callback only: copy them to keep them.
    """

    iteration: int
    loss: float
    gradient_norm: float
    step: float
    trials: int
    w_norm: float
    n_active: int
    evaluations: int
    seconds: float
    elapsed: float
    w: Vector


Callback: TypeAlias = Callable[[OptimizeState], "bool | None"]


@dataclass(frozen=True)
class OptimizeResult:
    """The last accepted point, and why the optimiser stopped there.

    Attributes
    ----------
    w : ndarray of shape (n,)
        Weights of the last accepted iteration, those of the lowest loss found.
    loss : float
        Loss at ``w``, the L1 term included; NaN if the very first evaluation was interrupted.
    iterations : int
        Accepted iterations.
    evaluations : int
        Calls of the function that returned.
    status : str
        "converged", "stopped by delta", "max_iterations", "callback", "interrupted" or "linesearch failed".
    message : str
        The status as a sentence.
    falling : float
        By how much of itself the loss fell in the last ``period`` iterations (all, if there were fewer).
    """

    w: Vector
    loss: float
    iterations: int
    evaluations: int
    status: Status
    message: str
    falling: float = 0.0


def lbfgs(
    function: Objective,
    w0: ArrayLike,
    *,
    memory: int = 6,
    max_iterations: int | None = None,
    epsilon: float = 1e-5,
    period: int = 10,
    delta: float = 1e-5,
    linesearch: LineSearch = "MoreThuente",
    max_linesearch: int = 20,
    c1: float | ArrayLike = 0.0,
    relative: bool = False,
    callback: Callback | None = None,
    n_jobs: int = 1,
) -> OptimizeResult:
    r"""Minimise :math:`F(w) = f(w) + \sum_i c_{1,i} |w_i|`, by L-BFGS or, with L1, OWL-QN.

    Each iteration moves along :math:`d = -H g`, where H approximates the inverse Hessian from the last
    ``memory`` pairs :math:`s = w_{k+1} - w_k`, :math:`y = g_{k+1} - g_k` (Liu and Nocedal 1989), by a step
    that a line search finds. The first step is :math:`1 / \|g\|`, the later ones are tried at length 1
    first.

    With L1, g is the pseudo-gradient, the subgradient of F of least norm; coordinates of d that disagree in
    sign with :math:`-g` are set to zero; each trial point is projected on the orthant of the current one;
    and y stays the difference of the gradients of the smooth part (Andrew and Gao 2007, algorithm 1).

    Parameters
    ----------
    function : callable
        ``f(w) -> (loss, gradient)``: a float and a float64 array of shape (n,), which may be a reused buffer.
    w0 : array_like of shape (n,)
        The starting point; it is copied.
    memory : int, default 6
        Number m of remembered pairs.
    max_iterations : int, optional
        Largest number of iterations; None means no limit. 0 evaluates the starting point and returns it.
    epsilon : float, default 1e-5
        Converged when :math:`\|g\| / \max(1, \|w\|) \le` epsilon.
    period, delta : int, float, default 10, 1e-5
        Stop when :math:`(F_{k - period} - F_k) / |F_k| <` delta. ``period=0`` switches the rule off.
    linesearch : {"MoreThuente", "Backtracking", "StrongBacktracking"}
        Moré and Thuente's search, or backtracking until the Wolfe or the strong Wolfe conditions hold. With
        L1 it is ignored: OWL-QN has a backtracking search of its own.
    max_linesearch : int, default 20
        Largest number of evaluations in one line search.
    c1 : float or array_like of shape (n,), default 0
        L1 penalty, one for all weights or one for each; weights of penalty 0 are not constrained to an
        orthant.
    relative : bool, default False
        Measure the gradient against the loss at the start, in thousands: ``epsilon`` then asks the same of a loss
        multiplied by a number, such as that of data given twice.
    callback : callable, optional
        Called with an :class:`OptimizeState` after each accepted iteration. If it returns True or raises
        ``StopIteration``, optimisation ends there.
    n_jobs : int, default 1
        Threads for the work on vectors, at least 1. Results do not depend on it.

    Returns
    -------
    OptimizeResult
        The last accepted point. A ``KeyboardInterrupt``, in ``function`` or in ``callback``, is caught, and
        ends the optimisation with the status "interrupted": the caller decides whether to raise it again.

    Raises
    ------
    ValueError
        If an argument is out of range, the gradient has the wrong shape, or the loss or gradient at ``w0``
        is not finite. Later, a value that is not finite shortens the step.

    Notes
    -----
    Departures from CRFsuite, none of which shows on a convex loss that is finite everywhere: a pair of no
    positive curvature (y.s <= 0, up to rounding) is not remembered; a direction that does not descend is
    replaced by that of steepest descent; and the delta rule divides by ``|F_k|``, so that losses may be
    negative. The product H g is computed from scalar products in the spirit of Byrd, Nocedal and Schnabel
    (1994), see :class:`scansion.training.history.History`.
    """
    w = np.array(w0, dtype=np.float64, order="C")
    if w.ndim != 1:
        raise ValueError(f"w0 must have one dimension, but has shape {w.shape}")
    if not np.isfinite(w).all():
        index = int(np.flatnonzero(~np.isfinite(w))[0])
        raise ValueError(f"w0 must be finite, but w0[{index}] is {w[index]}")
    if memory < 1:
        raise ValueError(f"memory must be at least 1, not {memory}")
    if max_iterations is not None and max_iterations < 0:
        raise ValueError(f"max_iterations must be None or at least 0, not {max_iterations}")
    if max_linesearch < 1:
        raise ValueError(f"max_linesearch must be at least 1, not {max_linesearch}")
    if period < 0:
        raise ValueError(f"period must be at least 0, not {period}")
    if not epsilon >= 0.0:
        raise ValueError(f"epsilon must be at least 0, not {epsilon}")
    if not delta >= 0.0:
        raise ValueError(f"delta must be at least 0, not {delta}")
    if linesearch not in get_args(LineSearch):
        raise ValueError(f"linesearch must be one of {', '.join(get_args(LineSearch))}, not {linesearch!r}")

    penalty = L1Penalty.from_argument(c1, w.size)
    run = _Run(function, w, memory, linesearch, max_linesearch, penalty, n_jobs)
    limit = math.inf if max_iterations is None else max_iterations
    try:
        status = run.minimise(limit, epsilon, period, delta, callback, relative)
    except KeyboardInterrupt:
        status = "interrupted"
    accepted = run.accepted
    np.add(accepted.w, 0.0, out=accepted.w)  # turns -0.0 into 0.0
    messages: dict[Status, str] = {
        "converged": f"The gradient norm relative to the weights' is at most epsilon = {epsilon:g}.",
        "stopped by delta": f"The loss fell by less than delta = {delta:g} of itself in {period} iterations.",
        "max_iterations": f"The limit of {max_iterations} iterations was reached.",
        "callback": "The callback asked to stop.",
        "interrupted": "Interrupted by the keyboard; these are the weights of the last accepted iteration.",
        "linesearch failed": f"No acceptable step was found in at most {max_linesearch} evaluations; "
        "the loss may be at the limit of its precision, or the gradient may be wrong.",
    }
    return OptimizeResult(
        accepted.w, accepted.loss, accepted.iteration, run.evaluations, status, messages[status], run.falling
    )


def gradient_check(function: Objective, w: ArrayLike, *, n: int = 20, seed: int = 0, step: float = 1e-3) -> float:
    r"""Compare a gradient with central differences of fourth order.

    The derivative along coordinate i is estimated, with an error of :math:`O(h^4)`, as

    .. math:: \frac{-f(w + 2 h e_i) + 8 f(w + h e_i) - 8 f(w - h e_i) + f(w - 2 h e_i)}{12 h},

    where :math:`h` = ``step`` :math:`\cdot \max(1, |w_i|)`.

    Parameters
    ----------
    function : callable
        ``f(w) -> (loss, gradient)``.
    w : array_like of shape (n_weights,)
        The point, better not a minimum: there, only rounding errors are left to compare.
    n : int, default 20
        Number of coordinates to check, drawn without replacement; all if there are fewer.
    seed : int, default 0
        Seed of the draw.
    step : float, default 1e-3
        Relative step; the default balances truncation and rounding for losses of moderate size.

    Returns
    -------
    float
        The largest relative error, the differences being divided by the larger of the two derivatives, or
        by a thousandth of the gradient's largest entry if that is larger. NaN if anything was not finite.
    """
    x = np.array(w, dtype=np.float64, order="C")
    analytic = np.array(function(x)[1], dtype=np.float64)
    if analytic.shape != x.shape:
        raise ValueError(f"the gradient has shape {analytic.shape}, but the weights have shape {x.shape}")
    if x.size == 0:
        return 0.0
    floor = max(1e-3 * float(np.max(np.abs(analytic))), float(np.finfo(np.float64).tiny))
    errors = []
    for i in np.random.default_rng(seed).choice(x.size, size=min(n, x.size), replace=False):
        centre = x[i]
        h = step * max(1.0, abs(float(centre)))
        total = 0.0
        for coefficient, offset in ((-1.0, 2.0), (8.0, 1.0), (-8.0, -1.0), (1.0, -2.0)):
            x[i] = centre + offset * h
            total += coefficient * float(function(x)[0])
        x[i] = centre
        numeric = total / (12.0 * h)
        errors.append(abs(numeric - analytic[i]) / np.max([abs(numeric), abs(analytic[i]), floor]))
    return float(np.max(errors)) if errors else 0.0


@dataclass(frozen=True)
class _Accepted:
    """An accepted point; replaced as a whole, so that an interrupt never finds half of one."""

    w: Vector
    loss: float
    iteration: int


class _Run:
    """The working memory of one minimisation.

    Two buffers take turns as the accepted and as the trial point; line searches write to the trial buffer
    only. The gradient of a trial point is a reference to what the function returned, copied once the point
    is accepted.
    """

    def __init__(
        self,
        function: Objective,
        w: Vector,
        memory: int,
        linesearch: LineSearch,
        max_linesearch: int,
        penalty: L1Penalty | None,
        threads: int,
    ) -> None:
        self.function = function
        self.threads = threads
        self.linesearch = linesearch
        self.max_linesearch = max_linesearch
        self.penalty = penalty
        self.evaluations = 0
        self.accepted = _Accepted(w, math.nan, 0)
        self.trial = np.empty_like(w)
        self.trial_loss = math.nan
        self.trial_gradient = self.trial
        self.gradient = np.empty_like(w)  # of the smooth part, at the accepted point
        # what the direction descends: the gradient, with L1 the pseudo-gradient
        self.slope_gradient = self.gradient if penalty is None else np.empty_like(w)
        self.direction = np.empty_like(w)
        self.slope = math.nan  # of the loss along the direction, at the accepted point
        self.scratch = np.empty_like(w if penalty is not None else w[:0])
        self.history = History(memory, w.size, threads)
        self.falling = 0.0

    def minimise(
        self, limit: float, epsilon: float, period: int, delta: float, callback: Callback | None, relative: bool
    ) -> Status:
        """Iterate until a stopping rule holds; :attr:`accepted` is then the answer."""
        start = before = time.perf_counter()
        self._evaluate_start()
        if relative:
            epsilon *= abs(self.accepted.loss) / 1000.0
        norm = self._gradient_norm()
        if norm == 0.0 or norm <= epsilon * max(1.0, self._norm(self.accepted.w)):  # inf of a loss of 0 is no number
            return "converged"
        past = [self.accepted.loss] * period
        iteration = 0
        while iteration < limit:
            step = self._set_direction()
            evaluations = self.evaluations
            accepted_step = self._search(step)
            if accepted_step is None or not self._accept(iteration + 1):
                return "linesearch failed"
            iteration += 1
            w, loss = self.accepted.w, self.accepted.loss
            gradient_norm, w_norm = self._gradient_norm(), self._norm(w)

            if callback is not None:
                now = time.perf_counter()
                view = w.view()
                view.flags.writeable = False
                state = OptimizeState(
                    iteration=iteration,
                    loss=loss,
                    gradient_norm=gradient_norm,
                    step=accepted_step,
                    trials=self.evaluations - evaluations,
                    w_norm=w_norm,
                    n_active=int(np.count_nonzero(w)),
                    evaluations=self.evaluations,
                    seconds=now - before,
                    elapsed=now - start,
                    w=view,
                )
                try:
                    if callback(state):
                        return "callback"
                except StopIteration:
                    return "callback"
                before = time.perf_counter()

            if gradient_norm <= epsilon * max(1.0, w_norm):
                return "converged"
            if period > 0:
                fallen = past[iteration % period] - loss
                self.falling = fallen / max(abs(loss), 1e-300)
                if iteration >= period and fallen < delta * abs(loss):
                    return "stopped by delta"
                past[iteration % period] = loss
        return "max_iterations"

    def _evaluate_start(self) -> None:
        w = self.accepted.w
        loss, gradient = self._call(w)
        if not math.isfinite(loss):
            raise ValueError(f"the loss at w0 is {loss}; start from weights where it is finite")
        if not np.isfinite(gradient).all():
            index = int(np.flatnonzero(~np.isfinite(gradient))[0])
            raise ValueError(
                f"the gradient at w0 is {gradient[index]} at index {index}; start from weights where it is finite"
            )
        np.copyto(self.gradient, gradient)
        if self.penalty is not None:
            loss += self.penalty.value(w, self.scratch)
            self.penalty.pseudo_gradient(w, self.gradient, self.scratch, out=self.slope_gradient)
        self.accepted = _Accepted(w, loss, 0)

    def _call(self, w: Vector) -> tuple[float, Vector]:
        loss, gradient = self.function(w)
        self.evaluations += 1
        gradient = np.ascontiguousarray(gradient, dtype=np.float64)
        if gradient.shape != w.shape:
            raise ValueError(f"the gradient has shape {gradient.shape}, but the weights have shape {w.shape}")
        return float(loss), gradient

    def _gradient_norm(self) -> float:
        return self._norm(self.slope_gradient)

    def _norm(self, vector: Vector) -> float:
        return norm(vector, self.threads)

    def _dot(self, a: Vector, b: Vector) -> float:
        return dot(a, b, self.threads)

    def _set_direction(self) -> float:
        """Set the direction of descent, and return the length of step to try first."""
        g, d = self.slope_gradient, self.direction
        if len(self.history) > 0:
            self.slope = self.history.direction(g, out=d)
            if self.penalty is not None:
                self.penalty.align(d, g, self.scratch)
                self.slope = self._dot(g, d)
            if -math.inf < self.slope < 0.0:
                return 1.0
            self.history.clear()
        np.negative(g, out=d)
        self.slope = self._dot(g, d)
        return 1.0 / self._norm(g)

    def _search(self, step: float) -> float | None:
        """Leave an acceptable point in the trial buffer and return its step, or None."""
        if self.penalty is not None:
            return self._search_orthant(self.penalty, step)
        loss, limit = self.accepted.loss, self.max_linesearch
        if self.linesearch == "MoreThuente":
            return more_thuente(self._along, loss, self.slope, step, limit)
        return backtracking(self._along, loss, self.slope, step, limit, strong=self.linesearch == "StrongBacktracking")

    def _along(self, step: float) -> tuple[float, float]:
        """Loss and slope at ``w + step * d``; (inf, nan) if either is not finite."""
        d, trial = self.direction, self.trial
        self._move(step)
        loss, gradient = self._call(trial)
        slope = self._dot(gradient, d)  # a gradient that is not finite leaves no finite product
        if not (math.isfinite(loss) and math.isfinite(slope)):
            return math.inf, math.nan
        self.trial_loss, self.trial_gradient = loss, gradient
        return loss, slope

    @np.errstate(over="ignore")
    def _move(self, step: float) -> None:
        if step == 1.0:
            np.add(self.accepted.w, self.direction, out=self.trial)
        else:
            np.multiply(self.direction, step, out=self.trial)
            np.add(self.trial, self.accepted.w, out=self.trial)

    def _search_orthant(self, penalty: L1Penalty, step: float) -> float | None:
        """Backtrack along the projected path (Andrew and Gao 2007, section 3.2).

        With P the projection on the orthant of the current point and v its pseudo-gradient, accept the first
        ``w' = P(w + t d)`` such that ``F(w') <= F(w) + mu v.(w' - w)``.
        """
        w, trial, v = self.accepted.w, self.trial, self.slope_gradient
        shortest = MIN_STEP * step
        for _ in range(self.max_linesearch):
            self._move(step)
            penalty.project(trial, self.scratch)
            loss, gradient = self._call(trial)
            loss += penalty.value(trial, self.scratch)
            if not (math.isfinite(loss) and math.isfinite(self._dot(gradient, self.direction))):
                step *= NON_FINITE_SHORTER
            else:
                np.subtract(trial, w, out=self.scratch)
                if loss <= self.accepted.loss + SUFFICIENT_DECREASE * self._dot(self.scratch, v):
                    self.trial_loss, self.trial_gradient = loss, gradient
                    return step
                step *= SHORTER
            if step < shortest:
                break
        return None

    def _accept(self, iteration: int) -> bool:
        """Make the trial point the accepted one; False if it is where we are already."""
        old, new, gradient = self.accepted.w, self.trial, self.trial_gradient
        slope_gradient = gradient
        if self.penalty is not None:
            slope_gradient = self.slope_gradient
            self.penalty.pseudo_gradient(new, gradient, self.scratch, out=slope_gradient)
        if not self.history.add(old, new, self.gradient, gradient, slope_gradient):
            return False
        np.copyto(self.gradient, gradient)
        self.accepted = _Accepted(new, self.trial_loss, iteration)
        self.trial = old
        return True
