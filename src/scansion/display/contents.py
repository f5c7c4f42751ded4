"""What a report shows, gathered from a fitted estimator: plain data, no HTML."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from scansion.display.graph import Edge, Graph
from scansion.lattice import checks
from scansion.lattice.patterns import BOS, EOS

__all__ = ["Features", "LevelReport", "Lengths", "ReportData", "Transitions", "Tree", "gather"]

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
    title : str
        What these transitions belong to; empty if there is one set only.
    names : list of str
    weights : (n, n)
        Row = from, column = to; NaN where there is no feature.
    """

    title: str
    names: list[str]
    weights: npt.NDArray[np.float64]

    @property
    def graph(self) -> Graph:
        """All pairs that have a weight."""
        edges = [Edge(int(i), int(j), float(self.weights[i, j])) for i, j in np.argwhere(np.isfinite(self.weights))]
        return Graph(self.names, self.names, edges)


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


@dataclass
class LevelReport:
    """One level of a model; flat models have one, without a name."""

    name: str = ""
    features: list[Features] = field(default_factory=list)
    transitions: list[Transitions] = field(default_factory=list)
    automaton: Graph | None = None
    patterns: list[tuple[tuple[str, ...], float]] = field(default_factory=list)
    attribute_patterns: list[tuple[str, tuple[str, ...], float]] = field(default_factory=list)
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
    estimator : CRF, SemiCRF
        Or anything that gathers its own: a method ``_report_data(top)``.
    top : int
        Features of each label, and patterns, to show.
    """
    top = checks.count("top", top, 1)
    if hasattr(estimator, "_report_data"):
        data: ReportData = estimator._report_data(top)
        return data
    if not hasattr(estimator, "strongest_features"):
        raise ValueError(f"report needs a fitted estimator of scansion, got {type(estimator).__name__}")
    labels = [str(label) for label in estimator.classes_]  # says so if it is not fitted
    level = LevelReport(
        features=[
            Features(str(label), positive, negative)
            for label, (positive, negative) in estimator.strongest_features(top).items()
        ]
    )
    pairs = {p: w for p, w in estimator.pattern_features_.items() if len(p) == 2}
    if pairs:
        level.transitions = [transitions_of("", estimator.classes_, pairs)]
    longer = {p: w for p, w in estimator.pattern_features_.items() if len(p) > 2}
    level.patterns = [(pattern_names(p), w) for p, w in _ends(longer.items(), top)]
    tied = {(p, name): w for (name, p), w in estimator.attribute_pattern_features_.items()}
    level.attribute_patterns = [(name, pattern_names(p), w) for (p, name), w in _ends(tied.items(), top)]
    if longer:
        level.automaton = _automaton(estimator)
    level.lengths = _lengths(estimator)
    return ReportData(
        title=_title(estimator),
        facts=_facts(estimator),
        labels=labels,
        levels=[level],
        log=list(estimator.training_log_),
    )


def symbol(label: Any) -> str:
    """A label's name, or what stands for the start and the end of a sequence."""
    if isinstance(label, int) and not isinstance(label, bool) and label in (BOS, EOS):
        return "start" if label == BOS else "end"
    return str(label)


def pattern_names(pattern: Sequence[Any]) -> tuple[str, ...]:
    """A pattern by names."""
    return tuple(symbol(label) for label in pattern)


def transitions_of(title: str, labels: Sequence[Any], pairs: dict[tuple[Any, ...], float]) -> Transitions:
    """A table of label pairs; the start and the end have a row and a column if a pair has them."""
    names: dict[Any, int] = {label: i for i, label in enumerate(labels)}
    for pair in pairs:
        for label in pair:
            names.setdefault(label, len(names))
    weights = np.full((len(names), len(names)), np.nan)
    for (a, b), w in pairs.items():
        weights[names[a], names[b]] = w
    return Transitions(title, [symbol(label) for label in names], weights)


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
    named = [" ".join(symbol(y if y in (BOS, EOS) else model.labels[y]) for y in state) or "(any)" for state in states]
    looks = [symbol(model.labels[s[-1]]) if s and s[-1] >= 0 else "O" for s in states]
    return Graph(named, looks, edges)


def _lengths(estimator: Any) -> list[Lengths]:
    counts = getattr(estimator, "length_counts_", {})
    return [Lengths(str(label), row) for label, row in counts.items() if row.any()]


def _title(estimator: Any) -> str:
    name = type(estimator).__name__
    return f"{name}, order {estimator.order}" if hasattr(estimator, "order") else name


def _facts(estimator: Any) -> list[tuple[str, Any]]:
    model = estimator.model_
    facts: list[tuple[str, Any]] = [
        ("Labels", len(estimator.classes_)),
        ("Attributes", len(model.vocabulary) + len(model.cell_vocabulary)),
        ("Weights", model.n_weights),
        ("of which not 0", estimator.size_),
        ("Label patterns", len(estimator.patterns_)),
    ]
    if model.segments:
        facts.append(("Longest segment", model.max_length))
    facts.append(("Algorithm", estimator.algorithm))
    if estimator.n_iter_:
        facts.append(("Iterations", estimator.n_iter_))
        facts.append(("Training time", f"{sum(entry['seconds'] for entry in estimator.training_log_):.2f} s"))
    if math.isfinite(estimator.loss_):
        facts.append(("Loss", estimator.loss_))
    facts.append(("Parameters", repr(estimator)))
    if estimator.message_:
        facts.append(("Training ended", estimator.message_))
    return facts
