"""Learning, for all estimators: from X and y to a model with its objective, and on to weights.

A kind of model adds its parameters and their checked form (`_selection`, see `scansion.models.select_flat` and
`select_nested`: how y is read, which features there are); questions to what was learnt are `scansion.models.fitted`.
scikit-learn is not imported here: its conventions are kept (no logic in ``__init__``, fitted attributes end in ``_``)
and its tags and exceptions are used when it is there already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from scansion import _checks as checks
from scansion._checks import Bools, Floats, Ints
from scansion.data import Dataset, Knowledge, Vocabulary, encode
from scansion.data.partitions import Partitions
from scansion.features.spans import readable
from scansion.models.fitted import Fitted, check_possible
from scansion.models.inputs import INTERCEPT, Inputs, columns_of, with_intercept
from scansion.models.parameters import CheckedSettings, Strength, strengths
from scansion.models.weights import carry_over
from scansion.rules.compile import given_rules

if TYPE_CHECKING:  # loaded by fit: those who only predict need not wait for it
    from scansion.training.coordinates import Coordinates
    from scansion.training.learn import Development
    from scansion.training.objective import Objective
    from scansion.training.penalty import Penalty

__all__ = ["Estimator", "Problem", "refuse", "total_loss"]

# what needs all of the data at once
_AT_ONCE = ("train_with_rules", "expectations", "init", "scores_of", "grow", "hidden")

Self = TypeVar("Self")


class Problem(NamedTuple):
    """What learning starts from: the model with its first weights, and the objective on the training data."""

    model: Any
    objective: Objective


class Estimator(Fitted):
    """Learning."""

    def _strength(self, name: str) -> Strength:
        """c1 or c2, checked."""
        return strengths(name, self._given(name))

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
            checks.warn(f"min_freq = {least} leaves out features that do not occur: all_possible_states has no effect")
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
            start = self._choose_strength(model, objective, checks.weights(sample_weight, n), settings)
        penalty, coordinates = self._penalty(model, settings, objective, centre)
        starts = iter([start])
        if not start.any() and not in_parts:
            starts = self._starts(model, objective, penalty, settings)
        progress = Progress(self.verbose, settings.max_iterations)

        def learnt_from(weights: Floats) -> Any:
            development = self._development(model, X_dev, y_dev)
            return learn(objective, weights, settings, penalty, coordinates, development, progress)

        learnt = learnt_from(next(starts))
        for weights in starts:
            if learnt.message.startswith("interrupted"):
                break
            other = learnt_from(weights)
            learnt = other if other.loss < learnt.loss else learnt
        while self.train_with_rules and objective.take(learnt.weights):  # type: ignore[attr-defined]
            learnt = learnt_from(learnt.weights)
        if self.train_with_rules:
            learnt.message += objective.remark()  # type: ignore[attr-defined]
        progress.close(f"{learnt.message} (loss {learnt.loss:.6g})")
        self._finish(model.weighted(learnt.weights), learnt.log, learnt.loss, learnt.message)
        self._look_at(self.model_, objective, settings.n_jobs)
        self.n_features_in_ = columns
        return self

    def partial_fit(self: Self, X: Any, y: Any, *, sample_weight: Any = None) -> Self:
        """One pass of a stochastic algorithm over some sequences, on top of what was learnt before.

        Labels, attributes and label patterns may be new: the model grows, and nothing that it had is lost. The penalty
        counts as in `fit` on all sequences so far. Order of the sequences, averages, rates and variances go on from
        call to call; after `fit` or `scansion.load` they begin anew, from the weights that are there.

        Parameters
        ----------
        X, y, sample_weight : as in `fit`

        Notes
        -----
        The algorithm must be "l2sgd", "asgd" (recommended), "mm", "ap", "pa" or "arow". A call costs time for all
        weights beside that for its sequences: give hundreds of these at a time. `min_freq` counts in each call by
        itself.
        """
        from scansion.models.partial import partial_fit

        assert isinstance(self, Estimator)
        partial_fit(self, X, y, sample_weight)
        return self

    @staticmethod
    def _penalty(
        model: Any, settings: CheckedSettings, objective: Any, centre: Floats | None = None, seen: Any = None
    ) -> tuple[Penalty, Coordinates | None]:
        """What large weights cost, and the coordinates for the optimiser: in units of the features.

        seen: moments of the attributes, unless those of the objective's data.
        """
        from scansion.models.penalties import by_weight, walk
        from scansion.models.starts import alike
        from scansion.models.units import moments, units
        from scansion.training.penalty import Penalty
        from scansion.training.shards import Sharded

        if seen is None:
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

    def _look_at(self, model: Any, objective: Any, n_jobs: int) -> None:
        """Warn of what was not learnt."""

    def _starts(self, model: Any, objective: Any, penalty: Penalty, settings: CheckedSettings) -> Iterator[Floats]:
        """(W,) the weights that learning starts from; of several starts the one that ends best is kept."""
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

            loss = total_loss(objective, penalty, settings.n_jobs)
            counts, self.start_loss_ = counted(model, objective.inputs, known if aligned is None else aligned, loss)
            if aligned is not None or self.start_loss_ < loss(start):
                start = counts
        yield start

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

    def problem(self, X: Any, y: Any, sample_weight: Any = None, *, more: bool = False) -> Problem:
        """From data to what an optimiser takes: encode X and y, choose the features, carry old weights over.

        more: the data are a batch of more, and what the model had before stays in it.
        """
        from scansion.models.units import numeric

        if isinstance(X, Partitions):
            from scansion.models import sharded

            return Problem(*sharded.problem(self, X, y, sample_weight))
        selection = self._selection()
        old = self._old(selection, more)
        selection = selection.after(old) if more and old is not None else selection
        before = self._told_labels() if old is None else [level.labels for level in old.levels]
        X = readable(X) if any(selection.functions) else X
        X = list(X) if hasattr(X, "__next__") else X  # it is looked at more than once
        data = encode(X, None if old is None else old.vocabulary.copy())
        if len(data) == 0:
            raise ValueError("X is empty: there is nothing to learn from")
        vocabulary, columns, intercept = self._columns(_has_arrays(X), lambda: numeric(data), data.vocabulary)
        data = with_intercept(data, vocabulary) if intercept else data
        weight = checks.weights(sample_weight, len(data))
        known, labels = selection.encode(y, data.lengths, before, selection.bounds(), extend=True)
        self._check_labels(labels[-1])
        levels = selection.levels(labels, known, old)
        inputs = Inputs(data, self._spans(X, selection, levels, frozen=False), columns)
        model = selection.select(inputs, known, levels, data.vocabulary)
        if old is None:
            model.warn_of_symmetry(known)
        elif more:
            from scansion.models.joining import joined

            model = joined(selection, old, model, known)
        if old is not None:
            carry_over(old, model)
        objective = model.objective(inputs, known, weight)
        model.check_known(objective, known)
        if old is None or not more:
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

    def _old(self, selection: Any, more: bool = False) -> Any:
        """The model whose weights are carried over, or None."""
        old: Any = getattr(self, "model_", None) if self.warm_start or more else None
        if old is not None and [level.name for level in old.levels] != list(selection.names):
            names = [level.name for level in old.levels]
            raise ValueError(f"{'partial_fit' if more else 'warm_start'} needs the levels of the last fit, {names}")
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
            check_possible(model, batch.under(held.rows(rows, batch.offsets)), some[first:], "y")
            first += len(batch)

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


def total_loss(objective: Objective, penalty: Penalty, threads: int) -> Callable[[Floats], float]:
    """The log loss with all penalties, as a function of the weights."""
    from scansion.training.learn import log_objective

    function = log_objective(objective, penalty, threads)
    return lambda w: function(w)[0] + float(np.sum(penalty.c1 * np.abs(w)))


def refuse(estimator: Estimator, what: str) -> None:
    """Raise if a parameter needs all of the data at once, where they are not."""
    for name in _AT_ONCE:
        value = getattr(estimator, name, None)
        if value is not None and value is not False:
            raise ValueError(f"{name} does not go with {what}: fit on all of the data at once, or leave it out")
    for name in ("c1", "c2"):
        if _word(getattr(estimator, name)):
            raise ValueError(f"{name}={getattr(estimator, name)!r} does not go with {what}: give a number")


def _word(value: Any) -> str:
    """A parameter that is given by a word; else nothing."""
    return value if isinstance(value, str) else ""


def _has_arrays(X: Any) -> bool:
    """Whether sequences are given as arrays of numbers, or sparse ones."""
    if isinstance(X, Dataset):
        return False
    return any((isinstance(x, np.ndarray) and x.ndim == 2) or hasattr(x, "tocsr") for x in X)
