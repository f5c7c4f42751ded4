"""What learning estimators share: fit, and questions to the lattices of sequences, some at a time.

A kind of model adds how X and y are encoded (`_problem`, `_inputs`, `_held`), the batches of its lattices, and how
configurations become answers. Its model has ``weights`` (W,), ``weighted(weights)`` and ``batch(inputs, n_jobs)``; its
inputs have ``blocks(tokens)``, runs of sequences with their rows.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from scansion import _checks as checks
from scansion import model_file
from scansion._checks import Floats, Ints
from scansion.formats.reading import Reading
from scansion.lattice.base import Lattice
from scansion.models.estimator import Estimator, not_fitted
from scansion.models.levels import Level
from scansion.models.packing import json_value, storable

if TYPE_CHECKING:  # loaded by fit: those who only predict need not wait for it
    from scansion.training.learn import Development, Settings

__all__ = ["Learner", "cut", "seed", "sequence_weights"]

Self = TypeVar("Self")

_TOKENS_AT_ONCE = 100_000


class Learner(Estimator):
    """Fit and predict of all estimators: everything but how labels become targets and configurations answers."""

    _kind: str
    model_: Any
    training_log_: list[dict[str, Any]]
    loss_: float
    message_: str
    n_iter_: int
    reading_: Reading | None = None  # how files become X and y, where the command trained the model

    algorithm: str
    c1: Any
    c2: Any
    max_iterations: int | None
    n_jobs: int | None
    random_state: Any
    verbose: bool
    warm_start: bool
    patience: int

    # ---- what the kinds differ in ------------------------------------------------------------------------------

    def _check(self) -> None:
        """Raise if a parameter of this kind alone is wrong."""

    def _problem(self, X: Any, y: Any, sample_weight: Any = None) -> tuple[Any, Any, Ints]:
        """The model to be learnt with its first weights, the objective, and the sequences that tell something."""
        raise NotImplementedError

    def _strength(self, name: str) -> float | Floats:
        """c1 or c2, checked."""
        from scansion.training.learn import strengths

        return strengths(name, getattr(self, name))

    def _by_weight(self, strength: float | Floats, model: Any) -> float | Floats:
        """A checked c1 or c2 as one number for all weights, or one for each."""
        return strength

    def _inputs(self, X: Any) -> Any:
        """X as the model takes it; what was made here before stays as it is."""
        raise NotImplementedError

    def _held(self, known: Any, inputs: Any) -> Any:
        """What is known, in the form of y."""
        raise NotImplementedError

    def _constrained(self, batch: Any, held: Any, rows: slice) -> Any:
        """The lattices of some rows under what is known of them."""
        raise NotImplementedError

    def _check_possible(self, batch: Any, first: int, name: str) -> None:
        """Raise if nothing is possible for a sequence; first: the number of the first sequence."""

    def _answers(self, batch: Any) -> list[Any]:
        """The best configurations of a batch, by name."""
        raise NotImplementedError

    def _named(self, config: Any) -> Any:
        """A configuration with the labels' names."""
        raise NotImplementedError

    def score(self, X: Any, y: Any) -> float:
        """Quality of the predictions; higher is better."""
        raise NotImplementedError

    def lattices(self, X: Any, constraints: Any = None) -> Any:
        """The lattices of all sequences as one batch."""
        raise NotImplementedError

    def _packed(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The model as arrays and metadata."""
        raise NotImplementedError

    @classmethod
    def _unpacked(cls, stored: model_file.ModelFile) -> Any:
        """The model that `_packed` took apart; ModelFileError if the pieces do not fit."""
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
        from scansion.training.learn import learn
        from scansion.training.progress import Progress

        assert isinstance(self, Learner)
        self._check()
        settings = self._settings()
        if (X_dev is None) != (y_dev is None):
            raise ValueError("X_dev and y_dev must be given together")
        model, objective, informed = self._problem(X, y, sample_weight)
        settings.c1, settings.c2 = self._by_weight(settings.c1, model), self._by_weight(settings.c2, model)
        development = self._development(model, X_dev, y_dev)
        progress = Progress(self.verbose, settings.max_iterations)
        learnt = learn(objective, model.weights, informed, settings, development, progress)
        progress.close(f"{learnt.message} (loss {learnt.loss:.6g})")
        self._finish(model.weighted(learnt.weights), learnt.log, learnt.loss, learnt.message)
        return self

    def _finish(self, model: Any, log: list[dict[str, Any]], loss: float, message: str) -> None:
        self.model_ = model
        self.training_log_ = log
        self.loss_ = loss
        self.message_ = message
        self.n_iter_ = len(log)

    def _settings(self) -> Settings:
        from scansion.training.learn import Settings

        given = {k: v for k, v in self.get_params().items() if k in Settings.__dataclass_fields__}
        given["n_jobs"] = checks.jobs(self.n_jobs)
        if self.max_iterations is not None:
            # 0 means no limit, as in CRFsuite
            given["max_iterations"] = checks.count("max_iterations", self.max_iterations, 0) or None
        given["c1"], given["c2"] = self._strength("c1"), self._strength("c2")
        checks.count("patience", self.patience, 1)
        return Settings(**given, seed=seed(self.random_state))

    def _development(self, model: Any, X_dev: Any, y_dev: Any) -> Development:
        from scansion.training.learn import Development

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
    def _model(self) -> Any:
        try:
            return self.model_
        except AttributeError:
            raise not_fitted(f"this {type(self).__name__} is not fitted yet: call fit first") from None

    def _tokens_at_once(self) -> int:
        """Tokens whose lattices are made together."""
        return _TOKENS_AT_ONCE

    def _ask(self, X: Any, question: Callable[[Any], list[Any]], known: Any = None) -> list[Any]:
        """The answers to a question put to the lattices of X, some sequences at a time.

        known: what they are constrained to, in the form of y.
        """
        model, n_jobs = self._model, checks.jobs(self.n_jobs)
        inputs = self._inputs(X)
        held = None if known is None else self._held(known, inputs)
        answers: list[Any] = []
        first = 0
        for rows, part in inputs.blocks(self._tokens_at_once()):
            batch = model.batch(part, n_jobs)
            if held is not None:
                batch = self._constrained(batch, held, rows)
            try:
                answers.extend(question(batch))
            except ValueError:
                self._check_possible(batch, first, "constraints" if known is not None else "X")
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
        rng = checks.generator(chosen if isinstance(chosen, np.random.Generator) or chosen is None else seed(chosen))
        return self._ask(X, lambda batch: [[self._named(c) for c in drawn] for drawn in batch.sample(n, rng)])

    def lattice(self, x: Any) -> Lattice[Any, Any]:
        """The lattice of one sequence; see `lattices`."""
        lattice: Lattice[Any, Any] = self.lattices([x])[0]
        return lattice

    # ---- levels ------------------------------------------------------------------------------------------------

    @property
    def levels_(self) -> list[Level]:
        """The levels of the labels, the top level first; flat models have one."""
        raise NotImplementedError

    def by_level(self, told: Any) -> list[Any]:
        """What the estimator tells of all levels, one entry for each of `levels_`.

        Parameters
        ----------
        told : an answer of `predict` or `predict_marginals`, or `classes_`, `strongest_features()`, `length_counts_`
        """
        return [told]

    def level_marginals(self, X: Any, constraints: Any = None) -> list[Floats]:
        """Label probabilities (N, L) of all tokens, one array for each of `levels_`."""

        def tables(batch: Any) -> list[Any]:
            found = batch.marginals().labels
            return [[found] if isinstance(found, np.ndarray) else found[1:]]  # without the root

        blocks = [[np.zeros((0, len(level.labels))) for level in self.levels_], *self._ask(X, tables, constraints)]
        return [np.concatenate(parts) for parts in zip(*blocks, strict=True)]

    # ---- files -------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file: safetensors with JSON metadata (docs/model-file.md), without weights of 0.

        Parameters that JSON does not hold, functions above all, are left out; see `scansion.load`.
        """
        arrays, metadata = self._packed()
        metadata["parameters"] = {k: json_value(v) for k, v in self.get_params().items() if storable(v)}
        metadata["loss"] = self.loss_ if math.isfinite(self.loss_) else None
        metadata["message"] = self.message_
        if self.reading_ is not None:
            metadata["reading"] = self.reading_.to_json()
        model_file.write(path, self._kind, metadata, arrays)

    @classmethod
    def _from_file(cls: type[Self], stored: model_file.ModelFile) -> Self:
        assert issubclass(cls, Learner)
        model = cls._unpacked(stored)
        parameters, loss, message = (stored.metadata.get(name) for name in ("parameters", "loss", "message"))
        valid = cls._parameter_names()
        if not isinstance(parameters, dict) or not set(parameters) <= set(valid):
            raise model_file.ModelFileError(f"the model file has parameters that {cls.__name__} does not have")
        estimator = cls(**parameters)
        value = loss if isinstance(loss, float) else math.nan
        estimator._finish(model, [], value, str(message))
        estimator.reading_ = _stored_reading(stored)
        return estimator


def _stored_reading(stored: model_file.ModelFile) -> Reading | None:
    """How files are to be read for a model, if its file tells."""
    told = stored.metadata.get("reading")
    if told is None:
        return None
    try:
        return Reading.from_json(told)
    except ValueError as error:
        raise model_file.ModelFileError(f"the model file does not fit together: {error}. Save it again.") from error


def sequence_weights(sample_weight: Any, n: int) -> Floats | None:
    """`sample_weight` as (n,) numbers >= 0, or None."""
    if sample_weight is None:
        return None
    weight = checks.scores("sample_weight", sample_weight, (n,))
    if (weight < 0).any():
        b = int(np.argmax(weight < 0))
        raise ValueError(f"sample_weight[{b}] = {weight[b]} must not be negative")
    return weight


def seed(random_state: Any) -> int:
    """A seed from scikit-learn's ways to give one."""
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    return 0 if random_state is None else checks.count("random_state", random_state, 0)


def cut(rows: list[Any], offsets: Any) -> list[list[Any]]:
    """Rows of all sequences as one list for each."""
    cuts = offsets.tolist()
    return [rows[a:b] for a, b in zip(cuts[:-1], cuts[1:], strict=True)]
