"""Segments inside segments: activities of steps, from complete labels, from half of them, and with some of them given.

.venv/bin/python examples/activities.py
"""

from __future__ import annotations

from typing import Any

import numpy as np

import scansion as sc

STEPS = {
    "breakfast": ["fridge", "table", "sink"],
    "coffee": ["stove", "table"],
    "cleaning": ["sink", "fridge", "stove"],
}
PLACES = {"fridge": (0.0, 0.0), "stove": (2.0, 0.0), "sink": (2.0, 2.0), "table": (0.0, 2.0)}
LEVELS = ["activity", "step"]


def morning(rng: np.random.Generator) -> tuple[np.ndarray, dict[str, list[Any]]]:
    """Noisy positions in a kitchen, and what was done there."""
    positions: list[tuple[float, float, float]] = []
    activities, steps = [], []
    for activity in rng.permutation(list(STEPS)).tolist():
        begin = len(positions)
        for step in STEPS[activity]:
            start = len(positions)
            for _ in range(rng.integers(2, 7)):
                x, y = rng.normal(PLACES[step], 0.9)
                positions.append((1.0, x, y))
            steps.append((start, len(positions), step))
        activities.append((begin, len(positions), activity))
    return np.array(positions), {"activity": activities, "step": steps}


def labels(segments: list[Any]) -> list[str]:
    """One label per position."""
    return [label for start, stop, label in segments for _ in range(start, stop)]


def half_hidden(rng: np.random.Generator, y: dict[str, list[Any]]) -> dict[str, Any]:
    """Half of the labels, none of the boundaries."""
    return {level: {"labels": [x if rng.random() < 0.5 else None for x in labels(y[level])]} for level in LEVELS}


def shown(scores: dict[str, dict[str, float]]) -> str:
    """Accuracy by level, in per cent."""
    return ", ".join(f"{level} {100 * score['accuracy']:.1f} %" for level, score in scores.items())


def main() -> None:
    """Train and decode."""
    rng = np.random.default_rng(7)
    X, y = zip(*(morning(rng) for _ in range(40)), strict=True)
    train, test = slice(0, 20), slice(20, 40)
    limits = {"step": 6}
    settings: dict[str, Any] = {"max_length": limits, "length_features": {"step": ("length", "log")}, "c2": 0.1}

    model = sc.HierarchicalCRF(LEVELS, **settings).fit(X[train], y[train])
    print("all labels:          ", shown(model.scores(X[test], y[test])))
    print("  learnt:", "; ".join(f"{parent} = {' '.join(c)}" for parent, c in model.topology_["activity"].items()))

    some = [half_hidden(rng, one) for one in y[train]]
    partial = sc.HierarchicalCRF(LEVELS, **settings, topology=STEPS).fit(X[train], some)
    print("half of the labels:  ", shown(partial.scores(X[test], y[test])))

    known = [{"activity": one["activity"]} for one in y[test]]
    print("activities given:    ", shown(model.scores(X[test], y[test], constraints=known)))

    flat = sc.CRF(c2=0.1).fit(X[train], [labels(one["step"]) for one in y[train]])
    right = flat.score(X[test], [labels(one["step"]) for one in y[test]])
    print(f"a chain of steps:      step {100 * right:.1f} %")


if __name__ == "__main__":
    main()
