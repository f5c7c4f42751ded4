"""What a report shows, gathered from a fitted estimator: plain data, no HTML."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt

from scansion import _checks as checks
from scansion.display.graph import Edge, Graph
from scansion.lattice.patterns import BOS, EOS

__all__ = ["AttributePattern", "Features", "LevelReport", "Lengths", "ReportData", "Transitions", "Tree", "gather"]

_MOST_STEPS = 30_000  # of an automaton that is looked at: states times labels

Weighted = tuple[str, float]


@dataclass(frozen=True)
class Features:
    """The strongest features of a label: name and weight, strongest first."""

    label: str
    positive: list[Weighted]
    negative: list[Weighted]


@dataclass(frozen=True)
class Transitions:
    """Weights from one label to the next, as a table and as a graph.

    Attributes
    ----------
    names : list of str
    looks : list of str
        The label whose colour each has; the start and the end of a sequence are grey.
    weights : (n, n)
        Row = from, column = to; NaN where there is no feature.
    parent : str, optional
        The label of the level above inside which these transitions are.
    """

    names: list[str]
    looks: list[str]
    weights: npt.NDArray[np.float64]
    parent: str | None = None

    @property
    def graph(self) -> Graph:
        """All pairs that have a weight."""
        edges = [Edge(int(i), int(j), float(self.weights[i, j])) for i, j in np.argwhere(np.isfinite(self.weights))]
        return Graph(self.names, self.looks, edges)


@dataclass(frozen=True)
class Lengths:
    """Lengths 1 .. M of a label's segments.

    Attributes
    ----------
    label : str
    counts : (M,)
        Segments in training.
    """

    label: str
    counts: npt.NDArray[np.int64]


@dataclass(frozen=True)
class Tree:
    """A label and the labels that may be inside it."""

    label: str
    children: list[Tree]
    note: str = ""


@dataclass(frozen=True)
class AttributePattern:
    """An attribute with labels one after another, inside a label of the level above if there is one."""

    attribute: str
    labels: tuple[str, ...]
    weight: float
    parent: str | None = None


@dataclass
class LevelReport:
    """One level of a model; flat models have one, without a name."""

    name: str = ""
    features: list[Features] = field(default_factory=list)
    transitions: list[Transitions] = field(default_factory=list)
    automaton: Graph | None = None
    patterns: list[tuple[tuple[str, ...], float]] = field(default_factory=list)
    attribute_patterns: list[AttributePattern] = field(default_factory=list)
    lengths: list[Lengths] = field(default_factory=list)


@dataclass
class ReportData:
    """A report."""

    title: str
    facts: list[tuple[str, Any]]
    labels: list[str]
    levels: list[LevelReport]
    tree: list[Tree] = field(default_factory=list)
    log: list[dict[str, Any]] = field(default_factory=list)


def gather(estimator: Any, top: int = 20) -> ReportData:
    """What a report on a fitted estimator shows.

    Parameters
    ----------
    estimator : CRF, SemiCRF, HierarchicalCRF
    top : int
        Features of each label, and patterns, to show.
    """
    top = checks.count("top", top, 1)
    kind = getattr(estimator, "_kind", None)
    if kind not in ("crf", "semicrf", "hierarchical"):
        raise ValueError(f"report needs a fitted estimator of scansion, got {type(estimator).__name__}")
    return _nested(estimator, top) if kind == "hierarchical" else _flat(estimator, top)


def _flat(estimator: Any, top: int) -> ReportData:
    labels = [str(label) for label in estimator.classes_]  # says so if it is not fitted
    level = LevelReport(features=_features(estimator.strongest_features(top)))
    patterns = {_marked(p, estimator.classes_): w for p, w in estimator.pattern_features_.items()}
    pairs = {p: w for p, w in patterns.items() if len(p) == 2}
    if pairs:
        level.transitions = [transitions_of(estimator.classes_, pairs)]
    longer = {p: w for p, w in patterns.items() if len(p) > 2}
    level.patterns = [(pattern_names(p), w) for p, w in _ends(longer.items(), top)]
    tied = {(_marked(p, estimator.classes_), name): w for (name, p), w in estimator.attribute_pattern_features_.items()}
    level.attribute_patterns = [
        AttributePattern(name, pattern_names(p), w) for (p, name), w in _ends(tied.items(), top)
    ]
    if longer:
        level.automaton = _automaton(estimator)
    level.lengths = _lengths(getattr(estimator, "length_counts_", {}))
    model = estimator.model_
    facts: list[tuple[str, Any]] = [
        ("Labels", len(labels)),
        ("Attributes", len(model.vocabulary) + len(model.level.span_vocabulary)),
        ("Weights", model.n_weights),
        ("of which not 0", estimator.size_),
        ("Label patterns", len(estimator.patterns_)),
    ]
    if model.segments:
        facts.append(("Longest segment", model.max_length))
    title = f"{type(estimator).__name__}, order {estimator.order}"
    return ReportData(title, facts + _training(estimator), labels, [level], log=list(estimator.training_log_))


def _nested(estimator: Any, top: int) -> ReportData:
    classes = estimator.classes_
    names = list(classes)
    features, counts = estimator.strongest_features(top), estimator.length_counts_
    levels = []
    for k, name in enumerate(names):
        level = LevelReport(name, features=_features(features[name]), lengths=_lengths(counts.get(name, {})))
        parents = [None] if k == 0 else classes[names[k - 1]]
        found: dict[Any, dict[tuple[Any, ...], float]] = {parent: {} for parent in parents}
        tied: dict[tuple[str, tuple[Any, ...], Any], float] = {}
        for source, ends in (
            (estimator.initialisation_features_, (_Mark.START, None)),
            (estimator.transition_features_, (None, None)),
            (estimator.ending_features_, (None, _Mark.END)),
        ):
            for (of, parent, *rest), w in source.items():
                if of != name:
                    continue
                n = 2 if ends == (None, None) else 1
                labels = tuple(x for x in (ends[0], *rest[:n], ends[1]) if x is not None)
                if len(rest) == n:
                    found[parent][labels] = w
                else:
                    tied[rest[n], labels, parent] = w
        level.transitions = [
            transitions_of(classes[name], pairs, None if parent is None else str(parent))
            for parent, pairs in found.items()
            if pairs
        ]
        level.attribute_patterns = [
            AttributePattern(attribute, pattern_names(p), w, None if parent is None else str(parent))
            for (attribute, p, parent), w in _ends(tied.items(), top)
        ]
        levels.append(level)
    model = estimator.model_
    facts: list[tuple[str, Any]] = [
        ("Levels", ", ".join(names)),
        ("Labels", ", ".join(str(len(labels)) for labels in classes.values())),
        ("Attributes", len(model.vocabulary)),
        ("Weights", model.n_weights),
        ("of which not 0", estimator.size_),
        ("Longest segment", ", ".join("free" if m is None else str(m) for m in estimator.max_length_.values())),
    ]
    return ReportData(
        type(estimator).__name__,
        facts + _training(estimator),
        [str(label) for labels in classes.values() for label in labels],
        levels,
        tree=_tree(names, classes, estimator.topology_, 0, classes[names[0]]),
        log=list(estimator.training_log_),
    )


def _tree(
    names: list[str],
    classes: dict[str, list[Any]],
    topology: dict[str, dict[Any, list[Any]]],
    k: int,
    labels: list[Any],
) -> list[Tree]:
    inner = topology.get(names[k], {})
    return [
        Tree(str(label), _tree(names, classes, topology, k + 1, inner[label]) if label in inner else [])
        for label in labels
    ]


def _features(strongest: dict[Any, tuple[list[Weighted], list[Weighted]]]) -> list[Features]:
    return [Features(str(label), positive, negative) for label, (positive, negative) in strongest.items()]


class _Mark(Enum):
    """The start and the end of a sequence, or of a parent, among labels; unlike BOS and EOS never equal to a label."""

    START = "start"
    END = "end"


def _marked(pattern: tuple[Any, ...], labels: Sequence[Any]) -> tuple[Any, ...]:
    """A pattern with marks in place of BOS and EOS, which are numbers that labels may be as well."""
    marks = {y: mark for y, mark in ((BOS, _Mark.START), (EOS, _Mark.END)) if y not in labels}
    return tuple(marks.get(y, y) if isinstance(y, int) else y for y in pattern)


def symbol(label: Any) -> str:
    """A label's name, or what stands for the start and the end."""
    return str(label.value) if isinstance(label, _Mark) else str(label)


def pattern_names(pattern: Sequence[Any]) -> tuple[str, ...]:
    """A pattern by names."""
    return tuple(symbol(label) for label in pattern)


def transitions_of(
    labels: Sequence[Any], pairs: dict[tuple[Any, ...], float], parent: str | None = None
) -> Transitions:
    """A table of label pairs; the start and the end have a row and a column if a pair has them."""
    names: dict[Any, int] = {label: i for i, label in enumerate(labels)}
    for pair in pairs:
        for label in pair:
            names.setdefault(label, len(names))
    weights = np.full((len(names), len(names)), np.nan)
    for (a, b), w in pairs.items():
        weights[names[a], names[b]] = w
    named = [symbol(label) for label in names]
    looks = ["O" if isinstance(label, _Mark) else name for label, name in zip(names, named, strict=True)]
    return Transitions(named, looks, weights, parent)


def _ends(items: Any, top: int) -> list[Any]:
    """The `top` highest and the `top` lowest, from high to low."""
    ranked = sorted(items, key=lambda item: -item[1])
    return ranked if len(ranked) <= 2 * top else ranked[:top] + ranked[-top:]


def _automaton(estimator: Any) -> Graph | None:
    """States of the pattern automaton, and the summed weights of all patterns that each step completes."""
    model = estimator.model_
    net = model.automaton
    if net.n_states * net.n_labels > _MOST_STEPS:
        return None
    states, follow, n = net.states, net.next, model.n_labels
    weights = model.weights[: model.n_bias]
    edges: list[Edge] = []
    for p in range(net.n_states):
        best: dict[int, float] = {}
        for y in range(n):
            matched = [z - n for z in net.matches(p, y) if n <= z < n + model.n_bias]
            if matched:
                q = int(follow[p, y])
                best[q] = best.get(q, 0.0) + float(weights[matched].sum())
        edges += [Edge(p, q, w) for q, w in best.items()]
    marks = {BOS: _Mark.START, EOS: _Mark.END}  # a state has numbers of labels, which are never below 0
    named = [" ".join(symbol(marks[y] if y < 0 else model.labels[y]) for y in state) or "(any)" for state in states]
    looks = [symbol(model.labels[s[-1]]) if s and s[-1] >= 0 else "O" for s in states]
    return Graph(named, looks, edges)


def _lengths(counts: dict[Any, npt.NDArray[np.int64]]) -> list[Lengths]:
    """Distributions to show; none where all segments have one token."""
    if not any(row[1:].any() for row in counts.values()):
        return []
    return [Lengths(str(label), row) for label, row in counts.items() if row.any()]


def _training(estimator: Any) -> list[tuple[str, Any]]:
    """How the weights came about."""
    facts: list[tuple[str, Any]] = [("Algorithm", estimator.algorithm)]
    if estimator.n_iter_:
        seconds = sum(entry["seconds"] for entry in estimator.training_log_)
        facts += [("Iterations", estimator.n_iter_), ("Training time", f"{seconds:.2f} s")]
    if math.isfinite(estimator.loss_):
        facts.append(("Loss", estimator.loss_))
    facts.append(("Parameters", repr(estimator)))
    if estimator.message_:
        facts.append(("Training ended", estimator.message_))
    return facts
