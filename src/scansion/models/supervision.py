"""From expectations by the names of labels to what an optimiser takes; see `scansion.training.expectations`."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np

from scansion._checks import Floats
from scansion.models.inputs import INTERCEPT
from scansion.training.expectations import Expectation, Supervised

__all__ = ["check", "supervised"]

KINDS = ("share", "count", "length")


def check(expectations: Any) -> None:
    """Raise unless these are expectations: label or tuple of labels -> band, or dict kind -> band."""
    if not isinstance(expectations, Mapping):
        raise ValueError(f"expectations must be a dict label -> (target, margin), got {expectations!r}")
    for label, told in expectations.items():
        for kind, band in _bands(told):
            if kind not in KINDS:
                raise ValueError(f"expectations[{label!r}] must be of {', '.join(KINDS)}, got {kind!r}")
            pair = tuple(band) if isinstance(band, (tuple, list)) else ()
            if len(pair) != 2 or not all(isinstance(x, Real) and np.isfinite(float(x)) for x in pair):
                raise ValueError(f"expectations[{label!r}] must be (target, margin), got {band!r}")
            if not pair[0] > 0.0 or pair[1] < 0.0 or (kind == "share" and pair[0] > 1.0):
                raise ValueError(f"expectations[{label!r}] must have a target > 0 and a margin >= 0, got {band!r}")


def supervised(estimator: Any, model: Any, objective: Any, threads: int) -> Supervised:
    """The objective with the estimator's expectations."""
    inputs = objective.inputs
    probe = type(estimator)(**estimator.get_params())
    probe.model_ = model
    labels = [level.labels for level in model.levels]
    bounds = [level.max_length for level in model.levels]
    gold, _ = estimator._selection().encode(probe.predict(inputs), inputs.data.lengths, labels, bounds)
    free = model.objective(inputs, gold, None)
    found = []
    for k, given in enumerate(estimator.expectations_by_level([level.name for level in model.levels])):
        for names, told in given.items():
            chosen = np.array(_numbers(names, labels[k]), np.int64)
            tokens = _tokens(model, k, chosen)
            n_tokens = float(np.isin(gold.levels[k].numbers, chosen).sum())
            for kind, (target, margin) in _bands(told):
                if kind == "share":
                    ratio: Any = tokens, n_tokens, None, float(max(1, inputs.data.n_tokens))
                else:
                    segments = _segments(model, k, chosen)
                    start, _, _ = gold.levels[k].segments()
                    n_segments = float(np.isin(gold.levels[k].numbers[start], chosen).sum())
                    ratio = segments, n_segments, None, float(max(1, len(inputs)))
                    if kind == "length":
                        ratio = tokens, n_tokens, segments, n_segments
                unit = min(target, 1.0 - target) if kind == "share" and target < 1.0 else target
                found.append(Expectation(float(target), float(margin), float(unit), *ratio))
    longest = int(inputs.data.lengths.max(initial=1))
    strength = float(estimator.expectation_strength) * inputs.data.n_tokens
    return Supervised(objective, free, found, strength, longest)


def _bands(told: Any) -> list[tuple[Any, Any]]:
    """Kinds of expectations with their bands; a band alone is of the share of tokens."""
    return list(told.items()) if isinstance(told, Mapping) else [("share", told)]


def _numbers(names: Any, labels: list[Any]) -> list[int]:
    """Numbers of a label, or of several."""
    several = isinstance(names, (tuple, frozenset)) and names not in labels
    numbers = []
    for name in names if several else (names,):
        if name not in labels:
            raise ValueError(f"expectations name {name!r}, which is no label: name it by labels, too")
        numbers.append(labels.index(name))
    return numbers


def _tokens(model: Any, k: int, chosen: Any) -> Floats:
    """(W,) the direction that counts tokens of some labels: that of their intercepts."""
    direction = np.zeros(model.n_weights)
    place, part = model.vocabulary.index(INTERCEPT), "inside" if model.segments else "start"
    for block, where in model.parts():
        if block.level == k and block.part == part and block.tokens:
            direction[where][(block.row == place) & np.isin(block.columns, chosen)] = 1.0
    if direction.sum() < len(chosen):
        raise ValueError("expectations name a label without an intercept: show one example of it in y")
    return direction


def _segments(model: Any, k: int, chosen: Any) -> Floats:
    """(W,) the direction that counts segments of some labels: functions of the length that add up to 1."""
    direction = np.zeros(model.n_weights)
    basis = model.levels[k].basis
    for block, where in model.parts():
        if block.level == k and block.part == "length" and len(block):
            for label in chosen.tolist():
                mine = np.flatnonzero(block.columns == label)
                rows = basis[block.row[mine]]
                amounts = np.linalg.lstsq(rows.T, np.ones(basis.shape[1]), rcond=None)[0] if len(mine) else mine
                if len(mine) and np.allclose(rows.T @ amounts, 1.0, atol=1e-9):
                    direction[where.start + mine] = amounts
                    chosen = chosen[chosen != label]
    if len(chosen):
        raise ValueError("expectations of counts and lengths need a weight for each segment: length_features with bins")
    return direction
