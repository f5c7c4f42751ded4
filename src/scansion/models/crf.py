"""Conditional random fields of any order: one label per position."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from scansion.data import Targets, encode_labels
from scansion.models.base import FlatEstimator
from scansion.models.flat import known_labels
from scansion.models.learner import cut

__all__ = ["CRF"]


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
    min_freq : float
        Features whose summed values in training are below it are left out.
    all_possible_states, all_possible_transitions : bool
        Also features (attribute, label), (label, label) that do not occur in training.
    patterns : sequence of label tuples, optional
        The label patterns to follow in place of those seen; `BOS` allowed first, `EOS` last.
    attribute_orders : dict prefix -> order or orders, optional
        Attributes whose name starts with the prefix go with label patterns of these orders; others with single labels
        (order 0). The longest prefix wins.
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

    def __init__(
        self,
        order: int = 1,
        *,
        algorithm: str = "lbfgs",
        c1: Any = 0.0,
        c2: Any = 1.0,
        max_iterations: int | None = None,
        min_freq: float = 0.0,
        all_possible_states: bool = False,
        all_possible_transitions: bool = False,
        patterns: Any = None,
        attribute_orders: Mapping[str, Any] | None = None,
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

    def _named(self, config: Any) -> list[Any]:
        labels = self._model.labels
        return [labels[y] for y in config.tolist()]

    def _answers(self, batch: Any) -> list[Any]:
        names = np.empty(self._model.n_labels, object)
        names[:] = self._model.labels  # labels may be tuples, which np.array would spread
        return cut(names[batch.best_labels()].tolist(), batch.offsets)

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
        guess = np.concatenate(self._ask(inputs, lambda batch: [batch.best_labels()]))
        return float(allowed[np.arange(len(guess)), guess][told].mean())
