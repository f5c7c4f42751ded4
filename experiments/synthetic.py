"""Data of a random k-order Markov model: paper 001, section 3.1.1, figure 2 and table 2.

n = 5 states; after each k states at most r = 2 randomly chosen next states, their probabilities a vector drawn
uniformly from [0, 1]^r and normalised. State i emits m = 3 numbers, the j-th Gaussian with mean mu_ij, uniform on
[0, 1], and standard deviation sigma. Sequences have length 20 and begin with k random states; 300, 400 or 500 for
training, 500 for test; k = 2, 3. Attributes: the previous, the current and the next observation; beyond either end
there is none. Features: all indicators of label patterns seen in training up to a maximum order. Labels are drawn
before, and independently of, sigma. The values of sigma and the number of repetitions are not in the paper's text: ours
are below. Training is to the optimum, sigma_reg = 1.
"""

from __future__ import annotations

import itertools
import statistics
from typing import Any

import numpy as np

from experiments.figures import curves
from experiments.report import Figure, Options, Report, Table, spread

TITLE = "Synthetic k-order Markov data (paper 001, section 3.1.1, figure 2 and table 2)"
STATES, SUCCESSORS, NUMBERS, LENGTH = 5, 2, 3, 20
KS, SIZES, TEST = (2, 3), (300, 400, 500), 500
SIGMAS = (0.1, 0.3, 0.5)
ORDERS = (1, 2, 3, 4)
SEEDS = (0, 1, 2, 3, 4)
PAPER_PATTERNS = {
    2: ("16/173", "13/170", "17/175", "12/170", "17/177", "10/170"),
    3: ("34/393", "58/417", "37/406", "48/417", "42/424", "35/417"),
}
SIGMA_1 = 0.5  # c2 of a Gaussian prior with sigma = 1

History = tuple[int, ...]


class Markov:
    """A random model of order k, and what it emits."""

    def __init__(self, k: int, rng: np.random.Generator) -> None:
        self.k = k
        self.next: dict[History, tuple[Any, Any]] = {}
        for history in itertools.product(range(STATES), repeat=k):
            chances = rng.random(SUCCESSORS)
            self.next[history] = rng.choice(STATES, SUCCESSORS, replace=False), chances / chances.sum()
        self.means = rng.random((STATES, NUMBERS))

    def labels(self, n: int, rng: np.random.Generator) -> list[list[int]]:
        rows = []
        for _ in range(n):
            row = [int(s) for s in rng.integers(STATES, size=self.k)]
            while len(row) < LENGTH:
                states, chances = self.next[tuple(row[-self.k :])]
                row.append(int(rng.choice(states, p=chances)))
            rows.append(row)
        return rows

    def observe(self, y: list[list[int]], sigma: float, rng: np.random.Generator) -> list[Any]:
        """Numbers as attributes, those of the neighbours with them."""
        return [tokens(self.means[row] + sigma * rng.normal(size=(len(row), NUMBERS))) for row in y]


def tokens(values: Any) -> list[dict[str, float]]:
    """(T, m) observations -> attributes of each position."""
    names = (("previous", -1), ("current", 0), ("next", 1))
    return [
        {
            f"{name}{j}": float(values[t + offset, j])
            for name, offset in names
            if 0 <= t + offset < len(values)
            for j in range(values.shape[1])
        }
        for t in range(len(values))
    ]


def patterns(y: list[list[int]], size: int) -> set[History]:
    return {tuple(row[i : i + size]) for row in y for i in range(len(row) - size + 1)}


def run(options: Options) -> Report:
    import scansion

    seeds, sizes, sigmas = (SEEDS[:1], SIZES[:1], SIGMAS[:2]) if options.quick else (SEEDS, SIZES, SIGMAS)
    limit = 10 if options.quick else None
    accuracy: dict[tuple[int, int, float, int], list[float]] = {}
    exclusive: dict[tuple[int, int], list[tuple[int, int, int, int]]] = {}
    for k in KS:
        for seed in seeds:
            rng = np.random.default_rng([seed, k])
            model = Markov(k, rng)
            y, y_test = model.labels(max(sizes), rng), model.labels(TEST, rng)
            seen = patterns(y_test, 5)
            for size in sizes:
                mine = patterns(y[:size], 5)
                counts = len(mine - seen), len(mine), len(seen - mine), len(seen)
                exclusive.setdefault((k, size), []).append(counts)
            for sigma in sigmas:
                X, X_test = model.observe(y, sigma, rng), model.observe(y_test, sigma, rng)
                for size, order in itertools.product(sizes, ORDERS):
                    crf = scansion.CRF(order, c2=SIGMA_1, max_iterations=limit, n_jobs=options.jobs)
                    score = crf.fit(X[:size], y[:size]).score(X_test, y_test)
                    accuracy.setdefault((k, size, sigma, order), []).append(100.0 * score)
            options.say(f"  order {k}, seed {seed} done")
    report = Report("synthetic", TITLE)
    for k in KS:
        table = Table(
            f"Accuracy, %, data of order {k}, mean ± standard deviation of {len(seeds)} random models:",
            ["sequences", "sigma", *(f"order {order}" for order in ORDERS)],
        )
        for size, sigma in itertools.product(sizes, sigmas):
            table.rows.append([size, sigma, *(spread(accuracy[k, size, sigma, order]) for order in ORDERS)])
        report.tables.append(table)
    report.tables.append(_steps(accuracy, sizes, sigmas))
    table = Table(
        "Length 5 patterns exclusive to the training or the test data, mean over the models (the paper's single model "
        "in brackets):",
        ["order", *(f"{size}, {part}" for size in sizes for part in ("train", "test"))],
    )
    for k in KS:
        cells = []
        for i, size in enumerate(sizes):
            a, b, c, d = (statistics.fmean(column) for column in zip(*exclusive[k, size], strict=True))
            paper = PAPER_PATTERNS[k][2 * i : 2 * i + 2]
            cells += [f"{a:.0f}/{b:.0f} ({paper[0]})", f"{c:.0f}/{d:.0f} ({paper[1]})"]
        table.rows.append([k, *cells])
    report.tables.append(table)
    report.results = {
        "accuracy": {
            f"k={k} n={size} sigma={sigma} order={order}": found for (k, size, sigma, order), found in accuracy.items()
        },
        "patterns": {f"k={k} n={size}": exclusive[k, size] for k, size in exclusive},
    }
    report.notes.append(
        "The paper's claims: orders up to that of the data help, also where the observations tell little (large "
        "sigma); going beyond does not help, and patterns that are only in the training or the test data do little "
        "harm."
    )
    report.figures.append(
        Figure(
            "orders", "Accuracy by maximum order (figure 2)", lambda: draw(report.results["accuracy"], sizes, sigmas)
        )
    )
    return report


def _steps(accuracy: dict[Any, list[float]], sizes: tuple[int, ...], sigmas: tuple[float, ...]) -> Table:
    """What one more order brings, model by model."""
    steps = [(order, order + 1) for order in ORDERS[:-1]]
    table = Table(
        "What one more order brings, points of accuracy, over all models and sizes: mean ± standard deviation (share "
        "of them where it helps):",
        ["data of order", "sigma", *(f"{a} to {b}" for a, b in steps)],
    )
    for k, sigma in itertools.product(KS, sigmas):
        cells = []
        for a, b in steps:
            pairs = [zip(accuracy[k, n, sigma, b], accuracy[k, n, sigma, a], strict=True) for n in sizes]
            gains = [more - less for pair in pairs for more, less in pair]
            cells.append(f"{spread(gains)} ({100 * statistics.fmean(gain > 0 for gain in gains):.0f} %)")
        table.rows.append([k, sigma, *cells])
    return table


def draw(accuracy: dict[str, list[float]], sizes: tuple[int, ...], sigmas: tuple[float, ...]) -> Any:
    """Accuracy by maximum order, one panel for each order of the data and number of sequences."""
    panels = {
        f"data of order {k}, {size} sequences": {
            f"sigma {sigma}": {order: accuracy[f"k={k} n={size} sigma={sigma} order={order}"] for order in ORDERS}
            for sigma in sigmas
        }
        for k in KS
        for size in sizes
    }
    return curves(panels, "maximum order", "accuracy, %", rows=len(KS))
