r"""Objectives and passes of the online algorithms over listed configurations.

An example lists all configurations of a sequence with their features; f is the features (C, W), w.f their scores, g the
example's weight. *Gold* is the best configuration of those that are known to be possible. Steps, with the rate
:math:`r = 1 / (\lambda (t_0 + t))`, t counting steps:

.. math::

    \text{likelihood}\quad & w \leftarrow (1 - r \lambda) w,\quad
        w \leftarrow w - g\, r\, (E[f] - E[f \mid \text{known}])

    \text{margin}\quad & w \leftarrow (1 - r \lambda) w,\quad
        w \leftarrow w + g\, r\, d,\quad \hat y = \arg\max_y w.f(y) + \text{cost}(y)

    \text{perceptron}\quad & w \leftarrow w + g\, d,\quad \hat y = \arg\max_y w.f(y)

    \text{passive-aggressive}\quad & w \leftarrow w + g\, \tau\, d,\quad
        \tau = \min(c, l / |d|^2),\quad l = \max(0, \sqrt{\text{wrong}} - w.d)

    \text{arow}\quad & w_i \leftarrow w_i + \alpha v_i d_i,\quad 1 / v_i \leftarrow 1 / v_i + d_i^2 / \gamma,\quad
        \alpha = l / (\gamma + \sum_i v_i d_i^2),\quad l = \max(0, \text{wrong} - w.d)

with :math:`d = f(\text{gold}) - f(\hat y)`;
cost and wrong: the positions (of all levels) whose label is not gold's. The examples of a batch share the weights after
all their decays, and make their steps one after another.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from scansion.reference.enumeration import FloatArray

__all__ = ["Example", "Pass", "log_loss", "margin_loss"]


@dataclass(frozen=True)
class Example:
    """All C configurations of one sequence.

    Attributes
    ----------
    features : (C, W)
    known : bool (C,)
        Those that agree with the target.
    labels : int (C, n)
        The label of each position, of all levels.
    weight : float
    """

    features: FloatArray
    known: npt.NDArray[np.bool_]
    labels: npt.NDArray[np.int64]
    weight: float = 1.0

    def likelihood(self, w: FloatArray) -> tuple[float, FloatArray]:
        """Log Z - log Z of what is known, and its gradient (W,)."""
        scores = self.features @ w
        loss, gradient = 0.0, np.zeros(len(w))
        for sign, chosen in ((1.0, np.ones_like(self.known)), (-1.0, self.known)):
            log_z = np.logaddexp.reduce(scores[chosen])
            loss += sign * float(log_z)
            gradient += sign * np.exp(scores[chosen] - log_z) @ self.features[chosen]
        return loss, gradient

    def mistake(self, w: FloatArray, cost: bool) -> tuple[float, int, FloatArray]:
        """Violation (with `cost`, of the margin), wrong positions, and f(gold) - f(guess) (W,)."""
        scores = self.features @ w
        gold = int(np.argmax(np.where(self.known, scores, -np.inf)))
        wrong = (self.labels != self.labels[gold]).sum(axis=1)
        scores = scores + wrong if cost else scores
        guess = int(np.argmax(scores))
        change: FloatArray = self.features[gold] - self.features[guess]
        return float(scores[guess] - scores[gold]), int(wrong[guess]), change


def log_loss(examples: list[Example], w: FloatArray) -> tuple[float, FloatArray]:
    """Sum of weighted likelihoods, and its gradient."""
    found = [(one.weight, one.likelihood(w)) for one in examples]
    return sum(g * loss for g, (loss, _) in found), sum((g * slope for g, (_, slope) in found), np.zeros(len(w)))


def margin_loss(examples: list[Example], w: FloatArray) -> tuple[float, FloatArray]:
    """Sum of weighted margin violations, and a subgradient."""
    found = [(one.weight, one.mistake(w, True)) for one in examples]
    return sum(g * loss for g, (loss, _, _) in found), sum((-g * step for g, (_, _, step) in found), np.zeros(len(w)))


@dataclass
class Pass:
    """One pass of an algorithm: "likelihood", "margin", "perceptron", "passive_aggressive" or "arow".

    Attributes
    ----------
    w : (W,)
        Changes along the way.
    strength : lambda
    t0, t : float
    c, pa_type, error_sensitive
        Of the passive-aggressive algorithm: pa_type 0 has no largest step, 2 a soft one.
    gamma, variance : float, (W,)
        Of arow; variances change along the way, and d is times the example's weight.
    averaged : list of (W,)
        The weights whose mean is taken: after each step, with decay after every N // 32 + 1 steps of N.
    """

    algorithm: str
    w: FloatArray
    strength: float = 1.0
    t0: float = 1.0
    t: float = 0.0
    c: float = 1.0
    pa_type: int = 1
    error_sensitive: bool = True
    gamma: float = 1.0
    variance: Any = 1.0
    averaged: list[Any] = field(default_factory=list)

    def run(self, examples: list[Example], batch: int) -> float:
        """Over all examples in their order, so many at a time; the summed loss."""
        decays = self.algorithm in ("likelihood", "margin")
        between = len(examples) // 32 + 1 if decays else 1
        adapts, total = self.algorithm == "arow", 0.0
        for first in range(0, len(examples), batch):
            some = examples[first : first + batch]
            rates = []
            for _ in some:
                rates.append(1.0 / (self.strength * (self.t0 + self.t)) if decays else 1.0)
                self.w = self.w * (1.0 - rates[-1] * self.strength) if decays else self.w
                self.t += 1.0
            found = [self._step(one, self.w) for one in some]
            for i, (one, rate, (loss, step)) in enumerate(zip(some, rates, found, strict=True), first):
                total += one.weight * loss
                self.w = self.w + (self._adapted(one.weight * step, loss) if adapts else one.weight * rate * step)
                if (i + 1) % between == 0:
                    self.averaged.append(self.w)
        return total

    def _step(self, one: Example, w: FloatArray) -> tuple[float, FloatArray]:
        if self.algorithm == "likelihood":
            loss, gradient = one.likelihood(w)
            return loss, -gradient
        violation, wrong, change = one.mistake(w, self.algorithm == "margin")
        if self.algorithm == "margin":
            return violation, change
        if self.algorithm == "perceptron":
            return float(wrong), change
        if not wrong and not change.any():
            return 0.0, change
        if self.algorithm == "arow":
            return max(0.0, violation + wrong), change
        loss = max(0.0, violation + (math.sqrt(wrong) if self.error_sensitive else 1.0))
        norm = float(change @ change) + (0.5 / self.c if self.pa_type == 2 else 0.0)
        tau = loss / norm if norm > 0.0 else 0.0
        return loss, (min(self.c, tau) if self.pa_type == 1 else tau) * change

    def _adapted(self, change: FloatArray, loss: float) -> FloatArray:
        """The step of arow; variances fall."""
        variance = np.broadcast_to(self.variance, change.shape)
        self.variance = 1.0 / (1.0 / variance + change**2 / self.gamma)
        step: FloatArray = loss / (self.gamma + float(variance @ change**2)) * variance * change
        return step
