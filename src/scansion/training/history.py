"""What L-BFGS remembers, and the long vectors it works on.

Sums over a vector go through pieces of a fixed size that are added up in order: results depend neither on the number
of threads nor on the BLAS that NumPy was built with.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from scansion import _core

__all__ = ["History", "dot", "norm"]

Vector: TypeAlias = NDArray[np.float64]


class History:
    r"""The last m pairs (s, y) and the product of their inverse Hessian with a vector.

    Liu and Nocedal's two loops compute :math:`r = H g` as

    .. math::
        \alpha_i &= s_i \cdot q / s_i \cdot y_i, \quad q \leftarrow q - \alpha_i y_i
        && \text{newest to oldest, from } q = g, \\
        r &= \gamma q, \quad \gamma = s \cdot y / y \cdot y \text{ of the newest pair}, \\
        \beta_i &= y_i \cdot r / s_i \cdot y_i, \quad r \leftarrow r + (\alpha_i - \beta_i) s_i
        && \text{oldest to newest.}

    They sweep over vectors of length n some 8 m times, one after the other. All they need of these vectors
    are products, and r is a combination of g, the s and the y. So the products :math:`s_i \cdot y_j` (j not
    older than i) and :math:`y_i \cdot y_j` are kept, those with the newest y and with g are taken in one pass over
    the pairs, the loops run on numbers, and a second pass assembles r: the same H, 4 m reads of a vector. The idea
    is that of the compact representation (Byrd, Nocedal and Schnabel 1994, theorem 2.3).

    Arrays: ``pairs`` (2 m, n), rows 2 i and 2 i + 1 are s and y of slot i; ``sy``, ``yy`` (m, m) by slot,
    where ``sy[i, j]`` is valid if j is not older than i; ``sg``, ``yg`` (m,), the products with g; ``order`` lists
    the slots in use, oldest first.
    """

    def __init__(self, memory: int, n: int, threads: int) -> None:
        self.memory = memory
        self.threads = threads
        self.pairs = np.empty((2 * memory, n))  # touched row by row: unused memory costs nothing
        self.sy = np.zeros((memory, memory))
        self.yy = np.zeros((memory, memory))
        self.sg = np.zeros(memory)
        self.yg = np.zeros(memory)
        self.order: list[int] = []
        self.used = 0  # slots written; the rows beyond are uninitialised

    def __len__(self) -> int:
        return len(self.order)

    def clear(self) -> None:
        """Forget all pairs."""
        self.order.clear()
        self.used = 0

    def add(self, w_old: Vector, w_new: Vector, g_old: Vector, g_new: Vector, g: Vector) -> bool:
        """Remember a pair if its curvature is positive, and say whether the point has moved at all.

        The pair takes the place of the oldest when the memory is full, even if it then proves useless. ``g`` is the
        vector that :meth:`direction` will be asked about: ``g_new``, with L1 the pseudo-gradient.
        """
        if len(self.order) == self.memory:
            slot = self.order.pop(0)
        else:
            slot = next(i for i in range(self.memory) if i not in self.order)
        self.used = used = max(self.used, slot + 1)
        products = _core.remember_pair(self.pairs, 2 * used, slot, w_old, w_new, g_old, g_new, g, self.threads)
        ss = float(products[0])
        if ss == 0.0 and not self.pairs[2 * slot].any():
            return False
        with_y, with_g = products[1::2], products[2::2]
        self.sg[:used], self.yg[:used] = with_g[0::2], with_g[1::2]
        sy, yy = float(with_y[2 * slot]), float(with_y[2 * slot + 1])
        if math.isfinite(yy) and sy > np.finfo(np.float64).eps * math.sqrt(ss) * math.sqrt(yy):
            self.sy[:used, slot] = with_y[0::2]
            self.yy[:used, slot] = self.yy[slot, :used] = with_y[1::2]
            self.order.append(slot)
        return True

    @np.errstate(over="ignore", invalid="ignore")
    def direction(self, g: Vector, out: Vector) -> float:
        """Write ``-H g`` to ``out``, for the g of the last :meth:`add`; returns ``g . out``."""
        sy, yy, order = self.sy, self.yy, self.order
        alpha = np.zeros(self.used)
        difference = np.zeros(self.used)  # alpha - beta
        for position, i in reversed(list(enumerate(order))):
            newer = order[position + 1 :]
            alpha[i] = (self.sg[i] - np.dot(sy[i, newer], alpha[newer])) / sy[i, i]
        gamma = sy[order[-1], order[-1]] / yy[order[-1], order[-1]]
        for position, i in enumerate(order):
            older = order[:position]
            yq = self.yg[i] - np.dot(yy[i, order], alpha[order])
            yr = gamma * yq + np.dot(sy[older, i], difference[older])
            difference[i] = alpha[i] - yr / sy[i, i]
        coefficients = np.empty(2 * self.used)
        coefficients[0::2] = -difference
        coefficients[1::2] = gamma * alpha
        return _core.combine_pairs(self.pairs, coefficients, g, gamma, out, self.threads)


def dot(a: Vector, b: Vector, threads: int = 1) -> float:
    """Scalar product; it may be infinite or undefined, and the caller has to look."""
    return _core.dot(a, b, threads)


def norm(vector: Vector, threads: int = 1) -> float:
    """Euclidean norm, safe from overflow and underflow of the squares."""
    square = dot(vector, vector, threads)
    if 1e-280 < square < math.inf or vector.size == 0:
        return math.sqrt(square)
    largest = float(np.max(np.abs(vector)))
    if largest == 0.0 or not math.isfinite(largest):
        return largest
    scaled = vector / largest
    return largest * math.sqrt(dot(scaled, scaled, threads))
