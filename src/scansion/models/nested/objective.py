"""The objective of hierarchical models on encoded sequences, and what is known of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from scansion import _core
from scansion._checks import Floats, Ints
from scansion.data import LevelTargets
from scansion.lattice.constraints import Constraints
from scansion.models.flat import known_labels
from scansion.models.nested.inputs import NestedInputs
from scansion.models.nested.model import NestedModel

__all__ = ["Held", "impossible", "nested_objective"]


class Held:
    """What is known of the rows of a data set, for its lattices.

    Parameters
    ----------
    targets : LevelTargets
    sizes : K numbers of states
    """

    def __init__(self, targets: LevelTargets, sizes: list[int]) -> None:
        self.known = [Constraints()]  # of the root
        for level, size in zip(targets.levels, sizes, strict=True):
            assert level.ends is not None
            told = level.allowed is not None or bool((level.labels >= 0).any())
            self.known.append(Constraints(known_labels(level, size) if told else None, level.ends))

    def constrain(self, batch: Any, rows: slice | Ints) -> Any:
        """A batch of some rows under what is known of them, which need not be possible."""
        known = tuple(
            Constraints(
                None if one.allowed is None else one.allowed[rows], None if one.ends is None else one.ends[rows]
            )
            for one in self.known
        )
        return batch._of(replace(batch._core, known=known), batch.n_jobs)


def nested_objective(
    model: NestedModel,
    inputs: NestedInputs,
    targets: LevelTargets,
    weight: Floats | None = None,
    batch_size: int = 1,
    n_jobs: int = 1,
) -> _core.NestedObjective:
    """The objective; sequences of weight 0 tell nothing.

    weight (B,): of each sequence. batch_size, n_jobs: sequences that an online algorithm takes at a time, and threads
    that share them.
    """
    told = targets.known if weight is None else targets.known & (weight > 0)
    status = np.where(told, np.where(targets.complete, 2, 1), 0).astype(np.uint8)
    ends = [level.ends for level in targets.levels if level.ends is not None]
    allowed = [
        None if level.allowed is None else np.ascontiguousarray(level.allowed).view(np.uint8)
        for level in targets.levels
    ]
    labels = [level.labels for level in targets.levels]
    objective = _core.NestedObjective(model.native, inputs.native, labels, ends, allowed, status, weight)
    objective.set_batches(batch_size, n_jobs)
    return objective


def impossible(
    objective: _core.NestedObjective, model: NestedModel, inputs: NestedInputs, targets: LevelTargets, n_jobs: int
) -> tuple[int, int] | None:
    """The first sequence that what is known leaves without a tree, and how far one gets; None: there is none."""
    if targets.complete.all():
        return None
    log_z = np.empty(len(inputs))
    objective.log_partitions(model.weights, True, log_z, n_jobs)
    dead = np.flatnonzero(log_z == -np.inf)
    if not len(dead):
        return None
    b = int(dead[0])
    rows = slice(int(inputs.data.offsets[b]), int(inputs.data.offsets[b + 1]))
    held = Held(targets, [level.size for level in model.levels])
    batch = held.constrain(model.batch(inputs.take(np.array([b])), n_jobs), rows)
    return b, int(batch._core.furthest(0))
