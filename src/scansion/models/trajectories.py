"""What the flat estimators have to do with trajectories: predicting them, and learning from them (paper 004).

A sequence of which only a trajectory is known takes part in training by the probability of that trajectory: the
gradient is the expectations of all configurations that have it minus the free ones. No label of it is known at any
position, so its features are those that it may have: each of its attributes with each label of its trajectory, and the
label patterns that the trajectory can pass through.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from scansion import _core
from scansion._checks import Floats, Ints
from scansion.data import Targets, Trajectory
from scansion.lattice.patterns import Pattern

__all__ = ["TrajectoryAnswers", "check_possible", "label_candidates", "passed_patterns"]


class TrajectoryAnswers:
    """`predict_compressed` of the estimators."""

    _model: Any
    _ask: Any

    def predict_compressed(
        self,
        X: Any,
        method: str = "paper",
        *,
        max_length: int | None = None,
        budget: int | None = 10_000,
        constraints: Any = None,
    ) -> list[list[Any]]:
        """The trajectory of each sequence: labels without their transition points, runs of equal ones merged.

        Parameters
        ----------
        X : as in predict
        method : {"paper", "best"}
            "paper": the most likely length, then the most likely label at each place (paper 004). "best": the most
            probable trajectory, by best-first search.
        max_length : int, optional
            Longest trajectory to look at.
        budget : int, optional
            Most prefixes that "best" takes up for a sequence; None: no limit. Where it runs out, the most probable
            trajectory that was met is returned; `lattice(x).compressed().best()` tells whether it is proven.
        constraints : as in predict
        """
        from scansion.lattice.compressed import best_all, predict_all

        if method not in ("paper", "best"):
            raise ValueError(f"method must be 'paper' or 'best', got {method!r}")
        labels = self._model.labels

        def question(batch: Any) -> list[list[Any]]:
            if method == "paper":
                found = predict_all(batch, max_length)
            else:
                found = [best.trajectories[0] if len(best) else () for best in best_all(batch, 1, budget, max_length)]
            return [[labels[y] for y in trajectory] for trajectory in found]

        answers: list[list[Any]] = self._ask(X, question, constraints)
        return answers

    def _trajectory_log_likelihood(self, X: Any, y: list[Any]) -> tuple[float, list[Any]]:
        """Log probability of the trajectories in y, and y with None in their places."""
        rest = [None if isinstance(one, Trajectory) else one for one in y]
        if not any(isinstance(one, Trajectory) for one in y):
            return 0.0, y
        number = {label: i for i, label in enumerate(self._model.labels)}
        wanted = enumerate(y)

        def question(batch: Any) -> list[float]:
            values = []
            for i, (b, one) in zip(range(len(batch)), wanted, strict=False):
                if isinstance(one, Trajectory):
                    unknown = [label for label in one if label not in number]
                    if unknown:
                        raise ValueError(f"y[{b}] holds the label {unknown[0]!r}, which is not one of those known")
                    values.append(batch[i].compressed().log_probability([number[label] for label in one]))
            return values

        return float(sum(self._ask(X, question))), rest


def _rows(targets: Targets) -> Iterator[tuple[int, list[int]]]:
    """The sequences that have a trajectory, with its labels."""
    if targets.trajectories is None:
        return
    offsets, labels = targets.trajectories
    for b in np.flatnonzero(np.diff(offsets)).tolist():
        yield b, labels[offsets[b] : offsets[b + 1]].tolist()


def label_candidates(
    targets: Targets, offsets: Ints, whole: bool
) -> Iterator[tuple[npt.NDArray[np.int32], npt.NDArray[np.int8] | None]]:
    """Labels (N,) that tokens of sequences with a trajectory may have, one for each token at a time; -1 elsewhere.

    With boundaries, for segments: every token is a segment, or (whole) every sequence is.
    """
    ends = None
    if targets.ends is not None:
        ends = np.zeros(int(offsets[-1]), np.int8) if whole else np.ones(int(offsets[-1]), np.int8)
        ends[offsets[1:][np.diff(offsets) > 0] - 1] = 1
    sets = [(b, sorted(set(trajectory))) for b, trajectory in _rows(targets)]
    for k in range(max((len(members) for _, members in sets), default=0)):
        labels = np.full(int(offsets[-1]), -1, np.int32)
        for b, members in sets:
            if k < len(members):
                labels[offsets[b] : offsets[b + 1]] = members[k]
        yield labels, ends


def passed_patterns(targets: Targets, order: int) -> set[Pattern]:
    """Label patterns of length 2 .. order + 1 that a configuration with one of the trajectories may pass through."""
    merge = targets.ends is None
    found: set[Pattern] = set()
    for _, trajectory in _rows(targets):
        level: set[Pattern] = {(i,) for i in range(len(trajectory))}
        for _ in range(order):
            longer = {(*p, p[-1] + step) for p in level for step in ((0, 1) if merge else (1,))}
            level = {p for p in longer if p[-1] < len(trajectory)}
            found |= {tuple(trajectory[i] for i in p) for p in level}
    return found


def check_possible(objective: _core.FlatObjective, weights: Floats, targets: Targets, max_length: int) -> None:
    """Raise if no configuration has the trajectory of a sequence."""
    rows = [b for b, _ in _rows(targets)]
    if not rows:
        return
    log_z = np.empty(len(targets.complete))
    objective.log_partitions(weights, True, log_z, 1)
    bad = [b for b in rows if log_z[b] == -np.inf]
    if bad:
        assert targets.trajectories is not None
        places = int(np.diff(targets.trajectories[0])[bad[0]])
        raise ValueError(
            f"y[{bad[0]}] cannot be satisfied: no configuration of sequence {bad[0]} has this trajectory of {places} "
            f"places (segments have at most {max_length} tokens; repeats=False forbids equal neighbours)"
        )
