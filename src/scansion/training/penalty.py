r"""What large weights cost: ``sum_i c1_i |w_i| + sum_i c2_i w_i^2 + sum_(i, j) s_ij (w_i - w_j)^2``.

The last sum is a random walk: weights that stand for neighbouring values of one quantity, such as the lengths of
segments, are to be similar, not small. Nothing here knows which features there are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from scansion import _core
from scansion._checks import Floats, Ints
from scansion.training.history import dot

__all__ = ["Penalty", "Walk"]


class Walk(NamedTuple):
    """Pairs of neighbouring weights: their numbers (n,), (n,), and the strengths (n,) that hold them together."""

    left: Ints
    right: Ints
    strength: Floats


class Penalty:
    """Strengths of the penalties on W weights.

    Parameters
    ----------
    c1, c2 : float, or (W,)
        Of the absolute values and of the squares, >= 0; one for all weights, or one for each.
    walk : Walk, optional
    centre : (W,), optional
        The weights whose squares cost nothing; 0 unless given.
    """

    def __init__(
        self,
        c1: float | Floats = 0.0,
        c2: float | Floats = 0.0,
        walk: Walk | None = None,
        centre: Floats | None = None,
    ) -> None:
        self.c1, self.c2, self.centre = c1, c2, centre
        self.walk = walk if walk is not None and len(walk.left) else None

    def add_smooth(self, loss: float, gradient: Floats, w: Floats, threads: int) -> float:
        """The loss with all but the c1 term; its gradient is added to the one given."""
        if self.walk is not None:
            step = w[self.walk.right] - w[self.walk.left]
            pull = self.walk.strength * step
            gradient += 2.0 * np.bincount(self.walk.right, pull, len(w))
            gradient -= 2.0 * np.bincount(self.walk.left, pull, len(w))
            loss += dot(pull, step)
        if self.centre is not None:
            w = w - self.centre
        if not isinstance(self.c2, np.ndarray):
            return loss + self.c2 * _core.add_scaled_and_square(gradient, w, 2.0 * self.c2, threads)
        pull = self.c2 * w
        gradient += 2.0 * pull
        return loss + dot(pull, w)

    def value(self, w: Floats) -> float:
        """All of it."""
        return self.add_smooth(0.0, np.zeros_like(w), w, 1) + float(np.sum(self.c1 * np.abs(w)))

    def squares(self, n: int) -> float | Floats:
        """c2 with the strengths of the walk as if they were of squares: for algorithms that know no walk."""
        if self.walk is None:
            return self.c2
        c2 = np.array(np.broadcast_to(self.c2, n), np.float64)
        for side in (self.walk.left, self.walk.right):
            c2 += 0.5 * np.bincount(side, self.walk.strength, n)
        return c2
