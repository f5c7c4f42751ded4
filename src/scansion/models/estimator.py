"""What all estimators share: fit, questions to the lattices of sequences, files, scikit-learn's rules.

A kind of model adds its parameters and their checked form (`_selection`, see `scansion.models.select_flat` and
`select_nested`: how y is read, which features there are), how configurations become answers, and its own attributes.
scikit-learn is not imported here: its conventions are kept (no logic in ``__init__``, fitted attributes end in ``_``)
and its tags and exceptions are used when it is there already.
"""

from __future__ import annotations

import math
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TypeVar

import numpy as np

from scansion import _checks as checks
from scansion import model_file
from scansion._checks import Bools, Floats, Ints
from scansion.data import Dataset, Knowledge, Vocabulary, encode
from scansion.data.dataset import cut
from scansion.data.partitions import Partitions
from scansion.features.spans import readable, span_attributes
from scansion.formats.reading import Reading
from scansion.models.answers import Answers
from scansion.models.inputs import INTERCEPT, Inputs, columns_of, with_intercept
from scansion.models.packing import json_value, pack, storable
from scansion.models.parameters import CheckedSettings, Settings, Strength, seed, strengths
from scansion.models.weights import Feature, Level, Model, carry_over
from scansion.rules.compile import RuleSet, given_rules
from scansion.rules.expressions import Rule, parse

if TYPE_CHECKING:  # loaded by fit: those who only predict need not wait for it
    from scansion.display import Page
    from scansion.lattice.base import Lattice
    from scansion.training.coordinates import Coordinates
    from scansion.training.learn import Development
    from scansion.training.objective import Objective
    from scansion.training.penalty import Penalty

__all__ = ["Estimator", "NotFittedError", "Problem", "cut", "not_fitted"]

Self = TypeVar("Self")

_TOKENS_AT_ONCE = 100_000


class NotFittedError(ValueError, AttributeError):
    """Raised when a question needs a fitted estimator; scikit-learn's class of this name catches it as well."""

    def __reduce__(self) -> tuple[Any, ...]:
        return not_fitted, (str(self),)


def not_fitted(message: str) -> NotFittedError:
    """The error, of a class that is scikit-learn's too if that was imported."""
    theirs = sys.modules.get("sklearn.exceptions")
    if theirs is None:
        return NotFittedError(message)
    both: type[NotFittedError] = type("NotFittedError", (NotFittedError, theirs.NotFittedError), {})
    return both(message)


class Problem(NamedTuple):
    """What learning starts from: the model with its first weights, and the objective on the training data."""

    model: Any
    objective: Objective


class Estimator(Settings):
    """Fit, questions and files of all estimators."""

    _kind: ClassVar[str]
    model_: Any
    training_log_: list[dict[str, Any]]
    loss_: float
    message_: str
    n_iter_: int
    n_features_in_: int | None = None  # columns of the arrays in training; None: these were no arrays
    reading_: Reading | None = None  # how files become X and y, where the command trained the model

    # ---- what the kinds differ in ------------------------------------------------------------------------------

    def _selection(self) -> Any:
        """The parameters that choose labels and features, checked."""
        raise NotImplementedError

    def _strength(self, name: str) -> Strength:
        """c1 or c2, checked."""
        return strengths(name, self._given(name))

    def _named(self, config: Any) -> Any:
        """A configuration with the labels' names."""
        raise NotImplementedError

    def _named_draws(self, drawn: Any) -> list[Any]:
        """The same of several, as `sample` of a batch gives them for a sequence."""
        return [self._named(config) for config in drawn]

    def _named_kbest(self, batch: Any, k: int) -> list[list[tuple[Any, float]]]:
        """The k best of each sequence of a batch, by name, with their scores."""
        return [[(self._named(config), score) for config, score in found] for found in batch.kbest(k)]

    def _answers(self, batch: Any) -> list[Any]:
        """The best configurations of a batch, by name."""
        return [self._named(config) for config in batch.viterbi()[0]]

    def _accurate(self, batch: Any) -> list[Any]:
        """The configurations of a batch with the most positions expected to be right, by name."""
        return [self._named(config) for config in batch.most_accurate()[0]]

    def score(self, X: Any, y: Any) -> float:
        """Quality of the predictions; higher is better."""
        raise NotImplementedError

    @classmethod
    def _unpacked(cls, stored: model_file.ModelFile) -> Model:
        """The model that a file holds; ModelFileError if the pieces do not fit."""
        raise NotImplementedError

    # ---- fit ---------------------------------------------------------------------------------------------------

    def fit(self: Self, X: Any, y: Any, X_dev: Any = None, y_dev: Any = None, *, sample_weight: Any = None) -> Self:
        """Learn the weights.

        Parameters
        ----------
        X : iterable of sequences, or Dataset
            A sequence is a list of tokens (dicts, or lists or sets of strings: python-crfsuite's item rules), a 2-D
            array, a SciPy sparse matrix or a DataFrame (rows are tokens).
        y : iterable
            One target per sequence. An unknown label is None, one of several a set; None in place of a target: nothing
            is known of the sequence, and it contributes nothing.
        X_dev, y_dev : optional
            Development data: `score` on them is logged at each iteration; training stops when it has not risen for
            `patience` iterations, and the best weights are kept.
        sample_weight : (B,), optional
            Weight of each sequence, >= 0.

        Notes
        -----
        The first Ctrl-C ends training, and the model has the weights of the last iteration.
        """
        from scansion.training.learn import learn
        from scansion.training.progress import Progress

        assert isinstance(self, Estimator)
        settings = self.settings()
        if (X_dev is None) != (y_dev is None):
            raise ValueError("X_dev and y_dev must be given together")
        least = self._given("min_freq")
        if self._given("all_possible_states") and np.max(least) > 0:
            warnings.warn(
                f"min_freq = {least} leaves out features that do not occur: all_possible_states has no effect",
                stacklevel=2,
            )
        columns = columns_of(X)
        model, objective = self.problem(X, y, sample_weight)
        in_parts = isinstance(X, Partitions)
        columns = X.columns if isinstance(X, Partitions) else columns
        n = 0 if in_parts else len(objective.inputs)  # type: ignore[attr-defined]
        if self.expectations is not None:
            from scansion.models.supervision import supervised

            objective = supervised(self, model, objective, settings.n_jobs)
        centre = self._centre(model, objective, settings.n_jobs)
        start = model.weights
        if "cv" in (_word(self.c1), _word(self.c2)):
            start = self._choose_strength(model, objective, _sequence_weights(sample_weight, n), settings)
        penalty, coordinates = self._penalty(model, settings, objective, centre)
        if not start.any() and not in_parts:
            start = self._start(model, objective, penalty, settings.n_jobs)
        progress = Progress(self.verbose, settings.max_iterations)

        def learnt_from(weights: Floats) -> Any:
            development = self._development(model, X_dev, y_dev)
            return learn(objective, weights, settings, penalty, coordinates, development, progress)

        learnt = learnt_from(start)
        while self.train_with_rules and objective.take(learnt.weights):  # type: ignore[attr-defined]
            learnt = learnt_from(learnt.weights)
        if self.train_with_rules:
            learnt.message += objective.remark()  # type: ignore[attr-defined]
        progress.close(f"{learnt.message} (loss {learnt.loss:.6g})")
        self._finish(model.weighted(learnt.weights), learnt.log, learnt.loss, learnt.message)
        self.n_features_in_ = columns
        return self

    @staticmethod
    def _penalty(
        model: Any, settings: CheckedSettings, objective: Any, centre: Floats | None = None
    ) -> tuple[Penalty, Coordinates | None]:
        """What large weights cost, and the coordinates for the optimiser: in units of the features."""
        from scansion.models.penalties import by_weight, walk
        from scansion.models.starts import alike
        from scansion.models.units import moments, units
        from scansion.training.penalty import Penalty
        from scansion.training.shards import Sharded

        seen = objective.moments if isinstance(objective, Sharded) else moments(model, objective.inputs)
        coordinates, factor = units(model, seen)
        c1, c2 = by_weight(model, settings.c1, 0.0), by_weight(model, settings.c2, 1.0)
        c2, steps = walk(model, settings.c2, c2)
        if factor is not None:
            c1, c2 = c1 * factor, c2 * factor**2
        if centre is not None:  # scores are believed as much as the tokens are many, or they are soon learnt by heart
            c2 = np.broadcast_to(c2, model.n_weights) * (
                1.0 + 0.25 * objective.inputs.data.n_tokens * alike(model, centre)
            )
        return Penalty(c1, c2, steps, centre), coordinates

    def _choose_strength(self, model: Any, objective: Any, weight: Floats | None, settings: CheckedSettings) -> Floats:
        """Set c1 or c2 of the settings to what serves best for sequences that are left out; weights to start from."""
        from scansion.models.choosing import choose

        names = [name for name in ("c1", "c2") if _word(getattr(self, name)) == "cv"]
        if len(names) > 1 or self.expectations is not None or self.train_with_rules:
            raise ValueError("'cv' is for c1 or for c2, and goes neither with expectations nor with train_with_rules")
        chosen, self.cv_results_, start = choose(self, names[0], model, objective, weight, settings)
        setattr(settings, names[0], chosen)
        return start

    def _centre(self, model: Any, objective: Any, threads: int) -> Floats | None:
        """(W,) the weights that columns have as scores of labels, from which the penalty is measured."""
        if self.scores_of is None:
            return None
        from scansion.models.starts import identity, scaled, sharpness

        total, scratch = np.zeros(model.n_weights), np.empty(model.n_weights)
        for k, told in enumerate(self.scores_by_level()):
            if told is not None:
                plain = identity(model, k, told, objective.inputs)
                total, _ = scaled((total, plain), sharpness, lambda w: objective.log_loss(w, scratch, threads))
        return total

    def _start(self, model: Any, objective: Any, penalty: Penalty, threads: int) -> Floats:
        """(W,) the weights that learning starts from."""
        from scansion.training.learn import log_objective

        start: Floats = model.weights
        if penalty.centre is not None:
            start = penalty.centre
        known = objective.known
        aligned = None
        if known.trajectories is not None:
            from scansion.models.trajectories import evenly_aligned

            aligned = evenly_aligned(known)  # where nothing else is known, all labels are alike at weights of 0
        if self.init == "counts" or aligned is not None:
            from scansion.models.starts import counted

            function = log_objective(objective, penalty, threads)

            def loss(w: Floats) -> float:
                return function(w)[0] + float(np.sum(penalty.c1 * np.abs(w)))

            counts, self.start_loss_ = counted(model, objective.inputs, known if aligned is None else aligned, loss)
            if aligned is not None or self.start_loss_ < loss(start):
                start = counts
        return start

    def scores_by_level(self) -> list[Any]:
        """`scores_of` of each level."""
        return [self.scores_of]

    def settings(self) -> CheckedSettings:
        """The parameters of learning, checked; ValueError says what is wrong with one, also of the others."""
        self._selection()
        if self.rules is not None:
            given_rules(self.rules)
        if self.expectations is not None:
            from scansion.models.supervision import check

            for told in self.expectations_by_level([None]):
                check(told)
        given = [1.0 if _word(getattr(self, name)) == "cv" else self._strength(name) for name in ("c1", "c2")]
        return self.checked(*given)

    def problem(self, X: Any, y: Any, sample_weight: Any = None) -> Problem:
        """From data to what an optimiser takes: encode X and y, choose the features, carry old weights over."""
        from scansion.models.units import numeric

        if isinstance(X, Partitions):
            from scansion.models import sharded

            return Problem(*sharded.problem(self, X, y, sample_weight))
        selection = self._selection()
        old = self._old(selection)
        before = self._told_labels() if old is None else [level.labels for level in old.levels]
        X = readable(X) if any(selection.functions) else X
        X = list(X) if hasattr(X, "__next__") else X  # it is looked at more than once
        data = encode(X, None if old is None else old.vocabulary.copy())
        if len(data) == 0:
            raise ValueError("X is empty: there is nothing to learn from")
        vocabulary, columns, intercept = self._columns(_has_arrays(X), lambda: numeric(data), data.vocabulary)
        data = with_intercept(data, vocabulary) if intercept else data
        weight = _sequence_weights(sample_weight, len(data))
        known, labels = selection.encode(y, data.lengths, before, selection.bounds(), extend=True)
        self._check_labels(labels[-1])
        levels = selection.levels(labels, known, old)
        inputs = Inputs(data, self._spans(X, selection, levels, frozen=False), columns)
        model = selection.select(inputs, known, levels, data.vocabulary)
        if old is not None:
            carry_over(old, model)
        else:
            model.warn_of_symmetry(known)
        objective = model.objective(inputs, known, weight)
        model.check_known(objective, known)
        self._check_examples(model, known)
        self._check_partial(model, inputs, known)
        if self.train_with_rules:
            objective = self._objective_under_rules(model, inputs, known, weight)
        return Problem(model, self._tuned(model, objective))

    def _check_examples(self, model: Any, known: Knowledge) -> None:
        """Warn where labels have no example."""

    def _told_labels(self) -> list[list[Any]] | None:
        """Labels of each level that y may never show."""
        return None

    def _check_labels(self, labels: Sequence[Any]) -> None:
        """Warn of labels that are not what they seem to be."""

    def _old(self, selection: Any) -> Any:
        """The model whose weights are carried over, or None."""
        old: Any = getattr(self, "model_", None) if self.warm_start else None
        if old is not None and [level.name for level in old.levels] != list(selection.names):
            raise ValueError(f"warm_start needs the levels of the last fit, {[level.name for level in old.levels]}")
        return old

    def _plain(self) -> Estimator:
        """The parameters alone, for those who work on a part of the data."""
        return type(self)(**self.get_params())

    def _tuned(self, model: Any, objective: Any) -> Any:
        """The objective as the parameters want it evaluated."""
        return objective

    def _columns(
        self, arrays: bool, numeric: Callable[[], Bools], vocabulary: Vocabulary
    ) -> tuple[Vocabulary, Ints | None, bool]:
        """The vocabulary, the attributes to standardise, and whether tokens get an intercept, which is numbered then.

        arrays: whether sequences are arrays; numeric: gives (A,) the attributes with other values than 0 and 1.
        """
        columns = None
        if self.standardize or (self.standardize is None and arrays):
            found = np.flatnonzero(numeric())
            columns = found if len(found) else None
        known = vocabulary.index(INTERCEPT) >= 0
        told = columns is not None if self.intercept is None else self.intercept
        wanted = bool(known or told or self.expectations is not None)
        if wanted and not known:
            vocabulary = vocabulary.copy()
            encode([[[INTERCEPT]]], vocabulary)  # numbers it
        return vocabulary, columns, wanted

    def _objective_under_rules(self, model: Any, inputs: Inputs, known: Knowledge, weight: Floats | None) -> Any:
        from scansion.rules.training import RestrictedObjective

        rules = () if self.rules is None else tuple(given_rules(self.rules))
        if not rules:
            raise ValueError("train_with_rules needs rules")
        if self._kind == "hierarchical":
            from scansion.rules.nested_training import TiedObjective

            return TiedObjective(model, inputs, known, weight, model.rule_set(rules))
        return RestrictedObjective(model, inputs, known, weight, model.rule_set(rules))

    def _check_partial(self, model: Any, inputs: Inputs, known: Knowledge) -> None:
        """Raise if the model excludes what is known of a sequence in part."""
        some = np.flatnonzero(known.known & ~known.complete)
        if not model.bounded or not some.size:
            return
        held, first = model.held(known.take(some)), 0
        for rows, part in inputs.take(some).blocks(self._tokens_at_once(model)):
            batch = model.batch(part, checks.jobs(self.n_jobs))
            _check_possible(model, batch.under(held.rows(rows, batch.offsets)), some[first:], "y")
            first += len(batch)

    @staticmethod
    def _spans(X: Any, selection: Any, levels: list[Level], frozen: bool) -> tuple[Any, ...]:
        """Attributes of spans, by level."""
        found = []
        for functions, level in zip(selection.functions, levels, strict=True):
            used = level.max_length is not None and (len(level.span_vocabulary) > 0 if frozen else bool(functions))
            if frozen and used and not functions:
                where = f" of level {level.name!r}" if len(levels) > 1 else ""
                raise ValueError(
                    f"the model was trained with segment_features{where}: set this parameter to the same functions"
                )
            longest = level.max_length or 1
            found.append(span_attributes(X, functions, level.span_vocabulary, longest, frozen) if used else None)
        return tuple(found)

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

        return Development(score, self._given("patience"))

    def _finish(self, model: Any, log: list[dict[str, Any]], loss: float, message: str) -> None:
        self.model_ = model
        self.training_log_ = log
        self.loss_ = loss
        self.message_ = message
        self.n_iter_ = len(log)

    # ---- questions ---------------------------------------------------------------------------------------------

    @property
    def _model(self) -> Any:
        try:
            return self.model_
        except AttributeError:
            raise not_fitted(f"this {type(self).__name__} is not fitted yet: call fit first") from None

    @property
    def levels_(self) -> list[Level]:
        """The levels, the top level first, each with `name`, `labels` and `max_length`; CRF and SemiCRF have one."""
        return list(self._model.levels)

    @property
    def segments_(self) -> bool:
        """Whether answers are segments, level by level, and not labels, one a token."""
        return bool(self._model.segments)

    def by_level(self, told: Any) -> list[Any]:
        """What the estimator tells of all levels, one entry for each of `levels_`.

        Parameters
        ----------
        told : an answer of `predict` or `predict_marginals`, or `classes_`, `strongest_features()`, `length_counts_`
        """
        return [told]

    def expectations_by_level(self, names: list[Any]) -> list[Any]:
        """`expectations` of each level."""
        return [self.expectations]

    def _inputs(self, X: Any) -> Inputs:
        """X as the model takes it; what was made here before stays as it is."""
        if isinstance(X, Inputs):
            return X
        model, selection = self._model, self._selection()
        columns, wanted = columns_of(X) if self.n_features_in_ is not None else None, self.n_features_in_
        if columns is not None and columns != wanted:
            raise ValueError(f"X has {columns} columns, but the model was trained on arrays of {wanted}")
        X = readable(X) if any(selection.functions) else X
        data = encode(X, model.vocabulary, frozen=True)
        if model.vocabulary.index(INTERCEPT) >= 0:
            data = with_intercept(data, model.vocabulary)
        return Inputs(data, self._spans(X, selection, model.levels, frozen=True))

    def _known(self, y: Any, inputs: Inputs, extend: bool = False) -> tuple[Knowledge, list[list[Any]]]:
        """What y says, and all labels. extend: unknown labels and segments that are too long are no errors."""
        if isinstance(y, Knowledge):
            return y, [level.labels for level in self._model.levels]
        levels = self._model.levels
        bounds = [level.max_length if level.max_length == 1 or not extend else None for level in levels]
        labels = [level.labels for level in levels]
        found: tuple[Knowledge, list[list[Any]]] = self._selection().encode(
            y, inputs.data.lengths, labels, bounds, extend=extend
        )
        return found

    def _held(self, constraints: Any, inputs: Inputs) -> Knowledge:
        """What is known, in the form of y, as the lattices hold it."""
        known, _ = self._known(constraints, inputs)
        if known.trajectories is not None:
            b = int(np.argmax(np.diff(known.trajectories[0]) > 0))
            raise ValueError(f"constraints[{b}] is a Trajectory: ask lattice(x).compressed().lattice(trajectory)")
        held: Knowledge = self._model.held(known)
        return held

    @staticmethod
    def _tokens_at_once(model: Any) -> int:
        """Tokens whose lattices are made together."""
        return int(min(_TOKENS_AT_ONCE, model.tokens_at_once()))

    def _rule_set(self, rules: Any) -> RuleSet | None:
        """Rules compiled for the model: those given, the parameter `rules` if None; None: there are none."""
        chosen = self.rules if rules is None else rules
        if chosen is None or isinstance(chosen, RuleSet):
            return chosen
        given = tuple(given_rules(chosen))
        if not given:
            return None
        compiled: RuleSet = self._model.rule_set(given)
        return compiled

    def ask(
        self, X: Any, question: Callable[[Any], list[Any]], constraints: Any = None, rules: Any = None
    ) -> list[Any]:
        """The answers to a question put to the lattices of X, some sequences at a time.

        constraints: what is known of the sequences, in the form of y; rules: in place of the parameter `rules`.
        """
        compiled = self._rule_set(rules)
        model, n_jobs = self._model, checks.jobs(self.n_jobs)
        inputs = self._inputs(X)
        held = None if constraints is None else self._held(constraints, inputs)
        answers: list[Any] = []
        first = 0
        for at, part in inputs.blocks(self._tokens_at_once(model)):
            batch = model.batch(part, n_jobs)
            if held is not None:
                batch = batch.under(held.rows(at, batch.offsets))
            if compiled is not None:
                batch = batch.restrict(compiled)
            try:
                answers.extend(question(batch))
                if compiled is not None:
                    _tell_left_out(batch, compiled)
            except ValueError:
                numbers = np.arange(first, first + len(batch))
                _check_possible(model, batch, numbers, "constraints" if constraints is not None else "X")
                raise
            first += len(batch)
        return answers

    def predict(
        self, X: Any, constraints: Any = None, rules: Any = None, decode: Literal["viterbi", "marginal"] = "viterbi"
    ) -> list[Any]:
        """The best configuration of each sequence.

        Parameters
        ----------
        X : iterable of sequences
            Tokens as dicts, or lists or sets of strings, 2-D arrays or sparse matrices, in the form given to `fit`.
            Attributes that did not occur in training are ignored.
        constraints : iterable, optional
            What is known of each sequence, in the form of y in fit: the answer agrees with it.
        rules : Rule, text, or sequence of them, optional
            What the answer must keep, in place of the parameter `rules` (an empty list: nothing); see `scansion.rules`.
        decode : {"viterbi", "marginal"}
            "viterbi": the most probable configuration. "marginal": the one with the most positions expected to be
            right, over all levels; it is a possible one too. Take it where every position counts by itself, as in
            accuracy over tokens or frames, and "viterbi" where segments or whole sequences must be right.
        """
        if not checks.among(decode, ("viterbi", "marginal")):
            raise ValueError(f"decode must be 'viterbi' or 'marginal', got {decode!r}")
        question = self._answers if decode == "viterbi" else self._accurate
        return Answers(self.ask(X, question, constraints, rules))

    def predict_single(self, x: Any, rules: Any = None) -> Any:
        """The most probable configuration of one sequence."""
        return self.predict([x], rules=rules)[0]

    def predict_kbest(
        self, X: Any, k: int, constraints: Any = None, rules: Any = None
    ) -> list[list[tuple[Any, float]]]:
        """The k most probable configurations of each sequence with their log probabilities, best first."""

        def best(batch: Any) -> list[list[tuple[Any, float]]]:
            return [
                [(config, score - log_z) for config, score in found]
                for log_z, found in zip(batch.log_partition().tolist(), self._named_kbest(batch, k), strict=True)
            ]

        return self.ask(X, best, constraints, rules)

    def level_marginals(self, X: Any, constraints: Any = None, rules: Any = None) -> list[Floats]:
        """Label probabilities (N, L) of all tokens, one array for each of `levels_`."""

        def tables(batch: Any) -> list[Any]:
            found = batch.marginals().labels
            return [[found] if isinstance(found, np.ndarray) else found[1:]]  # without the root

        blocks = [[np.zeros((0, level.size)) for level in self.levels_], *self.ask(X, tables, constraints, rules)]
        return [np.concatenate(parts) for parts in zip(*blocks, strict=True)]

    def sample(self, X: Any, n: int = 1, random_state: Any = None, rules: Any = None) -> list[list[Any]]:
        """Draw n configurations of each sequence from the model's distribution.

        Parameters
        ----------
        X : iterable of sequences
            In the form given to `fit`.
        n : int
        random_state : int, numpy Generator or RandomState, optional
            The parameter `random_state` of the estimator unless given; None: other draws at each call.
        rules : Rule, text, or sequence of them, optional
            What the samples must keep, in place of the parameter `rules` (an empty list: nothing).
        """
        chosen = self.random_state if random_state is None else random_state
        rng = checks.generator(chosen if isinstance(chosen, np.random.Generator) or chosen is None else seed(chosen))

        def draw(batch: Any) -> list[list[Any]]:
            return [self._named_draws(drawn) for drawn in batch.sample(n, rng)]

        return self.ask(X, draw, None, rules)

    def log_likelihood(self, X: Any, y: Any, rules: Any = None) -> float:
        """Log probability of what y says, summed over the sequences; what is unknown is summed out.

        With rules, that among what keeps them; y must keep them.
        """

        def differences(batch: Any) -> list[float]:
            free = batch.under(Knowledge.nothing(batch.offsets, len(batch._core.known.levels)))
            return [float((batch.log_partition() - free.log_partition()).sum())]

        return float(sum(self.ask(X, differences, y, rules)))

    def lattices(self, X: Any, constraints: Any = None, rules: Any = None) -> Any:
        """The lattices of all sequences as one batch: arrays in place of dicts and lists.

        Labels are indices of ``classes_``. Of `CRF` and `SemiCRF`, patterns are those of ``classes_`` followed by
        ``patterns_`` (and by forbidden ones); a first-order CRF's lattices have unary and transition scores, others a
        score for each position and pattern. Of `HierarchicalCRF`, level 0 is the root, with one state; level k + 1 is
        the k-th of `levels`.
        """
        inputs = self._inputs(X)
        model = self._model
        batch = model.lattices(inputs, checks.jobs(self.n_jobs))
        if constraints is not None:
            batch = batch.under(self._held(constraints, inputs))
            _check_possible(model, batch, np.arange(len(batch)), "constraints")
        compiled = self._rule_set(rules)
        return batch if compiled is None else batch.restrict(compiled)

    def lattice(self, x: Any, rules: Any = None) -> Lattice[Any, Any]:
        """The lattice of one sequence; see `lattices`."""
        lattice: Lattice[Any, Any] = self.lattices([x], rules=rules)[0]
        return lattice

    def broken_rules(self, y: Any, rules: Any = None) -> list[list[Rule]]:
        """The rules that answers (or complete targets) break, for each sequence; rules as in `predict`."""
        compiled = self._rule_set(rules)
        if compiled is None:
            return [[] for _ in y]
        numbers = [{label: i for i, label in enumerate(level.labels)} for level in self.levels_]

        def levels(answer: Any) -> list[Any]:
            if self.segments_:
                return self.by_level(answer)
            return [[(t, t + 1, label) for t, label in enumerate(answer)]]

        # of nested models, level 0 is the root
        return [compiled.broken_by_levels(levels(answer), numbers, self._kind == "hierarchical") for answer in y]

    # ---- what was learnt ---------------------------------------------------------------------------------------

    @property
    def attributes_(self) -> list[str]:
        """Names of the token attributes that have a feature with a weight other than 0, sorted."""
        names = {row for block, row, _, _ in self._model.named_features() if block.tokens}
        return sorted(names - {INTERCEPT})

    @property
    def size_(self) -> int:
        """Number of weights other than 0."""
        return int(np.count_nonzero(self._model.weights))

    def level_features(self, single: bool = True) -> Iterator[Feature]:
        """The features with a weight other than 0, by the numbers of their levels; single: also those of one label."""
        model = self._model
        for block, row, column, w in model.named_features():
            if single or len(column) > 1:
                attribute = None if block.always else model.feature_name(block.part, row)
                parent, labels = model.clique(block, column)
                yield Feature(block.level, parent, labels, attribute, w)

    def _strongest(self, level: int, top: int) -> dict[Any, tuple[list[tuple[str, float]], list[tuple[str, float]]]]:
        """Label -> its `top` strongest attributes for it, and against it, as (name, weight), strongest first."""
        model = self._model
        found = model.strongest_features(level, checks.count("top", top, 0))

        def named(ranked: Any) -> list[tuple[str, float]]:
            return [(model.feature_name(part, name), w) for part, name, w in ranked]

        labels = model.levels[level].labels
        return {label: (named(for_it), named(against)) for label, (for_it, against) in zip(labels, found, strict=True)}

    def report(self, path: str | os.PathLike[str] | None = None, top: int = 20) -> Page:
        """What was learnt, as one self-contained page: the strongest features of each label, transitions, lengths.

        Parameters
        ----------
        path : str or path, optional
            File to write the page to.
        top : int
            Features of each label, for it and against it, to show.

        Returns
        -------
        scansion.display.Page
            Shown by notebooks; ``.save(path)`` writes it, ``.html`` is the document.
        """
        from scansion.display import report

        page = report(self, top)
        if path is not None:
            page.save(path)
        return page

    def _repr_html_(self) -> str | None:
        """A summary for notebooks with the report folded; nothing before fit, where the plain form serves."""
        if not self.__sklearn_is_fitted__():
            return None
        from scansion.display.notebook import estimator_html

        return estimator_html(self)

    # ---- files -------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str], format: Literal["scansion", "crfsuite"] = "scansion") -> None:
        """Write the model to a file, without weights of 0.

        Parameters
        ----------
        path : str or path
        format : {"scansion", "crfsuite"}
            "scansion": safetensors with JSON metadata (docs/model-file.md); parameters that JSON does not hold,
            functions above all, are left out; see `scansion.load`. "crfsuite": a model that CRFsuite and
            python-crfsuite read, of labels and features alone; ValueError unless the model is a `CRF` of first order.
        """
        if not checks.among(format, ("scansion", "crfsuite")):
            raise ValueError(f"format must be 'scansion' or 'crfsuite', got {format!r}")
        if format == "crfsuite":
            from scansion.models.foreign import crfsuite

            if self.rules is not None:
                raise ValueError("CRFsuite's files hold no rules: set rules=None to save the model without them")
            crfsuite.write(self._model, path)
            return
        arrays, metadata = pack(self._model)
        metadata["parameters"] = {k: json_value(v) for k, v in self.get_params().items() if storable(v)}
        metadata["loss"] = self.loss_ if math.isfinite(self.loss_) else None
        metadata["message"] = self.message_
        if self.n_features_in_ is not None:
            metadata["columns"] = self.n_features_in_
        if self.reading_ is not None:
            metadata["reading"] = self.reading_.to_json()
        model_file.write(path, self._kind, metadata, arrays)

    @classmethod
    def _from_file(cls: type[Self], stored: model_file.ModelFile) -> Self:
        assert issubclass(cls, Estimator)
        model = cls._unpacked(stored)
        parameters, loss, message = (stored.metadata.get(name) for name in ("parameters", "loss", "message"))
        valid = cls._parameter_names()
        if not isinstance(parameters, dict) or not set(parameters) <= set(valid):
            raise model_file.ModelFileError(f"the model file has parameters that {cls.__name__} does not have")
        estimator = cls(**parameters | _stored_rules(parameters))
        value = loss if isinstance(loss, float) else math.nan
        estimator._finish(model, [], value, str(message))
        estimator.reading_ = _stored_reading(stored)
        columns = stored.metadata.get("columns")
        if columns is not None and (type(columns) is not int or columns < 0):
            raise model_file.ModelFileError(f"the model file says {columns!r} columns, which is no number of them")
        estimator.n_features_in_ = columns
        return estimator

    # ---- scikit-learn ------------------------------------------------------------------------------------------

    def __sklearn_tags__(self) -> Any:
        """Tags for scikit-learn: no estimator type, ragged lists in, targets needed."""
        from sklearn.utils import InputTags, Tags, TargetTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=True, one_d_labels=False, two_d_labels=False),
            transformer_tags=None,
            classifier_tags=None,
            regressor_tags=None,
            input_tags=InputTags(two_d_array=False, dict=True, string=True),
            non_deterministic=False,
        )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")


def _word(value: Any) -> str:
    """A parameter that is given by a word; else nothing."""
    return value if isinstance(value, str) else ""


def _tell_left_out(batch: Any, rules: RuleSet) -> None:
    """Warn if sums left out more of the rules than they should."""
    found = batch._core.left_out_so_far
    if found is not None and (found > rules.tolerance).any():
        warnings.warn(
            f"{int((found > rules.tolerance).sum())} sequences break rules that sums had to leave out, with a "
            f"probability of up to {found.max():.2g}: probabilities are off by at most twice that",
            RuntimeWarning,
            stacklevel=4,
        )


def _has_arrays(X: Any) -> bool:
    """Whether sequences are given as arrays of numbers, or sparse ones."""
    if isinstance(X, Dataset):
        return False
    return any((isinstance(x, np.ndarray) and x.ndim == 2) or hasattr(x, "tocsr") for x in X)


def _check_possible(model: Any, batch: Any, numbers: Ints, name: str) -> None:
    """Raise if nothing is possible for a sequence; numbers (B,) of the sequences in what has this name."""
    core = batch._core
    dead = np.flatnonzero(core.log_partitions(batch.n_jobs) == -np.inf)
    if dead.size:
        b = int(dead[0])
        if (broken := core.impossible_rules(b)) is not None:
            raise ValueError(f"{name}[{numbers[b]}] leaves no configuration that keeps {broken}")
        raise ValueError(f"{name}[{numbers[b]}] {model.no_configuration.format(furthest=batch._core.furthest(b))}")


def _stored_rules(parameters: dict[str, Any]) -> dict[str, Any]:
    """The rules that a file tells, which are text there."""
    told = parameters.get("rules")
    if told is None:
        return {}
    try:
        if not isinstance(told, (str, list)):
            raise ValueError(f"they are of type {type(told).__name__}")
        return {"rules": parse(told) if isinstance(told, str) else [parse(one) for one in told]}
    except ValueError as error:
        raise model_file.ModelFileError(f"the model file has rules that cannot be read: {error}") from error


def _stored_reading(stored: model_file.ModelFile) -> Reading | None:
    """How files are to be read for a model, if its file tells."""
    told = stored.metadata.get("reading")
    if told is None:
        return None
    try:
        return Reading.from_json(told)
    except ValueError as error:
        raise model_file.ModelFileError(f"the model file does not fit together: {error}. Save it again.") from error


def _sequence_weights(sample_weight: Any, n: int) -> Floats | None:
    """`sample_weight` as (n,) numbers >= 0, or None."""
    if sample_weight is None:
        return None
    weight = checks.scores("sample_weight", sample_weight, (n,))
    if (weight < 0).any():
        b = int(np.argmax(weight < 0))
        raise ValueError(f"sample_weight[{b}] = {weight[b]} must not be negative")
    return weight
