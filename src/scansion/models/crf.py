"""Conditional random fields of any order: one label per position."""

from __future__ import annotations

import math
import os
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar, get_args

import numpy as np

from scansion import _checks as checks
from scansion._checks import Ints
from scansion.data.dataset import cut, gather
from scansion.models import engines
from scansion.models.flat_estimator import FlatEstimator
from scansion.models.inputs import Inputs, columns_of
from scansion.models.parameters import Algorithm, documented, parameter

if TYPE_CHECKING:
    from scansion.pycrfsuite import Tagger

__all__ = ["CRF"]

Self = TypeVar("Self")


@documented
@dataclass(repr=False, eq=False)
class CRF(FlatEstimator):
    """Linear-chain conditional random field of any order.

    ``P(y | x) = exp(sum_t sum_i w_i f_i(x, y, t)) / Z``; a feature f_i is an attribute of position t (or nothing,
    "always on") tied to a pattern of the labels up to t (paper 001, equation 1). First order with the default settings
    is the model of CRFsuite: the same features, the same objective, the same optimum.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    classes_, attributes_, state_features_, transition_features_, pattern_features_, patterns_, levels_, size_
        What was learnt.
    training_log_ : list of dict
        iteration, loss, gradient_norm, active, dev_score, seconds.
    growth_log_ : list of dict, with `grow`
        round, added (pattern -> expected gain), patterns, loss, dev_score.
    engine_ : str
        The engine that was used.
    loss_, n_iter_, message_
        Final objective, number of iterations, why training stopped.

    Examples
    --------
    >>> X = [[{"w": "the"}, {"w": "cat"}], [{"w": "a"}, {"w": "dog"}]]
    >>> y = [["D", "N"], ["D", "N"]]
    >>> CRF().fit(X, y).predict([[{"w": "the"}, {"w": "dog"}]])
    [['D', 'N']]
    """

    _: KW_ONLY
    bias_order: int | None = parameter(
        None,
        "int, optional",
        "Longest dependency of always-on features; longer patterns, up to `order`, live only where an attribute "
        "tied to them fires, and cost nothing elsewhere (variable order, paper 002). None: all patterns have one.",
    )
    grow: Any = parameter(
        None,
        'int, dict or "active", optional',
        "Choose patterns on demand: start from order 1 and add the extensions with the largest expected gain, at "
        'most so many, of order up to `order`. A dict may have budget, rounds, iterations. "active", with c1: the '
        "optimum with all patterns seen, at the cost of those that c1 does not keep at zero. See "
        "`scansion.models.growth`.",
    )
    engine: Literal["auto", "automaton", "sum-difference"] = parameter(
        "auto",
        '{"auto", "automaton", "sum-difference"}',
        "How log-likelihoods are summed and best labels found: the results are equal. Automaton: all patterns "
        'at every position; Sum-Difference (paper 002): patterns alive there. "auto" counts operations; first-order '
        "chains have a kernel of their own.",
    )

    model_filename: str | os.PathLike[str] | None = parameter(
        None,
        "path, optional",
        "A model file of CRFsuite that `fit` writes beside what it does, and that is read where there was no `fit`.",
    )
    keep_tempfiles: bool = parameter(
        False, "bool", "Without effect, for programs written for sklearn-crfsuite: there are no temporary files."
    )

    growth_log_: ClassVar[list[dict[str, Any]]]
    _segments: ClassVar[bool] = False
    predict_boundaries = checks.Absent(
        "a CRF labels positions and has no segments: train a SemiCRF, or sum predict_marginals over tags that begin one"
    )
    _kind: ClassVar[str] = "crf"

    def __post_init__(self) -> None:
        if isinstance(self.order, str) and self.order in get_args(Algorithm):  # sklearn-crfsuite's first parameter
            self.algorithm, self.order = self.order, 1

    def fit(self: Self, X: Any, y: Any, X_dev: Any = None, y_dev: Any = None, *, sample_weight: Any = None) -> Self:
        """Learn the weights; with `grow`, choose the patterns on the way.

        Parameters
        ----------
        X : iterable of sequences, or Dataset
            A sequence is a list of tokens (dicts, or lists or sets of strings: python-crfsuite's item rules), a 2-D
            array, a SciPy sparse matrix or a DataFrame (rows are tokens).
        y : iterable
            One list of labels per sequence. An unknown label is None, one of several a set; None in place of a list:
            nothing is known of the sequence, and it contributes nothing. A `Trajectory`: the labels it goes through.
        X_dev, y_dev : optional
            Development data: `score` on them is logged at each iteration; training stops when it has not risen for
            `patience` iterations, and the best weights are kept.
        sample_weight : (B,), optional
            Weight of each sequence, >= 0.
        """
        assert isinstance(self, CRF)
        if self.grow is None:
            vars(self).pop("growth_log_", None)
            super().fit(X, y, sample_weight=sample_weight, X_dev=X_dev, y_dev=y_dev)
        else:
            if self.train_with_rules:
                raise ValueError("grow does not go with train_with_rules: choose the patterns first, then give them")
            from scansion.models.growth import grow

            grow(self, X, y, sample_weight, X_dev, y_dev)
            self.n_features_in_ = columns_of(X)
        if self.model_filename is not None:
            self.save(self.model_filename, format="crfsuite")
        return self

    @property
    def _model(self) -> Any:
        if self.model_filename is not None and not hasattr(self, "model_"):
            from scansion.models.files import load

            stored = load(self.model_filename)
            if not isinstance(stored, CRF):
                raise ValueError(f"model_filename: {self.model_filename} holds a {type(stored).__name__}, not a CRF")
            self._finish(stored.model_, [], math.nan, stored.message_)
        return super()._model

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_") or (self.model_filename is not None and os.path.exists(self.model_filename))

    @property
    def num_attributes_(self) -> int:
        """Number of attributes that have a feature with a weight other than 0."""
        return len(self.attributes_)

    @property
    def tagger_(self) -> Tagger:
        """The model with python-crfsuite's interface."""
        from scansion.pycrfsuite import Tagger

        self._model  # noqa: B018  (read now, or not fitted)
        tagger = Tagger()
        tagger._opened(self)
        return tagger

    def _tuned(self, model: Any, objective: Any) -> Any:
        """The objective with the engine that was chosen."""
        engines.check(self.engine)
        if engines.resolve(self.engine, model) == "sum-difference" and not self.train_with_rules:
            objective.native.use_sum_difference()
        return objective

    @property
    def engine_(self) -> str:
        """The engine of the fitted model."""
        return engines.resolve(self.engine, self._model)

    def _best(self, inputs: Inputs, constraints: Any = None, rules: Any = None) -> Ints:
        """(N,) best labels, by number."""
        compiled = self._rule_set(rules)
        if engines.decodes_alive(self.engine, self._model, inputs):
            held = None if constraints is None else self._held(constraints, inputs)
            best = engines.best_labels(self._model, inputs, held, checks.jobs(self.n_jobs))
            if (best >= 0).all():
                broken = np.zeros(0, np.int64) if compiled is None else compiled.broken_by(best, inputs.data.offsets)
                if broken.size:
                    known = None if held is None else held.take(broken)
                    again = self.ask(inputs.take(broken), lambda b: [b.best_labels()], known, compiled)
                    best[gather(inputs.data.offsets, broken)[1]] = np.concatenate(again)
                return best
        found = self.ask(inputs, lambda b: [b.best_labels()], constraints, [] if compiled is None else compiled)
        return np.concatenate([np.zeros(0, np.int64), *found])

    def _predicted(self, X: Any, constraints: Any, rules: Any) -> list[Any]:
        """The most probable labels, by name."""
        inputs = self._inputs(X)
        return cut(self._names(self._best(inputs, constraints, rules)), inputs.data.offsets)

    def _names(self, labels: Ints) -> list[Any]:
        """Labels by name."""
        names = np.empty(self._model.n_labels, object)
        names[:] = self._model.labels  # labels may be tuples, which np.array would spread
        named: list[Any] = names[labels].tolist()
        return named

    def _at_once(self, x: Any) -> list[Any] | None:
        tagger = None if engines.decodes_alive(self.engine, self._model) else self._model.tagger
        return None if tagger is None else tagger.labels(x)

    def _named(self, config: Any) -> list[Any]:
        labels = self._model.labels
        return [labels[y] for y in config.tolist()]

    def _named_draws(self, drawn: Ints) -> list[Any]:
        return self._names(drawn)

    def _named_kbest(self, batch: Any, k: int) -> list[list[tuple[Any, float]]]:
        found = batch._kbest_labels(k)
        if found is None:
            return super()._named_kbest(batch, k)
        named = cut(self._names(found.labels), batch._cuts(found))
        return cut(list(zip(named, found.scores.tolist(), strict=True)), found.firsts)

    def score(self, X: Any, y: Any) -> float:
        """Share of the tokens whose label is right.

        A token whose label is unknown (None) does not count; of a set, each label is right. Labels that the model does
        not know may occur in y: they are never predicted.
        """
        inputs = self._inputs(X)
        known, (labels,) = self._known(y, inputs, extend=True)
        share = known.level.accuracy(self._best(inputs), len(labels))
        if np.isnan(share):
            raise ValueError("y holds no label at all: there is nothing to compare with")
        return share
