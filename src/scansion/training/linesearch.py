"""Line searches: a step along a direction of descent that lowers the loss enough.

Conventions: ``phi(t)`` is the loss along the direction at step t and its derivative there, the slope; the slope at 0
is negative. Nothing is known of the weights here.

References
----------
.. [1] J. J. Moré and D. J. Thuente, "Line search algorithms with guaranteed sufficient decrease",
   ACM Transactions on Mathematical Software 20 (1994), 286-307.
.. [2] J. Nocedal and S. J. Wright, "Numerical Optimization", 2nd edition, Springer 2006, chapter 3.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

__all__ = ["backtracking", "more_thuente"]

Phi: TypeAlias = Callable[[float], "tuple[float, float]"]

SUFFICIENT_DECREASE = 1e-4  # mu of the Armijo condition F(w + t d) <= F(w) + mu t F'(w; d)
CURVATURE = 0.9  # eta of the Wolfe condition |F'(w + t d; d)| <= eta |F'(w; d)|
SHORTER, LONGER = 0.5, 2.1  # factors of the backtracking searches
NON_FINITE_SHORTER = 0.1  # factor after an infinite or undefined value: such steps are far too long
MIN_STEP, MAX_STEP = 1e-20, 1e20  # the former relative to the first trial


def backtracking(phi: Phi, loss: float, slope: float, step: float, max_trials: int, *, strong: bool) -> float | None:
    """Shorten or lengthen the step by fixed factors until the (strong) Wolfe conditions hold.

    Nocedal and Wright (2006), equations 3.6 and 3.7. ``phi(t)`` returns the loss and the slope at step t,
    ``loss`` and ``slope`` are those at 0. Returns the step, the last one that phi was called with, or None.
    """
    shortest, longest = MIN_STEP * step, MAX_STEP
    for _ in range(max_trials):
        f, df = phi(step)
        if not math.isfinite(f):
            longest = step = NON_FINITE_SHORTER * step
        elif f > loss + SUFFICIENT_DECREASE * step * slope:
            step *= SHORTER
        elif df < CURVATURE * slope:
            if LONGER * step > longest:
                return step  # sufficient decrease, and nowhere to go
            step *= LONGER
        elif strong and df > -CURVATURE * slope:
            step *= SHORTER
        else:
            return step
        if step < shortest:
            break
    return None


def more_thuente(phi: Phi, loss: float, slope: float, step: float, max_trials: int) -> float | None:
    r"""Moré and Thuente's search for a step of sufficient decrease and small slope.

    An interval with ends x and y holds such a step, x being the end of lower value. Until it is bounded,
    steps grow by up to a factor of 5; then it shrinks, by a third at least in two trials (Moré and Thuente
    1994, sections 2 to 4). While no trial had both sufficient decrease and slope enough, the search works
    on the auxiliary function :math:`\psi(t) = \phi(t) - \phi(0) - \mu \phi'(0) t`, later on :math:`\phi`
    itself.

    Parameters and result are those of :func:`backtracking`. Departs from the paper where values are not
    finite: the step is cut to a tenth of its distance from x, and does not grow beyond that again.
    """
    mu_slope = SUFFICIENT_DECREASE * slope
    x = y = (0.0, loss, slope)  # step, value, slope
    bounded, auxiliary = False, True
    longest = MAX_STEP
    width, previous_width = MAX_STEP, 2.0 * MAX_STEP
    for _ in range(max_trials):
        if bounded:
            low, high = min(x[0], y[0]), max(x[0], y[0])
            if not low < step < high:
                return None  # the interval has no number left inside
        else:
            step = min(step, longest)
            low, high = x[0], min(step + 4.0 * (step - x[0]), longest)
        f, df = phi(step)
        if not math.isfinite(f):
            step = x[0] + NON_FINITE_SHORTER * (step - x[0])
            if not bounded:
                longest = step
            continue
        bound = loss + mu_slope * step
        if f <= bound and (abs(df) <= -CURVATURE * slope or (step >= longest and df <= mu_slope)):
            return step
        if auxiliary and f <= bound and df >= mu_slope:
            auxiliary = False
        if auxiliary and bound < f <= x[1]:
            x, y = _tilt(x, mu_slope), _tilt(y, mu_slope)
            trial = (step, f - mu_slope * step, df - mu_slope)
            x, y, step, bounded = _next_trial(x, y, trial, low, high, bounded)
            x, y = _tilt(x, -mu_slope), _tilt(y, -mu_slope)
        else:
            x, y, step, bounded = _next_trial(x, y, (step, f, df), low, high, bounded)
        if bounded:
            if abs(y[0] - x[0]) >= 0.66 * previous_width:
                step = x[0] + 0.5 * (y[0] - x[0])
            previous_width, width = width, abs(y[0] - x[0])
    return None


_Trial: TypeAlias = "tuple[float, float, float]"


def _tilt(trial: _Trial, slope: float) -> _Trial:
    """Subtract a line of this slope from the function that was tried."""
    t, f, df = trial
    return t, f - slope * t, df - slope


def _next_trial(
    x: _Trial, y: _Trial, trial: _Trial, low: float, high: float, bounded: bool
) -> tuple[_Trial, _Trial, float, bool]:
    """Update the interval and choose the next step (Moré and Thuente 1994, sections 2 and 4, cases 1 to 4).

    Returns the new ends x and y, the step, and whether the interval is bounded.
    """
    xt, xf, xd = x
    t, f, d = trial
    cautious = False
    opposite = (d < 0.0 < xd) or (xd < 0.0 < d)
    if f > xf:  # case 1: higher than x, so the minimum is between
        cubic, parabola = _cubic(x, trial), _parabola(x, trial)
        if math.isnan(cubic):
            step = parabola
        elif abs(cubic - xt) < abs(parabola - xt):
            step = cubic
        else:
            step = cubic + 0.5 * (parabola - cubic)
        bounded = cautious = True
    elif opposite:  # case 2: lower, and the slope has changed its sign
        cubic, secant = _cubic(trial, x), _secant(x, trial)
        step = cubic if abs(cubic - t) > abs(secant - t) else secant
        bounded = True
    elif abs(d) < abs(xd):  # case 3: lower, and the slope gets flatter
        cubic, secant = _cubic(trial, x), _secant(x, trial)
        if not (cubic - t) * (t - xt) > 0.0:  # no minimum beyond the trial
            cubic = high if t > xt else low
        if bounded:
            step = cubic if abs(cubic - t) < abs(secant - t) else secant
        else:
            step = cubic if abs(cubic - t) > abs(secant - t) else secant
        cautious = True
    elif bounded:  # case 4: lower, and the slope gets no flatter
        step = _cubic(trial, y)
    else:
        step = high if t > xt else low

    if f > xf:
        y = trial
    else:
        if opposite:
            y = x
        x = trial
    if math.isnan(step):
        step = 0.5 * (x[0] + y[0]) if bounded else high
    step = min(max(step, low), high)
    if bounded and cautious:
        two_thirds = x[0] + 0.66 * (y[0] - x[0])
        step = min(step, two_thirds) if y[0] > x[0] else max(step, two_thirds)
    return x, y, step, bounded


def _cubic(a: _Trial, b: _Trial) -> float:
    """Minimiser of the cubic through two trials and their slopes (Nocedal and Wright, eq. 3.59), or NaN."""
    ta, fa, da = a
    tb, fb, db = b
    theta = 3.0 * (fa - fb) / (tb - ta) + da + db
    scale = max(abs(theta), abs(da), abs(db))
    if not 0.0 < scale < math.inf:
        return math.nan
    square = (theta / scale) ** 2 - (da / scale) * (db / scale)
    if square <= 0.0:
        return math.nan
    gamma = math.copysign(scale * math.sqrt(square), tb - ta)
    denominator = gamma - da + gamma + db
    if denominator == 0.0:
        return math.nan
    return ta + (gamma - da + theta) / denominator * (tb - ta)


def _parabola(a: _Trial, b: _Trial) -> float:
    """Minimiser of the parabola through two trials with the slope at the first, or NaN."""
    ta, fa, da = a
    tb, fb, _ = b
    denominator = (fa - fb) / (tb - ta) + da
    return ta + 0.5 * da / denominator * (tb - ta) if denominator != 0.0 else math.nan


def _secant(a: _Trial, b: _Trial) -> float:
    """Zero of the line through the slopes of two trials, which differ."""
    ta, _, da = a
    tb, _, db = b
    return tb + db / (db - da) * (ta - tb)
