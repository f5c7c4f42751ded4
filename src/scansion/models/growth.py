"""Label patterns on demand: structured sparsity for variable-order CRFs.

Start from the patterns of two labels seen in training and fit. Candidates are patterns seen in training, no longer than
order + 1, whose prefix and suffix (without the last, without the first label) the model has. A candidate z that enters
with weight w changes the penalised log-likelihood by about ``-g w - h w^2 / 2 - c2 w^2``, with g = expected - observed
count (the gradient at w = 0) and h its variance, taken as the expected count; the best w gains

    gain(z) = g^2 / (2 (expected + 2 c2)).

One evaluation of the objective has the gradients of all candidates. Each round adds the best ones and goes on from the
weights in hand; growing stops at the budget, when no candidate is left that gains anything, or when the score on the
development data falls, and the best round's patterns are fitted to the end. (Grafting: Perkins, Lacker & Theiler 2003;
feature induction for CRFs: McCallum 2003.)

With ``grow="active"`` and a penalty c1, all patterns seen in training are candidates and the result is the optimum with
all of them: what c1 leaves at zero needs no pattern to be alive. Fit with some of them; a pattern beyond whose gradient
``|g|`` exceeds its c1 would leave zero, so it comes in, and one whose weight has become zero goes out; where none comes
in, the weights are optimal. Rounds cost the patterns that are in, and one evaluation with all of them.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from scansion import _checks as checks
from scansion.data import Dataset, encode
from scansion.models.flat_model import FlatModel
from scansion.models.parameters import strengths
from scansion.models.penalties import by_weight
from scansion.models.select_flat import seen_patterns
from scansion.training.convergence import ConvergenceWarning

if TYPE_CHECKING:
    from scansion.models.crf import CRF

__all__ = ["grow"]


def _plan(value: Any) -> dict[str, int]:
    """budget, rounds, iterations: longer patterns to add, in how many steps, iterations of training in each."""
    given = dict(value) if isinstance(value, Mapping) else {"budget": value}
    unknown = set(given) - {"budget", "rounds", "iterations"}
    if unknown or "budget" not in given:
        raise ValueError(f"grow must be a number of patterns, or a dict of budget, rounds, iterations; got {value!r}")
    plan = {"rounds": 5, "iterations": 20, **given}
    return {name: checks.count(f"grow[{name!r}]", number, 1) for name, number in plan.items()}


def grow(crf: CRF, X: Any, y: Any, sample_weight: Any, X_dev: Any, y_dev: Any) -> None:
    """Fit with patterns chosen on the way."""
    active = isinstance(crf.grow, str) and crf.grow == "active"
    plan = {} if active else _plan(crf.grow)
    if crf.patterns is not None:
        raise ValueError("grow chooses the patterns: give either grow or patterns")
    checks.count("order", crf.order, 1)
    if (X_dev is None) != (y_dev is None):
        raise ValueError("X_dev and y_dev must be given together")
    data = X if isinstance(X, Dataset) else encode(X)
    y = list(y)
    selection = crf._selection()
    known, (labels,) = selection.encode(y, data.lengths, None, [1], extend=True)
    names = [tuple(labels[i] for i in p) for p in seen_patterns(known, crf.order, selection.least)]
    chosen = [p for p in names if len(p) == 2]
    pool = [p for p in names if len(p) > 2]
    if active:
        if X_dev is not None:
            raise ValueError("grow='active' goes to the optimum, where development data have no say: leave X_dev out")
        return _adopt(crf, *_active(crf, data, y, sample_weight, chosen, pool))
    step = -(-plan["budget"] // plan["rounds"])
    log: list[dict[str, Any]] = []
    best: tuple[float, list[Any], FlatModel] | None = None
    model: FlatModel | None = None
    added: dict[Any, float] = {}
    budget = plan["budget"]
    while True:
        probe = _with(crf, chosen, model, max_iterations=plan["iterations"])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # some iterations are all that a round is to have
            probe.fit(data, y, sample_weight=sample_weight)
        model = probe.model_
        dev = None if X_dev is None else probe.score(X_dev, y_dev)
        log.append({"round": len(log), "added": added, "patterns": len(chosen), "loss": probe.loss_, "dev_score": dev})
        if best is not None and dev is not None and dev <= best[0]:
            break
        best = (-np.inf if dev is None else dev), list(chosen), model
        have = set(chosen)
        candidates = [p for p in pool if p not in have and p[1:] in have and p[:-1] in have]
        gains = _gains(_with(crf, chosen + candidates, model), data, y, sample_weight, candidates)
        ranked = sorted((p for p in candidates if gains[p] > 0), key=lambda p: (-gains[p], len(p), str(p)))
        ranked = ranked[: min(step, budget)]
        if not ranked:
            break
        added = {p: gains[p] for p in ranked}
        chosen += ranked
        budget -= len(ranked)
    final = _with(crf, best[1], best[2], max_iterations=crf.max_iterations)
    final.fit(data, y, sample_weight=sample_weight, X_dev=X_dev, y_dev=y_dev)
    _adopt(crf, final, log)


def _adopt(crf: CRF, final: CRF, log: list[dict[str, Any]]) -> None:
    for name in ("model_", "training_log_", "loss_", "message_", "n_iter_"):
        setattr(crf, name, getattr(final, name))
    vars(crf)["growth_log_"] = log


_SLACK = 1e-3  # of c1: gradients at zero are this close to it where training has converged


def _active(
    crf: CRF, data: Dataset, y: list[Any], sample_weight: Any, pairs: list[Any], pool: list[Any]
) -> tuple[CRF, list[dict[str, Any]]]:
    """The optimum with all of the pool, by an active set; pairs are in throughout."""
    c1 = strengths("c1", crf.c1)
    if not isinstance(c1, dict) and not np.any(np.greater(c1, 0.0)):
        raise ValueError(f"grow='active' leaves out the patterns that c1 keeps at zero: c1 must be > 0, got {crf.c1!r}")
    log: list[dict[str, Any]] = []
    inside: list[Any] = []
    gone: set[Any] = set()  # those that come back stay: rounds must end
    model: FlatModel | None = None
    while True:
        probe = _with(crf, pairs + inside, model)
        probe.fit(data, y, sample_weight=sample_weight)
        model = probe.model_
        of = {model.pattern_name(z): model.weights[z - model.n_labels] for z in _biases(model)}
        kept = [p for p in inside if of[p] != 0.0 or p in gone]
        gone.update(set(inside) - set(kept))
        have = set(kept)
        rest = [p for p in pool if p not in have]
        everything = _with(crf, pairs + kept + rest, model)
        coming = _violators(everything, data, y, sample_weight, set(rest))
        log.append({"round": len(log), "added": coming, "patterns": len(pairs) + len(inside), "loss": probe.loss_})
        if not coming:
            return probe, log
        inside = kept + sorted(coming, key=lambda p: (len(p), str(p)))


def _biases(model: FlatModel) -> range:
    """The patterns that have always-on features, whose weights come first."""
    return range(model.n_labels, model.n_labels + model.n_bias)


def _violators(probe: CRF, data: Dataset, y: Any, sample_weight: Any, rest: set[Any]) -> dict[Any, float]:
    """The patterns of weight 0 that would leave it, with their gradients."""
    if not rest:
        return {}
    model, objective = probe.problem(data, y, sample_weight)
    gradient = np.empty(model.n_weights)
    objective.log_loss(model.weights, gradient, checks.jobs(probe.n_jobs))
    c1 = np.broadcast_to(by_weight(model, strengths("c1", probe.c1), 0.0), model.n_weights)
    found = {}
    for z in _biases(model):
        g, most = float(gradient[z - model.n_labels]), float(c1[z - model.n_labels])
        if model.pattern_name(z) in rest and abs(g) > most * (1.0 + _SLACK):
            found[model.pattern_name(z)] = g
    return found


def _with(crf: CRF, patterns: list[Any], model: FlatModel | None, **changes: Any) -> CRF:
    """The estimator with given patterns, from a model's weights."""
    params = {**crf.get_params(), "patterns": patterns, "grow": None, "warm_start": model is not None, **changes}
    probe = type(crf)(**params)
    if model is not None:
        probe.model_ = model
    return probe


def _gains(probe: CRF, data: Dataset, y: Any, sample_weight: Any, candidates: list[Any]) -> dict[Any, float]:
    """Expected gain of each candidate, which the probe has as patterns of weight 0."""
    if not candidates:
        return {}
    model, objective = probe.problem(data, y, sample_weight)
    gradient = np.empty(model.n_weights)
    objective.log_loss(model.weights, gradient, checks.jobs(probe.n_jobs))
    observed = _observed(set(candidates), y, sample_weight)
    number = {model.pattern_name(z): z for z in range(model.n_labels, model.n_labels + model.n_bias)}
    c2 = np.broadcast_to(by_weight(model, strengths("c2", probe.c2), 1.0), model.n_weights)
    gains = {}
    for p in candidates:
        g = float(gradient[number[p] - model.n_labels])
        expected = max(g + observed.get(p, 0.0), 0.0)
        strength = float(c2[number[p] - model.n_labels])
        gains[p] = g * g / (2.0 * (expected + 2.0 * strength) + 1e-12)
    return gains


def _observed(patterns: set[Any], y: list[Any], sample_weight: Any) -> dict[Any, float]:
    """How often patterns occur in y, where all of their labels are known."""
    weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, np.float64)
    counts: dict[Any, float] = {}
    sizes = sorted({len(p) for p in patterns})
    for labels, amount in zip(y, weight.tolist(), strict=True):
        for size in sizes:
            for i in range(len(labels or ()) - size + 1):
                window = tuple(labels[i : i + size])
                if not any(isinstance(v, (set, frozenset)) for v in window) and window in patterns:
                    counts[window] = counts.get(window, 0.0) + amount
    return counts
