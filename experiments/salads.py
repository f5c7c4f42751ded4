"""50 Salads: phases over actions, from real frame scores, on the five splits.

Every frame (one per second) has the scores of 18 support vector machines, one per action and one for background; they
come with the data and are out of fold, so that the scores of all 50 videos are usable for training: each split trains on
its 40 videos and tests on 10. (The machines that scored the training videos have seen the test videos. All models here
get the same scores.) The levels are 3 phases (cut and mix ingredients, prepare dressing, serve salad) and 18 actions.

The annotation tells phases by the microsecond. Frames between two phases (1.4 %) go to the nearer one, and then each
boundary is moved to the nearest frame where the action changes, so that actions lie inside phases.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import scansion
from experiments.data import find, open_text
from experiments.levels import ProductChain, overlap_f1, spread
from experiments.report import Options, Report, Table
from scansion.metrics import flat_accuracy_score

TITLE = "50 Salads: phases over actions, from frame scores"
SPLITS = (1, 2, 3, 4, 5)
OVERLAPS = (0.10, 0.25, 0.50)
BACKGROUND = "background"

Scores = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Video:
    """Frame scores (T, 18), and the phase and the action of each frame."""

    name: str
    scores: Scores
    phases: list[str]
    actions: list[str]


def read_names(name: str) -> list[str]:
    with open_text(f"50salads/{name}") as lines:
        return lines.read().split()


def phase_intervals(lines: Iterable[str], phases: Sequence[str]) -> list[tuple[float, float, str]]:
    """Phases of an annotation as (begin, end, label), in seconds after the start of the first action."""
    rows = [(int(a), int(b), label) for a, b, label in (line.split() for line in lines if line.strip())]
    first = min(a for a, _, label in rows if label not in phases)
    return sorted((1e-6 * (a - first), 1e-6 * (b - first), label) for a, b, label in rows if label in phases)


def phase_labels(intervals: Sequence[tuple[float, float, str]], actions: Sequence[str]) -> list[str]:
    """The phase of each frame, frame i being i seconds after the start.

    The boundary between two phases is the middle of the gap, moved to the nearest frame with a new action (of two as
    near, the earlier one); phases of the same label with no other between them are one.
    """
    changes = [t for t in range(1, len(actions)) if actions[t] != actions[t - 1]]
    bounds, labels = [0], [intervals[0][2]]
    for (_, end, _), (begin, _, label) in zip(intervals, intervals[1:], strict=False):
        if label == labels[-1]:
            continue
        middle = 0.5 * (end + begin)
        bounds.append(min((t for t in changes if t > bounds[-1]), key=lambda t: abs(t - middle)))
        labels.append(label)
    bounds.append(len(actions))
    return [label for k, label in enumerate(labels) for _ in range(bounds[k], bounds[k + 1])]


def read_split(k: int) -> list[Video]:
    """The test videos of a split."""
    from scipy.io import loadmat

    names = [BACKGROUND, *read_names("label-maps/mid_level_actions.txt")]
    high = read_names("label-maps/high_level_actions.txt")
    content = loadmat(find(f"50salads/frame-scores/mid_split_{k}.mat"))
    videos = []
    for i, video in enumerate(read_names(f"splits/split_{k}_test.txt")):
        actions = [names[int(label)] for label in content["Y"].flat[i].ravel()]
        with open_text(f"50salads/annotations/{video}-activityAnnotation.txt") as lines:
            intervals = phase_intervals(lines, high)
        videos.append(Video(video, np.asarray(content["S"].flat[i], float), phase_labels(intervals, actions), actions))
    return videos
