"""Fit and predict of the flat estimators, `CRF` and `SemiCRF`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from scansion import _checks as checks
from scansion import _core, model_file
from scansion._checks import Floats, Ints
from scansion.data import Targets, Vocabulary, encode
from scansion.features.spans import Cells
from scansion.lattice.constraints import Constraints
from scansion.lattice.patterns import BOS, EOS, Pattern
from scansion.models.flat import PARTS, FlatModel, Inputs, constrained, constraints
from scansion.models.learner import Learner, cut, sequence_weights
from scansion.models.levels import Feature, Level, Mark
from scansion.models.packing import pack, unpack
from scansion.models.trajectories import TrajectoryAnswers, check_possible

if TYPE_CHECKING:  # loaded by fit
    from scansion.models.build import FeatureRules

__all__ = ["FlatEstimator"]


class FlatEstimator(TrajectoryAnswers, Learner):
    """Shared by `CRF` and `SemiCRF`: everything but how labels become targets and configurations become answers."""

    _segments: bool
    model_: FlatModel

    order: int
    min_freq: Any
    bias_order: int | None
    all_possible_states: bool
    all_possible_transitions: bool
    patterns: Any
    attribute_orders: Mapping[str, Any] | None
    attribute_parts: Mapping[str, Any] | None

    # ---- what the two kinds differ in --------------------------------------------------------------------------

    def _targets(
        self, y: Any, lengths: Any, labels: list[Any] | None, max_length: int | None, extend: bool = False
    ) -> tuple[Targets, list[Any]]:
        """Encoded y. labels: those known, others being errors unless `extend`."""
        raise NotImplementedError

    def _limit(self) -> int | None:
        """Longest segment allowed in training, if that was told."""
        return 1

    def _basis(self, max_length: int) -> tuple[Floats, list[str]]:
        """Length features (n, M) and their names."""
        return np.zeros((0, max_length)), []

    def _bounds(
        self, targets: Targets, offsets: Ints, labels: list[Any], max_length: int
    ) -> tuple[Sequence[Pattern], npt.NDArray[np.int32] | None]:
        """Label patterns that must not occur, and the longest segment of each label."""
        return (), None

    def _readable(self, X: Any) -> Any:
        """X, or the same in a form that `_cells` can read again."""
        return X

    def _cells(self, X: Any, vocabulary: Vocabulary, max_length: int, frozen: bool) -> Cells | None:
        """Features of whole segments."""
        return None

    # ---- fit ---------------------------------------------------------------------------------------------------

    def _problem(self, X: Any, y: Any, sample_weight: Any = None) -> tuple[FlatModel, _core.FlatObjective, Ints]:
        """The model to be learnt with its first weights, the objective, and the sequences that tell something."""
        from scansion.models.build import build, carry_over, length_counts

        rules = self._rules()
        old = getattr(self, "model_", None) if self.warm_start else None
        X = self._readable(X)
        data = encode(X, old.vocabulary.copy() if old is not None else None)
        if len(data) == 0:
            raise ValueError("X is empty: there is nothing to learn from")
        weight = sequence_weights(sample_weight, len(data))
        known = old.labels if old is not None else None
        targets, labels = self._targets(y, data.lengths, known, self._limit(), extend=True)
        if not labels:
            raise ValueError("y holds no label at all: there is nothing to learn from")
        max_length = self._limit() or max(targets.longest, old.max_length if old is not None else 0)
        if max_length < 1:
            raise ValueError("y holds no segment whose two ends are known: give max_length")
        cell_vocabulary = old.cell_vocabulary.copy() if old is not None else Vocabulary()
        inputs = Inputs(data, self._cells(X, cell_vocabulary, max_length, frozen=False))
        basis = self._basis(max_length)
        bounds = self._bounds(targets, data.offsets, labels, max_length)
        model = build(rules, inputs, cell_vocabulary, targets, labels, max_length, basis, *bounds)
        if self._segments:
            model.length_counts = length_counts(targets, len(labels), max_length)
        if old is not None:
            carry_over(old, model)
        if model.bounded and (targets.known & ~targets.complete).any():
            held = constraints(targets, model.n_labels)
            _check_possible(constrained(model.batch(inputs, checks.jobs(self.n_jobs)), held), 0, "y")
        objective = model.objective(inputs, targets, weight)
        check_possible(objective, model.weights, targets, max_length)
        return model, objective, np.flatnonzero(targets.known)

    def _rules(self) -> FeatureRules:
        from scansion.models.build import FeatureRules

        return FeatureRules.checked(**{name: getattr(self, name) for name in FeatureRules.__dataclass_fields__})

    def _by_weight(self, strength: float | Floats, model: FlatModel) -> float | Floats:
        return _by_order(strength, model)

    # ---- predict -----------------------------------------------------------------------------------------------

    def _inputs(self, X: Any) -> Inputs:
        """X as the model takes it; what was made here before stays as it is."""
        if isinstance(X, Inputs):
            return X
        model = self._model
        X = self._readable(X)
        data = encode(X, model.vocabulary, frozen=True)
        return Inputs(data, self._cells(X, model.cell_vocabulary, model.max_length, frozen=True))

    def _held(self, known: Any, inputs: Inputs) -> Constraints:
        """What is known, in the form of y, or encoded already."""
        model = self._model
        if isinstance(known, Targets):
            return constraints(known, model.n_labels)
        targets, _ = self._targets(known, inputs.data.lengths, model.labels, model.max_length)
        if targets.trajectories is not None:
            b = int(np.argmax(np.diff(targets.trajectories[0]) > 0))
            raise ValueError(f"constraints[{b}] is a Trajectory: ask lattice(x).compressed().lattice(trajectory)")
        return constraints(targets, model.n_labels)

    def _constrained(self, batch: Any, held: Constraints, rows: slice) -> Any:
        return constrained(batch, held.rows(rows.start, rows.stop))

    def _check_possible(self, batch: Any, first: int, name: str) -> None:
        _check_possible(batch, first, name)

    def predict_marginals(self, X: Any, constraints: Any = None) -> list[list[dict[Any, float]]]:
        """Label probabilities: for each sequence and position a dict label -> probability."""
        labels = self._model.labels

        def marginals(batch: Any) -> list[list[dict[Any, float]]]:
            rows = [dict(zip(labels, row, strict=True)) for row in batch.marginals().labels.tolist()]
            return cut(rows, batch.offsets)

        answers: list[list[dict[Any, float]]] = self._ask(X, marginals, constraints)
        return answers

    def predict_marginals_single(self, x: Any) -> list[dict[Any, float]]:
        """Label probabilities of one sequence."""
        return self.predict_marginals([x])[0]

    def log_likelihood(self, X: Any, y: Any) -> float:
        """Log probability of what y says, summed over the sequences; unknown labels are summed out."""
        X = self._inputs(X)
        total, y = self._trajectory_log_likelihood(X, list(y))

        def differences(batch: Any) -> list[float]:
            free = constrained(batch, Constraints())
            return [float((batch.log_partition() - free.log_partition()).sum())]

        return float(sum(self._ask(X, differences, y), start=total))

    def lattices(self, X: Any, constraints: Any = None) -> Any:
        """The lattices of all sequences as one batch: arrays in place of dicts and lists.

        Labels are indices of ``classes_``, patterns of ``classes_`` followed by ``patterns_`` (and by forbidden ones).
        A first-order CRF's lattices have unary and transition scores, others a score for each position and pattern.
        """
        inputs = self._inputs(X)
        batch = self._model.lattices(inputs, checks.jobs(self.n_jobs))
        if constraints is not None:
            batch = constrained(batch, self._held(constraints, inputs))
            _check_possible(batch, 0, "constraints")
        return batch

    # ---- what was learnt ---------------------------------------------------------------------------------------

    @property
    def classes_(self) -> list[Any]:
        """The labels, in the order of first appearance in training."""
        return list(self._model.labels)

    @property
    def levels_(self) -> list[Level]:
        """The only level: "segment", or "label" where each token has one."""
        name, model = "segment" if self._segments else "label", self._model
        return [Level(name, list(model.labels), model.max_length, self._segments)]

    def level_features(self, single: bool = True) -> Iterator[Feature]:
        """The features with a weight other than 0; single: also those of one label."""
        labels = self._model.labels
        # BOS and EOS are numbers, which labels may be as well
        marks = {y: mark for y, mark in ((BOS, Mark.START), (EOS, Mark.END)) if y not in labels}
        if single:
            for (name, label), w in self.state_features_.items():
                yield Feature(0, None, (label,), name, w)
        always = ((None, pattern, w) for pattern, w in self.pattern_features_.items())
        tied = ((name, pattern, w) for (name, pattern), w in self.attribute_pattern_features_.items())
        for attribute, pattern, w in (*always, *tied):
            marked = tuple(marks.get(y, y) if isinstance(y, int) else y for y in pattern)
            yield Feature(0, None, marked, attribute, w)

    @property
    def attributes_(self) -> list[str]:
        """Names of the token attributes that have a feature with a weight other than 0, sorted."""
        return sorted({name for block, name, _, _ in self._model.named_features() if block in PARTS})

    @property
    def size_(self) -> int:
        """Number of weights other than 0."""
        return int(np.count_nonzero(self._model.weights))

    @property
    def state_features_(self) -> dict[tuple[str, Any], float]:
        """(attribute, label) -> weight, for weights other than 0, as in python-crfsuite.

        Of segments, what is not summed over the inside has its part before the name: "start:", "end:", "inner:",
        "segment:" (of `segment_features`), or is a length.
        """
        return {
            (self._feature_name(block, name), pattern[0]): w
            for block, name, pattern, w in self._model.named_features()
            if len(pattern) == 1
        }

    def _feature_name(self, block: str, name: str) -> str:
        """An attribute's name with the part of the segment that it is read from."""
        plain = "inside" if self._segments else "start"
        return {plain: "", "length": "", "cells": "segment:"}.get(block, f"{block}:") + name

    def strongest_features(self, top: int = 20) -> dict[Any, tuple[list[tuple[str, float]], list[tuple[str, float]]]]:
        """Label -> its `top` strongest attributes for it, and against it, as (name, weight), strongest first.

        Names as in `state_features_`, of which this is the quick way to the ends.
        """
        top = checks.count("top", top, 0)
        return {
            label: (
                [(self._feature_name(block, name), w) for block, name, w in positive],
                [(self._feature_name(block, name), w) for block, name, w in negative],
            )
            for label, (positive, negative) in zip(self._model.labels, self._model.strongest_features(top), strict=True)
        }

    @property
    def attribute_pattern_features_(self) -> dict[tuple[str, tuple[Any, ...]], float]:
        """(attribute, label pattern of two or more) -> weight, for weights other than 0; names as above."""
        return {
            (self._feature_name(block, name), pattern): w
            for block, name, pattern, w in self._model.named_features()
            if len(pattern) > 1
        }

    @property
    def transition_features_(self) -> dict[tuple[Any, Any], float]:
        """(label, next label) -> weight, for weights other than 0."""
        return {p: w for p, w in self.pattern_features_.items() if len(p) == 2}

    @property
    def pattern_features_(self) -> dict[tuple[Any, ...], float]:
        """Label pattern -> weight of its always-on feature: two labels or more, weights other than 0."""
        weights = self._model.weights[: self._model.n_bias].tolist()
        return {pattern: w for pattern, w in zip(self.patterns_, weights, strict=False) if w}

    @property
    def patterns_(self) -> list[tuple[Any, ...]]:
        """The label patterns longer than one label that the model follows."""
        model = self._model
        return [model.pattern_name(z) for z in range(model.n_labels, len(model.patterns) - model.n_forbidden)]

    # ---- files -------------------------------------------------------------------------------------------------

    def _packed(self) -> tuple[dict[str, Any], dict[str, Any]]:
        return pack(self._model)

    @classmethod
    def _unpacked(cls, stored: model_file.ModelFile) -> FlatModel:
        return unpack(stored.metadata, stored.arrays, cls._segments)


def _check_possible(batch: Any, first: int, name: str) -> None:
    """Raise if nothing is possible for a sequence of a bounded model; first: the number of the first sequence."""
    dead = np.flatnonzero(batch._core.log_partitions(batch.n_jobs) == -np.inf)
    if dead.size:
        b = int(dead[0])
        raise ValueError(
            f"{name}[{first + b}] leaves no segmentation: none gets beyond position {batch._core.furthest(b)} without "
            "a segment that repeats the label before it, or is longer than its label allows (repeats, max_length)"
        )


def _by_order(value: float | Floats, model: FlatModel) -> float | Floats:
    """A strength for all weights, or one for each: of several, one per order, the last goes on."""
    if isinstance(value, float):
        return value
    strength: Floats = value[np.minimum(model.orders(), len(value) - 1)]
    return strength
