r"""Coordinates in which an optimiser works: the same objective, features of all units on one scale.

The weights are ``w = A v``, linear in the coordinates v: first ``w_i = scale_i v_i``, then for every pair (i, j) of a
shift ``w_i <- w_i - mean_ij w_j``. With scale 1 / standard deviation of a column, and the mean of the column taken off
the intercept i of its label, v are the weights of the standardised column: w are those of the column as it is. The
optimum is the same; what changes is how many steps lead there. O(W) a change of coordinates.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from scansion._checks import Floats, Ints

__all__ = ["Coordinates", "Shift"]


class Shift(NamedTuple):
    """Numbers of the weights that change (n,), of those that change them (n,), and by how much (n,).

    No weight is in both.
    """

    into: Ints
    out_of: Ints
    mean: Floats


class Coordinates:
    """A linear change of coordinates of W weights.

    Parameters
    ----------
    scale : (W,), > 0
    shift : Shift, optional
    """

    def __init__(self, scale: Floats, shift: Shift | None = None) -> None:
        self.scale = scale
        self.shift = shift if shift is not None and len(shift.into) else None

    @property
    def plain(self) -> bool:
        """Whether coordinates are the weights themselves."""
        return self.shift is None and bool((self.scale == 1.0).all())

    def weights(self, v: Floats) -> Floats:
        """Weights A v."""
        w = self.scale * v
        if self.shift is not None:
            w -= np.bincount(self.shift.into, self.shift.mean * w[self.shift.out_of], len(w))
        return w

    def of(self, w: Floats) -> Floats:
        """The v of weights w."""
        v = w
        if self.shift is not None:
            v = w + np.bincount(self.shift.into, self.shift.mean * w[self.shift.out_of], len(w))
        return v / self.scale

    def gradient(self, g: Floats) -> Floats:
        """The gradient in v, from that in w: A^T g."""
        if self.shift is not None:
            g = g - np.bincount(self.shift.out_of, self.shift.mean * g[self.shift.into], len(g))
        return g * self.scale

    def seen_from(self, function: Callable[[Floats], tuple[float, Floats]]) -> Callable[[Floats], tuple[float, Floats]]:
        """``f(w) -> (loss, gradient)`` as a function of v."""

        def inner(v: Floats) -> tuple[float, Floats]:
            loss, gradient = function(self.weights(v))
            return loss, self.gradient(gradient)

        return inner
