"""Levels: what an estimator's labels, answers and features belong to. Flat models have one."""

from __future__ import annotations

from enum import Enum
from typing import Any, NamedTuple

__all__ = ["Feature", "Level", "Mark"]


class Level(NamedTuple):
    """A level of a model.

    Attributes
    ----------
    name : str
    labels : list
    max_length : int, or None
        Longest segment; None: no bound; 1: one label for each token.
    segments : bool
        Whether answers are segments ``(start, stop, label)``, and not labels, one a token.
    """

    name: str
    labels: list[Any]
    max_length: int | None
    segments: bool = True


class Mark(Enum):
    """The start and the end of a sequence, or of a parent, among labels; unlike BOS and EOS never equal to a label."""

    START = "start"
    END = "end"

    def __str__(self) -> str:
        return str(self.value)


class Feature(NamedTuple):
    """A feature with a weight other than 0.

    Attributes
    ----------
    level : int
        The place of its level among the estimator's `levels_`.
    parent : label, or None
        The label of the level above inside which it is.
    labels : tuple of labels and Marks
        One after another.
    attribute : str, or None
        None: always on.
    weight : float
    """

    level: int
    parent: Any
    labels: tuple[Any, ...]
    attribute: str | None
    weight: float
