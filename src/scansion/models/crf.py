"""Conditional random fields of any order: one label per position."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np

from scansion import _checks as checks
from scansion.data import Targets, encode_labels
from scansion.models import engines
from scansion.models.base import FlatEstimator
from scansion.models.flat import Inputs, known_labels
from scansion.models.learner import cut

__all__ = ["CRF"]

Self = TypeVar("Self")


class CRF(FlatEstimator):
    """Linear-chain conditional random field of any order.

    ``P(y | x) = exp(sum_t sum_i w_i f_i(x, y, t)) / Z``; a feature f_i is an attribute of position t (or nothing,
    "always on") tied to a pattern of the labels up to t (paper 001, equation 1). First order with the default settings
    is the model of CRFsuite: the same features, the same objective, the same optimum.

    Parameters
    ----------
    order : int
        Longest label dependency: always-on features of the label patterns of length 2 .. order + 1 seen in training.
    algorithm : {"lbfgs", "l2sgd", "asgd", "mm", "ap", "pa"}
        L-BFGS (OWL-QN with c1 > 0), stochastic gradient, the same averaged, max-margin, averaged perceptron,
        passive-aggressive.
    c1, c2 : float, or sequence of float
        Strength of the penalties ``c1 |w|_1`` and ``c2 |w|^2``; a sequence gives one per order (the last goes on).
    max_iterations : int or None
        Iterations, or passes over the data; None: until converged (at most 1000 passes of l2sgd, asgd, mm, 100 of ap
        and pa).
    min_freq : float, or sequence of float
        Features whose summed values in training are below it are left out; a sequence gives one per order.
    all_possible_states, all_possible_transitions : bool
        Also features (attribute, label), (label, label) that do not occur in training.
    patterns : sequence of label tuples, optional
        The label patterns to follow in place of those seen; `BOS` allowed first, `EOS` last.
    attribute_orders : dict prefix -> order or orders, optional
        Attributes whose name starts with the prefix go with label patterns of these orders; others with single labels
        (order 0). The longest prefix wins.
    bias_order : int, optional
        Longest dependency of always-on features; longer patterns, up to `order`, live only where an attribute tied to
        them fires, and cost nothing elsewhere (variable order, paper 002). None: all patterns have one.
    grow : int or dict, optional
        Choose patterns on demand: start from order 1 and add the extensions with the largest expected gain, at most so
        many, of order up to `order`. A dict may have budget, rounds, iterations: see `scansion.models.growth`.
    engine : {"auto", "automaton", "sum-difference"}
        How log-likelihoods are summed and best labels found: the results are equal. Automaton: states x labels per
        position; Sum-Difference (paper 002): patterns alive there. "auto" counts operations; first-order chains have a
        kernel of their own.
    n_jobs : int
        Threads, -1 for all processors; results do not depend on it.
    random_state : int, optional
        Seed of the online algorithms and of `sample`.
    verbose : bool
        Progress on standard error.
    warm_start : bool
        Start from the weights of the last fit.
    patience : int
        With development data: iterations without a better score before training stops.
    num_memories, epsilon, period, delta, linesearch, max_linesearch, calibration_eta, calibration_rate, \
calibration_samples, calibration_candidates, calibration_max_trials, pa_type, c, error_sensitive, averaging
        As in CRFsuite.

    Attributes
    ----------
    classes_, attributes_, state_features_, transition_features_, pattern_features_, patterns_, size_
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

    _segments = False
    _kind = "crf"
    growth_log_: list[dict[str, Any]]

    def __init__(
        self,
        order: int = 1,
        *,
        algorithm: str = "lbfgs",
        c1: Any = 0.0,
        c2: Any = 1.0,
        max_iterations: int | None = None,
        min_freq: Any = 0.0,
        all_possible_states: bool = False,
        all_possible_transitions: bool = False,
        patterns: Any = None,
        attribute_orders: Mapping[str, Any] | None = None,
        bias_order: int | None = None,
        grow: Any = None,
        engine: str = "auto",
        num_memories: int = 6,
        epsilon: float = 1e-5,
        period: int = 10,
        delta: float = 1e-5,
        linesearch: str = "MoreThuente",
        max_linesearch: int = 20,
        calibration_eta: float = 0.1,
        calibration_rate: float = 2.0,
        calibration_samples: int = 1000,
        calibration_candidates: int = 10,
        calibration_max_trials: int = 20,
        pa_type: int = 1,
        c: float = 1.0,
        error_sensitive: bool = True,
        averaging: bool = True,
        n_jobs: int | None = 1,
        random_state: int | None = None,
        verbose: bool = False,
        warm_start: bool = False,
        patience: int = 10,
    ) -> None:
        self.order = order
        self.algorithm = algorithm
        self.c1 = c1
        self.c2 = c2
        self.max_iterations = max_iterations
        self.min_freq = min_freq
        self.all_possible_states = all_possible_states
        self.all_possible_transitions = all_possible_transitions
        self.patterns = patterns
        self.attribute_orders = attribute_orders
        self.bias_order = bias_order
        self.grow = grow
        self.engine = engine
        self.num_memories = num_memories
        self.epsilon = epsilon
        self.period = period
        self.delta = delta
        self.linesearch = linesearch
        self.max_linesearch = max_linesearch
        self.calibration_eta = calibration_eta
        self.calibration_rate = calibration_rate
        self.calibration_samples = calibration_samples
        self.calibration_candidates = calibration_candidates
        self.calibration_max_trials = calibration_max_trials
        self.pa_type = pa_type
        self.c = c
        self.error_sensitive = error_sensitive
        self.averaging = averaging
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start
        self.patience = patience

    attribute_parts = None

    def _targets(
        self, y: Any, lengths: Any, labels: list[Any] | None, max_length: int | None, extend: bool = False
    ) -> tuple[Targets, list[Any]]:
        return encode_labels(y, lengths, labels, extend=extend)

    def _check(self) -> None:
        engines.check(self.engine)

    def fit(self: Self, X: Any, y: Any, *, sample_weight: Any = None, X_dev: Any = None, y_dev: Any = None) -> Self:
        """Learn the weights; see `Learner.fit`. With `grow`, choose the patterns on the way."""
        assert isinstance(self, CRF)
        if self.grow is None:
            vars(self).pop("growth_log_", None)
            super().fit(X, y, sample_weight=sample_weight, X_dev=X_dev, y_dev=y_dev)
        else:
            from scansion.models.growth import grow

            grow(self, X, y, sample_weight, X_dev, y_dev)
        return self

    def _problem(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        model, objective, informed = super()._problem(X, y, sample_weight)
        if engines.resolve(self.engine, model) == "sum-difference":
            objective.use_sum_difference()
        return model, objective, informed

    @property
    def engine_(self) -> str:
        """The engine of the fitted model."""
        return engines.resolve(self.engine, self._model)

    def _best(self, inputs: Inputs, known: Any = None) -> Any:
        """(N,) best labels, by number."""
        if self.engine_ == "sum-difference":
            held = None if known is None else self._held(known, inputs)
            best = engines.best_labels(self._model, inputs, held, checks.jobs(self.n_jobs))
            if (best >= 0).all():
                return best
        return np.concatenate([np.zeros(0, np.int64), *self._ask(inputs, lambda b: [b.best_labels()], known)])

    def predict(self, X: Any, constraints: Any = None) -> list[Any]:
        """The most probable labels of each sequence; see `Learner.predict`."""
        inputs = self._inputs(X)
        names = np.empty(self._model.n_labels, object)
        names[:] = self._model.labels  # labels may be tuples, which np.array would spread
        return cut(names[self._best(inputs, constraints)].tolist(), inputs.data.offsets)

    def _named(self, config: Any) -> list[Any]:
        labels = self._model.labels
        return [labels[y] for y in config.tolist()]

    def score(self, X: Any, y: Any) -> float:
        """Share of the tokens whose label is right.

        A token whose label is unknown (None) does not count; of a set, each label is right. Labels that the model does
        not know may occur in y: they are never predicted.
        """
        inputs = self._inputs(X)
        targets, labels = self._targets(y, inputs.data.lengths, self._model.labels, None, extend=True)
        allowed = known_labels(targets, len(labels))
        told = ~allowed.all(axis=1) | (targets.labels >= 0)
        if not told.any():
            raise ValueError("y holds no label at all: there is nothing to compare with")
        guess = self._best(inputs)
        return float(allowed[np.arange(len(guess)), guess][told].mean())
