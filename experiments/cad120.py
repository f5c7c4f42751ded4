"""CAD-120: activities over sub-activities, seen as boxes of a person and of an object; one subject left out at a time.

The nearest public stand-in for the activities of papers 000 and 003 with a class for each sequence: 112 videos of four
people, each one of nine activities ("making cereal"), cut into sub-activities ("reaching", "moving", "pouring"). Of
every frame the data has the box around the person and the box around one object, and of each video the kind of the
object. There are no skeletons and no other objects, on which published figures rest, so that ours are not to be
compared with those.

Models see one time step for every `STEP` frames: the boxes, their sizes, where they are relative to each other, by how
much they overlap, and how all this changes over 2 and 4 time steps; when it is; and the kind of the object. Answers are
spread over the frames again and compared with the frames' own labels.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from experiments.contest import Contest, Hierarchical, cascade, crf, product, semi_crf
from experiments.data import open_text
from experiments.report import Figure, Options, Report
from scansion.data import spread, subsample, subsample_labels

TITLE = "CAD-120: activities over sub-activities, one subject left out at a time"
LEVELS = ("activity", "sub-activity")
STEP = 10  # frames of a time step
BINS = 6  # of equal numbers of training steps, where numbers are cut into bins
STRENGTHS: tuple[Any, ...] = (1.0, 10.0, 100.0, 1000.0)
BY_LEVEL = (10.0, 100.0, {"activity": 10.0, "sub-activity": 100.0}, {"activity": 1000.0, "sub-activity": 30.0})
EXPLAINED = (
    "One subject of four is tested, three are trained on; features (numbers or bins, of one time step or of three) and "
    "the penalty c2 are chosen by leaving out one of the three in turn, features by CRFs of both levels. CRF, SemiCRF "
    "and cascades are two models, one a level; in a cascade each sees the label probabilities of the other level by "
    "flat models (on training videos: by models that did not see that subject), c2 being that of the flat model. "
    "product chain: a chain over pairs of labels. HSCRF: activities span the whole video; HSCRF, free: they may change "
    "within it. Both have gamma durations of sub-activities, and choose whether sub-activities may lie in activities "
    'in which they were not seen (`topology="all"`) as they choose c2, of which they have one for each level.'
)

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Video:
    """Boxes (T, 4) of the person and the object, in shares of the picture, and the labels of all frames.

    Where the object was not seen (a box of zeros), its box is interpolated; `seen` says where it was.
    """

    name: str
    group: str  # the subject
    activity: str
    kind: str  # of the object
    person: Array
    thing: Array
    seen: npt.NDArray[np.bool_]
    steps: list[str]  # the sub-activity of each frame

    @property
    def frames(self) -> tuple[list[str], list[str]]:
        """The labels of all frames."""
        return [self.activity] * len(self.steps), self.steps

    @cached_property
    def columns(self) -> tuple[list[str], list[str]]:
        """The labels of all time steps."""
        steps = subsample_labels(self.steps, STEP)
        return [self.activity] * len(steps), steps


def read_videos(content: dict[str, Any]) -> list[Video]:
    """Videos from the content of the file; frames of sub-activities alone, what lies between two of them left out."""
    videos = []
    for name, entry in content["videos"].items():
        steps: list[str] = []
        boxes: list[tuple[Array, Array]] = []
        for part in entry["segments"]:
            person, thing = np.array(part["human_bboxes"], float), np.array(part["object_bboxes"], float)
            lacking = len(person) - len(thing)  # a box of the last frame, in a few videos
            thing = np.vstack([thing, np.repeat(thing[-1:], max(lacking, 0), axis=0)])
            boxes.append((person, thing))
            steps += [content["sub_activity_names"][part["sub_activity"]]] * len(person)
        person, thing = (np.vstack(both) for both in zip(*boxes, strict=True))
        seen = thing.any(axis=1)
        if seen.any():
            at = np.flatnonzero(seen)
            thing = np.array([np.interp(np.arange(len(thing)), at, column[at]) for column in thing.T]).T
        activity = content["activity_names"][entry["high_level_activity"]]
        kind = entry["object_type"].split(":")[-1]
        videos.append(Video(name, entry["subject"], activity, kind, person, thing, seen, steps))
    return videos


def read() -> list[Video]:
    with open_text("cad120/cad120.json") as file:
        return read_videos(json.load(file))


# ---- features ----------------------------------------------------------------------------------------------------


def quantities(video: Video) -> Array:
    """(T, F) what is seen at each time step, as numbers."""
    joined = subsample(np.hstack([video.person, video.thing, video.seen[:, None]]), STEP)
    person, thing, seen = joined[:, :4], joined[:, 4:8], joined[:, 8:]
    middle = [0.5 * (box[:, :2] + box[:, 2:]) for box in (person, thing)]
    sizes = [box[:, 2:] - box[:, :2] for box in (person, thing)]
    common = np.clip(np.minimum(person[:, 2:], thing[:, 2:]) - np.maximum(person[:, :2], thing[:, :2]), 0.0, None)
    inside = common.prod(axis=1, keepdims=True) / np.maximum(sizes[1].prod(axis=1, keepdims=True), 1e-6)
    apart = np.maximum(person[:, :2] - thing[:, 2:], thing[:, :2] - person[:, 2:]).max(axis=1, keepdims=True)
    parts = [person, thing, *sizes, middle[1] - middle[0], inside, apart, seen]
    for width in (1, 2):
        moved, carried = change(person, width), change(middle[1], width)
        speeds = [np.linalg.norm(one, axis=1, keepdims=True) for one in (moved, carried)]
        parts += [moved, carried, *speeds, change(apart, width)]
    parts += [np.linalg.norm(middle[1] - middle[1][end], axis=1, keepdims=True) for end in (0, -1)]
    time = np.arange(len(person), dtype=float)[:, None]
    parts += [np.minimum(time, 5), np.minimum(time[::-1], 5), time / len(time)]
    return np.hstack(parts)


def change(values: Array, width: int) -> Array:
    """(T, F) by how much values change from `width` rows before to `width` rows after, within the sequence."""
    at = np.arange(len(values))
    found: Array = values[np.minimum(at + width, len(at) - 1)] - values[np.maximum(at - width, 0)]
    return found


def shifted(values: Array, offsets: Sequence[int]) -> Array:
    """(T, F n) the rows at these offsets side by side; beyond the ends the first and the last go on."""
    at = np.arange(len(values))
    return np.hstack([values[np.clip(at + offset, 0, len(at) - 1)] for offset in offsets])


def kinds(train: Sequence[Video]) -> Callable[[Video], Array]:
    """A column for each kind of object in training."""
    names = sorted({video.kind for video in train})

    def one_of(video: Video) -> Array:
        return np.tile([float(video.kind == name) for name in names], (len(video.columns[0]), 1))

    return one_of


def numbers(offsets: Sequence[int]) -> Callable[[Sequence[Video]], Callable[[Video], Array]]:
    def features(train: Sequence[Video]) -> Callable[[Video], Array]:
        kind = kinds(train)
        return lambda video: np.hstack([shifted(quantities(video), offsets), kind(video)])

    return features


def bins(offsets: Sequence[int]) -> Callable[[Sequence[Video]], Callable[[Video], Array]]:
    """Each number as one of `BINS` ranges that hold equal shares of the training steps."""

    def features(train: Sequence[Video]) -> Callable[[Video], Array]:
        kind = kinds(train)
        table = np.vstack([quantities(video) for video in train])
        edges = [np.unique(np.quantile(column, np.linspace(0, 1, BINS + 1)[1:-1])) for column in table.T]

        def binned(video: Video) -> Array:
            columns = zip(quantities(video).T, edges, strict=True)
            ranges = np.hstack([np.eye(len(cut) + 1)[np.searchsorted(cut, column)] for column, cut in columns])
            return np.hstack([shifted(ranges, offsets), kind(video)])

        return binned

    return features


FEATURES = {
    "numbers of three time steps": numbers((-2, 0, 2)),
    "numbers of one time step": numbers((0,)),
    "bins of three time steps": bins((-2, 0, 2)),
    "bins of one time step": bins((0,)),
}


# ---- contest -----------------------------------------------------------------------------------------------------


def hierarchical(above: str) -> Callable[..., Hierarchical]:
    lengths = {"max_length": {"activity": above, "sub-activity": None}}
    gamma = {"length_features": {"sub-activity": ("length", "log")}}
    return lambda **parameters: Hierarchical(LEVELS, all_possible_states=True, **lengths, **gamma, **parameters)


MODELS: dict[str, tuple[Callable[..., Any], ...]] = {
    "CRF": (crf(0), crf(1)),
    "SemiCRF": (semi_crf(0), semi_crf(1)),
    "CRF cascade": (cascade(0), cascade(1)),
    "SemiCRF cascade": (cascade(0, True), cascade(1, True)),
    "product chain": (product,),
    "HSCRF, free": (hierarchical("free"),),
    "HSCRF": (hierarchical("whole"),),
}


def contest(videos: Sequence[Video]) -> Contest:
    nested = [{"c2": c2, "topology": topology} for topology in ("all", "seen") for c2 in BY_LEVEL]
    candidates: dict[str, Any] = {"": [{"c2": c2} for c2 in STRENGTHS], "HSCRF": nested, "HSCRF, free": nested}
    candidates |= {"CRF cascade": "CRF", "SemiCRF cascade": "SemiCRF"}
    return Contest(
        LEVELS,
        videos,
        FEATURES,
        MODELS,
        candidates,
        restored=lambda video, column: spread(column, STEP, len(video.steps)),
        truth=lambda video: video.frames,
    )


def run(options: Options) -> Report:
    found = contest(read())
    found.run(options)
    report = Report("cad120", TITLE, notes=[EXPLAINED, found.converged()], results=found.results)
    report.tables = [*found.tables("subjects"), found.differences("HSCRF", "subjects")]
    caption = "Accuracy by marginal decoding on each subject (dots) and its mean (bars)"
    report.figures.append(Figure("accuracy", caption, found.picture))
    return report
