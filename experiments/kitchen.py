"""Activities in a kitchen, simulated: papers 000, section 9.1, and 003, section 5.1.

The papers' 90 sequences of positions (Nguyen et al., 2005) are not public. What the text tells of them is kept: a
person is tracked in a kitchen; each sequence is one of three activities, a short meal, a snack or a normal meal; the
activities share some of twelve sub-trajectories, each from one place to another; what is seen is a sequence of discrete
positions with noise; 45 sequences to learn from and 45 to test. The room, the routes, the times and the noise are ours:

- a room of 7 x 4 cells with six places (`PLACES`);
- an activity is a Markov chain over its sub-trajectories (`ACTIVITIES`), from the door to the door;
- in a sub-trajectory the person walks straight to the place, at a speed that varies, and stays there for a while
  (gamma); the tracker adds Gaussian noise of `NOISE` cells, the same for some steps (it drifts), and tells the cell.

`NOISE` was set so that the flat CRF is right at about 83 % of the time steps, as in the paper; no other model had been
run by then.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import scansion
from experiments.figures import curves, matrices
from experiments.levels import ProductChain, spread, summary
from experiments.report import Figure, Options, Report, Table
from scansion.metrics import flat_accuracy_score

TITLE = "Activities in a kitchen, simulated (paper 000, section 9.1)"
WIDTH, HEIGHT = 7, 4
PLACES = {
    "door": (0.0, 0.0),
    "TV chair": (1.0, 2.6),
    "cupboard": (2.6, 3.0),
    "fridge": (4.4, 3.0),
    "stove": (5.8, 1.8),
    "dining chair": (4.4, 0.6),
}
ROUTES = {
    1: ("door", "cupboard"),
    2: ("cupboard", "fridge"),
    3: ("fridge", "dining chair"),
    4: ("dining chair", "door"),
    5: ("door", "TV chair"),
    6: ("TV chair", "cupboard"),
    7: ("fridge", "TV chair"),
    8: ("TV chair", "door"),
    9: ("fridge", "stove"),
    10: ("stove", "dining chair"),
    11: ("fridge", "door"),
    12: ("dining chair", "fridge"),
}
# What comes after what, with its probability; 0 begins and ends an activity.
ACTIVITIES: dict[str, dict[int, dict[int, float]]] = {
    "short meal": {
        0: {1: 1.0},
        1: {2: 1.0},
        2: {3: 1.0},
        3: {4: 0.5, 12: 0.5},
        12: {3: 0.5, 11: 0.5},
        4: {0: 1.0},
        11: {0: 1.0},
    },
    "snack": {0: {5: 1.0}, 5: {6: 1.0}, 6: {2: 1.0}, 2: {7: 1.0}, 7: {6: 0.4, 8: 0.6}, 8: {0: 1.0}},
    "normal meal": {
        0: {1: 1.0},
        1: {2: 1.0},
        2: {9: 1.0},
        9: {10: 1.0},
        10: {4: 0.5, 12: 0.5},
        12: {9: 1.0},
        4: {0: 1.0},
    },
}
SPEED = 0.8  # cells per time step
STAY = (3.0, 1.0)  # shape and scale of the time at a place
NOISE, DRIFT = 0.5, 0.5
PER_ACTIVITY = 15  # sequences of each activity, for training and for test
SEEDS = 5
SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)  # of the labels, given when decoding
STOPPED = 10  # iterations of the model that decodes with given labels
C2 = 0.1
ITERATIONS = 60
LONGEST = 30  # time steps of a sub-trajectory; partial labels do not tell
LEVELS = ("activity", "trajectory")
HALF = ", half of the labels"
EXPLAINED = (
    "HSCRF: as in the paper, time steps below and activities with gamma durations above. HSCRF, durations below: "
    "sub-trajectories are segments, too, with gamma durations (not in the paper). product chain: a chain over pairs of "
    "activity and sub-trajectory, by which the paper's DCRF is solved exactly. Half of the labels: of each level half "
    "of the labels and half of the boundaries are known in training, drawn at random; which sub-trajectory belongs to "
    f"which activity is then not told to the HSCRF. L-BFGS, c2 = {C2:g}, {ITERATIONS} iterations at most."
)
PAPER = {
    "HSCRF": ("100", "93.9"),
    "product chain": ("96.5", "89.7"),
    "flat CRF": ("-", "82.6"),
    "HSCRF" + HALF: ("80.2", "90.4"),
    "flat CRF" + HALF: ("-", "83.5"),
}

Cells = npt.NDArray[np.int64]
Columns = tuple[list[str], list[int]]


def walk(rng: np.random.Generator, activity: str) -> tuple[npt.NDArray[np.float64], list[int]]:
    """True positions (T, 2) and the number of the sub-trajectory at each time step."""
    chain = ACTIVITIES[activity]
    points: list[npt.NDArray[np.float64]] = []
    labels: list[int] = []
    at = 0
    while True:
        at = int(rng.choice(list(chain[at]), p=list(chain[at].values())))
        if at == 0:
            return np.array(points), labels
        start, stop = (np.array(PLACES[place]) for place in ROUTES[at])
        steps = max(2, round(float(np.linalg.norm(stop - start)) / (SPEED * rng.uniform(0.7, 1.3))))
        stay = 1 + round(float(rng.gamma(*STAY)))
        way = np.concatenate([np.linspace(0, 1, steps + 1)[1:], np.ones(stay)])
        points.extend(start + share * (stop - start) for share in way)
        labels.extend([at] * len(way))


def track(rng: np.random.Generator, points: npt.NDArray[np.float64], noise: float) -> Cells:
    """Cells (T, 2) that a tracker reports: noise that drifts (an autoregression of the given standard deviation)."""
    error = np.zeros(2)
    cells = []
    for t, point in enumerate(points):
        fresh = rng.normal(scale=noise, size=2)
        error = fresh if t == 0 else DRIFT * error + np.sqrt(1 - DRIFT**2) * fresh
        cells.append(np.clip(np.round(point + error), 0, (WIDTH - 1, HEIGHT - 1)))
    return np.array(cells, dtype=np.int64)


def attributes(cells: Cells) -> list[list[str]]:
    """The cell at each time step, and the direction of movement over five steps by its signs."""
    tokens = []
    for t, (x, y) in enumerate(cells):
        before, after = cells[max(0, t - 2)], cells[min(len(cells) - 1, t + 2)]
        dx, dy = np.sign(after - before)
        tokens.append(["bias", f"cell={x},{y}", f"dx={dx}", f"dy={dy}", f"dx,dy={dx},{dy}"])
    return tokens


@dataclass(frozen=True)
class Data:
    """Attributes and columns (activity, sub-trajectory) of the sequences for training and for test."""

    X: list[Any]
    y: list[Columns]
    X_test: list[Any]
    truth: list[Columns]


def simulate(seed: int, per_activity: int = PER_ACTIVITY, noise: float = NOISE) -> Data:
    rng = np.random.default_rng(seed)
    halves: list[tuple[list[Any], list[Columns]]] = [([], []), ([], [])]
    for X, y in halves:
        for activity in ACTIVITIES:
            for _ in range(per_activity):
                points, labels = walk(rng, activity)
                X.append(attributes(track(rng, points, noise)))
                y.append(([activity] * len(labels), labels))
    return Data(*halves[0], *halves[1])


def hide(columns: Sequence[Sequence[Any]], share: float, rng: np.random.Generator) -> list[list[Any]]:
    """Columns with `share` of the labels of each level replaced by None."""
    return [
        [None if hidden else label for label, hidden in zip(column, rng.random(len(column)) < share, strict=True)]
        for column in columns
    ]


def boundaries(column: Sequence[Any], share: float, rng: np.random.Generator) -> list[int | None]:
    """Where the runs of a column end, 1 or 0, with `share` of them replaced by None."""
    ends = [int(t + 1 == len(column) or column[t] != column[t + 1]) for t in range(len(column))]
    return [None if hidden else end for end, hidden in zip(ends, rng.random(len(ends)) < share, strict=True)]


def accuracies(truth: Sequence[Columns], predicted: Sequence[Any]) -> tuple[float | None, float | None]:
    """Share of the time steps whose activity is right, and whose sub-trajectory is, in percent; None: no answer."""

    def accuracy(d: int) -> float | None:
        if predicted[0][d] is None:
            return None
        return round(100 * flat_accuracy_score([y[d] for y in truth], [y[d] for y in predicted]), 2)

    return accuracy(0), accuracy(1)


# ---- models ---------------------------------------------------------------------------------------------------------


class Flat:
    """A CRF of sub-trajectories alone; it has no answer about activities."""

    def __init__(self, **parameters: Any) -> None:
        self.model = scansion.CRF(all_possible_transitions=True, **parameters)

    def fit(self, X: Any, y: Any, ends: Any = None) -> Flat:
        self.model.fit(X, [columns[1] for columns in y])
        return self

    def predict(self, X: Any, given: Any = None) -> list[Any]:
        constraints = None if given is None else [columns[1] for columns in given]
        return [(None, column) for column in self.model.predict(X, constraints=constraints)]


class Product(ProductChain):
    def fit(self, X: Any, y: Any, ends: Any = None) -> ProductChain:
        return super().fit(X, y)


class Hierarchical:
    """A hierarchical CRF; `durations`: sub-trajectories are segments with gamma durations, not single steps.

    Activities have gamma durations, too, and the cells visited and the movements made, summed over the activity.
    """

    def __init__(self, longest: int, durations: bool = False, **parameters: Any) -> None:
        gamma = ("length", "log")
        self.model = scansion.HierarchicalCRF(
            LEVELS,
            max_length={"activity": longest, "trajectory": LONGEST if durations else 1},
            length_features={"activity": gamma, "trajectory": gamma if durations else ()},
            **parameters,
        )
        self.durations = durations

    def fit(self, X: Any, y: Any, ends: Any = None) -> Hierarchical:
        """`ends`: what is known of the boundaries, by level; without it y is complete."""
        self.model.fit(X, list(y) if ends is None else [self._known(*pair) for pair in zip(y, ends, strict=True)])
        return self

    def predict(self, X: Any, given: Any = None) -> list[Any]:
        known = None if given is None else [self._known(columns) for columns in given]
        return [[spread(answer[level]) for level in LEVELS] for answer in self.model.predict(X, constraints=known)]

    def _known(self, columns: Any, ends: Any = None) -> dict[str, Any]:
        """What is known time step by time step; that single steps end at every step goes without saying."""
        known: dict[str, Any] = {level: {"labels": labels} for level, labels in zip(LEVELS, columns, strict=True)}
        if ends is not None:
            for d in (0, 1) if self.durations else (0,):
                known[LEVELS[d]]["boundaries"] = ends[d]
        return known


def models(data: Data, **parameters: Any) -> dict[str, Any]:
    longest = max(map(len, data.X + data.X_test))
    settings = {"c2": C2, **parameters}
    return {
        "HSCRF": Hierarchical(longest, **settings),
        "HSCRF, durations below": Hierarchical(longest, True, **settings),
        "product chain": Product(all_possible_transitions=True, **settings),
        "flat CRF": Flat(**settings),
    }


def run(options: Options) -> Report:
    report = Report("kitchen", TITLE, notes=[EXPLAINED])
    table: dict[str, list[tuple[float | None, float | None]]] = {}
    decoding: dict[str, dict[str, dict[float, list[float]]]] = {}
    seeds = 1 if options.quick else SEEDS
    for seed in range(seeds):
        options.say(f"  simulation {seed}:")
        data = simulate(seed, 4 if options.quick else PER_ACTIVITY)
        _learn(data, seed, options, table)
        _decode(data, seed, options, decoding)
        if seed == 0:
            _structure(data, options, report)
    accuracy = Table(
        f"Accuracy in percent, mean and range of {seeds} simulations:",
        ["", "activity", "sub-trajectory", "paper: activity", "paper: sub-trajectory"],
    )
    for name, pairs in table.items():
        cells = [summary([pair[d] for pair in pairs]) for d in (0, 1)]
        accuracy.rows.append([name, *cells, *PAPER.get(name, (None, None))])
    report.tables.insert(0, accuracy)
    report.tables.insert(1, _decoding_table(decoding))
    report.results["accuracy"] = table
    report.results["decoding"] = decoding
    report.figures.insert(
        0,
        Figure(
            "decoding",
            "Accuracy of decoding where labels are not given, against the share that is (paper 000, figure 22)",
            lambda: curves(decoding, "labels given, %", "accuracy where nothing is given, %"),
        ),
    )
    return report


def _learn(data: Data, seed: int, options: Options, table: dict[str, list[tuple[float | None, float | None]]]) -> None:
    """Accuracy after learning from all labels and from half of them."""
    rng = np.random.default_rng(1000 + seed)
    hidden = [hide(columns, 0.5, rng) for columns in data.y]
    ends = [tuple(boundaries(column, 0.5, rng) for column in columns) for columns in data.y]
    iterations = 10 if options.quick else ITERATIONS
    for suffix, y, known in (("", data.y, None), (HALF, hidden, ends)):
        for name, model in models(data, max_iterations=iterations, n_jobs=options.jobs).items():
            begin = time.perf_counter()
            answers = model.fit(data.X, y, known).predict(data.X_test)
            found = accuracies(data.truth, answers)
            table.setdefault(name + suffix, []).append(found)
            options.say(f"    {name}{suffix}: {found[0]} {found[1]}, {time.perf_counter() - begin:.1f} s")


def _decode(data: Data, seed: int, options: Options, decoding: dict[str, Any]) -> None:
    """Accuracy of models that stopped early, at the time steps whose labels are not given."""
    for name, model in models(data, max_iterations=STOPPED, n_jobs=options.jobs).items():
        model.fit(data.X, data.y)
        for share in SHARES:
            rng = np.random.default_rng(2000 + seed)
            given = []
            for columns in data.truth:
                told = rng.random(len(columns[0])) < share
                given.append([[a if t else None for a, t in zip(column, told, strict=True)] for column in columns])
            answers = model.predict(data.X_test, given)
            for d, level in enumerate(("activities", "sub-trajectories")):
                if answers[0][d] is None:
                    continue
                right = [
                    a == b
                    for truth, answer, known in zip(data.truth, answers, given, strict=True)
                    for a, b, c in zip(truth[d], answer[d], known[d], strict=True)
                    if c is None
                ]
                points = decoding.setdefault(level, {}).setdefault(name, {})
                points.setdefault(round(100 * share), []).append(round(100 * float(np.mean(right)), 2))
        options.say(f"    {name}, stopped: done")


def _decoding_table(decoding: dict[str, Any]) -> Table:
    table = Table(
        f"Models stopped after {STOPPED} iterations: accuracy in percent at the time steps whose labels are not given, "
        "by the share of time steps whose labels (of both levels) are:",
        ["", *(f"{share:.0%}" for share in SHARES)],
    )
    for level, panel in decoding.items():
        for name, points in panel.items():
            cells = [f"{statistics.mean(points[round(100 * share)]):.1f}" for share in SHARES]
            table.rows.append([f"{level}, {name}", *cells])
    return table


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


def _structure(data: Data, options: Options, report: Report) -> None:
    """Topology and transitions, learnt by a model in which every sub-trajectory may occur in every activity."""
    longest = max(map(len, data.X))
    settings = {
        "c2": C2,
        "n_jobs": options.jobs,
        "max_iterations": 10 if options.quick else ITERATIONS,
        "topology": "all",
    }
    model = Hierarchical(longest, **settings).fit(data.X, data.y).model
    weights = model.transition_features_
    found, truth = positive_transitions(weights), true_transitions()
    table = Table(
        "What is learnt when every sub-trajectory may occur in every activity (first simulation): changes of "
        "sub-trajectory with a weight above zero, and how they differ from those of the simulator:",
        ["activity", "sub-trajectories", "changes", "missing", "wrong"],
    )

    def write(pairs: set[tuple[int, int]]) -> str:
        return ", ".join(f"{u} > {v}" for u, v in sorted(pairs))

    for activity, changes in found.items():
        members = sorted({u for pair in changes for u in pair})
        lacking, wrong = truth[activity] - changes, changes - truth[activity]
        table.rows.append([activity, ", ".join(map(str, members)), write(changes), write(lacking), write(wrong)])
    report.tables.append(table)
    between = [weight for (level, *_), weight in weights.items() if level == "activity"]
    report.notes.append(
        f"Weights of the {len(between)} transitions between different activities, of which the data has none: from "
        f"{min(between):.2f} to {max(between):.2f}."
    )
    report.notes.append(
        "Sub-trajectories: " + ", ".join(f"{number} {a} to {b}" for number, (a, b) in ROUTES.items()) + "."
    )
    panels = {
        activity: np.array([[weights.get(("trajectory", activity, u, v), np.nan) for v in ROUTES] for u in ROUTES])
        for activity in ACTIVITIES
    }
    names = [str(number) for number in ROUTES]
    each = dict.fromkeys(panels, names)
    report.figures.append(
        Figure(
            "transitions",
            "Weights of transitions between sub-trajectories (row to column) by activity (paper 000, figure 21)",
            lambda: matrices(panels, each, each, label="weight"),
        )
    )
    report.results["transitions"] = {activity: sorted(changes) for activity, changes in found.items()}
