"""What learning algorithms ask of data: the loss and its gradient at weights w, and a pass over examples.

Nothing here knows what kind of model stands behind it. An objective over several shards of the data is their sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from scansion import _core
from scansion._checks import Floats, Ints

__all__ = ["NativeObjective", "Objective", "Sum"]


class Objective(Protocol):
    """Losses of W weights on numbered examples (sequences)."""

    @property
    def examples(self) -> Ints:
        """Numbers of the examples that tell something, ascending."""

    def log_loss(self, w: Floats, gradient: Floats, threads: int) -> float:
        """Negative log likelihood of what is known, summed over the examples; writes the gradient (W,)."""

    def margin_loss(self, w: Floats, gradient: Floats, threads: int) -> float:
        """Margin violations (Hamming cost), summed over the examples; writes a subgradient (W,)."""

    def curvature(self, w: Floats, units: Floats | None, out: Floats, threads: int) -> None:
        """Write (W,) what the second derivatives of `log_loss` are about, features being multiplied by `units`."""

    def run_pass(self, online: _core.Online, order: Ints, w: Floats, total: Floats) -> float:
        """One pass of an online algorithm over the examples of these numbers, in this order; returns the summed loss.

        `w` and `total`, what is averaged, change in place; `online` carries the algorithm's state from pass to pass.
        """


class NativeObjective:
    """The native objective of a model.

    Parameters
    ----------
    native : _core.FlatObjective or _core.NestedObjective
    examples : as in `Objective`
    inputs, known : optional
        The encoded sequences, and what is known of them, that it is over.
    """

    def __init__(self, native: Any, examples: Ints, inputs: Any = None, known: Any = None) -> None:
        self.native, self.examples, self.inputs, self.known = native, examples, inputs, known
        self.log_loss, self.margin_loss, self.run_pass = native.log_loss, native.margin_loss, native.run_pass
        self.curvature = native.curvature


class Sum:
    """The objective over all shards of the data: their examples are numbered one shard after another.

    Parameters
    ----------
    shards : sequence of Objective
        All of the same weights. Losses are added up in this order.
    sizes : sequence of int
        Number of examples of each shard, those that tell nothing included.
    """

    def __init__(self, shards: Sequence[Any], sizes: Sequence[int]) -> None:
        self.shards = list(shards)
        self.firsts = np.concatenate([[0], np.cumsum(np.asarray(sizes, np.int64))]).astype(np.int64)

    @property
    def examples(self) -> Ints:
        """Numbers of the examples that tell something."""
        found = [shard.examples + first for shard, first in zip(self.shards, self.firsts, strict=False)]
        return np.concatenate([np.zeros(0, np.int64), *found])

    def log_loss(self, w: Floats, gradient: Floats, threads: int) -> float:
        """As in `Objective`."""
        return self._added("log_loss", w, gradient, threads)

    def margin_loss(self, w: Floats, gradient: Floats, threads: int) -> float:
        """As in `Objective`."""
        return self._added("margin_loss", w, gradient, threads)

    def curvature(self, w: Floats, units: Floats | None, out: Floats, threads: int) -> None:
        """As in `Objective`."""
        out.fill(0.0)
        one = np.empty_like(out)
        for shard in self.shards:
            shard.curvature(w, units, one, threads)
            out += one

    def _added(self, loss: str, w: Floats, gradient: Floats, threads: int) -> float:
        gradient.fill(0.0)
        one, total = np.empty_like(gradient), 0.0
        for shard in self.shards:
            total += getattr(shard, loss)(w, one, threads)
            gradient += one
        return total

    def run_pass(self, online: _core.Online, order: Ints, w: Floats, total: Floats) -> float:
        """As in `Objective`: runs of examples of one shard are handed to it."""
        shard = np.searchsorted(self.firsts, order, side="right") - 1
        cuts = np.flatnonzero(np.diff(shard)) + 1
        loss = 0.0
        for run in np.split(np.arange(len(order)), cuts):
            if len(run):
                k = int(shard[run[0]])
                loss += self.shards[k].run_pass(online, order[run] - self.firsts[k], w, total)
        return loss
