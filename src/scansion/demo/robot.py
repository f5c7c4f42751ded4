"""A robot in a small coloured world, as in paper 004, section 4: a hidden Markov model to ask for trajectories.

The robot stands in one of the free squares of `WORLD`. At each step it stays with probability `stay`, or else moves to
one of the free squares beside its own, all being equally probable. What is seen is the colour of its square, right with
probability `accuracy`, else one of the other colours.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["COLOURS", "WORLD", "Robot", "neighbours", "squares"]

WORLD = ("bgr#", "y#bg", "grby", "#byr")  # by rows; # is an obstacle
COLOURS = "bgyr"

Square = tuple[int, int]
Floats = npt.NDArray[np.float64]


def squares() -> dict[Square, str]:
    """The free squares (column, row) with their colours."""
    return {(x, y): c for y, row in enumerate(WORLD) for x, c in enumerate(row) if c != "#"}


def neighbours(square: Square) -> list[Square]:
    """The free squares beside one."""
    free = squares()
    x, y = square
    return [s for s in ((x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1)) if s in free]


class Robot(NamedTuple):
    """The hidden Markov model: S squares, C colours.

    Attributes
    ----------
    start : (S,)
        Probability of each square at the first step.
    transition : (S, S)
        Of the square at the next step; row = from, column = to.
    emission : (S, C)
        Of the colour that is seen.
    """

    start: Floats
    transition: Floats
    emission: Floats

    @classmethod
    def build(cls, stay: float = 0.8, accuracy: float = 0.8) -> Robot:
        """The model of a robot that moves this often and is seen this well."""
        free = squares()
        number = {square: i for i, square in enumerate(free)}
        transition = np.eye(len(free)) * stay
        emission = np.full((len(free), len(COLOURS)), (1 - accuracy) / (len(COLOURS) - 1))
        for square, i in number.items():
            near = [number[other] for other in neighbours(square)]
            transition[i, near] = (1 - stay) / len(near)
            emission[i, COLOURS.index(free[square])] = accuracy
        return cls(np.full(len(free), 1 / len(free)), transition, emission)

    def walk(self, rng: np.random.Generator, steps: int) -> tuple[list[int], list[int]]:
        """Squares and seen colours of a walk of `steps` steps, by number."""
        at = [int(rng.choice(len(self.start), p=self.start))]
        while len(at) < steps:
            at.append(int(rng.choice(len(self.start), p=self.transition[at[-1]])))
        return at, [int(rng.choice(len(COLOURS), p=self.emission[square])) for square in at]
