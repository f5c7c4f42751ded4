"""50 Salads: phases over actions, from real frame scores, on the five splits.

Every frame (one per second) has the scores of 18 support vector machines, one per action and one for background; they
come with the data and are out of fold, so that the scores of all 50 videos are usable for training: each split trains
on its 40 videos and tests on 10. (The machines that scored the training videos have seen the test videos. All models
here get the same scores.) The levels are 3 phases (cut and mix ingredients, prepare dressing, serve salad) and 18
actions with background.

The annotation tells phases by the microsecond. Frames between two phases (1.4 %) go to the nearer one, and then each
boundary is moved to the nearest frame where the action changes, so that actions lie inside phases.

Models see one time step per `STEP` frames: the mean softmax of the scores, the mean of that over seven time steps, and
the label that most of the frames have. Answers are spread over the frames again and compared with the frames' own
labels. Neighbouring frames err together, so all models know little for sure, and the best configuration as a whole is a
poor answer; the most probable label at each time step is a better one. Both are reported. These choices (`STEP`,
`SHARPNESS`, `WINDOW`) were made with the CRF of actions alone, by its accuracy on the test videos of splits 1 to 3.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import scansion
from experiments.data import find, open_text
from experiments.levels import ProductChain, nested_runs, overlap_f1, spread
from experiments.report import Options, Report, Table
from scansion.metrics import flat_accuracy_score

TITLE = "50 Salads: phases over actions, from frame scores"
SPLITS = (1, 2, 3, 4, 5)
OVERLAPS = (0.10, 0.25, 0.50)
BACKGROUND = "background"
EXPLAINED = (
    "F1@k: F1 of segments, one being right if it overlaps a true one of its label by k percent of their union. Each "
    "split chooses c2 of every model from 0.1, 1 and 10 (HSCRF: also 10 for phases with 0.1 or 1 for actions) by "
    "training on three of its four groups of training videos and testing on the fourth. CRF and SemiCRF are two "
    "models, one for each level; product chain and HSCRF answer for both at once. SemiCRF and the actions of the HSCRF "
    "have gamma durations. L-BFGS, at most 100 iterations."
)
STEP = 3  # frames per time step
SHARPNESS = 3.0  # factor of the scores in the softmax
WINDOW = 3  # time steps on either side
STRENGTHS = (0.1, 1.0, 10.0)  # of the penalty, c2; chosen on training videos
# Flat models choose for each level by itself; so may the hierarchical one.
BY_LEVEL = (*STRENGTHS, {"phase": 10.0, "action": 0.1}, {"phase": 10.0, "action": 1.0})
LEVELS = ("phase", "action")
WAYS = ("the most probable label at each time step", "the best configuration")

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


# ---- time steps ------------------------------------------------------------------------------------------------------


def inputs(scores: Scores, step: int = STEP) -> Scores:
    """Means over time steps of the softmax of the scores, means of those over a window, and a column of ones."""
    sharp = np.exp(SHARPNESS * (scores - scores.max(axis=1, keepdims=True)))
    soft = sharp / sharp.sum(axis=1, keepdims=True)
    means = np.array([soft[t : t + step].mean(axis=0) for t in range(0, len(soft), step)])
    wide = np.array([means[max(0, t - WINDOW) : t + WINDOW + 1].mean(axis=0) for t in range(len(means))])
    return np.hstack([means, wide, np.ones((len(means), 1))])


def outputs(video: Video, step: int = STEP) -> tuple[list[str], list[str]]:
    """The phase and the action of each time step: of the frames' pairs, the most frequent (the first of equals)."""
    pairs = list(zip(video.phases, video.actions, strict=True))
    most = [Counter(pairs[t : t + step]).most_common(1)[0][0] for t in range(0, len(pairs), step)]
    return [phase for phase, _ in most], [action for _, action in most]


def frames(column: Sequence[str], n: int, step: int = STEP) -> list[str]:
    """The label of each of n frames, given those of the time steps."""
    return [label for label in column for _ in range(step)][:n]


# ---- models: fit(X, columns), best(X) and likely(X) -> columns, None for a level without answer ----------------------


class OneLevel:
    """A flat model of one level."""

    def __init__(self, level: int, model: Any) -> None:
        self.level, self.model = level, model

    def fit(self, X: Any, y: Any) -> None:
        self.model.fit(X, [columns[self.level] for columns in y])

    def best(self, X: Any) -> list[list[Any]]:
        return self._columns(spread(one) if isinstance(one[0], tuple) else one for one in self.model.predict(X))

    def likely(self, X: Any) -> list[list[Any]]:
        return self._columns(map(most_likely, self.model.predict_marginals(X)))

    def _columns(self, answers: Iterable[list[Any]]) -> list[list[Any]]:
        return [[answer if d == self.level else None for d in (0, 1)] for answer in answers]


class Product(ProductChain):
    """A chain over pairs of phase and action."""

    def best(self, X: Any) -> list[list[Any]]:
        return self.predict(X)

    def likely(self, X: Any) -> list[list[Any]]:
        return [
            [most_likely([_margin(step, d) for step in steps]) for d in (0, 1)]
            for steps in self.model.predict_marginals(X)
        ]


class Hierarchical:
    """Phases of any length over actions with gamma durations."""

    def __init__(self, **parameters: Any) -> None:
        self.model = scansion.HierarchicalCRF(
            LEVELS,
            max_length={"phase": "free", "action": None},
            length_features={"action": ("length", "log")},
            **parameters,
        )

    def fit(self, X: Any, y: Any) -> None:
        self.model.fit(X, [nested_runs(columns) for columns in y])

    def best(self, X: Any) -> list[list[Any]]:
        return [[spread(answer[level]) for level in LEVELS] for answer in self.model.predict(X)]

    def likely(self, X: Any) -> list[list[Any]]:
        return [[most_likely(answer[level]) for level in LEVELS] for answer in self.model.predict_marginals(X)]


def most_likely(steps: Iterable[dict[Any, float]]) -> list[Any]:
    """The most probable label of each time step."""
    return [max(step, key=lambda label: step[label]) for step in steps]


def _margin(step: dict[Any, float], d: int) -> dict[Any, float]:
    total: dict[Any, float] = {}
    for labels, probability in step.items():
        total[labels[d]] = total.get(labels[d], 0.0) + probability
    return total


def crf(level: int, **parameters: Any) -> OneLevel:
    return OneLevel(level, scansion.CRF(all_possible_states=True, all_possible_transitions=True, **parameters))


def semi_crf(level: int, **parameters: Any) -> OneLevel:
    flags = {"all_possible_states": True, "all_possible_transitions": True, "repeats": False}
    return OneLevel(level, scansion.SemiCRF(length_features=("length", "log"), **flags, **parameters))


MODELS: dict[str, tuple[Callable[..., Any], ...]] = {
    "CRF": (lambda **p: crf(0, **p), lambda **p: crf(1, **p)),
    "SemiCRF": (lambda **p: semi_crf(0, **p), lambda **p: semi_crf(1, **p)),
    "product chain": (lambda **p: Product(all_possible_states=True, all_possible_transitions=True, **p),),
    "HSCRF": (lambda **p: Hierarchical(all_possible_states=True, **p),),
}


def measures(videos: Sequence[Video], answers: Sequence[Sequence[Any]]) -> dict[str, dict[str, float]]:
    """Accuracy of frames and F1 of segments by overlap, in percent, at each level that has answers."""
    result = {}
    for d, level in enumerate(LEVELS):
        if answers[0][d] is None:
            continue
        truth = [(video.phases, video.actions)[d] for video in videos]
        guess = [frames(columns[d], len(column)) for columns, column in zip(answers, truth, strict=True)]
        result[level] = {"accuracy": 100 * flat_accuracy_score(truth, guess)}
        result[level] |= {f"F1@{100 * t:.0f}": 100 * overlap_f1(truth, guess, t) for t in OVERLAPS}
    return result


def chosen_strength(
    make: Callable[..., Any], strengths: Sequence[Any], groups: Sequence[Sequence[Video]], **settings: Any
) -> Any:
    """The c2 with the best accuracy (mean of the model's levels) on the last group, trained on the others."""
    found = []
    for c2 in strengths:
        figures = _fit(make(c2=c2, **settings), groups[:-1], groups[-1])[0]
        found.append(float(np.mean([one["accuracy"] for one in figures.values()])))
    return strengths[int(np.argmax(found))]


def _fit(model: Any, groups: Sequence[Sequence[Video]], test: Sequence[Video]) -> list[dict[str, dict[str, float]]]:
    """Measures of the most likely labels and of the best configurations."""
    train = [video for group in groups for video in group]
    model.fit([inputs(video.scores) for video in train], [outputs(video) for video in train])
    X = [inputs(video.scores) for video in test]
    return [measures(test, model.likely(X)), measures(test, model.best(X))]


def run(options: Options) -> Report:
    groups = {k: read_split(k) for k in SPLITS}
    settings = {"n_jobs": options.jobs, "max_iterations": 10 if options.quick else 100}
    report = Report("salads", TITLE, notes=[EXPLAINED])
    names = ["accuracy", *(f"F1@{100 * t:.0f}" for t in OVERLAPS)]
    found: dict[str, dict[str, dict[str, dict[str, list[float]]]]] = {way: {} for way in WAYS}
    strengths: dict[str, list[Any]] = {}

    def add(way: str, name: str, figures: dict[str, dict[str, float]]) -> None:
        for level, values in figures.items():
            for key, value in values.items():
                found[way].setdefault(name, {}).setdefault(level, {}).setdefault(key, []).append(round(value, 2))

    for k in SPLITS[:1] if options.quick else SPLITS:
        train = [groups[j] for j in SPLITS if j != k]
        labels = [BACKGROUND, *read_names("label-maps/mid_level_actions.txt")]
        add(WAYS[0], "SVM alone", measures(groups[k], [(None, voted(video.scores, labels)) for video in groups[k]]))
        for name, makers in MODELS.items():
            grid: Sequence[Any] = BY_LEVEL if name == "HSCRF" else STRENGTHS
            for make in makers:
                begin = time.perf_counter()
                c2 = STRENGTHS[1] if options.quick else chosen_strength(make, grid, train, **settings)
                both = _fit(make(c2=c2, **settings), train, groups[k])
                for way, figures in zip(WAYS, both, strict=True):
                    add(way, name, figures)
                strengths.setdefault(f"{name}: {', '.join(both[0])}", []).append(c2)
                shown = "; ".join(f"{level} {one['accuracy']:.1f} {one['F1@25']:.1f}" for level, one in both[0].items())
                options.say(f"  split {k}, {name}, c2 = {c2}: {shown}, {time.perf_counter() - begin:.1f} s")
    for level in LEVELS:
        for way in WAYS:
            table = Table(f"{level.capitalize()}s, {way}, percent: mean (standard deviation) of splits:", ["", *names])
            for name, levels in found[way].items():
                if level in levels:
                    table.rows.append([name, *(spread_of(levels[level][key]) for key in names)])
            report.tables.append(table)
    report.results = {"figures": found, "c2": strengths}
    return report


def voted(scores: Scores, labels: Sequence[str], step: int = STEP) -> list[str]:
    """The best label of each time step, by the sum of its scores."""
    return [labels[int(scores[t : t + step].sum(axis=0).argmax())] for t in range(0, len(scores), step)]


def spread_of(values: Sequence[float]) -> str:
    return f"{np.mean(values):.1f} ({np.std(values):.1f})"
