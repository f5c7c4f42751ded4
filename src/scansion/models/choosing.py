"""Choosing the strength of a penalty on sequences that are left out.

The features are chosen once, from all data; a fold is left out by its weights: the same objective with sequences of
weight 0. Strengths go down from the strongest; each fold goes on from its last weights, and the path ends where the
loss of what is left out has risen twice. So the cost is a small multiple of that of one fit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from scansion import _checks as checks
from scansion._checks import Floats, Ints

__all__ = ["STRENGTHS", "choose", "folds"]

STRENGTHS = (30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003)
_WORSE = 2  # strengths in a row that are worse than the best before the path ends


def folds(cv: Any, n: int, seed: int) -> Ints:
    """(n,) the fold of each sequence: of a number of folds, drawn; of one group for each sequence, that."""
    if isinstance(cv, (int, np.integer)) and not isinstance(cv, bool):
        count = min(checks.count("cv", cv, 2), n)
        if count < 2:
            raise ValueError("c2='cv' needs two sequences at least")
        return np.random.default_rng(seed).permutation(np.arange(n) % count)
    groups = np.unique(np.asarray(cv), return_inverse=True)[1].astype(np.int64)
    if groups.shape != (n,) or groups.max(initial=0) == 0:
        raise ValueError(f"cv must be a number of folds, or the group of each of the {n} sequences, of two at least")
    return groups


def choose(
    estimator: Any, name: str, model: Any, objective: Any, weight: Floats | None, settings: Any
) -> tuple[float, list[dict[str, Any]], Floats]:
    """The strength with the smallest loss on what is left out, the table of all, and weights to go on from."""
    from scansion.training.learn import Development, learn
    from scansion.training.progress import Progress

    inputs, known = objective.inputs, objective.known
    n = len(inputs)
    fold = folds(estimator.cv, n, settings.random_state)
    told = np.ones(n) if weight is None else weight
    kept, left = [], []
    for f in range(int(fold.max()) + 1):
        kept.append(model.objective(inputs, known, np.where(fold == f, 0.0, told)))
        left.append(model.objective(inputs, known, np.where(fold == f, told, 0.0)))
    starts: list[Floats] = [model.weights.copy() for _ in kept]
    table: list[dict[str, Any]] = []
    best: list[Floats] = starts
    quiet, scratch = Progress(False), np.empty(model.n_weights)
    for strength in STRENGTHS:
        setattr(settings, name, strength)
        penalty, coordinates = estimator._penalty(model, settings, objective)
        losses = []
        for f, part in enumerate(kept):
            learnt = learn(part, starts[f], settings, penalty, coordinates, Development(), quiet)
            starts[f] = learnt.weights
            losses.append(float(left[f].log_loss(learnt.weights, scratch, settings.n_jobs)))
        table.append({name: strength, "loss": float(np.sum(losses)), "losses": losses})
        order = np.argsort([row["loss"] for row in table], kind="stable")
        if order[0] == len(table) - 1:
            best = [w.copy() for w in starts]
        elif len(table) - 1 - order[0] >= _WORSE:
            break
    chosen = min(table, key=lambda row: row["loss"])
    return float(chosen[name]), table, np.mean(best, axis=0)
