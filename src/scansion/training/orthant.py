"""The L1 penalty of OWL-QN: its value, the pseudo-gradient, and the orthant that a step must not leave.

References
----------
.. [1] G. Andrew and J. Gao, "Scalable training of L1-regularized log-linear models", ICML 2007, 33-40.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["L1Penalty"]

Vector: TypeAlias = NDArray[np.float64]

HUGE = 1e300  # larger than any derivative


class L1Penalty:
    """The L1 term and the operations of OWL-QN that depend on it (Andrew and Gao 2007, section 3).

    All of them are arithmetic without branches: assignments under a mask cost six times as much as products
    with one. Coordinates that such a product sets to zero may be -0.0.
    """

    def __init__(self, c1: float | Vector, n: int) -> None:
        self.c1 = c1
        self.minus_c1 = -c1
        self.exempt: NDArray[np.intp] | None = None  # weights without a penalty: no orthant for them
        if isinstance(c1, np.ndarray):
            exempt = np.flatnonzero(c1 == 0.0)
            self.exempt = exempt if exempt.size else None
        self.orthant = np.empty(n)  # only the signs matter
        self.mask = np.empty(n, dtype=np.bool_)

    @classmethod
    def from_argument(cls, c1: float | ArrayLike, n: int) -> L1Penalty | None:
        """Check the penalty; None if it vanishes."""
        array = np.array(c1, dtype=np.float64, order="C")
        if array.ndim != 0 and array.shape != (n,):
            raise ValueError(f"c1 must be a number or have the shape {(n,)} of w0, not {array.shape}")
        wrong = ~(np.isfinite(array) & (array >= 0.0))
        if wrong.any():
            value = array[wrong][0]
            raise ValueError(f"c1 must be finite and not negative, but {value} was given")
        if not array.any():
            return None
        return cls(float(array) if array.ndim == 0 else array, n)

    def value(self, w: Vector, scratch: Vector) -> float:
        """``sum_i c1_i |w_i|``."""
        np.abs(w, out=scratch)
        if isinstance(self.c1, float):
            return self.c1 * float(scratch.sum())
        return float(np.dot(scratch, self.c1))

    def pseudo_gradient(self, w: Vector, g: Vector, scratch: Vector, out: Vector) -> None:
        """Write the subgradient v of least norm, and choose the orthant to search from w.

        v is g + c1 sign(w), or g shrunk towards 0 by c1 where w is 0: in both cases g less the number of
        [-c1, c1] that is nearest to g - HUGE sign(w). The orthant is that of w and, where w is 0, of -v.
        """
        np.sign(w, out=self.orthant)
        np.multiply(self.orthant, HUGE, out=out)
        np.subtract(g, out, out=out)
        np.clip(out, self.minus_c1, self.c1, out=out)
        np.subtract(g, out, out=out)
        np.sign(out, out=scratch)
        np.multiply(self.orthant, 2.0, out=self.orthant)  # so that the sign of w outweighs that of v
        np.subtract(self.orthant, scratch, out=self.orthant)

    def align(self, d: Vector, v: Vector, scratch: Vector) -> None:
        """Set the coordinates of d to zero that do not descend, where v is the pseudo-gradient."""
        np.multiply(d, v, out=scratch)
        np.less(scratch, 0.0, out=self.mask)
        self._keep(d)

    def project(self, w: Vector, scratch: Vector) -> None:
        """Set the coordinates of w to zero that left the orthant."""
        np.multiply(w, self.orthant, out=scratch)
        np.greater(scratch, 0.0, out=self.mask)
        self._keep(w)

    def _keep(self, vector: Vector) -> None:
        if self.exempt is not None:
            self.mask[self.exempt] = True
        np.multiply(vector, self.mask, out=vector)
