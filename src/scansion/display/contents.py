"""What a report shows, gathered from a fitted estimator: plain data, no HTML."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from scansion import _checks as checks
from scansion.display.graph import Edge, Graph
from scansion.lattice.patterns import BOS
from scansion.models.weights import Feature, Mark

__all__ = ["LevelReport", "ReportData", "Transitions", "Tree", "gather"]

_MOST_STEPS = 30_000  # of an automaton that is looked at: states times labels

Counts = npt.NDArray[np.int64]
Weighted = tuple[str, float]
Tree = list[tuple[Any, Any]]
"""Labels with the trees of the labels that may be inside them."""


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
    parent : label, optional
        The label of the level above inside which these transitions are.
    """

    names: list[str]
    looks: list[str]
    weights: npt.NDArray[np.float64]
    parent: Any = None

    @property
    def graph(self) -> Graph:
        """All pairs that have a weight."""
        edges = [Edge(int(i), int(j), float(self.weights[i, j])) for i, j in np.argwhere(np.isfinite(self.weights))]
        return Graph(self.names, self.looks, edges)


@dataclass
class LevelReport:
    """One level of a model; the only one has no name.

    Attributes
    ----------
    name : str
    features : dict label -> (for it, against it)
        The strongest attributes, (name, weight), strongest first.
    transitions : list of Transitions
    automaton : Graph, optional
    patterns : list of Feature
        Three labels and more.
    attribute_patterns : list of Feature
        Two labels and more with an attribute.
    lengths : dict label -> (M,)
        Segments in training that have the length 1 .. M.
    """

    name: str
    features: dict[Any, tuple[list[Weighted], list[Weighted]]]
    transitions: list[Transitions]
    automaton: Graph | None
    patterns: list[Feature]
    attribute_patterns: list[Feature]
    lengths: dict[Any, Counts]


@dataclass
class ReportData:
    """A report."""

    title: str
    facts: list[tuple[str, Any]]
    labels: list[Any]
    levels: list[LevelReport]
    tree: Tree
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
    if not hasattr(type(estimator), "levels_"):
        raise ValueError(f"report needs a fitted estimator of scansion, got {type(estimator).__name__}")
    levels = estimator.levels_  # says so if it is not fitted
    features: list[list[Feature]] = [[] for _ in levels]
    for feature in estimator.level_features(single=False):
        features[feature.level].append(feature)
    strongest = estimator.by_level(estimator.strongest_features(top))
    counts = estimator.by_level(getattr(estimator, "length_counts_", {}))
    several = len(levels) > 1
    reports = []
    for k, level in enumerate(levels):
        pairs: dict[Any, dict[Any, float]] = {parent: {} for parent in (levels[k - 1].labels if k else [None])}
        longer, tied = [], []
        for f in features[k]:
            if f.attribute is not None:
                tied.append(f)
            elif len(f.labels) > 2:
                longer.append(f)
            else:
                pairs[f.parent][f.labels] = f.weight
        reports.append(
            LevelReport(
                level.name if several else "",
                strongest[k],
                [_transitions(level.labels, weights, parent) for parent, weights in pairs.items() if weights],
                _automaton(estimator.model_) if longer else None,
                _ends(longer, top),
                _ends(tied, top),
                _lengths(counts[k]),
            )
        )
    return ReportData(
        type(estimator).__name__ + (f", order {estimator.order}" if "order" in estimator.get_params() else ""),
        _facts(estimator, levels),
        [label for level in levels for label in level.labels],
        reports,
        tree=_tree(estimator.topology_, [level.name for level in levels], levels[0].labels) if several else [],
        log=list(estimator.training_log_),
    )


def _tree(topology: dict[str, dict[Any, list[Any]]], names: list[str], labels: list[Any]) -> Tree:
    """Labels of the first of these levels with what may be inside them."""
    inner = topology.get(names[0], {})
    return [(label, _tree(topology, names[1:], inner[label]) if label in inner else []) for label in labels]


def _transitions(labels: Sequence[Any], pairs: dict[Any, float], parent: Any) -> Transitions:
    """A table of label pairs; the start and the end have a row and a column if a pair has them."""
    names: dict[Any, int] = {label: i for i, label in enumerate(labels)}
    for pair in pairs:
        for label in pair:
            names.setdefault(label, len(names))
    weights = np.full((len(names), len(names)), np.nan)
    for (a, b), w in pairs.items():
        weights[names[a], names[b]] = w
    looks = ["O" if isinstance(label, Mark) else str(label) for label in names]
    return Transitions(list(map(str, names)), looks, weights, parent)


def _ends(features: list[Feature], top: int) -> list[Feature]:
    """The `top` highest and the `top` lowest, from high to low."""
    ranked = sorted(features, key=lambda f: -f.weight)
    return ranked if len(ranked) <= 2 * top else ranked[:top] + ranked[-top:]


def _automaton(model: Any) -> Graph | None:
    """States of the pattern automaton, and the summed weights of all patterns that each step completes."""
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
    # a state has numbers of labels, and BOS and EOS, which are below 0
    named = [[str(model.labels[y] if y >= 0 else Mark.START if y == BOS else Mark.END) for y in s] for s in states]
    looks = [name[-1] if s and s[-1] >= 0 else "O" for name, s in zip(named, states, strict=True)]
    return Graph([" ".join(name) or "(any)" for name in named], looks, edges)


def _facts(estimator: Any, levels: Sequence[Any]) -> list[tuple[str, Any]]:
    """The summary: what the model is, and how its weights came about."""

    def of_levels(values: list[Any]) -> Any:
        return values[0] if len(values) == 1 else ", ".join(map(str, values))

    model = estimator.model_
    facts: list[tuple[str, Any]] = [
        ("Labels", of_levels([len(level.labels) for level in levels])),
        ("Attributes", len(model.vocabulary) + sum(len(level.span_vocabulary) for level in levels)),
        ("Weights", model.n_weights),
        ("of which not 0", estimator.size_),
    ]
    if len(levels) > 1:
        facts.insert(0, ("Levels", of_levels([level.name for level in levels])))
    if "order" in estimator.get_params():
        facts.append(("Label patterns", len(estimator.patterns_)))
    if estimator.segments_:
        longest = ["free" if level.max_length is None else level.max_length for level in levels]
        facts.append(("Longest segment", of_levels(longest)))
    facts.append(("Algorithm", estimator.algorithm))
    if estimator.n_iter_:
        seconds = sum(entry["seconds"] for entry in estimator.training_log_)
        facts += [("Iterations", estimator.n_iter_), ("Training time", f"{seconds:.2f} s")]
    if math.isfinite(estimator.loss_):
        facts.append(("Loss", estimator.loss_))
    facts.append(("Parameters", repr(estimator)))
    if estimator.message_:
        facts.append(("Training ended", estimator.message_))
    return facts


def _lengths(counts: dict[Any, Counts]) -> dict[Any, Counts]:
    """Distributions to show; none where all segments have one token."""
    several = any(row[1:].any() for row in counts.values())
    return {label: row for label, row in counts.items() if several and row.any()}
