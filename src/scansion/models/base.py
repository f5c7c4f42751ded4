"""Fit and predict of the flat estimators, `CRF` and `SemiCRF`."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from scansion import _core, model_file
from scansion.data import Dataset, Targets, Vocabulary, encode
from scansion.lattice import checks
from scansion.lattice.base import Batch, Lattice
from scansion.lattice.checks import Floats
from scansion.lattice.patterns import BOS, EOS, Pattern
from scansion.models.estimator import Estimator, NotFittedError
from scansion.models.flat import (
    PARTS,
    Cells,
    FlatModel,
    Table,
    by_prefix,
    known_labels,
    native_data,
    order_bits,
    part_bits,
    seen_patterns,
)
from scansion.training.learn import ALGORITHMS, Learnt, Settings, learn
from scansion.training.progress import Progress

Self = TypeVar("Self")

_TOKENS_AT_ONCE = 100_000


class FlatEstimator(Estimator):
    """Shared by `CRF` and `SemiCRF`: everything but how labels become targets and configurations become answers."""

    _segments: bool
    _kind: str
    model_: FlatModel

    order: int
    algorithm: str
    c1: Any
    c2: Any
    max_iterations: int | None
    min_freq: float
    all_possible_states: bool
    all_possible_transitions: bool
    patterns: Any
    attribute_orders: Mapping[str, Any] | None
    attribute_parts: Mapping[str, Any] | None
    n_jobs: int | None
    random_state: int | None
    verbose: bool
    warm_start: bool
    patience: int

    # ---- what the two kinds differ in --------------------------------------------------------------------------

    def _encode_targets(self, y: Any, lengths: Any, labels: list[Any] | None) -> tuple[Targets, list[Any]]:
        raise NotImplementedError

    def _decode(self, config: Any) -> Any:
        raise NotImplementedError

    def _longest(self, targets: Targets) -> int:
        raise NotImplementedError

    def _basis(self, max_length: int) -> tuple[Floats, list[str]]:
        return np.zeros((0, max_length)), []

    def _cells(self, X: Any, data: Dataset, vocabulary: Vocabulary, frozen: bool, max_length: int) -> Cells | None:
        return None

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
        """
        assert isinstance(self, FlatEstimator)
        settings = self._settings()
        X = _reusable(X)
        old = getattr(self, "model_", None) if self.warm_start else None
        data = X if isinstance(X, Dataset) else encode(X, old.vocabulary.copy() if old is not None else None)
        if len(data) == 0:
            raise ValueError("X is empty: there is nothing to learn from")
        targets, labels = self._encode_targets(_reusable(y), data.lengths, old.labels if old is not None else None)
        if not labels:
            raise ValueError("y holds no label at all: there is nothing to learn from")
        weight = self._sequence_weights(sample_weight, len(data))
        max_length = self._longest(targets)
        cell_vocabulary = old.cell_vocabulary.copy() if old is not None else Vocabulary()
        cells = self._cells(X, data, cell_vocabulary, False, max_length)
        model = self._build(data, cells, cell_vocabulary, targets, labels, max_length)
        if old is not None:
            carry_over(old, model)
        objective = model.objective(data, cells, targets, weight)
        self._possible(model, data, cells, targets, objective)
        settings.c1 = self._by_order("c1", self.c1, model)
        settings.c2 = self._by_order("c2", self.c2, model)
        watch = self._watcher(model, X_dev, y_dev)
        progress = Progress(self.verbose, self.max_iterations)
        learnt = learn(self.algorithm, objective, model.weights, len(data), settings, watch.look, progress)
        model.weights = watch.best_weights if watch.best_weights is not None else learnt.weights
        progress.close(f"{learnt.message} (loss {learnt.loss:.6g})")
        self._finish(model, learnt)
        return self

    def _finish(self, model: FlatModel, learnt: Learnt) -> None:
        self.model_ = model
        self.training_log_ = learnt.log
        self.loss_ = learnt.loss
        self.message_ = learnt.message
        self.n_iter_ = len(learnt.log)

    def _settings(self) -> Settings:
        if self.algorithm not in ALGORITHMS:
            raise ValueError(f"algorithm must be one of {', '.join(ALGORITHMS)}, got {self.algorithm!r}")
        checks.count("order", self.order, 0)
        given = {k: v for k, v in self.get_params().items() if k in Settings.__dataclass_fields__}
        given["n_jobs"] = checks.jobs(self.n_jobs)
        if self.max_iterations is not None:
            checks.count("max_iterations", self.max_iterations, 0)
            given["max_iterations"] = self.max_iterations or None  # 0 means no limit, as in CRFsuite
        seed = 0 if self.random_state is None else self.random_state
        if isinstance(seed, np.random.RandomState):
            seed = int(seed.randint(2**31))
        return Settings(**given, seed=checks.count("random_state", seed, 0))

    def _by_order(self, name: str, value: Any, model: FlatModel) -> float | Floats:
        """A strength for all weights, or one for each: a sequence gives one per order, the last goes on."""
        values = np.atleast_1d(np.asarray(value, dtype=object))
        numbers = []
        for v in values.tolist():
            if isinstance(v, bool) or not isinstance(v, (int, float)) or not math.isfinite(v) or v < 0:
                raise ValueError(f"{name} must be a number >= 0, or one for each order, got {value!r}")
            numbers.append(float(v))
        if np.ndim(value) == 0:
            return numbers[0]
        table = np.array(numbers)
        strengths: Floats = table[np.minimum(model.orders(), len(table) - 1)]
        return strengths

    def _sequence_weights(self, sample_weight: Any, n: int) -> Floats | None:
        if sample_weight is None:
            return None
        weight = checks.scores("sample_weight", sample_weight, (n,))
        if (weight < 0).any():
            b = int(np.argmax(weight < 0))
            raise ValueError(f"sample_weight[{b}] = {weight[b]} must not be negative")
        return weight

    def _build(
        self,
        data: Dataset,
        cells: Cells | None,
        cell_vocabulary: Vocabulary,
        targets: Targets,
        labels: list[Any],
        max_length: int,
    ) -> FlatModel:
        n = len(labels)
        singles = tuple((y,) for y in range(n))
        longer = self._longer_patterns(data, targets, labels)
        model = FlatModel(
            labels,
            data.vocabulary,
            singles + longer,
            self._segments,
            max_length,
            {},
            *self._basis(max_length),
            cell_vocabulary,
            (np.zeros(len(cell_vocabulary) + 1, np.int64), np.zeros(0, np.int32)),
        )
        ends = targets.ends if self._segments else None
        kept = native_data(data, cells)
        least = float(self.min_freq)
        if longer and self.patterns is None and least > 0 and not self.all_possible_transitions:
            counts = _core.count_patterns(kept, model.automaton._native, targets.labels, ends)
            frequent = tuple(z for z, c in zip(model.patterns, counts, strict=True) if len(z) == 1 or c >= least)
            model = _replaced(model, patterns=frequent)
        orders, parts = self._attribute_rules(data.vocabulary)
        tables: dict[str, Table] = {}
        for part in PARTS if self._segments else PARTS[:1]:
            bits = np.where(parts >> PARTS.index(part) & 1, orders, 0).astype(np.uint32)
            if not bits.any():
                continue
            if self.all_possible_states:
                tables[part] = _all_states(bits, n)
                bits = bits & ~np.uint32(1)
            if bits.any():
                table = _core.token_feature_table(
                    kept, model.automaton._native, targets.labels, ends, PARTS.index(part), bits, least
                )
                tables[part] = _merged(tables[part], table) if part in tables else table
        cell_table = model.cell_table
        if cells is not None:
            cell_table = _core.cell_feature_table(
                kept, model.automaton._native, targets.labels, ends, len(cell_vocabulary), least
            )
        return _replaced(model, tables=tables, cell_table=cell_table)

    def _longer_patterns(self, data: Dataset, targets: Targets, labels: list[Any]) -> tuple[Pattern, ...]:
        if self.patterns is not None:
            return _given_patterns(self.patterns, labels)
        found = seen_patterns(targets, data.offsets, self._segments, self.order)
        if self.all_possible_transitions and self.order >= 1:
            n = len(labels)
            found = [(i, j) for i in range(n) for j in range(n)] + [p for p in found if len(p) > 2]
        return tuple(found)

    def _attribute_rules(self, vocabulary: Vocabulary) -> tuple[Any, Any]:
        names = vocabulary.names() if self.attribute_orders or self.attribute_parts else [""] * len(vocabulary)
        orders = by_prefix(names, self.attribute_orders, order_bits, 1)
        default = np.uint32(part_bits("inside")) if self._segments else np.uint32(part_bits("start"))
        parts = by_prefix(names, self.attribute_parts if self._segments else None, part_bits, 0)
        # attributes of order 1 and more are read where a segment starts, unless told otherwise
        parts = np.where(parts > 0, parts, np.where(orders & 1, default, np.uint32(part_bits("start"))))
        return orders, parts

    def _possible(
        self, model: FlatModel, data: Dataset, cells: Cells | None, targets: Targets, objective: _core.FlatObjective
    ) -> None:
        """Raise if what is known of a sequence leaves no configuration."""
        partial = targets.known & ~targets.complete
        if not partial.any():
            return
        out = np.empty(len(data))
        objective.log_partitions(np.zeros(model.n_weights), True, out, checks.jobs(self.n_jobs))
        bad = np.flatnonzero(partial & (out == -np.inf))
        if bad.size:
            b = int(bad[0])
            try:
                self._constrained(model.batch(data.take([b]), None, 1), _one_target(targets, data, b), model)
            except ValueError as error:
                raise ValueError(f"y[{b}] cannot be satisfied: {error}") from None

    def _watcher(self, model: FlatModel, X_dev: Any, y_dev: Any) -> _Watcher:
        if (X_dev is None) != (y_dev is None):
            raise ValueError("X_dev and y_dev must be given together")
        if X_dev is None:
            return _Watcher(None, 0)
        probe = type(self)(**self.get_params())
        X_dev, y_dev = _reusable(X_dev), _reusable(y_dev)

        def score(weights: Floats) -> float:
            probe.model_ = _replaced(model, weights=np.array(weights))
            probe.model_._cache = model._cache
            return float(probe.score(X_dev, y_dev))

        return _Watcher(score, checks.count("patience", self.patience, 1))

    # ---- predict -----------------------------------------------------------------------------------------------

    @property
    def _model(self) -> FlatModel:
        try:
            return self.model_
        except AttributeError:
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit first") from None

    def _batches(self, X: Any, constraints: Any = None) -> Iterator[Batch[Any, Any]]:
        """Lattices of X, some sequences at a time; constraints: one target per sequence, or None."""
        model = self._model
        n_jobs = checks.jobs(self.n_jobs)
        X = _reusable(X)
        data = X if isinstance(X, Dataset) else encode(X, model.vocabulary, frozen=True)
        if isinstance(X, Dataset) and X.vocabulary is not model.vocabulary:
            data = _translated(X, model.vocabulary)
        targets = None
        if constraints is not None:
            targets, _ = self._encode_targets(_reusable(constraints), data.lengths, model.labels)
        for first, last in _blocks(data):
            part = data if last - first == len(data) else data.take(np.arange(first, last))
            cells = self._cells(
                X[first:last] if not isinstance(X, Dataset) else X, part, model.cell_vocabulary, True, model.max_length
            )
            batch: Any = model.batch(part, cells, n_jobs)
            if targets is not None:
                rows = slice(int(data.offsets[first]), int(data.offsets[last]))
                known = known_labels(targets, model.n_labels)[rows]
                ends = None if targets.ends is None or not self._segments else targets.ends[rows]
                batch = batch.constrain(known, ends)
            yield batch

    def _constrained(self, batch: Any, targets: Targets, model: FlatModel) -> Any:
        ends = targets.ends if self._segments else None
        return batch.constrain(known_labels(targets, model.n_labels), ends)

    def predict(self, X: Any, constraints: Any = None) -> list[Any]:
        """The most probable configuration of each sequence.

        Parameters
        ----------
        X : as in fit
        constraints : iterable, optional
            What is known of each sequence, in the form of y in fit: the answer agrees with it.
        """
        answers: list[Any] = []
        for batch in self._batches(X, constraints):
            answers.extend(self._best(batch))
        return answers

    def _best(self, batch: Any) -> list[Any]:
        return [self._decode(config) for config in batch.viterbi()[0]]

    def predict_single(self, x: Any) -> Any:
        """The most probable configuration of one sequence."""
        return self.predict([x])[0]

    def predict_marginals(self, X: Any, constraints: Any = None) -> list[list[dict[Any, float]]]:
        """Label probabilities: for each sequence and position a dict label -> probability."""
        labels = self._model.labels
        answers: list[list[dict[Any, float]]] = []
        for batch in self._batches(X, constraints):
            rows = batch.marginals().labels.tolist()
            cuts = batch.offsets.tolist()
            for first, last in zip(cuts[:-1], cuts[1:], strict=True):
                answers.append([dict(zip(labels, row, strict=True)) for row in rows[first:last]])
        return answers

    def predict_kbest(self, X: Any, k: int, constraints: Any = None) -> list[list[tuple[Any, float]]]:
        """The k most probable configurations of each sequence with their log probabilities, best first."""
        answers = []
        for batch in self._batches(X, constraints):
            log_z = batch.log_partition()
            for b, found in enumerate(batch.kbest(k)):
                answers.append([(self._decode(config), score - float(log_z[b])) for config, score in found])
        return answers

    def sample(self, X: Any, n: int = 1, random_state: Any = None) -> list[list[Any]]:
        """Draw n configurations of each sequence from the model's distribution."""
        rng = checks.generator(self.random_state if random_state is None else random_state)
        return [
            [self._decode(config) for config in drawn] for batch in self._batches(X) for drawn in batch.sample(n, rng)
        ]

    def log_likelihood(self, X: Any, y: Any) -> float:
        """Log probability of what y says, summed over the sequences; unknown labels are summed out."""
        model = self._model
        X, y = _reusable(X), _reusable(y)
        total, targets = 0.0, list(y)
        free = [batch.log_partition() for batch in self._batches(X)]
        known = [batch.log_partition() for batch in self._batches(X, targets)]
        for a, b in zip(known, free, strict=True):
            total += float((a - b).sum())
        assert model is self.model_
        return total

    def lattices(self, X: Any, constraints: Any = None) -> Any:
        """The lattices of all sequences as one batch: arrays in place of dicts and lists."""
        model = self._model
        X = _reusable(X)
        data = _translated(X, model.vocabulary) if isinstance(X, Dataset) else encode(X, model.vocabulary, frozen=True)
        cells = self._cells(X, data, model.cell_vocabulary, True, model.max_length)
        batch = model.batch(data, cells, checks.jobs(self.n_jobs))
        if constraints is not None:
            targets, _ = self._encode_targets(_reusable(constraints), data.lengths, model.labels)
            batch = self._constrained(batch, targets, model)
        return batch

    def lattice(self, x: Any) -> Lattice[Any, Any]:
        """The lattice of one sequence; its labels are the indices of ``classes_``."""
        lattice: Lattice[Any, Any] = self.lattices([x])[0]
        return lattice

    # ---- what was learnt ---------------------------------------------------------------------------------------

    @property
    def classes_(self) -> list[Any]:
        """The labels, in the order of first appearance in training."""
        return list(self._model.labels)

    @property
    def attributes_(self) -> list[str]:
        """Names of the attributes that have a feature with a weight other than 0."""
        return sorted({name for part in PARTS for name, _, w in self._model.named_features(part) if w})

    @property
    def size_(self) -> int:
        """Number of weights other than 0."""
        return int(np.count_nonzero(self._model.weights))

    @property
    def state_features_(self) -> dict[tuple[str, Any], float]:
        """(attribute, label) -> weight, for weights other than 0 (python-crfsuite's form; segments: summed parts)."""
        result: dict[tuple[str, Any], float] = {}
        for part in PARTS:
            for name, pattern, w in self._model.named_features(part):
                if w and len(pattern) == 1:
                    key = (name, pattern[0]) if part in ("start", "inside") else (f"{part}:{name}", pattern[0])
                    result[key] = result.get(key, 0.0) + w
        return result

    @property
    def transition_features_(self) -> dict[tuple[Any, Any], float]:
        """(label, next label) -> weight, for weights other than 0."""
        return {p: w for p, w in self.pattern_features_.items() if len(p) == 2}

    @property
    def pattern_features_(self) -> dict[tuple[Any, ...], float]:
        """Label pattern -> weight of its always-on feature: two labels or more, weights other than 0."""
        model = self._model
        named = (
            (model.pattern_name(model.n_labels + k), float(w)) for k, w in enumerate(model.weights[: model.n_bias])
        )
        return {pattern: w for pattern, w in named if w}

    @property
    def patterns_(self) -> list[tuple[Any, ...]]:
        """The label patterns longer than one label that the model follows."""
        model = self._model
        return [model.pattern_name(z) for z in range(model.n_labels, len(model.patterns))]

    # ---- files -------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file: safetensors with JSON metadata (docs/model-file.md), without weights of 0."""
        model = self._model
        for y in model.labels:
            if not isinstance(y, (str, int)) or isinstance(y, bool):
                raise TypeError(f"only str and int labels can be saved, got {y!r} of type {type(y).__name__}")
        arrays, metadata = _pack(model)
        metadata["parameters"] = {k: _json(v) for k, v in self.get_params().items() if _plain(v)}
        metadata["loss"] = self.loss_ if math.isfinite(self.loss_) else None
        metadata["message"] = self.message_
        model_file.write(path, self._kind, metadata, arrays)

    @classmethod
    def _from_file(cls: type[Self], stored: model_file.ModelFile) -> Self:
        assert issubclass(cls, FlatEstimator)
        valid = cls._parameter_names()
        parameters = stored.metadata.get("parameters", {})
        estimator = cls(**{k: v for k, v in parameters.items() if k in valid})
        model = _unpack(stored.metadata, stored.arrays)
        loss = stored.metadata.get("loss")
        estimator._finish(model, Learnt(model.weights, math.nan if loss is None else loss, stored.metadata["message"]))
        return estimator


class _Watcher:
    """Scores the development data after each iteration, and remembers the best weights."""

    def __init__(self, score: Callable[[Floats], float] | None, patience: int) -> None:
        self.score = score
        self.patience = patience
        self.best = -math.inf
        self.since = 0
        self.best_weights: Floats | None = None

    def look(self, weights: Floats) -> tuple[float | None, bool]:
        if self.score is None:
            return None, False
        value = self.score(weights)
        self.since += 1
        if value > self.best:
            self.best, self.since, self.best_weights = value, 0, np.array(weights)
        return value, self.since >= self.patience


def _replaced(model: FlatModel, **changes: Any) -> FlatModel:
    fields = {
        name: getattr(model, name) for name in FlatModel.__dataclass_fields__ if name not in ("_cache", "weights")
    }
    fields.update(changes)
    return FlatModel(**fields)


def _reusable(values: Any) -> Any:
    """Lists stay as they are; what can be read only once becomes a list."""
    if isinstance(values, (Dataset, Sequence, np.ndarray)) and not isinstance(values, (str, bytes)):
        return values
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise ValueError(f"expected one entry per sequence (a list of sequences), got {type(values).__name__}")
    return list(values)


def _blocks(data: Dataset) -> Iterator[tuple[int, int]]:
    """Runs of sequences of about _TOKENS_AT_ONCE tokens."""
    first = 0
    while first < len(data):
        last = int(np.searchsorted(data.offsets, data.offsets[first] + _TOKENS_AT_ONCE, side="right")) - 1
        last = min(max(last, first + 1), len(data))
        yield first, last
        first = last


def _translated(data: Dataset, vocabulary: Vocabulary) -> Dataset:
    """The same data with the numbers of another vocabulary; unknown attributes are left out."""
    if data.vocabulary is vocabulary:
        return data
    number = np.array([vocabulary.index(name) for name in data.vocabulary.names()], np.int32)
    ids = number[data.ids] if len(number) else data.ids
    keep = ids >= 0
    counts = np.concatenate([[0], np.cumsum(keep)])
    values = None if data.values is None else data.values[keep]
    return Dataset(data.offsets, counts[data.token_offsets], ids[keep], values, vocabulary)


def _one_target(targets: Targets, data: Dataset, b: int) -> Targets:
    rows = slice(int(data.offsets[b]), int(data.offsets[b + 1]))
    return Targets(
        targets.labels[rows],
        None if targets.allowed is None else targets.allowed[rows],
        None if targets.ends is None else targets.ends[rows],
        targets.complete[b : b + 1],
        targets.known[b : b + 1],
        targets.longest,
    )


def _given_patterns(patterns: Any, labels: list[Any]) -> tuple[Pattern, ...]:
    """Label patterns given by name; length-1 patterns exist anyway."""
    number = {y: i for i, y in enumerate(labels)}
    result: dict[Pattern, None] = {}
    for i, pattern in enumerate(patterns):
        body = []
        for k, y in enumerate(pattern):
            if y in number:
                body.append(number[y])
            elif (y == BOS and k == 0) or (y == EOS and k == len(pattern) - 1):
                body.append(y)
            else:
                raise ValueError(f"patterns[{i}] = {pattern!r}: label {y!r} does not occur in training")
        if len(body) > 1:
            result[tuple(body)] = None
    return tuple(result)


def _all_states(bits: Any, n_labels: int) -> Table:
    """Every attribute that has order 0 with every label."""
    counts = np.where(bits & 1, n_labels, 0)
    rows = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return rows, np.tile(np.arange(n_labels, dtype=np.int32), int((counts > 0).sum()))


def _merged(a: Table, b: Table) -> Table:
    """Both tables' features; patterns of a row ascending."""
    attribute = np.concatenate([np.repeat(np.arange(len(t[0]) - 1), np.diff(t[0])) for t in (a, b)])
    pattern = np.concatenate([a[1], b[1]])
    order = np.lexsort((pattern, attribute))
    attribute, pattern = attribute[order], pattern[order]
    new = np.ones(len(pattern), np.bool_)
    new[1:] = (np.diff(attribute) != 0) | (np.diff(pattern) != 0)
    counts = np.bincount(attribute[new], minlength=len(a[0]) - 1)
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), np.ascontiguousarray(pattern[new])


def carry_over(old: FlatModel, new: FlatModel) -> None:
    """Give features of the new model their weights in the old one; both number labels and attributes alike."""
    number = {p: z for z, p in enumerate(new.patterns)}
    moved = np.array([number.get(p, -1) for p in old.patterns], np.int64)
    starts = {name: at for name, at, _ in new.blocks()}
    for name, at, size in old.blocks():
        if not size:
            continue
        weights = old.weights[at : at + size]
        if name == "bias":
            target = moved[old.n_labels :]
            keep = target >= 0
            new.weights[target[keep] - new.n_labels] = weights[keep]
        elif name == "length" and old.basis_names == new.basis_names and old.n_labels == new.n_labels:
            new.weights[starts[name] : starts[name] + size] = weights
        elif name in new.tables or name == "cells":
            table = old.cell_table if name == "cells" else old.tables[name]
            other = new.cell_table if name == "cells" else new.tables[name]
            width = len(new.patterns)
            mine = np.repeat(np.arange(len(table[0]) - 1), np.diff(table[0])) * width + moved[table[1]]
            theirs = np.repeat(np.arange(len(other[0]) - 1), np.diff(other[0])) * width + other[1]
            keep = moved[table[1]] >= 0
            at_new = np.searchsorted(theirs, mine[keep])
            found = (at_new < len(theirs)) & (theirs[np.minimum(at_new, len(theirs) - 1)] == mine[keep])
            new.weights[starts[name] + at_new[found]] = weights[keep][found]


def _plain(value: Any) -> bool:
    """Whether a parameter can stand in a model file."""
    if isinstance(value, (list, tuple)):
        return all(_plain(v) for v in value)
    if isinstance(value, dict):
        return all(isinstance(k, str) and _plain(v) for k, v in value.items())
    return value is None or isinstance(value, (str, bool, int)) or (isinstance(value, float) and math.isfinite(value))


def _json(value: Any) -> Any:
    """The same with lists in place of tuples."""
    if isinstance(value, (list, tuple)):
        return [_json(v) for v in value]
    return {k: _json(v) for k, v in value.items()} if isinstance(value, dict) else value


def _pack(model: FlatModel) -> tuple[dict[str, Any], dict[str, Any]]:
    """A model without its zero weights as arrays and metadata."""
    arrays: dict[str, Any] = {}
    metadata: dict[str, Any] = {
        "labels": model.labels,
        "segments": model.segments,
        "max_length": model.max_length,
        "basis_names": model.basis_names,
        "parts": [],
    }
    lengths = [len(p) for p in model.patterns[model.n_labels :]]
    arrays["patterns.symbols"] = np.array([y for p in model.patterns[model.n_labels :] for y in p], np.int32)
    arrays["patterns.offsets"] = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    arrays["basis"] = model.basis
    used = np.zeros(len(model.vocabulary), np.bool_)
    kept: dict[str, tuple[Any, Any, Any]] = {}
    for name, at, size in model.blocks():
        weights = model.weights[at : at + size]
        if name in ("bias", "length"):
            arrays[f"weights.{name}"] = weights
            continue
        rows, pattern = model.cell_table if name == "cells" else model.tables[name]
        attribute = np.repeat(np.arange(len(rows) - 1), np.diff(rows))
        keep = weights != 0
        kept[name] = attribute[keep], pattern[keep], weights[keep]
        if name != "cells":
            used[attribute[keep]] = True
            metadata["parts"].append(name)
    ids = np.flatnonzero(used)
    number = np.cumsum(used) - 1
    for name, (attribute, pattern, weights) in kept.items():
        size = len(model.cell_vocabulary) if name == "cells" else len(ids)
        attribute = attribute if name == "cells" else number[attribute]
        counts = np.bincount(attribute, minlength=size)
        arrays[f"{name}.rows"] = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        arrays[f"{name}.pattern"] = pattern.astype(np.int32)
        arrays[f"weights.{name}"] = weights
    for name, vocabulary in (("attributes", model.vocabulary.subset(ids)), ("cell_attributes", model.cell_vocabulary)):
        text, offsets = vocabulary.to_arrays()
        arrays[f"{name}.text"], arrays[f"{name}.offsets"] = text, offsets
    return arrays, metadata


def _unpack(metadata: dict[str, Any], arrays: Mapping[str, Any]) -> FlatModel:
    """The model that `_pack` took apart; raises model_file.ModelFileError if the pieces do not fit."""
    try:
        labels = list(metadata["labels"])
        n = len(labels)
        symbols, cuts = arrays["patterns.symbols"].tolist(), arrays["patterns.offsets"].tolist()
        longer = tuple(tuple(symbols[a:b]) for a, b in zip(cuts[:-1], cuts[1:], strict=True))
        vocabulary = Vocabulary.from_arrays(arrays["attributes.text"], arrays["attributes.offsets"])
        cell_vocabulary = Vocabulary.from_arrays(arrays["cell_attributes.text"], arrays["cell_attributes.offsets"])
        total = n + len(longer)
        tables = {part: _table(arrays, part, len(vocabulary), total) for part in metadata["parts"] if part in PARTS}
        cell_table = _table(arrays, "cells", len(cell_vocabulary), total)
        max_length = checks.count("max_length", metadata["max_length"], 1)
        basis = checks.scores("basis", arrays["basis"], ("n", max_length))
        model = FlatModel(
            labels,
            vocabulary,
            tuple((y,) for y in range(n)) + longer,
            bool(metadata["segments"]),
            max_length,
            tables,
            basis,
            list(metadata["basis_names"]),
            cell_vocabulary,
            cell_table,
        )
        names = [name for name, _, _ in model.blocks()]
        weights = np.concatenate([checks.scores("weights", arrays[f"weights.{name}"], ("n",)) for name in names])
        if len(weights) != model.n_weights or not np.isfinite(weights).all():
            raise ValueError(f"{len(weights)} weights for {model.n_weights} features")
        model.weights = weights
        model.automaton.n_states  # noqa: B018  (built now: patterns that are wrong are found here)
        return model
    except (KeyError, ValueError, TypeError, IndexError) as error:
        raise model_file.ModelFileError(f"the model file does not fit together: {error}") from error


def _table(arrays: Mapping[str, Any], name: str, attributes: int, patterns: int) -> Table:
    pattern = np.ascontiguousarray(arrays[f"{name}.pattern"], dtype=np.int32)
    rows = checks.offsets(arrays[f"{name}.rows"], len(pattern), f"{name}.pattern")
    if len(rows) != attributes + 1:
        raise ValueError(f"{name}.rows has {len(rows) - 1} rows for {attributes} attributes")
    checks.integers(f"{name}.pattern", pattern, len(pattern), 0, patterns - 1)
    return rows, pattern
