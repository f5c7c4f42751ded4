r"""Expectations as supervision: a penalty where the expected share, number or mean length of labels leaves a band.

An expectation is :math:`r(w) = E[a] / E[b]`, with a and b sums over all sequences of features that the model has:
:math:`a(y) = u \cdot f(y)` for a direction u of the weights. The penalty is

.. math:: P(w) = \sum_k s\, N\, \max(0, |r_k - t_k| - m_k)^2 / q_k^2,

with target t, margin m, N tokens and q = t, of shares the lesser of t and 1 - t (generalised expectations: Mann and
McCallum 2010; as what keeps training with entities alone from collapsing: Effland and Collins 2021). The gradient of an
expectation is a covariance,
:math:`\nabla E[u \cdot f] = \mathrm{Cov}(f, u \cdot f) = H u`, the derivative of the expectations
:math:`E_{w + e u}[f]` by e. All expectations together need one such derivative: that along the sum of their
directions. It is taken by central differences of fourth order with a step that changes the score of no sequence by more
than `STEP`, so that the error of the formula is below ``STEP^4 / 30`` of what it estimates, whatever the lattice: no
other sweep than that of the likelihood is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from scansion import _core
from scansion._checks import Floats, Ints

__all__ = ["STEP", "Expectation", "Supervised", "directional"]

STEP = 0.02


@dataclass(frozen=True, eq=False)
class Expectation:
    """A band for E[a] / E[b].

    Attributes
    ----------
    target, margin, unit : float
        The unit is what the distance from the band is measured in.
    above, below : (W,), or None
        Directions of a and b; None: b is a constant.
    above_gold, below_gold : float
        a and b of the configurations that `free` of `Supervised` has as its targets; b itself where it is a constant.
    """

    target: float
    margin: float
    unit: float
    above: Floats
    above_gold: float
    below: Floats | None
    below_gold: float

    def value(self, gradient: Floats) -> tuple[float, Floats]:
        """The ratio, from E[f] - f(gold), and the direction whose derivative is that of the ratio."""
        a = float(self.above @ gradient) + self.above_gold
        if self.below is None:
            return a / self.below_gold, self.above / self.below_gold
        b = float(self.below @ gradient) + self.below_gold
        return a / b, self.above / b - self.below * (a / b**2)

    def excess(self, value: float) -> float:
        """How far outside the band, in units, with its sign."""
        beyond = max(0.0, abs(value - self.target) - self.margin) / self.unit
        return float(np.copysign(beyond, value - self.target))


def directional(objective: Any, w: Floats, direction: Floats, step: float, threads: int) -> Floats:
    """(W,) the derivative of the gradient of the log loss along a direction."""
    total, gradient = np.zeros_like(w), np.empty_like(w)
    for factor, places in ((-1.0, 2.0), (8.0, 1.0), (-8.0, -1.0), (1.0, -2.0)):
        objective.log_loss(w + places * step * direction, gradient, threads)
        total += factor * gradient
    total /= 12.0 * step
    return total


class Supervised:
    """An objective with expectations; for batch algorithms.

    Parameters
    ----------
    objective : Objective
        Of what is known.
    free : Objective
        Over all sequences, with one configuration of each as if it were known.
    expectations : sequence of Expectation
    strength : float
        s N of the penalty.
    longest : int
        Tokens of the longest sequence: no direction counts more in one of them than so many times its largest entry.
    """

    def __init__(self, objective: Any, free: Any, expectations: Any, strength: float, longest: int) -> None:
        self.objective, self.free, self.expectations = objective, free, list(expectations)
        self.strength, self.longest = strength, max(1, longest)
        self.inputs, self.known = objective.inputs, objective.known

    @property
    def examples(self) -> Ints:
        """As in `Objective`."""
        examples: Ints = self.objective.examples
        return examples

    def values(self, w: Floats, threads: int = 1) -> list[float]:
        """The expectations under weights w."""
        gradient = np.empty_like(w)
        self.free.log_loss(w, gradient, threads)
        return [one.value(gradient)[0] for one in self.expectations]

    def log_loss(self, w: Floats, gradient: Floats, threads: int) -> float:
        """As in `Objective`, with the penalty."""
        away = np.empty_like(w)
        self.free.log_loss(w, away, threads)
        loss, direction = 0.0, np.zeros_like(w)
        for one in self.expectations:
            value, along = one.value(away)
            excess = one.excess(value)
            loss += self.strength * excess**2
            direction += (2.0 * self.strength * excess / one.unit) * along
        largest = float(np.abs(direction).max(initial=0.0))
        loss += float(self.objective.log_loss(w, gradient, threads))
        if largest > 0.0:
            step = STEP / (self.longest * largest)
            gradient += directional(self.free, w, direction, step, threads)
        return loss

    def margin_loss(self, w: Floats, gradient: Floats, threads: int) -> float:
        """As in `Objective`, without the penalty."""
        return float(self.objective.margin_loss(w, gradient, threads))

    def curvature(self, w: Floats, units: Floats | None, out: Floats, threads: int) -> None:
        """As in `Objective`, without the penalty."""
        self.objective.curvature(w, units, out, threads)

    def run_pass(self, online: _core.Online, order: Ints, w: Floats, total: Floats) -> float:
        """As in `Objective`, without the penalty."""
        return float(self.objective.run_pass(online, order, w, total))
