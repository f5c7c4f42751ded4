"""Activities in a kitchen, simulated: papers 000, section 9.1, and 003, section 5.1.

The data are those of `simulated_kitchen.py`. As in the paper, sub-trajectories are seen by the cell and the movement at
each time step; activities by their mean velocity, by the cells that were visited, and by their duration (gamma).
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

import scansion
from experiments.figures import curves, matrices
from experiments.levels import ProductChain, runs, spread, summary
from experiments.report import Figure, Options, Report, Table
from experiments.simulated_kitchen import ACTIVITIES, PER_ACTIVITY, ROUTES, Columns, Data, simulate
from scansion.metrics import flat_accuracy_score

TITLE = "Activities in a kitchen, simulated (paper 000, section 9.1)"
SEEDS = 5
CHOICE = 99  # the seed of the simulation that c2 is chosen on
STRENGTHS = (0.01, 0.1, 1.0)
SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8)  # of what is given when decoding
STOPPED = 10  # iterations of the model that decodes with something given
LONGEST = 30  # time steps of a sub-trajectory; partial labels do not tell
LEVELS = ("activity", "trajectory")
DECODINGS = ("viterbi", "marginal")
STEPS, SEGMENTS = ", half of the steps", ", half of the segments"
GIVEN = ("labels", "times", "labels and times")
EXPLAINED = (
    "HSCRF: as in the paper, time steps below and activities with gamma durations above, seen by mean velocity and "
    "cells visited. HSCRF, sums: activities are seen by what is seen at each time step, summed (not in the paper). "
    "HSCRF, durations below: sub-trajectories are segments, too, with gamma durations (not in the paper). product "
    "chain: a chain over pairs of activity and sub-trajectory, with a weight for each, by which the paper's DCRF is "
    "stood for. Half of the steps: of each level half of the labels and half of the boundaries are known in training, "
    "drawn time step by time step. Half of the segments: half of the segments of each level are known, label, start "
    "and end, and nothing of the others; an activity is one segment. Which sub-trajectory belongs to which activity is "
    "not told to the HSCRF then. L-BFGS until its stopping rule holds; c2 of each model is the best of "
    f"{', '.join(f'{c2:g}' for c2 in STRENGTHS)} by accuracy on a simulation of its own, and so it is decided whether "
    "sub-trajectories may lie in activities in which they were not seen."
)
PAPER = {
    "HSCRF": ("100", "93.9"),
    "product chain": ("96.5", "89.7"),
    "flat CRF": ("-", "82.6"),
    "HSCRF" + SEGMENTS: ("80.2", "90.4"),
    "flat CRF" + SEGMENTS: ("-", "83.5"),
}

Known = list[list[Any]]  # for each level, one entry a time step, None where nothing is known


# ---- what is known ---------------------------------------------------------------------------------------------------


def hide(columns: Sequence[Sequence[Any]], share: float, rng: np.random.Generator) -> Known:
    """Columns with `share` of the labels of each level replaced by None."""
    return [
        [None if hidden else label for label, hidden in zip(column, rng.random(len(column)) < share, strict=True)]
        for column in columns
    ]


def boundaries(column: Sequence[Any]) -> list[int]:
    """Where the runs of a column end, 1 or 0."""
    return [int(t + 1 == len(column) or column[t] != column[t + 1]) for t in range(len(column))]


def hide_segments(columns: Sequence[Sequence[Any]], share: float, rng: np.random.Generator) -> tuple[Known, Known]:
    """Labels and boundaries of which those of `share` of the runs of each level are unknown; borders belong to both."""
    labels: Known = []
    ends: Known = []
    for column in columns:
        labels.append([None] * len(column))
        ends.append([None] * len(column))
        for start, stop, label in runs(column):
            if rng.random() < share:
                continue
            labels[-1][start:stop] = [label] * (stop - start)
            ends[-1][start:stop] = [0] * (stop - start - 1) + [1]
            if start:
                ends[-1][start - 1] = 1
    return labels, ends


def partly(y: Sequence[Columns], seed: int) -> dict[str, tuple[list[Any], list[Any] | None]]:
    """Labels and boundaries to learn from: all, half of the time steps, half of the segments."""
    rng = np.random.default_rng(1000 + seed)
    steps = [hide(columns, 0.5, rng) for columns in y], [hide(map(boundaries, columns), 0.5, rng) for columns in y]
    pairs = [hide_segments(columns, 0.5, rng) for columns in y]
    return {"": (list(y), None), STEPS: steps, SEGMENTS: ([a for a, _ in pairs], [b for _, b in pairs])}


def accuracies(truth: Sequence[Columns], predicted: Sequence[Any]) -> tuple[float | None, float | None]:
    """Share of the time steps whose activity is right, and whose sub-trajectory is, in percent; None: no answer."""

    def accuracy(d: int) -> float | None:
        if predicted[0][d] is None:
            return None
        return round(100 * flat_accuracy_score([y[d] for y in truth], [y[d] for y in predicted]), 2)

    return accuracy(0), accuracy(1)


# ---- models ----------------------------------------------------------------------------------------------------------


class Flat:
    """A CRF of sub-trajectories alone; it has no answer about activities."""

    timed: tuple[int, ...] = ()  # levels of which start and end times can be told

    def __init__(self, **parameters: Any) -> None:
        self.model = scansion.CRF(all_possible_transitions=True, **parameters)

    def fit(self, X: Any, y: Any, ends: Any = None) -> Flat:
        self.model.fit(X, [columns[1] for columns in y])
        return self

    def predict(self, X: Any, given: Any = None, ends: Any = None, decode: Any = "viterbi") -> list[Any]:
        constraints = None if given is None else [columns[1] for columns in given]
        return [(None, column) for column in self.model.predict(X, constraints=constraints, decode=decode)]


class Product(ProductChain):
    timed: tuple[int, ...] = ()

    def fit(self, X: Any, y: Any, ends: Any = None) -> ProductChain:
        return super().fit(X, y)

    def predict(self, X: Any, given: Any = None, ends: Any = None, decode: Any = "viterbi") -> list[Any]:
        return super().predict(X, given, decode)


class Hierarchical:
    """A hierarchical CRF; `durations`: sub-trajectories are segments with gamma durations, not single steps.

    Activities have gamma durations. `sums`: what is seen of them is that of each time step, summed.
    """

    def __init__(self, longest: int, durations: bool = False, sums: bool = False, **parameters: Any) -> None:
        gamma = ("length", "log")
        self.model = scansion.HierarchicalCRF(
            LEVELS,
            max_length={"activity": longest, "trajectory": LONGEST if durations else 1},
            length_features={"activity": gamma, "trajectory": gamma if durations else ()},
            attribute_parts=None if sums else {"activity": ()},
            segment_features=None if sums else {"activity": [MeanVelocity(), cells_visited]},
            **parameters,
        )
        self.timed = (0, 1) if durations else (0,)

    def fit(self, X: Any, y: Any, ends: Any = None) -> Hierarchical:
        """`ends`: what is known of the boundaries, by level; without it y is complete."""
        self.model.fit(X, list(y) if ends is None else self._known(y, ends))
        return self

    def predict(self, X: Any, given: Any = None, ends: Any = None, decode: Any = "viterbi") -> list[Any]:
        known = None if given is None and ends is None else self._known(given or [None] * len(X), ends)
        answers = self.model.predict(X, constraints=known, decode=decode)
        return [[spread(answer[level]) for level in LEVELS] for answer in answers]

    def _known(self, given: Any, ends: Any = None) -> list[dict[str, Any]]:
        """What is known time step by time step; that single steps end at every step goes without saying."""
        result = []
        for labels, stops in zip(given, ends or [None] * len(given), strict=True):
            known: dict[str, Any] = {}
            for d, level in enumerate(LEVELS):
                told = {} if labels is None else {"labels": labels[d]}
                if stops is not None and d in self.timed:
                    told["boundaries"] = stops[d]
                known[level] = told or None
            result.append(known)
        return result


def place(token: Sequence[str]) -> tuple[int, int]:
    """The cell of a time step, from its attributes."""
    x, y = token[1].removeprefix("cell=").split(",")
    return int(x), int(y)


class MeanVelocity:
    """Mean distance from cell to cell within a span."""

    def __init__(self) -> None:
        self.x: Any = None

    def __call__(self, x: Sequence[Sequence[str]], start: int, stop: int) -> dict[str, float]:
        if x is not self.x:  # the spans of a sequence come one after another
            cells = np.array([place(token) for token in x], float)
            way = np.cumsum(np.linalg.norm(np.diff(cells, axis=0), axis=1))
            self.x, self.way = x, [0.0, *way.tolist()]
        return {"velocity": (self.way[stop - 1] - self.way[start]) / (stop - 1 - start)} if stop - start > 1 else {}


def cells_visited(x: Sequence[Sequence[str]], start: int, stop: int) -> list[str]:
    """The cells that lie in a span, each once."""
    return ["visited " + cell for cell in sorted({token[1] for token in x[start:stop]})]


MODELS = ("HSCRF", "HSCRF, sums", "HSCRF, durations below", "product chain", "flat CRF")


def model(name: str, data: Data, **settings: Any) -> Any:
    if name == "flat CRF":
        return Flat(**settings)
    if name == "product chain":
        return Product(all_possible_transitions=True, **settings)
    longest = max(map(len, data.X + data.X_test))
    return Hierarchical(longest, name == "HSCRF, durations below", name == "HSCRF, sums", **settings)


def chosen(options: Options) -> dict[str, dict[str, Any]]:
    """Parameters of each model, by the accuracy on a simulation of its own, on average over its levels."""
    if options.quick:
        return {name: {"c2": 0.1} for name in MODELS}
    data = simulate(CHOICE)
    found = {}
    for name in MODELS:
        candidates = [
            {"c2": c2, **more}
            for more in ([{"topology": "seen"}, {"topology": "all"}] if "HSCRF" in name else [{}])
            for c2 in STRENGTHS
        ]
        right = []
        for one in candidates:
            answers = model(name, data, n_jobs=options.jobs, **one).fit(data.X, data.y).predict(data.X_test)
            right.append(statistics.mean(a for a in accuracies(data.truth, answers) if a is not None))
        found[name] = candidates[int(np.argmax(right))]
        options.say(f"  {name}: {found[name]}")
    return found


# ---- runs ------------------------------------------------------------------------------------------------------------


def run(options: Options) -> Report:
    report = Report("kitchen", TITLE, notes=[EXPLAINED])
    best = chosen(options)
    table: dict[str, dict[str, list[Any]]] = {}
    iterations: dict[str, list[int]] = {}
    decoding: dict[str, dict[str, dict[str, dict[int, list[float]]]]] = {}
    structure: list[dict[str, Any]] = []
    seeds = 1 if options.quick else SEEDS
    for seed in range(seeds):
        options.say(f"  simulation {seed}:")
        data = simulate(seed, 4 if options.quick else PER_ACTIVITY)
        learnt = _learn(data, seed, options, best, table, iterations)
        stopped = {
            name: model(name, data, **best[name], max_iterations=STOPPED, n_jobs=options.jobs).fit(data.X, data.y)
            for name in MODELS
        }
        for when, fitted in (("stopped", stopped), ("converged", learnt)):
            _decode(data, seed, fitted, decoding.setdefault(when, {}))
            options.say(f"    decoding by models {_when(when)}: done")
        structure.append(_structure(data, options, best["HSCRF"]["c2"]))
    accuracy = Table(
        f"Accuracy in percent, mean and range of {seeds} simulations, by Viterbi and by marginals:",
        ["", *(f"{level}, {way}" for level in LEVELS for way in DECODINGS), *(f"paper: {level}" for level in LEVELS)],
    )
    for name, ways in table.items():
        cells = [summary([pair[d] for pair in ways[way]]) for d in (0, 1) for way in DECODINGS]
        accuracy.rows.append([name, *cells, *PAPER.get(name, (None, None))])
    report.tables.append(accuracy)
    for name in decoding:
        report.tables.append(_decoding_table(name, decoding[name]))
        for d, level in enumerate(("activities", "sub-trajectories")):
            panels = {
                what: decoding[name][f"{level}, {what}"] for what in GIVEN if f"{level}, {what}" in decoding[name]
            }
            report.figures.append(
                Figure(
                    f"{name}-{LEVELS[d]}",
                    f"Accuracy of {level} where no label is given, against the share of time steps at which something "
                    f"is; models {_when(name)} (paper 000, figure 22)",
                    lambda panels=panels: curves(panels, "given, % of time steps", "accuracy, %"),
                )
            )
    report.tables += [_structure_table(structure), _transition_table(structure[0])]
    report.figures.append(_transition_figure(structure[0]))
    between = [w for one in structure for w in one["between"]]
    report.notes += [
        f"Iterations: {'; '.join(f'{name} {min(n)} to {max(n)}' for name, n in iterations.items())}.",
        f"Weights of transitions between different activities, of which the data has none: from {min(between):.2f} to "
        f"{max(between):.2f}.",
        "Sub-trajectories: " + ", ".join(f"{number} {a} to {b}" for number, (a, b) in ROUTES.items()) + ".",
    ]
    report.results = {
        "accuracy": table,
        "chosen": best,
        "iterations": iterations,
        "decoding": decoding,
        "transitions": [{activity: sorted(found) for activity, found in one["found"].items()} for one in structure],
    }
    return report


def _when(name: str) -> str:
    return f"stopped after {STOPPED} iterations" if name == "stopped" else "at the optimum"


def _learn(
    data: Data, seed: int, options: Options, best: Any, table: dict[str, Any], iterations: dict[str, list[int]]
) -> dict[str, Any]:
    """Accuracy after learning from all labels and from half of them; returns the models of all labels."""
    limit = 10 if options.quick else None
    learnt = {}
    for suffix, (y, ends) in partly(data.y, seed).items():
        for name in MODELS:
            begin = time.perf_counter()
            fitted = model(name, data, **best[name], max_iterations=limit, n_jobs=options.jobs)
            fitted.fit(data.X, y, ends)
            if not suffix:
                learnt[name] = fitted
            for decode in DECODINGS:
                found = accuracies(data.truth, fitted.predict(data.X_test, decode=decode))
                table.setdefault(name + suffix, {}).setdefault(decode, []).append(found)
            iterations.setdefault(name, []).append(fitted.model.n_iter_)
            options.say(f"    {name}{suffix}: {found[0]} {found[1]}, {time.perf_counter() - begin:.1f} s")
    return learnt


def _decode(data: Data, seed: int, models: dict[str, Any], decoding: dict[str, Any]) -> None:
    """Accuracy at the time steps whose labels are not given, by the share of those at which something is given."""
    for name, fitted in models.items():
        for what in GIVEN if fitted.timed else GIVEN[:1]:
            for share in SHARES:
                rng = np.random.default_rng(2000 + seed)
                told = [rng.random(len(columns[0])) < share for columns in data.truth]
                labels, ends = shown(data.truth, told)
                answers = fitted.predict(
                    data.X_test, labels if "labels" in what else None, ends if "times" in what else None
                )
                for d, level in enumerate(("activities", "sub-trajectories")):
                    if answers[0][d] is None:
                        continue
                    right = [
                        a == b
                        for truth, answer, known in zip(data.truth, answers, told, strict=True)
                        for a, b, k in zip(truth[d], answer[d], known, strict=True)
                        if not (k and "labels" in what)
                    ]
                    points = decoding.setdefault(f"{level}, {what}", {}).setdefault(name, {})
                    points.setdefault(round(100 * share), []).append(round(100 * float(np.mean(right)), 2))


def shown(truth: Sequence[Columns], told: Sequence[Any]) -> tuple[list[Known], list[Known]]:
    """Labels and boundaries of all levels at the time steps that are told."""

    def some(columns: Any, known: Any) -> Known:
        return [[a if k else None for a, k in zip(column, known, strict=True)] for column in columns]

    pairs = list(zip(truth, told, strict=True))
    return [some(y, k) for y, k in pairs], [some(map(boundaries, y), k) for y, k in pairs]


def _decoding_table(name: str, decoding: dict[str, Any]) -> Table:
    table = Table(
        f"Models {_when(name)}: accuracy in percent at the time steps whose labels are not given, by the share of time "
        "steps at which labels (of both levels), or whether a segment ends there (at levels of segments), or both are:",
        ["", *(f"{share:.0%}" for share in SHARES)],
    )
    for level, panel in decoding.items():
        for model_name, points in panel.items():
            cells = [f"{statistics.mean(points[round(100 * share)]):.1f}" for share in SHARES]
            table.rows.append([f"{level}: {model_name}", *cells])
    return table


# ---- structure -------------------------------------------------------------------------------------------------------


def true_transitions() -> dict[str, set[tuple[int, int]]]:
    """Changes of sub-trajectory by activity, without beginning and end."""
    return {
        activity: {(u, v) for u, following in chain.items() for v in following if u and v}
        for activity, chain in ACTIVITIES.items()
    }


def positive_transitions(weights: dict[Any, float]) -> dict[str, set[tuple[int, int]]]:
    """Changes of sub-trajectory whose weight is above zero, by activity."""
    found: dict[str, set[tuple[int, int]]] = {activity: set() for activity in ACTIVITIES}
    for (level, activity, u, v, *_), weight in weights.items():
        if level == "trajectory" and u != v and weight > 0:
            found[activity].add((u, v))
    return found


def seen_transitions(data: Data) -> dict[str, set[tuple[int, int]]]:
    """Changes of sub-trajectory that occur in the training data."""
    found: dict[str, set[tuple[int, int]]] = {activity: set() for activity in ACTIVITIES}
    for above, below in data.y:
        labels = [label for _, _, label in runs(below)]
        found[above[0]] |= set(zip(labels, labels[1:], strict=False))
    return found


def _structure(data: Data, options: Options, c2: float) -> dict[str, Any]:
    """Transitions, learnt by a model in which every sub-trajectory may occur in every activity."""
    settings = {"c2": c2, "n_jobs": options.jobs, "max_iterations": 10 if options.quick else None, "topology": "all"}
    weights = model("HSCRF", data, **settings).fit(data.X, data.y).model.transition_features_
    return {
        "weights": weights,
        "found": positive_transitions(weights),
        "seen": seen_transitions(data),
        "between": [weight for (level, *_), weight in weights.items() if level == "activity"],
    }


def _structure_table(structure: Sequence[dict[str, Any]]) -> Table:
    """How much of the structure each simulation gave."""
    truth = true_transitions()
    table = Table(
        "What is learnt when every sub-trajectory may occur in every activity: changes of sub-trajectory with a weight "
        f"above zero, beside the {sum(map(len, truth.values()))} of the simulator (of which training data may lack "
        "some), and activities whose set of sub-trajectories is right:",
        ["simulation", "right", "missing", "of these seen in training", "wrong", "activities with the right members"],
    )
    for seed, one in enumerate(structure):
        found = one["found"]
        lacking = {a: truth[a] - found[a] for a in truth}
        members = [{u for pair in found[a] for u in pair} == {u for pair in truth[a] for u in pair} for a in truth]
        table.rows.append(
            [
                seed,
                sum(len(truth[a] & found[a]) for a in truth),
                sum(map(len, lacking.values())),
                sum(len(lacking[a] & one["seen"][a]) for a in truth),
                sum(len(found[a] - truth[a]) for a in truth),
                f"{sum(members)} of {len(members)}",
            ]
        )
    return table


def _transition_table(one: dict[str, Any]) -> Table:
    truth = true_transitions()
    table = Table(
        "The same of the first simulation, change by change:",
        ["activity", "sub-trajectories", "changes", "missing", "wrong"],
    )

    def write(pairs: set[tuple[int, int]]) -> str:
        return ", ".join(f"{u} > {v}" for u, v in sorted(pairs))

    for activity, changes in one["found"].items():
        members = sorted({u for pair in changes for u in pair})
        lacking, wrong = truth[activity] - changes, changes - truth[activity]
        table.rows.append([activity, ", ".join(map(str, members)), write(changes), write(lacking), write(wrong)])
    return table


def _transition_figure(one: dict[str, Any]) -> Figure:
    weights = one["weights"]
    panels = {
        activity: np.array([[weights.get(("trajectory", activity, u, v), np.nan) for v in ROUTES] for u in ROUTES])
        for activity in ACTIVITIES
    }
    each = dict.fromkeys(panels, [str(number) for number in ROUTES])
    return Figure(
        "transitions",
        "Weights of transitions between sub-trajectories (row to column) by activity (paper 000, figure 21)",
        lambda: matrices(panels, each, each, label="weight"),
    )
