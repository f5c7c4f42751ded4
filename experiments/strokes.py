"""Single-stroke digits: paper 004, section 4, "Character recognition".

States are the directions up, right, down, left of a pen; observations are quantised angles between successive points.
The paper's authors drew and labelled 20 + 20 samples of each digit. Here the digits are those of the pen data that were
written in one stroke, 20 of each from the training writers and 20 from other writers; the true state of a position is
the direction of the pen over a wide window, without runs of fewer than three positions, while the observation is the
angle of one step of the pen, in 16 classes, which the tablet's grid of pixels makes noisy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from experiments.data import open_text
from experiments.report import Options, Report
from experiments.trajectories import EXPLAINED, Data, compare, tables
from scansion.metrics import compress

TITLE = "Strokes of single-stroke digits (paper 004, section 4)"
DIRECTIONS = ("right", "up", "left", "down")
CLASSES = 16
WINDOW = 3  # positions on either side that tell the true direction
SHORTEST = 3
PAPER = "Published (other data): compressed labelling Exact 95.5, edit distance 98.97; joint and SemiCRF 60 and 87."

Points = npt.NDArray[np.float64]


def read_digits(lines: Iterable[str]) -> Iterator[tuple[str, list[Points]]]:
    """Digits of a UNIPEN file with their strokes, arrays (n, 2) of x and y."""
    digit, strokes = "", []
    points: list[list[float]] = []
    for line in lines:
        words = line.split()
        if not words:
            continue
        if words[0] == ".SEGMENT":
            if digit:
                yield digit, strokes
            digit, strokes = words[-1].strip('"'), []
        elif words[0] == ".PEN_DOWN":
            points = []
        elif words[0] == ".PEN_UP":
            strokes.append(np.array(points))
        elif len(words) == 2 and words[0].lstrip("-").isdigit():
            points.append([float(words[0]), float(words[1])])
    if digit:
        yield digit, strokes


def quantise(steps: Points, classes: int) -> npt.NDArray[np.int64]:
    """Angles of steps (n, 2) in equal classes, class 0 around the right."""
    angle = np.arctan2(steps[:, 1], steps[:, 0])
    return np.round(angle / (2 * np.pi / classes)).astype(np.int64) % classes


def observations(points: Points) -> list[list[str]]:
    """The angle of each step as an attribute."""
    return [[f"angle={a}"] for a in quantise(np.diff(points, axis=0), CLASSES)]


def states(points: Points) -> list[str]:
    """The true direction at each step: that of the pen over a wide window, short runs joined to what was before."""
    n = len(points) - 1
    first = np.maximum(np.arange(n) - WINDOW, 0)
    last = np.minimum(np.arange(n) + 1 + WINDOW, n)
    wide = quantise(points[last] - points[first], 4)
    runs: list[list[int]] = []
    for direction in wide.tolist():
        if runs and runs[-1][0] == direction:
            runs[-1][1] += 1
        else:
            runs.append([direction, 1])
    kept: list[list[int]] = []
    for direction, count in runs:
        if kept and (count < SHORTEST or kept[-1][0] == direction):
            kept[-1][1] += count
        else:
            kept.append([direction, count])
    return [DIRECTIONS[direction] for direction, count in kept for _ in range(count)]


def sample(name: str, per_digit: int) -> list[Points]:
    """Digits of one stroke, the same number of each class where there are as many, in the order of the file."""
    counts: dict[str, int] = {}
    chosen = []
    with open_text(name, "latin-1") as lines:
        for digit, strokes in read_digits(lines):
            if len(strokes) == 1 and len(strokes[0]) > 10 and counts.get(digit, 0) < per_digit:
                counts[digit] = counts.get(digit, 0) + 1
                moved = np.concatenate([[True], (np.diff(strokes[0], axis=0) != 0).any(axis=1)])
                chosen.append(strokes[0][moved])
    return chosen


def run(options: Options) -> Report:
    per_digit = 5 if options.quick else 20
    train, test = (sample(f"pendigits/pendigits-orig.{part}", per_digit) for part in ("tra", "tes"))
    data = Data(
        [observations(p) for p in train],
        [states(p) for p in train],
        [observations(p) for p in test],
        [compress(states(p)) for p in test],
    )
    longest = max(len(list(run)) for y in data.train_y for run in _runs(y))
    semi = {"max_length": longest, "c2": 0.1, "max_iterations": 100}
    results = compare(options, data, {"c2": 0.1}, semi, len(train), 20_000)
    report = Report("strokes", TITLE, notes=[EXPLAINED, PAPER])
    report.results = {"digits": results, "n_train": len(train), "n_test": len(test)}
    report.tables.extend(tables({f"{len(train)} + {len(test)} digits": results}, ""))
    return report


def _runs(labels: list[str]) -> Iterator[list[str]]:
    start = 0
    for t in range(1, len(labels) + 1):
        if t == len(labels) or labels[t] != labels[start]:
            yield labels[start:t]
            start = t
