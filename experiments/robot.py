"""A robot in a coloured grid: paper 004, section 4, "Toy robot tracking", figure 2.

The robot stands in one of the free squares of a small world; what is seen of it is the colour of its square, right with
a probability of P percent, else one of the other colours. 400 sequences for training and 400 for test at each P, of
100-300 positions and 5-15 squares, five times over. The world of the paper's figure 2 is not in its text, so this one
is ours; nor is how long the robot stays in a square: here the transition points are uniform.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.figures import grid
from experiments.report import Figure, Options, Report, Table
from experiments.trajectories import EXPLAINED, SEEDS, Data, ask, figure, tables

TITLE = "Robot in a coloured grid (paper 004, section 4, figure 2)"
WORLD = ("bgr#", "y#yg", "grby", "#byr")  # by rows; # is an obstacle; neighbours differ in colour
COLOURS = "bgyr"
ACCURACIES = (100, 90, 80, 70, 60, 50)
PAPER_SEMI = {"Exact": (10.5, 3.25, 2, 1, 0, 0), "edit distance": (45.4, 40.7, 32.2, 15.5, 5, 4.5)}

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

    rng = np.random.default_rng([round(100 * accuracy), seed])
    pairs = [sequence(rng, accuracy) for _ in range(n_train + n_test)]
    x, y = [x for x, _ in pairs], [y for _, y in pairs]
    return Data(x[:n_train], y[:n_train], x[n_train:], [compress(one) for one in y[n_train:]])


def run(options: Options) -> Report:
    report = Report("robot", TITLE, notes=[EXPLAINED])
    size, seeds = (40, 1) if options.quick else (400, SEEDS)
    results: dict[int, list[dict[str, Any]]] = {}
    for accuracy in ACCURACIES[::5] if options.quick else ACCURACIES:
        results[accuracy] = []
        for seed in range(seeds):
            options.say(f"  colours right in {accuracy} %, simulation {seed}:")
            answers = ask(options, simulate(accuracy / 100, size, size, seed), 5000)
            results[accuracy].append(answers.results())
    report.results = {str(accuracy): runs for accuracy, runs in results.items()}
    report.tables.extend(tables(results, "P"))
    published = Table(
        "Published, of the paper's SemiCRF (its other scores are curves in a figure):", ["P", *PAPER_SEMI]
    )
    published.rows.extend(zip(ACCURACIES, *PAPER_SEMI.values(), strict=True))
    report.tables.append(published)
    report.figures.append(figure(results, "P, % of colours seen right", "Scores by noise (figures 2c and 2d)"))
    report.figures.append(Figure("world", "The world, and a sequence in it (figures 2a and 2b)", draw_world))
    return report


def draw_world() -> Any:
    """The squares with their colours, and a sequence: the colours seen above, the squares below."""
    seen, at = sequence(np.random.default_rng(0), 0.8)
    return grid(WORLD, [one[0] for one in seen], at)
