"""The objective of hierarchical models: negative log likelihood of what is known, and its gradient.

    loss(w) = sum_b g_b [log Z(x_b) - log Z(x_b, constrained to what is known)],

g_b the weight of sequence b. Where everything is known, one configuration is left and its features are constant: they
are counted once. Sequences of which nothing is known tell nothing and are left out.

The class answers as the native objective of the flat models does, so that the algorithms of `scansion.training.learn`
serve both.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from scansion import _core
from scansion._checks import Bools, Floats, Ints
from scansion.data import Knowledge as LevelTargets
from scansion.data.dataset import gather
from scansion.models.nested.inputs import NestedInputs
from scansion.models.nested_model import NestedModel
from scansion.models.occurrences import Occurrences
from scansion.models.weights import find

__all__ = ["Held", "NestedObjective", "configuration_features"]

_AVERAGES = 32  # weights that a pass adds to the mean
_LARGEST = 1e100  # a weight whose scores the lattices take


def _astray(weights: Floats) -> bool:
    return not bool((np.abs(weights) < _LARGEST).all())


class Held:
    def __init__(self, targets, sizes):
        self.known = targets.under_root()

    def constrain(self, batch, rows):
        return batch.under(self.known.rows(rows, batch.offsets))


def configuration_features(
    model: NestedModel, inputs: NestedInputs, targets: LevelTargets
) -> Iterator[tuple[Ints, Ints, Floats]]:
    """What known cliques count: rows (tokens), features (numbers of weights) and values, block by block.

    Of a complete sequence these are the features of its configuration.
    """
    seen = Occurrences(targets, [level.size for level in model.levels])
    for block, where in model.parts():
        k, level = block.level, model.levels[block.level]
        if block.always:
            row, entry = seen.of(k, block.part)
            value = np.ones(len(row))
        elif block.tokens:
            at, column = seen.of(k, block.part)
            number, entry, value = inputs.tokens.expanded(at, column, model.n_columns(block))
            row = at[number]
        elif block.part == "length":
            start, length, label = seen.segments(k)
            free = level.max_length is None  # a constant at each position
            functions = level.basis[:, np.zeros_like(length) if free else length - 1] * (length if free else 1)
            row, value = np.tile(start, len(functions)), functions.ravel()
            entry = (np.arange(len(functions))[:, None] * model.n_columns(block) + label).ravel()
        else:
            places, entries = inputs.spans(k, level.max_length, len(level.span_vocabulary))
            start, length, label = seen.segments(k)
            place, there = find(places, start * level.max_length + length - 1)
            number, entry, value = entries.expanded(place[there], label[there], level.size)
            row = start[there][number]
        place, there = find(block.row * model.n_columns(block) + block.columns, entry)
        yield row[there], where.start + place[there], value[there]


class Part(NamedTuple):
    """Sequences that share their weight and whether they are complete: their inputs, rows and numbers."""

    weight: float
    complete: bool
    inputs: NestedInputs
    rows: Ints
    sequences: Ints


class NestedObjective:
    """Objective on encoded sequences.

    Parameters
    ----------
    model : NestedModel
    inputs : NestedInputs
    targets : LevelTargets
    weight : (B,), optional
        Weight of each sequence.
    batch_size : int
        Sequences that `run_pass` takes at a time.
    n_jobs : int
        Threads of `run_pass`.
    """

    def __init__(
        self,
        model: NestedModel,
        inputs: NestedInputs,
        targets: LevelTargets,
        weight: Floats | None = None,
        batch_size: int = 8,
        n_jobs: int = 1,
    ) -> None:
        from scansion.models.nested.inputs import nested

        self.model = model
        self.inputs = inputs = nested(inputs)
        self.examples = np.flatnonzero(targets.known)
        self.targets = targets
        self.weight = np.ones(len(inputs)) if weight is None else weight
        self.batch_size = batch_size
        self.n_jobs = n_jobs
        self.held = Held(targets, [level.size for level in model.levels])
        told = targets.known & (self.weight > 0)
        self.counts = self._counts(np.where(told & targets.complete, self.weight, 0.0))
        self.parts = list(self._parts(told))
        self._by_sequence: tuple[Ints, Ints, Floats] | None = None

    def _counts(self, weight: Floats) -> Floats:
        """(W,) features of the configurations of complete sequences, times their weights (B,)."""
        counts = np.zeros(self.model.n_weights)
        by_row = np.repeat(weight, np.diff(self.inputs.data.offsets))
        for row, feature, value in configuration_features(self.model, self.inputs, self.targets):
            counts += np.bincount(feature, value * by_row[row], minlength=len(counts))
        return counts

    def _features(self, sequences: Ints) -> tuple[Ints, Floats]:
        """Features and values of some complete sequences, counted when first needed."""
        if self._by_sequence is None:
            offsets = self.inputs.data.offsets
            found = list(configuration_features(self.model, self.inputs, self.targets))
            row, feature, value = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
            order = np.argsort(row, kind="stable")
            self._by_sequence = np.searchsorted(row[order], offsets), feature[order], value[order]
        firsts, feature, value = self._by_sequence
        _, items = gather(firsts, sequences)
        return feature[items], value[items]

    def _parts(self, told: Bools) -> Iterator[Part]:
        """Runs of sequences that share their weight and whether they are complete.

        Expectations come summed over the sequences of a batch, hence one batch for each weight.
        """
        for complete in (True, False):
            chosen = told & (self.targets.complete == complete)
            for value in np.unique(self.weight[chosen]).tolist():
                sequences = np.flatnonzero(chosen & (self.weight == value))
                whole = self.inputs if len(sequences) == len(self.inputs) else self.inputs.take(sequences)
                rows, first = self._rows(sequences), 0
                for part, inputs in whole.blocks(self.model.tokens_at_once()):
                    some = sequences[first : first + len(inputs)]
                    yield Part(value, complete, inputs, rows[part], some)
                    first += len(inputs)

    def _rows(self, sequences: Ints) -> Ints:
        return gather(self.inputs.data.offsets, sequences)[1]

    def impossible(self) -> tuple[int, int] | None:
        """The first sequence that what is known leaves without a tree, and how far one gets; None: there is none."""
        for part in self.parts:
            if part.complete:
                continue
            batch = self.held.constrain(self.model.batch(part.inputs, self.n_jobs), part.rows)
            dead = np.flatnonzero(batch._core.log_partitions(self.n_jobs) == -np.inf)
            if len(dead):
                return int(part.sequences[dead[0]]), int(batch._core.furthest(int(dead[0])))
        return None

    def _part_loss(self, model: NestedModel, part: Part, out: Floats, n_jobs: int) -> float:
        """Add a run's expectations to `out`; its log Z, less that of what is known where it is not complete."""
        batch = model.batch(part.inputs, n_jobs)
        log_z, gradient = batch.log_partition_and_gradient()
        model.gather(part.inputs, gradient, out, part.weight, n_jobs)
        total = float(log_z.sum())
        if not part.complete:
            log_z, gradient = self.held.constrain(batch, part.rows).log_partition_and_gradient()
            model.gather(part.inputs, gradient, out, -part.weight, n_jobs)
            total -= float(log_z.sum())
        return part.weight * total

    def log_loss(self, weights: Floats, gradient: Floats, n_jobs: int) -> float:
        """The loss; its gradient (W,) is written to `gradient`. Infinite where a search for weights went astray."""
        if _astray(weights):
            gradient.fill(np.nan)
            return np.inf
        model = self.model.weighted(weights)
        np.negative(self.counts, out=gradient)
        loss = -float(np.sum(self.counts * weights))
        for part in self.parts:
            loss += self._part_loss(model, part, gradient, n_jobs)
        return loss

    def run_pass(self, online: _core.Online, order: Ints, weights: Floats, total: Floats) -> float:
        """One pass of stochastic gradients over the sequences of `order`, some at a time; returns the summed loss.

        Step t has the rate 1 / (strength (t0 + t)); the sequences of one batch share their weights and make their steps
        together. `weights` (and `total`, the sum of the weights along the way, if they are averaged) change in place.
        """
        loss = 0.0
        since = 0.0
        between = len(order) / _AVERAGES
        for first in range(0, len(order), self.batch_size):
            sequences = order[first : first + self.batch_size]
            rate = 1.0 / (online.strength * (online.t0 + online.t))
            step = np.zeros_like(weights)
            loss += self._batch_loss(online.scale * weights, sequences, step)
            weights *= online.scale * max(0.0, 1.0 - rate * online.strength * len(sequences))
            weights -= rate * step
            online.scale = 1.0
            online.t += len(sequences)
            since += len(sequences)
            if online.average and since >= between:
                since -= between
                online.steps += 1.0
                total += weights
        return loss

    def _batch_loss(self, weights: Floats, sequences: Ints, out: Floats) -> float:
        """Loss and gradient of some sequences."""
        if _astray(weights):
            return np.inf
        model, loss = self.model.weighted(weights), 0.0
        value = self.weight[sequences]
        for complete in (True, False):
            for one in np.unique(value).tolist():
                chosen = sequences[(value == one) & (self.targets.complete[sequences] == complete)]
                if not len(chosen) or one == 0.0:
                    continue
                inputs, rows = self.inputs.take(chosen), self._rows(chosen)
                loss += self._part_loss(model, Part(one, complete, inputs, rows, chosen), out, self.n_jobs)
                if complete:
                    feature, number = self._features(chosen)
                    out -= one * np.bincount(feature, number, minlength=len(out))
                    loss -= one * float(np.sum(number * weights[feature]))
        return loss
