"""Fit and predict of the flat estimators, `CRF` and `SemiCRF`."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from scansion import _core, model_file
from scansion.data import Targets, Vocabulary, encode
from scansion.lattice import checks
from scansion.lattice.base import Lattice
from scansion.lattice.checks import Floats, Ints
from scansion.lattice.constraints import Constraints
from scansion.lattice.patterns import Pattern
from scansion.models.build import FeatureRules, build, carry_over
from scansion.models.estimator import Estimator, not_fitted
from scansion.models.flat import PARTS, Cells, FlatModel, Inputs, constrained, constraints
from scansion.models.packing import json_value, pack, storable, unpack
from scansion.models.trajectories import TrajectoryAnswers, check_possible
from scansion.training.learn import Development, Learnt, Settings, learn, strengths
from scansion.training.progress import Progress

__all__ = ["FlatEstimator"]

Self = TypeVar("Self")

_TOKENS_AT_ONCE = 100_000


class FlatEstimator(TrajectoryAnswers, Estimator):
    """Shared by `CRF` and `SemiCRF`: everything but how labels become targets and configurations become answers."""

    _segments: bool
    _kind: str
    model_: FlatModel
    training_log_: list[dict[str, Any]]
    loss_: float
    message_: str
    n_iter_: int

    order: int
    algorithm: str
    c1: Any
    c2: Any
    max_iterations: int | None
    min_freq: Any
    bias_order: int | None
    all_possible_states: bool
    all_possible_transitions: bool
    patterns: Any
    attribute_orders: Mapping[str, Any] | None
    attribute_parts: Mapping[str, Any] | None
    n_jobs: int | None
    random_state: Any
    verbose: bool
    warm_start: bool
    patience: int

    # ---- what the two kinds differ in --------------------------------------------------------------------------

    def _check(self) -> None:
        """Raise if a parameter of this kind alone is wrong."""

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

    def _answers(self, batch: Any) -> list[Any]:
        """The best configurations of a batch, by name."""
        raise NotImplementedError

    def _named(self, config: Any) -> Any:
        """A configuration with the labels' names."""
        raise NotImplementedError

    def score(self, X: Any, y: Any) -> float:
        """Quality of the predictions; higher is better."""
        raise NotImplementedError

    # ---- fit ---------------------------------------------------------------------------------------------------

    def fit(self: Self, X: Any, y: Any, *, sample_weight: Any = None, X_dev: Any = None, y_dev: Any = None) -> Self:
        """Learn the weights.

        Parameters
        ----------
        X : iterable of sequences, or Dataset
            A sequence is a list of tokens (dicts, or lists or sets of strings: python-crfsuite's item rules), a 2-D
            array or a SciPy sparse matrix (rows are tokens).
        y : iterable
            One target per sequence. An unknown label is None, one of several a set; None in place of a target: nothing
            is known of the sequence, and it contributes nothing.
        sample_weight : (B,), optional
            Weight of each sequence, >= 0.
        X_dev, y_dev : optional
            Development data: `score` on them is logged at each iteration; training stops when it has not risen for
            `patience` iterations, and the best weights are kept.

        Notes
        -----
        The first Ctrl-C ends training, and the model has the weights of the last iteration.
        """
        assert isinstance(self, FlatEstimator)
        self._check()
        settings = self._settings()
        if (X_dev is None) != (y_dev is None):
            raise ValueError("X_dev and y_dev must be given together")
        model, objective, informed = self._problem(X, y, sample_weight)
        settings.c1, settings.c2 = _by_order(settings.c1, model), _by_order(settings.c2, model)
        development = self._development(model, X_dev, y_dev)
        progress = Progress(self.verbose, settings.max_iterations)
        learnt = learn(objective, model.weights, informed, settings, development, progress)
        progress.close(f"{learnt.message} (loss {learnt.loss:.6g})")
        self._finish(model.weighted(learnt.weights), learnt)
        return self

    def _problem(self, X: Any, y: Any, sample_weight: Any = None) -> tuple[FlatModel, _core.FlatObjective, Ints]:
        """The model to be learnt with its first weights, the objective, and the sequences that tell something."""
        rules = self._rules()
        old = getattr(self, "model_", None) if self.warm_start else None
        X = self._readable(X)
        data = encode(X, old.vocabulary.copy() if old is not None else None)
        if len(data) == 0:
            raise ValueError("X is empty: there is nothing to learn from")
        weight = _sequence_weights(sample_weight, len(data))
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
        if old is not None:
            carry_over(old, model)
        if model.bounded and (targets.known & ~targets.complete).any():
            held = constraints(targets, model.n_labels)
            _check_possible(constrained(model.batch(inputs, checks.jobs(self.n_jobs)), held), 0, "y")
        objective = model.objective(inputs, targets, weight)
        check_possible(objective, model.weights, targets, max_length)
        return model, objective, np.flatnonzero(targets.known)

    def _finish(self, model: FlatModel, learnt: Learnt) -> None:
        self.model_ = model
        self.training_log_ = learnt.log
        self.loss_ = learnt.loss
        self.message_ = learnt.message
        self.n_iter_ = len(learnt.log)

    def _rules(self) -> FeatureRules:
        return FeatureRules.checked(**{name: getattr(self, name) for name in FeatureRules.__dataclass_fields__})

    def _settings(self) -> Settings:
        given = {k: v for k, v in self.get_params().items() if k in Settings.__dataclass_fields__}
        given["n_jobs"] = checks.jobs(self.n_jobs)
        if self.max_iterations is not None:
            # 0 means no limit, as in CRFsuite
            given["max_iterations"] = checks.count("max_iterations", self.max_iterations, 0) or None
        given["c1"], given["c2"] = strengths("c1", self.c1), strengths("c2", self.c2)
        checks.count("patience", self.patience, 1)
        return Settings(**given, seed=_seed(self.random_state))

    def _development(self, model: FlatModel, X_dev: Any, y_dev: Any) -> Development:
        if X_dev is None:
            return Development()
        probe = type(self)(**self.get_params())
        probe.model_ = model
        inputs, targets = probe._inputs(X_dev), list(y_dev)

        def score(weights: Floats) -> float:
            probe.model_ = model.weighted(weights)
            return float(probe.score(inputs, targets))

        return Development(score, self.patience)

    # ---- predict -----------------------------------------------------------------------------------------------

    @property
    def _model(self) -> FlatModel:
        try:
            return self.model_
        except AttributeError:
            raise not_fitted(f"this {type(self).__name__} is not fitted yet: call fit first") from None

    def _inputs(self, X: Any) -> Inputs:
        """X as the model takes it; what was made here before stays as it is."""
        if isinstance(X, Inputs):
            return X
        model = self._model
        X = self._readable(X)
        data = encode(X, model.vocabulary, frozen=True)
        return Inputs(data, self._cells(X, model.cell_vocabulary, model.max_length, frozen=True))

    def _held(self, known: Any, inputs: Inputs) -> Constraints:
        """What is known, in the form of y."""
        model = self._model
        targets, _ = self._targets(known, inputs.data.lengths, model.labels, model.max_length)
        if targets.trajectories is not None:
            b = int(np.argmax(np.diff(targets.trajectories[0]) > 0))
            raise ValueError(f"constraints[{b}] is a Trajectory: ask lattice(x).compressed().lattice(trajectory)")
        return constraints(targets, model.n_labels)

    def _ask(self, X: Any, question: Callable[[Any], list[Any]], known: Any = None) -> list[Any]:
        """The answers to a question put to the lattices of X, some sequences at a time.

        known: what they are constrained to, in the form of y.
        """
        model, n_jobs = self._model, checks.jobs(self.n_jobs)
        inputs = self._inputs(X)
        held = None if known is None else self._held(known, inputs)
        answers: list[Any] = []
        first = 0
        for rows, part in inputs.blocks(_TOKENS_AT_ONCE):
            batch = model.batch(part, n_jobs)
            if held is not None:
                batch = constrained(batch, held.rows(rows.start, rows.stop))
            try:
                answers.extend(question(batch))
            except ValueError:
                _check_possible(batch, first, "constraints" if known is not None else "X")
                raise
            first += len(batch)
        return answers

    def predict(self, X: Any, constraints: Any = None) -> list[Any]:
        """The most probable configuration of each sequence.

        Parameters
        ----------
        X : as in fit
            Attributes that did not occur in training are ignored.
        constraints : iterable, optional
            What is known of each sequence, in the form of y in fit: the answer agrees with it.
        """
        return self._ask(X, self._answers, constraints)

    def predict_single(self, x: Any) -> Any:
        """The most probable configuration of one sequence."""
        return self.predict([x])[0]

    def predict_marginals(self, X: Any, constraints: Any = None) -> list[list[dict[Any, float]]]:
        """Label probabilities: for each sequence and position a dict label -> probability."""
        labels = self._model.labels

        def marginals(batch: Any) -> list[list[dict[Any, float]]]:
            rows = [dict(zip(labels, row, strict=True)) for row in batch.marginals().labels.tolist()]
            return _cut(rows, batch.offsets)

        return self._ask(X, marginals, constraints)

    def predict_marginals_single(self, x: Any) -> list[dict[Any, float]]:
        """Label probabilities of one sequence."""
        return self.predict_marginals([x])[0]

    def predict_kbest(self, X: Any, k: int, constraints: Any = None) -> list[list[tuple[Any, float]]]:
        """The k most probable configurations of each sequence with their log probabilities, best first."""

        def best(batch: Any) -> list[list[tuple[Any, float]]]:
            return [
                [(self._named(config), score - log_z) for config, score in found]
                for log_z, found in zip(batch.log_partition().tolist(), batch.kbest(k), strict=True)
            ]

        return self._ask(X, best, constraints)

    def sample(self, X: Any, n: int = 1, random_state: Any = None) -> list[list[Any]]:
        """Draw n configurations of each sequence from the model's distribution.

        Parameters
        ----------
        X : as in predict
        n : int
        random_state : int, numpy Generator or RandomState, optional
            The parameter `random_state` of the estimator unless given; None: other draws at each call.
        """
        chosen = self.random_state if random_state is None else random_state
        rng = checks.generator(chosen if isinstance(chosen, np.random.Generator) or chosen is None else _seed(chosen))
        return self._ask(X, lambda batch: [[self._named(c) for c in drawn] for drawn in batch.sample(n, rng)])

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

    def lattice(self, x: Any) -> Lattice[Any, Any]:
        """The lattice of one sequence; see `lattices`."""
        lattice: Lattice[Any, Any] = self.lattices([x])[0]
        return lattice

    # ---- what was learnt ---------------------------------------------------------------------------------------

    @property
    def classes_(self) -> list[Any]:
        """The labels, in the order of first appearance in training."""
        return list(self._model.labels)

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
        plain = "inside" if self._segments else "start"
        prefix = {plain: "", "length": "", "cells": "segment:"}
        return {
            (prefix.get(block, f"{block}:") + name, pattern[0]): w
            for block, name, pattern, w in self._model.named_features()
            if len(pattern) == 1
        }

    @property
    def attribute_pattern_features_(self) -> dict[tuple[str, tuple[Any, ...]], float]:
        """(attribute, label pattern of two or more) -> weight, for weights other than 0; names as above."""
        plain = "inside" if self._segments else "start"
        return {
            (name if block == plain else f"{block}:{name}", pattern): w
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

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file: safetensors with JSON metadata (docs/model-file.md), without weights of 0.

        Parameters that JSON does not hold, functions above all, are left out; see `scansion.load`.
        """
        arrays, metadata = pack(self._model)
        metadata["parameters"] = {k: json_value(v) for k, v in self.get_params().items() if storable(v)}
        metadata["loss"] = self.loss_ if math.isfinite(self.loss_) else None
        metadata["message"] = self.message_
        model_file.write(path, self._kind, metadata, arrays)

    @classmethod
    def _from_file(cls: type[Self], stored: model_file.ModelFile) -> Self:
        assert issubclass(cls, FlatEstimator)
        model = unpack(stored.metadata, stored.arrays, cls._segments)
        parameters, loss, message = (stored.metadata.get(name) for name in ("parameters", "loss", "message"))
        valid = cls._parameter_names()
        if not isinstance(parameters, dict) or not set(parameters) <= set(valid):
            raise model_file.ModelFileError(f"the model file has parameters that {cls.__name__} does not have")
        estimator = cls(**parameters)
        value = loss if isinstance(loss, float) else math.nan
        estimator._finish(model, Learnt(model.weights, value, str(message)))
        return estimator


def _check_possible(batch: Any, first: int, name: str) -> None:
    """Raise if nothing is possible for a sequence of a bounded model; first: the number of the first sequence."""
    dead = np.flatnonzero(batch._core.log_partitions(batch.n_jobs) == -np.inf)
    if dead.size:
        b = int(dead[0])
        raise ValueError(
            f"{name}[{first + b}] leaves no segmentation: none gets beyond position {batch._core.furthest(b)} without "
            "a segment that repeats the label before it, or is longer than its label allows (repeats, max_length)"
        )


def _sequence_weights(sample_weight: Any, n: int) -> Floats | None:
    if sample_weight is None:
        return None
    weight = checks.scores("sample_weight", sample_weight, (n,))
    if (weight < 0).any():
        b = int(np.argmax(weight < 0))
        raise ValueError(f"sample_weight[{b}] = {weight[b]} must not be negative")
    return weight


def _by_order(value: float | Floats, model: FlatModel) -> float | Floats:
    """A strength for all weights, or one for each: of several, one per order, the last goes on."""
    if isinstance(value, float):
        return value
    strength: Floats = value[np.minimum(model.orders(), len(value) - 1)]
    return strength


def _seed(random_state: Any) -> int:
    """A seed from scikit-learn's ways to give one."""
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    return 0 if random_state is None else checks.count("random_state", random_state, 0)


def _cut(rows: list[Any], offsets: Any) -> list[list[Any]]:
    """Rows of all sequences as one list for each."""
    cuts = offsets.tolist()
    return [rows[a:b] for a, b in zip(cuts[:-1], cuts[1:], strict=True)]
