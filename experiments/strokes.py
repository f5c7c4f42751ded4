"""Single-stroke digits: paper 004, section 4, "Character recognition", figure 3.

States are the directions up, right, down, left of a pen; observations are quantised angles between successive points,
in 16 classes. The paper's authors drew 20 + 20 samples of each digit with the mouse and labelled them by hand; their
data is not public. It is tried in two ways, each five times over.

Simulated, the paper's own setting: a digit is a fixed sequence of legs, each of one direction (`LEGS`), drawn by a
hand that rounds the turns and is not steady. Whoever labels it knows the legs, but not exactly where in a turn one
direction ends: the transition of the labels is up to so many positions before or after the true one, which is varied.
At 0 the turns are not ambiguous.

Pen data: digits of real writers that were written in one stroke, 20 of each from the training writers and 20 from
others, drawn anew each time. Nobody labelled directions there: the true state of a position is the direction of the
pen over a wide window, without runs of fewer than three positions, so that there is no canonical answer for a digit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from experiments.data import MissingDataError, open_text
from experiments.figures import pictures
from experiments.report import Figure, Options, Report, Table, spread
from experiments.trajectories import EXPLAINED, METHODS, SCORES, SEEDS, Answers, Data, ask, figure, tables, values
from scansion.metrics import compress

TITLE = "Strokes of single-stroke digits (paper 004, section 4, figure 3)"
DIRECTIONS = ("right", "up", "left", "down")
CLASSES = 16
WINDOW = 3  # positions on either side that tell the true direction
SHORTEST = 3
PAPER = (
    "Published, on the authors' drawings: compressed labelling Exact 95.5, edit distance 98.97; joint and SemiCRF 60 "
    "and 87; the gain is greatest at 0 and 3, whose transitions are the most ambiguous."
)
PER_DIGIT = 20
# Legs (x, y) of each digit, as one would draw it in one stroke
LEGS: dict[str, list[tuple[float, float]]] = {
    "0": [(-1, 0), (0, -2), (1, 0), (0, 2)],
    "1": [(0, -2)],
    "2": [(0.8, 0), (-0.4, -1.6), (1, 0)],
    "3": [(0.8, 0), (0, -0.7), (-0.6, 0), (0.6, 0), (0, -0.9), (-0.8, 0)],
    "4": [(-0.3, -1), (1, 0), (0, -1)],
    "5": [(-0.8, 0), (0, -0.8), (0.8, 0), (0, -1), (-0.8, 0)],
    "6": [(-0.3, -2), (0.8, 0), (0, 0.8), (-0.8, 0)],
    "7": [(1, 0), (-0.3, -2)],
    "8": [(-0.8, 0), (0, -0.8), (0.8, 0), (0, -1), (-0.8, 0), (0, 1), (0.8, 0), (0, 0.8)],
    "9": [(-0.8, 0), (0, -0.8), (0.8, 0), (0, 0.8), (0, -1.8)],
}
AMBIGUITIES = (0, 2, 4, 6, 8)
SHOWN = 6  # the ambiguity of the tables by digit
STEPS = 20  # of the pen, in a leg of length 1
ROUNDED = 9  # steps over which a turn goes
NOISE = 0.3  # standard deviation of the pen's place, in steps

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


def draw(digit: str, ambiguity: int, rng: np.random.Generator) -> tuple[Points, list[str], list[str]]:
    """A digit as it is drawn: points, the label of each step, and what it goes through."""
    legs = np.array(LEGS[digit])
    directions = quantise(legs, 4)
    lengths = np.linalg.norm(legs, axis=1)
    counts = np.maximum(3, np.round(STEPS * lengths * np.exp(0.25 * rng.normal(size=len(legs))))).astype(np.int64)
    turn = 0.15 * rng.normal(size=len(legs))
    cos, sin = np.cos(turn), np.sin(turn)
    turned = np.stack([cos * legs[:, 0] - sin * legs[:, 1], sin * legs[:, 0] + cos * legs[:, 1]], axis=1)
    turned *= np.exp(0.15 * rng.normal(size=len(legs)))[:, None]
    steps = np.repeat(turned / counts[:, None], counts, axis=0)
    window = np.hanning(ROUNDED + 2)[1:-1] / np.hanning(ROUNDED + 2).sum()
    padded = np.pad(steps, ((ROUNDED // 2, ROUNDED // 2), (0, 0)), mode="edge")
    rounded = np.stack([np.convolve(padded[:, k], window, "valid") for k in range(2)], axis=1)
    points = np.concatenate([np.zeros((1, 2)), np.cumsum(rounded, axis=0)])
    points += NOISE * np.linalg.norm(steps, axis=1).mean() * rng.normal(size=points.shape)
    cuts = np.cumsum(counts)[:-1] + rng.integers(-ambiguity, ambiguity + 1, size=len(counts) - 1)
    cuts = np.maximum.accumulate(np.clip(cuts, 1, len(steps) - 1))
    leg = np.searchsorted(cuts, np.arange(len(steps)), side="right")
    return points, [DIRECTIONS[directions[i]] for i in leg], [DIRECTIONS[k] for k in compress(directions.tolist())]


def simulated(ambiguity: int, per_digit: int, seed: int) -> Data:
    """Drawings for training and test, in the order of the digits."""
    rng = np.random.default_rng([seed, ambiguity])
    train, test = ([draw(digit, ambiguity, rng) for digit in LEGS for _ in range(per_digit)] for _ in range(2))
    return Data(
        [observations(points) for points, _, _ in train],
        [labels for _, labels, _ in train],
        [observations(points) for points, _, _ in test],
        [through for _, _, through in test],
    )


def read_strokes(name: str) -> dict[str, list[Points]]:
    """The digits of one stroke, by class, without steps of no length."""
    found: dict[str, list[Points]] = {digit: [] for digit in LEGS}
    with open_text(name, "latin-1") as lines:
        for digit, strokes in read_digits(lines):
            if len(strokes) == 1 and len(strokes[0]) > 10:
                moved = np.concatenate([[True], (np.diff(strokes[0], axis=0) != 0).any(axis=1)])
                found[digit].append(strokes[0][moved])
    return found


def sample(digits: dict[str, list[Points]], per_digit: int, rng: np.random.Generator) -> list[tuple[str, Points]]:
    """So many of each class, or all there are, drawn at random."""
    return [(digit, strokes[i]) for digit, strokes in digits.items() for i in rng.permutation(len(strokes))[:per_digit]]


def run(options: Options) -> Report:
    report = Report("strokes", TITLE, notes=[EXPLAINED, PAPER])
    per_digit, seeds = (5, 1) if options.quick else (PER_DIGIT, SEEDS)
    ambiguities = (0, SHOWN) if options.quick else AMBIGUITIES
    results: dict[int, list[dict[str, Any]]] = {ambiguity: [] for ambiguity in ambiguities}
    shown: list[tuple[list[str], Answers]] = []
    for ambiguity in ambiguities:
        for seed in range(seeds):
            options.say(f"  turns ambiguous by {ambiguity}, simulation {seed}:")
            answers = ask(options, simulated(ambiguity, per_digit, seed))
            results[ambiguity].append(answers.results())
            if ambiguity == SHOWN:
                shown.append(([digit for digit in LEGS for _ in range(per_digit)], answers))
    report.results = {"simulated": results}
    report.tables += _named(tables(results, "ambiguity"), "Simulated")
    report.tables += by_digit(shown, f"Simulated, turns ambiguous by {SHOWN} positions (table 3d)")
    report.figures.append(figure(results, "ambiguity of turns, positions", "Scores by ambiguity (figure 3c)"))
    report.figures.append(Figure("digits", "Simulated digits with their states (figure 3b)", draw_digits))
    try:
        parts = [read_strokes(f"pendigits/pendigits-orig.{part}") for part in ("tra", "tes")]
    except MissingDataError as missing:
        report.notes.append(f"Without the pen data: {missing}")
        return report
    pen: list[dict[str, Any]] = []
    shown = []
    for seed in range(seeds):
        options.say(f"  pen data, sample {seed}:")
        rng = np.random.default_rng(seed)
        train, test = (sample(part, per_digit, rng) for part in parts)
        data = Data(
            [observations(p) for _, p in train],
            [states(p) for _, p in train],
            [observations(p) for _, p in test],
            [compress(states(p)) for _, p in test],
        )
        shown.append(([digit for digit, _ in test], ask(options, data)))
        pen.append(shown[-1][1].results())
    report.results["pen"] = pen
    report.tables += _named(tables({"all digits": pen}, ""), f"Pen data, {len(train)} + {len(test)} digits")
    report.tables += by_digit(shown, "Pen data")
    return report


def by_digit(runs: Sequence[tuple[list[str], Answers]], what: str) -> list[Table]:
    """Both scores of each digit, mean and spread over the runs; a run is the digits and the answers."""
    out = []
    for score, title in SCORES.items():
        table = Table(f"{what}: {title.lower()} by digit, percent:", ["digit", *METHODS])
        for digit in LEGS:
            cells = []
            for name in METHODS:
                chosen = [[i for i, one in enumerate(digits) if one == digit] for digits, _ in runs]
                found = [answers.score(name, some)[score] for some, (_, answers) in zip(chosen, runs, strict=True)]
                cells.append(spread(found, 1))
            table.rows.append([digit, *cells])
        everything = [answers.results() for _, answers in runs]
        table.rows.append(["all", *(spread(values(everything, name, score), 1) for name in METHODS)])
        out.append(table)
    return out


def _named(found: list[Table], what: str) -> list[Table]:
    for table in found:
        table.caption = f"{what}: {table.caption[0].lower()}{table.caption[1:]}"
    return found


def draw_digits() -> Any:
    """One drawing of each digit, its steps coloured by their labels."""
    rng = np.random.default_rng(0)
    drawn = {digit: draw(digit, SHOWN, rng) for digit in LEGS}
    panels = {f"{digit}: {' '.join(d[0] for d in through)}": [(p, y)] for digit, (p, y, through) in drawn.items()}
    return pictures(panels, 5)
