"""A researcher with sensor arrays: frames to time steps, chains, segments with durations, nested segments, figures.

.venv/bin/python examples/sensors.py [folder]     (figures need matplotlib: pip install 'scansion[plot]')

Frames of a simulated kitchen stand for yours: each sequence is an array (T, F) of frame scores or features, its labels
one list a level. docs/sensors.md explains the steps.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np

import scansion as sc
from scansion.data import spread, subsample, subsample_labels, with_context

PHASES = {"prepare": ["cut", "mix"], "dress": ["pour", "mix"], "serve": ["plate"]}
ACTIONS = ["cut", "mix", "pour", "plate"]
STEP = 15  # frames of a time step: 1 s of 15 frames


def video(rng: np.random.Generator, seconds: float = 4.0) -> tuple[np.ndarray, dict[str, list[str]]]:
    """Noisy scores (T, 4) of the actions, whose errors last for many frames, and the labels of both levels."""
    phases: list[str] = []
    actions: list[str] = []
    for phase, inside in PHASES.items():
        for action in inside * int(rng.integers(1, 3)):
            n = int(rng.gamma(4.0, seconds / 4.0) * STEP) + STEP
            phases += [phase] * n
            actions += [action] * n
    truth = np.eye(len(ACTIONS))[[ACTIONS.index(a) for a in actions]]
    noise = rng.normal(size=(len(actions) // 20 + 2, len(ACTIONS))).repeat(20, axis=0)[: len(actions)]
    return truth + 0.9 * noise + 0.3 * rng.normal(size=truth.shape), {"phase": phases, "action": actions}


def steps(scores: np.ndarray) -> np.ndarray:
    """Frame scores as a model takes them: a softmax, means over time steps, an intercept and the neighbourhood."""
    p = np.exp(2.0 * scores)
    return with_context(subsample(p / p.sum(axis=1, keepdims=True), STEP), 2)


def main(folder: str | None = None, videos: int = 24) -> dict[str, Any]:
    """Train on two thirds, compare on the rest."""
    rng = np.random.default_rng(1)
    frames, labels = zip(*(video(rng) for _ in range(videos)), strict=True)
    X = [steps(x) for x in frames]
    y = [{level: subsample_labels(row, STEP) for level, row in one.items()} for one in labels]
    train, test = slice(0, 2 * videos // 3), slice(2 * videos // 3, videos)
    actions = [one["action"] for one in y]

    crf = sc.CRF(c2=1.0).fit(X[train], actions[train])
    semi = sc.SemiCRF(c2=1.0, length_features=("length", "log")).fit(X[train], actions[train])
    nested = sc.HierarchicalCRF(["phase", "action"], c2=1.0).fit(X[train], y[train])

    found: dict[str, list[Any]] = {
        "argmax of scores": [[ACTIONS[k] for k in x.argmax(axis=1)] for x in frames[test]],
        "CRF": crf.predict(X[test]),
        "SemiCRF": [sc.schemes.encode(s, len(x), "plain") for s, x in zip(semi.predict(X[test]), X[test], strict=True)],
    }
    trees = nested.predict(X[test])
    for k, level in enumerate(("phase", "action")):
        found[f"HierarchicalCRF, {level}"] = [
            sc.schemes.encode(tree[k], len(x), "plain") for tree, x in zip(trees, X[test], strict=True)
        ]
    scores = {}
    for name, answers in found.items():
        level = "phase" if name.endswith("phase") else "action"
        truth = [one[level] for one in labels[test]]
        if name != "argmax of scores":  # back to frames
            answers = [spread(row, STEP, len(one)) for row, one in zip(answers, truth, strict=True)]
        found[name] = answers
        scores[name] = sc.metrics.action_scores(truth, answers)
        print(f"{name:24}{scores[name]}")
    if folder is not None:
        os.makedirs(folder, exist_ok=True)
        shown = {name: rows[0] for name, rows in found.items() if not name.endswith("phase")}
        ax = sc.plot.compare(shown, truth=labels[test][0]["action"], seconds=1 / 15)
        ax.figure.savefig(f"{folder}/methods.png")
        tree = {"phase": trees[0][0], "action": trees[0][1]}
        sc.plot.segments(tree, truth=y[test][0], seconds=1.0).figure.savefig(f"{folder}/levels.png")
    return scores


if __name__ == "__main__":
    main(*sys.argv[1:2])
