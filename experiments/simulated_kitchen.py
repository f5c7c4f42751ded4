"""A kitchen in which a person walks about, simulated: the data of `kitchen.py`.

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

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

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
