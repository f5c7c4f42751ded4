"""Learning from trajectories: labels in order, without their transition points (paper 004).

A sequence of which only a trajectory is known takes part in training by the probability of that trajectory: the
gradient is the expectations of all configurations that have it minus the free ones. No label of it is known at any
position, so its features are those that it may have: each of its attributes with each label of its trajectory, and the
label patterns that the trajectory can pass through.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from scansion._checks import Floats
from scansion.data import Knowledge, Known
from scansion.lattice.patterns import Pattern

if TYPE_CHECKING:
    from scansion.training.objective import NativeObjective

__all__ = [
    "check_possible",
    "evenly_aligned",
    "label_candidates",
    "labels_to_come",
    "passed_patterns",
    "paths",
    "unseen_labels",
]


def _rows(known: Knowledge) -> Iterator[tuple[int, list[int]]]:
    """The sequences that have a trajectory, with its labels."""
    if known.trajectories is None:
        return
    offsets, labels = known.trajectories
    for b in np.flatnonzero(np.diff(offsets)).tolist():
        yield b, labels[offsets[b] : offsets[b + 1]].tolist()


def evenly_aligned(known: Knowledge) -> Knowledge | None:
    """Sequences cut into as many parts of equal length as their trajectory has places; None: other labels are known.

    A sequence with fewer tokens than places, which only has so many, stays unknown.
    """
    if known.trajectories is None or (known.level.numbers >= 0).any():
        return None
    labels = np.full(int(known.offsets[-1]), -1, np.int32)
    ends = None if known.level.ends is None else np.full(len(labels), -1, np.int8)
    for b, trajectory in _rows(known):
        first, n = int(known.offsets[b]), int(known.offsets[b + 1] - known.offsets[b])
        if n < len(trajectory):
            continue
        place = np.arange(n) * len(trajectory) // n
        labels[first : first + n] = np.array(trajectory, np.int32)[place]
        if ends is not None:
            ends[first : first + n] = np.append(np.diff(place) > 0, True)
    return Knowledge((Known(labels, ends=ends),), known.offsets)


def unseen_labels(known: Knowledge, n_labels: int) -> list[int]:
    """Labels that no token is known to have, and no trajectory passes."""
    seen = np.zeros(n_labels, np.bool_)
    numbers = known.level.numbers
    seen[numbers[numbers >= 0]] = True
    for _, trajectory in _rows(known):
        seen[trajectory] = True
    unseen: list[int] = np.flatnonzero(~seen).tolist()
    return unseen


def labels_to_come(known: Knowledge, n_labels: int, shown: int = 0) -> list[int]:
    """Those of them that something unknown may turn out to be; the first `shown` had examples before."""
    return [] if known.complete.all() else [y for y in unseen_labels(known, n_labels) if y >= shown]


def paths(known: Knowledge) -> list[list[int]]:
    """The trajectories."""
    return [trajectory for _, trajectory in _rows(known)]


def label_candidates(
    known: Knowledge, whole: bool, n_labels: int, unseen: Iterable[int]
) -> Iterator[tuple[npt.NDArray[np.int32], npt.NDArray[np.int8] | None]]:
    """Labels (N,) that tokens of sequences with a trajectory may have, one for each token at a time; -1 elsewhere.

    And those without an example in all of the data (`unseen`), where a token may have them.
    With boundaries, for segments: every token is a segment, or (whole) every sequence is.
    """
    offsets = known.offsets
    ends = None
    if known.level.ends is not None:
        ends = np.zeros(int(offsets[-1]), np.int8) if whole else np.ones(int(offsets[-1]), np.int8)
        ends[offsets[1:][np.diff(offsets) > 0] - 1] = 1
    sets = [(b, sorted(set(trajectory))) for b, trajectory in _rows(known)]
    for k in range(max((len(members) for _, members in sets), default=0)):
        labels = np.full(int(offsets[-1]), -1, np.int32)
        for b, members in sets:
            if k < len(members):
                labels[offsets[b] : offsets[b + 1]] = members[k]
        yield labels, ends
    mask = known.level.mask(n_labels)
    for y in unseen:
        may = known.level.numbers < 0 if mask is None else mask[:, y] & (known.level.numbers < 0)
        yield np.where(may, y, -1).astype(np.int32), ends


def passed_patterns(known: Knowledge, order: int, n_labels: int, shown: int = 0) -> set[Pattern]:
    """Label patterns of length 2 .. order + 1 that a configuration with one of the trajectories may pass through.

    And the pairs of labels without an example with all others; `shown` as in `labels_to_come`.
    """
    merge = known.level.ends is None
    order = min(order, int(np.diff(known.offsets).max(initial=0)))  # no pattern is longer than a sequence
    found: set[Pattern] = set()
    for y in labels_to_come(known, n_labels, shown) if order else []:
        found |= {pair for other in range(n_labels) for pair in ((y, other), (other, y))}
    for _, trajectory in _rows(known):
        level: set[Pattern] = {(i,) for i in range(len(trajectory))}
        for _ in range(order):
            longer = {(*p, p[-1] + step) for p in level for step in ((0, 1) if merge else (1,))}
            level = {p for p in longer if p[-1] < len(trajectory)}
            found |= {tuple(trajectory[i] for i in p) for p in level}
    return found


def check_possible(objective: NativeObjective, weights: Floats, known: Knowledge, max_length: int) -> None:
    """Raise if no configuration has the trajectory of a sequence."""
    rows = list(_rows(known))
    if not rows:
        return
    log_z = np.empty(len(known.offsets) - 1)
    objective.native.log_partitions(weights, True, log_z, 1)
    for b, trajectory in rows:
        if log_z[b] == -np.inf:
            raise ValueError(
                f"y[{b}] cannot be satisfied: no configuration of sequence {b} has this trajectory of "
                f"{len(trajectory)} places (segments have at most {max_length} tokens; repeats=False forbids equal "
                "neighbours; transitions may forbid others)"
            )
