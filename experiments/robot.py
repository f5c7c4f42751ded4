"""A robot in a coloured grid: paper 004, section 4, "Toy robot tracking".

The robot stands in one of the free squares of a small world; what is seen of it is the colour of its square, right with
a probability of P percent, else one of the other colours. 400 sequences for training and 400 for test at each P, of
100-300 positions and 5-15 squares. The world of the paper's figure 2 is not in its text, so this one is ours, and the
transition points are uniform. The paper's SemiCRF learnt for 100 hours; ours learns from 200 sequences, in segments of
at most 60 positions (longer ones are split).
"""

from __future__ import annotations

import numpy as np

from experiments.report import Options, Report
from experiments.trajectories import EXPLAINED, Data, compare, tables

TITLE = "Robot in a coloured grid (paper 004, section 4)"
WORLD = ("bgr#", "y#bg", "grby", "#byr")  # by rows; # is an obstacle
COLOURS = "bgyr"
ACCURACIES = (100, 90, 80, 70, 60, 50)
PAPER_SEMI = {"exact": (10.5, 3.25, 2, 1, 0, 0), "eds": (45.4, 40.7, 32.2, 15.5, 5, 4.5)}

Square = tuple[int, int]


def squares() -> dict[Square, str]:
    """The free squares (column, row) with their colours."""
    return {(x, y): c for y, row in enumerate(WORLD) for x, c in enumerate(row) if c != "#"}


def walk(rng: np.random.Generator, places: int) -> list[Square]:
    """A random walk over neighbouring free squares."""
    free = squares()
    at = list(free)[rng.integers(len(free))]
    path = [at]
    while len(path) < places:
        x, y = at
        near = [s for s in ((x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1)) if s in free]
        at = near[rng.integers(len(near))]
        path.append(at)
    return path


def sequence(rng: np.random.Generator, accuracy: float) -> tuple[list[list[str]], list[str]]:
    """Observed colours as attributes, and the squares."""
    size, places = int(rng.integers(100, 301)), int(rng.integers(5, 16))
    path = walk(rng, places)
    cuts = np.sort(rng.choice(np.arange(1, size), places - 1, replace=False))
    at = [path[i] for i in np.searchsorted(cuts, np.arange(size), side="right")]
    free = squares()
    seen = []
    for square in at:
        others = [c for c in COLOURS if c != free[square]]
        seen.append([free[square] if rng.random() < accuracy else others[rng.integers(3)]])
    return seen, [f"{x}:{y}" for x, y in at]


def simulate(accuracy: float, n_train: int, n_test: int, seed: int) -> Data:
    from scansion.metrics import compress

    rng = np.random.default_rng(seed)
    pairs = [sequence(rng, accuracy) for _ in range(n_train + n_test)]
    x, y = [x for x, _ in pairs], [y for _, y in pairs]
    return Data(x[:n_train], y[:n_train], x[n_train:], [compress(one) for one in y[n_train:]])


def run(options: Options) -> Report:
    report = Report("robot", TITLE, notes=[EXPLAINED])
    size = 40 if options.quick else 400
    for accuracy in ACCURACIES[::5] if options.quick else ACCURACIES:
        options.say(f"  colours right in {accuracy} %:")
        data = simulate(accuracy / 100, size, size, seed=accuracy)
        semi = {"max_length": 60, "long_segments": "split", "max_iterations": 5 if options.quick else 50, "c2": 0.1}
        report.results[str(accuracy)] = compare(
            options, data, {"c2": 0.1, "max_iterations": 200}, semi, 10 if options.quick else 200, 5000
        )
    report.tables.extend(tables(report.results, "P"))
    report.notes.append(
        "Published, of the paper's SemiCRF, at P = 100 .. 50 (its other scores are curves in a figure): Exact "
        + " ".join(map(str, PAPER_SEMI["exact"]))
        + ", edit distance "
        + " ".join(map(str, PAPER_SEMI["eds"]))
        + "."
    )
    return report
