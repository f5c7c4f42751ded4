"""Flat models by definition: every configuration of tiny sequences, its features counted one by one.

The oracle of `test_crf.py` and `test_semicrf.py`. It takes from a model which features it has and where their weights
stand (`FlatModel.parts`), and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp

import scansion as sc
from scansion.models.flat_model import FlatModel
from scansion.reference import enumeration as brute
from scansion.training.learn import log_objective, margin_objective

ATTRIBUTES = ("a", "b", "pair.c", "pair.d", "both.e", "end.f", "inner.g")
LABELS = ("X", "Y", "Z")

Token = dict[str, float]


def tokens(rng: np.random.Generator, length: int) -> list[Token]:
    """Tokens whose attributes have real values, now and then none."""
    return [{a: float(rng.normal()) for a in ATTRIBUTES if rng.random() < 0.5} for _ in range(length)]


def segmentation(rng: np.random.Generator, length: int, longest: int, labels: Any = LABELS) -> list[Any]:
    """Random segments over the whole length."""
    result, start = [], 0
    while start < length:
        stop = start + int(rng.integers(1, min(longest, length - start) + 1))
        result.append((start, stop, labels[int(rng.integers(len(labels)))]))
        start = stop
    return result


def partial_labels(rng: np.random.Generator, row: list[Any]) -> list[Any] | None:
    """What remains when labels are hidden or blurred."""
    if rng.random() < 0.2:
        return None
    result: list[Any] = []
    for y in row:
        kind = rng.integers(3)
        result.append(y if kind == 0 else None if kind == 1 else {y, LABELS[int(rng.integers(len(LABELS)))]})
    return result


def partial_segments(rng: np.random.Generator, segments: list[Any]) -> list[Any] | None:
    """What remains when segments are hidden, or only their labels are."""
    if rng.random() < 0.2:
        return None
    kept = []
    for start, stop, y in segments:
        kind = rng.integers(4)
        if kind:
            kept.append((start, stop, y if kind == 1 else None if kind == 2 else {y, LABELS[0]}))
    return kept


def agrees(config: brute.Configuration, target: Any, labels: list[Any], segments: bool) -> bool:
    """Whether a configuration is one of those that a target leaves open."""
    if target is None or not target:
        return True

    def fits(y: int, wanted: Any) -> bool:
        return wanted is None or labels[y] == wanted or (isinstance(wanted, set) and labels[y] in wanted)

    row = brute.label_sequence(config)
    if segments and isinstance(target[0], tuple):
        found = {(u, v): y for u, v, y in config}
        return all((u, v) in found and fits(found[u, v], y) for u, v, y in target)
    if not all(fits(y, wanted) for y, wanted in zip(row, target, strict=True)):
        return False
    if segments:
        ends = {v for _, v, _ in config}
        for t in range(1, len(row)):
            pair = [y if isinstance(y, str) else None for y in target[t - 1 : t + 1]]
            if None not in pair and (t in ends) != (pair[0] != pair[1]):
                return False
    return True


def allowed(model: FlatModel, config: brute.Configuration) -> bool:
    """Whether a configuration keeps to the bounds: labels that may not follow each other, lengths by label."""
    never = model.patterns[len(model.patterns) - model.n_forbidden :]
    if any((a[2], b[2]) in never for a, b in zip(config, config[1:], strict=False)):
        return False
    if config and model.first is not None and not model.first[config[0][2]]:
        return False
    if config and model.last is not None and not model.last[config[-1][2]]:
        return False
    limits, shortest = model.level.limits, model.level.shortest
    return all(
        (limits is None or v - u <= limits[y]) and (shortest is None or v - u >= shortest[y]) for u, v, y in config
    )


def features(model: FlatModel, x: list[Token], config: brute.Configuration, functions: Any = ()) -> np.ndarray:
    """(W,) how often each feature of the model fires in a configuration."""
    count = np.zeros(model.n_weights)
    blocks = {block.part: (block, where.start) for block, where in model.parts()}

    def add(part: str, row: int, z: int, value: float) -> None:
        if part in blocks and row >= 0:
            block, base = blocks[part]
            for k in range(block.rows[row], block.rows[row + 1]):
                if block.columns[k] == z:
                    count[base + k] += value

    for u, v, z in brute.matching_patterns(config, model.patterns):
        add("pattern", 0, z, 1.0)
        where = {"start": [u], "inside": range(u, v), "end": [v - 1], "inner": range(u + 1, v)}
        for part, positions in where.items():
            for t in positions:
                for name, value in x[t].items():
                    add(part, model.vocabulary.index(name), z, value)
        for i, row in enumerate(model.level.basis):
            add("length", i, z, row[v - u - 1])
        for function in functions:
            for name, value in function(x, u, v).items():
                add("span", model.level.span_vocabulary.index(name), z, value)
    return count


@dataclass
class Oracle:
    """All configurations of some sequences under a model's features."""

    model: FlatModel
    configs: list[list[brute.Configuration]]
    counts: list[np.ndarray]  # (configs, W) of each sequence
    open: list[np.ndarray]  # (configs,) those that the target leaves open
    weight: np.ndarray

    @classmethod
    def of(cls, model: FlatModel, X: Any, y: Any, weight: Any = None, functions: Any = ()) -> Oracle:
        configs = [
            [c for c in brute.segmentations(len(x), model.n_labels, model.max_length) if allowed(model, c)] for x in X
        ]
        counts = [np.array([features(model, x, c, functions) for c in cs]) for x, cs in zip(X, configs, strict=True)]
        possible = [
            np.array([agrees(c, target, model.labels, model.segments) for c in cs])
            for target, cs in zip(y, configs, strict=True)
        ]
        return cls(model, configs, counts, possible, np.ones(len(X)) if weight is None else np.asarray(weight))

    def log_partitions(self, w: np.ndarray) -> np.ndarray:
        return np.array([logsumexp(f @ w) for f in self.counts])

    def log_loss(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        """Sum of log Z - log Z(known), and its gradient."""
        loss, gradient = 0.0, np.zeros_like(w)
        for f, possible, weight in zip(self.counts, self.open, self.weight, strict=True):
            scores = f @ w
            known = np.where(possible, scores, -np.inf)
            loss += weight * (logsumexp(scores) - logsumexp(known))
            gradient += weight * (np.exp(scores - logsumexp(scores)) - np.exp(known - logsumexp(known))) @ f
        return loss, gradient

    def margin_loss(self, w: np.ndarray) -> float:
        """Sum of max [score + Hamming cost] - score, against the best configuration that is left open."""
        loss = 0.0
        for configs, f, possible, weight in zip(self.configs, self.counts, self.open, self.weight, strict=True):
            if possible.all():
                continue  # nothing is known
            scores = f @ w
            gold = int(np.argmax(np.where(possible, scores, -np.inf)))
            rows = [np.array(brute.label_sequence(c)) for c in configs]
            costs = np.array([np.sum(row != rows[gold]) for row in rows])
            loss += weight * (np.max(scores + costs) - scores[gold])
        return loss


@dataclass
class Problem:
    """An estimator's learning problem beside its oracle."""

    model: FlatModel
    oracle: Oracle
    objective: Any

    @classmethod
    def of(cls, estimator: Any, X: Any, y: Any, weight: Any = None) -> Problem:
        functions = getattr(estimator, "segment_features", None) or ()
        functions = [functions] if callable(functions) else functions
        model, objective = estimator.problem(X, y, weight)
        return cls(model, Oracle.of(model, X, y, weight, functions), objective)

    def log_loss(self, w: np.ndarray, n_jobs: int = 1) -> tuple[float, np.ndarray]:
        loss, gradient = log_objective(self.objective, 0.0, n_jobs)(w)
        return loss, gradient.copy()

    def margin_loss(self, w: np.ndarray, n_jobs: int = 1) -> tuple[float, np.ndarray]:
        return margin_objective(self.objective, 0.0, n_jobs)(w)

    def weights(self, rng: np.random.Generator, scale: float = 0.7) -> np.ndarray:
        return rng.normal(size=self.model.n_weights) * scale


def data(seed: int, *, longest: int = 1, partial: bool = False, n: int = 4, labels_form: bool = False) -> Any:
    """Sequences and targets: labels if longest is 1, else segments (or the labels that stand for them)."""
    rng, hide = np.random.default_rng(seed), np.random.default_rng(seed + 1000)
    X, y = [], []
    for b in range(n):
        x = tokens(rng, int(rng.integers(0 if b else 3, 5 if longest == 1 else 6)))
        segments = segmentation(rng, len(x), longest)
        if b == 0:  # every label occurs
            segments = [*((t, t + 1, y) for t, y in enumerate(LABELS)), *segmentation(rng, len(x) - 3, longest)]
            segments = [(u, v, y) if k < 3 else (u + 3, v + 3, y) for k, (u, v, y) in enumerate(segments)]
        target: Any = segments
        if longest == 1 or labels_form:
            target = [y for u, v, y in segments for _ in range(u, v)]
        if partial and b:  # the first is complete, so that all kinds of features exist
            target = partial_segments(hide, segments) if target is segments else partial_labels(hide, target)
        X.append(x)
        y.append(target)
    return X, y


def segment_dict(x: list[Token], start: int, stop: int) -> dict[str, float]:
    """A function of whole segments."""
    result = {f"size{stop - start}": 1.0}
    if "a" in x[start] and "a" in x[stop - 1]:
        result["ends"] = x[start]["a"] * x[stop - 1]["a"]
    return result


BOS, EOS = sc.BOS, sc.EOS
