"""Hierarchical models by definition: every tree of tiny sequences, its features counted one by one.

The oracle of `test_hierarchical.py`. It takes from a model which features it has and where their weights stand
(`NestedModel.parts`), and nothing else.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import logsumexp

from scansion.models.nested_model import NestedModel
from scansion.reference.trees import parents, trees

ATTRIBUTES = ("a", "b", "edge.c", "edge.d", "pair.e")
LABELS = {"top": ("X", "Y"), "middle": ("m", "n"), "low": ("p", "q", "r")}

Token = dict[str, float]


def tokens(rng: np.random.Generator, length: int) -> list[Token]:
    """Tokens whose attributes have real values, now and then none."""
    return [{a: float(rng.normal()) for a in ATTRIBUTES if rng.random() < 0.6} for _ in range(length)]


def tree(rng: np.random.Generator, length: int, levels: list[str], bounds: list[int]) -> dict[str, list[Any]]:
    """Random nested segments over the whole length, by level; no label lies in the one before it of the level above."""
    result: dict[str, list[Any]] = {}
    spans = [(0, length)] if length else []
    for level, bound in zip(levels, bounds, strict=True):
        segments = []
        for first, last in spans:
            start = first
            while start < last:
                stop = start + int(rng.integers(1, min(bound, last - start) + 1))
                segments.append((start, stop, str(rng.choice(LABELS[level]))))
                start = stop
        result[level] = segments
        spans = [(u, v) for u, v, _ in segments]
    return result


def partial(rng: np.random.Generator, row: dict[str, list[Any]], length: int) -> Any:
    """What remains when segments, labels, boundaries or whole levels are hidden."""
    if rng.random() < 0.15:
        return None
    result: dict[str, Any] = {}
    for level, segments in row.items():
        kind = int(rng.integers(4))
        if kind == 0:
            continue
        if kind == 1:  # some segments, some of their labels
            kept = [s for s in segments if rng.random() < 0.6]
            names = LABELS[level]
            blur = [lambda y: y, lambda y: None, lambda y, names=names: {y, names[0]}]
            result[level] = [(u, v, blur[int(rng.integers(3))](y)) for u, v, y in kept]
        elif kind == 2:  # tokens and boundaries one by one
            labels = [y for u, v, y in segments for _ in range(u, v)]
            ends = [int(t + 1 in {v for _, v, _ in segments}) for t in range(length)]
            result[level] = {
                "labels": [y if rng.random() < 0.5 else None for y in labels],
                "boundaries": [e if rng.random() < 0.5 else None for e in ends],
            }
        else:
            result[level] = segments
    return result


def data(
    seed: int, levels: list[str], bounds: list[int], *, hidden: bool = False, n: int = 4, longest: int = 4
) -> tuple[Any, Any]:
    """n sequences of up to `longest` tokens, with targets."""
    rng = np.random.default_rng(seed)
    lengths = [int(rng.integers(1, longest + 1)) for _ in range(n)]
    X = [tokens(rng, length) for length in lengths]
    rows = [tree(rng, length, levels, bounds) for length in lengths]
    if hidden:  # the first is complete: every level has a label
        rows[1:] = [partial(rng, row, length) for row, length in zip(rows[1:], lengths[1:], strict=True)]
    return X, rows


def agrees(config: Any, target: Any, model: NestedModel) -> bool:
    """Whether a tree is one of those that a target leaves open."""
    if target is None:
        return True
    for k, level in enumerate(model.levels):
        known = target.get(level.name)
        found = {(u, v): level.labels[s] for u, v, s in config[k + 1]}
        if known is None:
            continue

        def fits(label: Any, wanted: Any) -> bool:
            return wanted is None or label == wanted or (isinstance(wanted, set) and label in wanted)

        if isinstance(known, dict):
            labels = [y for (u, v), y in sorted(found.items()) for _ in range(u, v)]
            stops = {v for _, v in found}
            for t, wanted in enumerate(known.get("labels", [])):
                if not fits(labels[t], wanted):
                    return False
            for t, end in enumerate(known.get("boundaries", [])):
                if end is not None and int(t + 1 in stops) != end:
                    return False
        elif not all((u, v) in found and fits(found[u, v], y) for u, v, y in known):
            return False
    return True


class Oracle:
    """All trees of tiny sequences with their features.

    Parameters
    ----------
    model : NestedModel
    X, y : the sequences and targets
    span : dict level -> function of a span, optional
    weight : (B,), optional
    """

    def __init__(self, model: NestedModel, X: Any, y: Any, span: Any = None, weight: Any = None) -> None:
        self.model = model
        self.weight = np.ones(len(X)) if weight is None else weight
        self.span = span or {}
        self.place = {}
        for block, where in model.parts():
            rows, columns = model.row_names(block), model.column_names(block)
            for i, (row, column) in enumerate(zip(block.row.tolist(), block.columns.tolist(), strict=True)):
                self.place[(*block.key, rows[row], columns[column])] = where.start + i
        self.rows = []
        for x, target in zip(X, y, strict=True):
            configs = list(self.configurations(len(x)))
            features = np.array([self.features(x, c) for c in configs]).reshape(len(configs), model.n_weights)
            kept = np.array([agrees(c, target, model) for c in configs])
            self.rows.append((configs, features, kept))

    def configurations(self, length: int) -> Any:
        """All trees that the model allows."""
        model = self.model
        sizes = [1, *(level.size for level in model.levels)]
        bounds = [max(length, 1), *(level.max_length or max(length, 1) for level in model.levels)]
        for config in trees(length, sizes, bounds, model.children):
            if all(self._allowed(config, k) for k in range(len(model.levels))):
                yield config

    def _allowed(self, config: Any, k: int) -> bool:
        possible = self.model.possible[k]
        for (_, _, p), chain in parents(config, k):
            states = [s for _, _, s in chain]
            if not (possible["initialisation"][p, states[0]] and possible["ending"][p, states[-1]]):
                return False
            if not all(possible["transition"][p, u, v] for u, v in zip(states, states[1:], strict=False)):
                return False
        return True

    def features(self, x: list[Token], config: Any) -> np.ndarray:
        """(W,) how much each feature counts in a tree."""
        model, out = self.model, np.zeros(self.model.n_weights)

        def add(k: int, part: str, always: bool, row: str, column: tuple[Any, ...], value: float) -> None:
            at = self.place.get((k, part, always, row, column))
            if at is not None:
                out[at] += value

        for k, level in enumerate(model.levels):
            names = level.labels
            above = model.levels[k - 1].labels if k else [None]
            for u, v, s in config[k + 1]:
                where = {"inside": range(u, v), "start": [u], "end": [v - 1], "inner": range(u + 1, v)}
                for part, positions in where.items():
                    for t in positions:
                        for name, value in x[t].items():
                            add(k, part, False, name, (names[s],), value)
                for name, row in zip(level.basis_names, level.basis, strict=True):
                    value = row[0] * (v - u) if level.max_length is None else row[v - u - 1]
                    add(k, "length", False, name, (names[s],), float(value))
                if level.name in self.span:
                    for name, value in self.span[level.name](x, u, v).items():
                        add(k, "span", False, name, (names[s],), value)
            for (start, stop, p), chain in parents(config, k):
                first, last = chain[0], chain[-1]
                cliques = [
                    ("initialisation", start, (above[p], names[first[2]])),
                    ("ending", stop - 1, (above[p], names[last[2]])),
                ]
                for left, right in zip(chain, chain[1:], strict=False):
                    cliques.append(("transition", right[0], (above[p], names[left[2]], names[right[2]])))
                for part, t, column in cliques:
                    add(k, part, True, "", column, 1.0)
                    for name, value in x[t].items():
                        add(k, part, False, name, column, value)
        return out

    def log_loss(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        """Negative log likelihood and its gradient, by definition."""
        loss, gradient = 0.0, np.zeros(len(w))
        for g, (_, features, kept) in zip(self.weight, self.rows, strict=True):
            scores = features @ w
            for sign, chosen in ((1.0, np.ones(len(kept), bool)), (-1.0, kept)):
                log_z = logsumexp(scores[chosen])
                loss += sign * g * log_z
                gradient += sign * g * np.exp(scores[chosen] - log_z) @ features[chosen]
        return float(loss), gradient
