"""The optimiser and the stopping rule of paper 001's experiments, written anew.

The authors' program minimises the loss divided by the number of sequences, from weights of 0, by an L-BFGS with these
peculiarities, and stops before the optimum: F1 moves by up to half a point after that.

- Directions are those of the two-loop recursion (Nocedal and Wright 2006, algorithm 7.4) with the last 10 pairs (s, y).
  In the middle it divides by a diagonal d, at first all 1. After a step of length t, d is multiplied by
  ``s.y / (t (-s.g))``, g being the gradient before it, so that a step of 1 should fit next time; then its entries get
  the update of BFGS, ``d <- d - (d s)^2 / sum(d s^2) + y^2 / s.y``.
- The search along a direction is that of Moré and Thuente; its first trial is 1, at the very first direction 0.1.
- It stops when the loss f has fallen by less than 0.1 % per iteration, on average over about ten:
  ``(f[k - 9] - f[k]) / 11 < 0.001 f[k]``, or over fewer, if there are six values at least.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from scansion.training.linesearch import more_thuente

__all__ = ["Minimum", "minimise"]

Vector = npt.NDArray[np.float64]
Function = Callable[[Vector], tuple[float, Vector]]
TOLERANCE = 1e-3
MEMORY = 10
LOOK_BACK, KEPT, LEAST = 10, 11, 6  # values of the loss: between which its fall is measured, kept, needed


@dataclass
class Minimum:
    """Where the optimiser stopped."""

    w: Vector
    loss: float
    iterations: int
    evaluations: int


def minimise(
    function: Function, w: Vector, seen: Callable[[Vector, float], Any] | None = None, limit: int | None = None
) -> Minimum:
    """Minimise from w; seen(w, loss) is told of every iteration, of which there are at most so many."""
    evaluations = 0

    def evaluate(point: Vector) -> tuple[float, Vector]:
        nonlocal evaluations
        evaluations += 1
        value, slopes = function(point)
        return value, slopes.copy()

    loss, gradient = evaluate(w)
    pairs: list[tuple[Vector, Vector]] = []
    diagonal = np.ones_like(w)
    losses = [loss]
    iterations, done = 0, False
    while not done:
        iterations += 1
        direction = -_solved(gradient, pairs, diagonal)
        step, point, loss, slopes = _search(evaluate, w, direction, loss, gradient, 1.0 if pairs else 0.1)
        s, y = point - w, slopes - gradient
        _renew(diagonal, s, y, gradient, step)
        pairs = [*pairs[-MEMORY + 1 :], (s, y)]
        w, gradient = point, slopes
        losses = [*losses[-KEPT + 1 :], loss]
        if seen is not None:
            seen(w, loss)
        fallen = losses[-min(LOOK_BACK, len(losses))] - loss
        done = len(losses) >= LEAST and abs(fallen / len(losses)) < TOLERANCE * abs(loss) or iterations == limit
    return Minimum(w, loss, iterations, evaluations)


def _solved(gradient: Vector, pairs: list[tuple[Vector, Vector]], diagonal: Vector) -> Vector:
    """The gradient times the estimate of the inverse Hessian."""
    q = gradient.copy()
    shares = []
    for s, y in reversed(pairs):
        shares.append(float(s @ q) / float(s @ y))
        q -= shares[-1] * y
    q /= diagonal
    for (s, y), share in zip(pairs, reversed(shares), strict=True):
        q += (share - float(y @ q) / float(s @ y)) * s
    return q


def _renew(diagonal: Vector, s: Vector, y: Vector, gradient: Vector, step: float) -> None:
    """The diagonal after a step s of this length, from where the gradient was given; y is how it changed."""
    sy = float(s @ y)
    diagonal *= sy / (step * -float(s @ gradient))
    scaled = diagonal * s
    diagonal += y * y / sy - scaled * scaled / float(scaled @ s)
    low, high = float(diagonal.min()), float(diagonal.max())
    if not (low > 0.0 and high / low <= 1e12):
        diagonal[:] = float(y @ y) / sy


def _search(
    evaluate: Function, w: Vector, direction: Vector, loss: float, gradient: Vector, first: float
) -> tuple[float, Vector, float, Vector]:
    """The step along a direction, and the point, loss and gradient there."""
    last = 0.0, w, loss, gradient

    def along(t: float) -> tuple[float, float]:
        nonlocal last
        point = w + t * direction
        last = t, point, *evaluate(point)
        return last[2], float(last[3] @ direction)

    if more_thuente(along, loss, float(gradient @ direction), first, 20) is None:
        raise ArithmeticError(f"no step along the direction lowers the loss of {loss} enough")
    return last
