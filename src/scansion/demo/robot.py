"""A robot in a small world, tracked with errors: a hidden Markov model to ask for trajectories (after paper 004).

The robot stands in one of the free squares of `WORLD`. At each step it stays with probability `stay`, or else moves to
one of the free squares beside its own, all being equally probable. A tracker tells its square, with probability
`accuracy`; else it tells one of the free squares beside it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["WORLD", "Robot", "neighbours", "squares"]

WORLD = ("ABC.", "D.EF", "GHIJ", ".KLM")  # by rows; letters are the free squares' names

Floats = npt.NDArray[np.float64]


def squares() -> str:
    """The names of the free squares."""
    return "".join(WORLD).replace(".", "")


def neighbours(square: str) -> str:
    """The free squares beside one."""
    y, row = next((y, row) for y, row in enumerate(WORLD) if square in row)
    x = row.index(square)
    beside = [(x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1)]
    inside = [(i, j) for i, j in beside if 0 <= j < len(WORLD) and 0 <= i < len(WORLD[j])]
    return "".join(WORLD[j][i] for i, j in inside).replace(".", "")


class Robot(NamedTuple):
    """The hidden Markov model over the S free squares.

    Attributes
    ----------
    start : (S,)
        Probability of each square at the first step.
    transition : (S, S)
        Of the square at the next step; row = from, column = to.
    emission : (S, S)
        Of the square that the tracker tells; row = where the robot is, column = what is told.
    """

    start: Floats
    transition: Floats
    emission: Floats

    @classmethod
    def build(cls, stay: float = 0.6, accuracy: float = 0.8) -> Robot:
        """The model of a robot that stays this often and is tracked this well."""
        names = squares()
        beside = np.array([[other in neighbours(square) for other in names] for square in names])
        wandering = beside / beside.sum(axis=1, keepdims=True)
        here = np.eye(len(names))
        start = np.full(len(names), 1 / len(names))
        return cls(start, stay * here + (1 - stay) * wandering, accuracy * here + (1 - accuracy) * wandering)

    def walk(self, rng: np.random.Generator, steps: int) -> tuple[list[int], list[int]]:
        """Squares and what the tracker tells of them, in a walk of `steps` steps; by number."""
        count = len(self.start)
        at = [int(rng.choice(count, p=self.start))]
        while len(at) < steps:
            at.append(int(rng.choice(count, p=self.transition[at[-1]])))
        return at, [int(rng.choice(count, p=self.emission[square])) for square in at]
