"""Targets that say what a sequence goes through, and not where."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import Any

__all__ = ["Trajectory"]


class Trajectory:
    """The labels that a sequence goes through in order, without their transition points, as an entry of y.

    For a `CRF` runs of equal labels are one place; for a `SemiCRF` a place is one segment. Training maximises the
    summed probability of all labellings (or segmentations) that have the trajectory.

    Examples
    --------
    >>> Trajectory(["sit", "jump", "walk"])
    Trajectory(['sit', 'jump', 'walk'])
    """

    __slots__ = ("labels",)

    def __init__(self, labels: Iterable[Any]) -> None:
        if isinstance(labels, (str, bytes, set, frozenset, dict)) or not isinstance(labels, Iterable):
            raise TypeError(f"labels must be a list of labels, got {labels!r}")
        self.labels: tuple[Any, ...] = tuple(labels)
        for i, label in enumerate(self.labels):
            if label is None or isinstance(label, (set, frozenset)) or not isinstance(label, Hashable):
                raise ValueError(f"labels[{i}] = {label!r} is not a label: every place of a trajectory is known")

    def __len__(self) -> int:
        return len(self.labels)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.labels)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Trajectory) and self.labels == other.labels

    def __hash__(self) -> int:
        return hash(self.labels)

    def __repr__(self) -> str:
        return f"Trajectory({list(self.labels)!r})"
