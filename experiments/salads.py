"""50 Salads: phases over actions, from real frame scores, on the five splits.

Every frame (one per second) has the scores of 18 support vector machines, one per action and one for background; they
come with the data and are out of fold, so that the scores of all 50 videos are usable for training: each split trains
on its 40 videos and tests on 10. (The machines that scored the training videos have seen the test videos. All models
here get the same scores.) The levels are 3 phases (cut and mix ingredients, prepare dressing, serve salad) and 18
actions with background.

The annotation tells phases by the microsecond. Frames between two phases (1.4 %) go to the nearer one, and then each
boundary is moved to the nearest frame where the action changes, so that actions lie inside phases.

Models see one time step per `STEP` frames: the mean softmax of the scores, the mean of that over a window, and the
label that most of the frames have. Answers are spread over the frames again and compared with the frames' own labels.
Neighbouring frames err together, so all models know little for sure, and the best configuration as a whole is a poor
answer; that of the highest expected accuracy is a better one. Both are reported. How sharp the softmax is and how wide
the window are chosen in each split on its training videos.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from experiments.contest import DECODINGS, Contest, Hierarchical, crf, product, semi_crf
from experiments.data import find, open_text
from experiments.report import Figure, Options, Report
from scansion.data import spread, subsample, subsample_labels, with_context

TITLE = "50 Salads: phases over actions, from frame scores"
SPLITS = (1, 2, 3, 4, 5)
BACKGROUND = "background"
EXPLAINED = (
    "F1@k: F1 of segments, one being right if it overlaps a true one of its label by k percent of their union. Each "
    "split chooses features (by CRFs of both levels) and c2 of every model from 0.1, 1 and 10 (HSCRF: also 10 for "
    "phases with 0.1 or 1 for actions; and whether actions may lie in phases in which they were not seen) by training "
    "on three of its four groups of training videos and testing on the fourth. CRF and SemiCRF are two models, one for "
    "each level; product chain and HSCRF answer for both at once. SemiCRF and the actions of the HSCRF have gamma "
    "durations."
)
STEP = 3  # frames per time step
STRENGTHS: tuple[Any, ...] = (0.1, 1.0, 10.0)  # of the penalty, c2
# Flat models choose for each level by itself; so may the hierarchical one.
BY_LEVEL = (*STRENGTHS, {"phase": 10.0, "action": 0.1}, {"phase": 10.0, "action": 1.0})
LEVELS = ("phase", "action")

Scores = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Video:
    """Frame scores (T, 18), and the phase and the action of each frame."""

    name: str
    group: int  # the split that tests it
    scores: Scores
    phases: list[str]
    actions: list[str]

    @property
    def frames(self) -> tuple[list[str], list[str]]:
        """The labels of all frames."""
        return self.phases, self.actions

    @cached_property
    def columns(self) -> tuple[list[str], list[str]]:
        """The labels of all time steps: of the frames' pairs, the most frequent (the first of equals)."""
        phases, actions = zip(*subsample_labels(zip(self.phases, self.actions, strict=True), STEP), strict=True)
        return list(phases), list(actions)


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
        scores = np.asarray(content["S"].flat[i], float)
        videos.append(Video(video, k, scores, phase_labels(intervals, actions), actions))
    return videos


# ---- time steps ------------------------------------------------------------------------------------------------------


def inputs(scores: Scores, sharpness: float, width: int) -> Scores:
    """A column of ones, means over time steps of the softmax of the scores, and means of those over a window."""
    sharp = np.exp(sharpness * (scores - scores.max(axis=1, keepdims=True)))
    return with_context(subsample(sharp / sharp.sum(axis=1, keepdims=True), STEP), width)


def softmax(sharpness: float, width: int) -> Callable[[Sequence[Video]], Callable[[Video], Scores]]:
    return lambda train: lambda video: inputs(video.scores, sharpness, width)


FEATURES = {
    f"softmax of {sharpness:g} times the scores, {2 * width + 1} time steps": softmax(sharpness, width)
    for sharpness in (3.0, 1.0, 10.0)
    for width in (3, 1)
}


def hierarchical(**parameters: Any) -> Hierarchical:
    """Phases of any length over actions with gamma durations."""
    return Hierarchical(
        LEVELS,
        max_length={"phase": "free", "action": None},
        length_features={"action": ("length", "log")},
        all_possible_states=True,
        **parameters,
    )


MODELS: dict[str, tuple[Callable[..., Any], ...]] = {
    "CRF": (crf(0), crf(1)),
    "SemiCRF": (semi_crf(0), semi_crf(1)),
    "product chain": (product,),
    "HSCRF": (hierarchical,),
}


def contest(videos: Sequence[Video]) -> Contest:
    nested = [{"c2": c2, "topology": topology} for topology in ("seen", "all") for c2 in BY_LEVEL]
    return Contest(
        LEVELS,
        videos,
        FEATURES,
        MODELS,
        {"": [{"c2": c2} for c2 in STRENGTHS], "HSCRF": nested},
        choices=1,
        restored=lambda video, column: spread(column, STEP, len(video.actions)),
        truth=lambda video: video.frames,
    )


def run(options: Options) -> Report:
    videos = [video for k in SPLITS for video in read_split(k)]
    found = contest(videos)
    found.run(options)
    labels = [BACKGROUND, *read_names("label-maps/mid_level_actions.txt")]
    for split in found.results["folds"]:
        test = [video for video in videos if str(video.group) == split]
        guess = [spread(voted(video.scores, labels), STEP, len(video.actions)) for video in test]
        for decode in DECODINGS:
            found.note(decode, "SVM alone", "action", [video.actions for video in test], guess)
    report = Report("salads", TITLE, notes=[EXPLAINED, found.converged()], results=found.results)
    report.tables = [*found.tables("splits"), found.differences("HSCRF", "splits")]
    caption = "Accuracy by marginal decoding on each split (dots) and its mean (bars)"
    report.figures.append(Figure("accuracy", caption, found.picture))
    return report


def voted(scores: Scores, labels: Sequence[str], step: int = STEP) -> list[str]:
    """The best label of each time step, by the sum of its scores."""
    return [labels[int(scores[t : t + step].sum(axis=0).argmax())] for t in range(0, len(scores), step)]
