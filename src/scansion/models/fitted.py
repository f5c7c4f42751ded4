"""What all estimators share once they are fitted: questions to the lattices of sequences, what was learnt, files.

A kind of model adds how configurations become answers, and its own attributes; learning is `scansion.models.estimator`.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

import numpy as np

from scansion import _checks as checks
from scansion import model_file
from scansion._checks import Floats, Ints
from scansion.data import Knowledge, encode
from scansion.data.dataset import cut
from scansion.features.spans import readable, span_attributes
from scansion.formats.reading import Reading
from scansion.models.answers import Answers
from scansion.models.inputs import INTERCEPT, Inputs, columns_of, with_intercept
from scansion.models.packing import json_value, pack, storable
from scansion.models.parameters import Settings, seed
from scansion.models.weights import Feature, Level, Model
from scansion.rules.compile import RuleSet, given_rules
from scansion.rules.expressions import Rule, parse

if TYPE_CHECKING:
    from scansion.display import Page
    from scansion.lattice.base import Lattice

__all__ = ["Fitted", "NotFittedError", "check_possible", "not_fitted"]

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


class Fitted(Settings):
    """Questions to estimators, and their files."""

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
                check_possible(model, batch, numbers, "constraints" if constraints is not None else "X")
                raise
            first += len(batch)
        return answers

    def predict(
        self, X: Any, constraints: Any = None, rules: Any = None, decode: Literal["viterbi", "marginal"] = "viterbi"
    ) -> list[Any]:
        """The best configuration of each sequence: labels, segments, or segments by level.

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
        if decode == "viterbi":
            return Answers(self._predicted(X, constraints, rules))
        return Answers(self.ask(X, self._accurate, constraints, rules))

    def _predicted(self, X: Any, constraints: Any, rules: Any) -> list[Any]:
        """The most probable configurations, by name."""
        return self.ask(X, self._answers, constraints, rules)

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

    def segment_probabilities(self, X: Any, y: Any, constraints: Any = None, rules: Any = None) -> list[Any]:
        """How probable each segment of given answers is by itself, whatever surrounds it.

        Parameters
        ----------
        X, constraints, rules
            As in `predict`.
        y : iterable
            One answer per sequence, as `predict` and `predict_kbest` give it.

        Returns
        -------
        list
            For each sequence the probability of each segment ``(start, stop, label)`` of its answer, in order; of
            `HierarchicalCRF` such a list for each level, of `CRF` the probability of each label.
        """
        inputs, numbers = self._inputs(X), self._label_numbers()
        configs: list[list[Any]] = []
        for b, answer in enumerate(y):
            try:
                levels = [
                    [(int(start), int(stop), names[label]) for start, stop, label in level]
                    for level, names in zip(self._segments_of(answer), numbers, strict=True)
                ]
            except (LookupError, TypeError, ValueError):
                raise _no_answer(b, answer) from None
            configs.append(levels)
        checks.one_each("y", configs, len(inputs))
        given = iter(enumerate(configs))

        def probabilities(batch: Any) -> list[Any]:
            some = []
            for size, (b, levels) in zip(np.diff(batch.offsets).tolist(), given, strict=False):
                some.append(batch._levels(self._packed(levels, size), size, f"y[{b}]"))
            return [self._told(found) for found in batch._probabilities(some)]

        return self.ask(inputs, probabilities, constraints, rules)

    def _packed(self, levels: list[Any], size: int) -> Any:
        """An answer's segments in the form of the lattices' configurations."""
        return levels[0] if self.segments_ else [label for _, _, label in levels[0]]

    def _told(self, found: Any) -> Any:
        """Probabilities of segments as lists."""
        return found.tolist()

    def predict_boundaries(self, X: Any, constraints: Any = None, rules: Any = None) -> list[Any]:
        """How probable it is that a segment ends at a position, its last one: for each sequence a list of T numbers.

        Of `HierarchicalCRF` such a list for each level.
        """

        def boundaries(batch: Any) -> list[Any]:
            found = batch.marginals().boundaries
            tables = [found] if isinstance(found, np.ndarray) else found[1:]  # without the root
            columns = [cut(table.tolist(), batch.offsets) for table in tables]
            return [self._by_level(rows) for rows in zip(*columns, strict=True)]

        return self.ask(X, boundaries, constraints, rules)

    def _by_level(self, entries: Any) -> Any:
        """One entry for each level as the answer has them; flat models have one."""
        return entries[0]

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
            check_possible(model, batch, np.arange(len(batch)), "constraints")
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
        numbers, found = self._label_numbers(), []
        for b, answer in enumerate(y):
            try:  # of nested models, level 0 is the root
                levels = self._segments_of(answer)
                found.append(compiled.broken_by_levels(levels, numbers, self._kind == "hierarchical"))
            except (LookupError, TypeError, ValueError):
                raise _no_answer(b, answer) from None
        return found

    def _label_numbers(self) -> list[dict[Any, int]]:
        """The numbers of the labels, by level."""
        return [{label: i for i, label in enumerate(level.labels)} for level in self.levels_]

    def _segments_of(self, answer: Any) -> list[Any]:
        """The segments of an answer by level; of labels, one a token."""
        if self.segments_:
            return self.by_level(answer)
        return [[(t, t + 1, label) for t, label in enumerate(answer)]]

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
        assert issubclass(cls, Fitted)
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

    def _finish(self, model: Any, log: list[dict[str, Any]], loss: float, message: str) -> None:
        self.model_ = model
        self.training_log_ = log
        self.loss_ = loss
        self.message_ = message
        self.n_iter_ = len(log)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")


def _tell_left_out(batch: Any, rules: RuleSet) -> None:
    """Warn if sums left out more of the rules than they should."""
    found = batch._core.left_out_so_far
    if found is not None and (found > rules.tolerance).any():
        checks.warn(
            f"{int((found > rules.tolerance).sum())} sequences break rules that sums had to leave out, with a "
            f"probability of up to {found.max():.2g}: probabilities are off by at most twice that",
            RuntimeWarning,
        )


def check_possible(model: Any, batch: Any, numbers: Ints, name: str) -> None:
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


def _no_answer(b: int, answer: Any) -> ValueError:
    return ValueError(f"y[{b}] is no complete answer in the labels of the model: {answer!r:.200}")
