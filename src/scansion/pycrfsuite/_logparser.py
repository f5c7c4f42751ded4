"""CRFsuite's messages of training as records.

The messages have five parts: what is read (until "Feature generation"), the features ("0....1....2" and their number),
the settings of the algorithm, iterations, and what is stored. An event is the end of something; `last_log` has its
messages.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

__all__ = ["LabelScore", "TrainLogParser"]

_HEAD = re.compile(r"\*{5} (?:Iteration|Epoch) #(\d+) \*{5}\n")
_NUMBER = r"(-?\d+(?:\.\d+)?(?:e[+-]\d+)?|-?inf|nan)"
_SECONDS = re.compile(rf"Seconds required: {_NUMBER}")
_TOTAL = re.compile(rf"Total seconds required for training: {_NUMBER}")
_FEATURES = re.compile(r"Number of features: (\d+)")
_FIELDS: list[tuple[str, Callable[[str], Any], re.Pattern[str]]] = [
    (key, kind, re.compile(rf"{text}: {_NUMBER}"))
    for key, kind, text in (
        ("loss", float, "Loss"),
        ("improvement_ratio", float, "Improvement ratio"),
        ("feature_norm", float, "Feature (?:L2-)?norm"),
        ("error_norm", float, "Error norm"),
        ("learning_rate", float, r"Learning rate \(eta\)"),
        ("active_features", int, "Active features"),
        ("linesearch_trials", int, "Line search trials"),
        ("linesearch_step", float, "Line search step"),
        ("time", float, "Seconds required for this iteration"),
    )
]
_MACRO = re.compile(rf"Macro-average precision, recall, F1: \({_NUMBER}, {_NUMBER}, {_NUMBER}\)")
_ACCURACY = re.compile(r"(Item|Instance) accuracy: (\d+) / (\d+)")
_LABEL = re.compile(r"\s{4}(.+): \((\d+), (\d+), (\d+)\) \(([\d.]+|\*+), ([\d.]+|\*+), ([\d.]+|\*+)\)")


class LabelScore(NamedTuple):
    """How well a label is found in the holdout data; None where it does not occur in them."""

    match: int
    model: int
    ref: int
    precision: float | None
    recall: float | None
    f1: float | None


class TrainLogParser:
    """Reads messages one by one.

    Attributes
    ----------
    state : str or None
    log : list of str
        All messages.
    events : list of (name, first, end)
        Events and the places of their messages in `log`.
    iterations : list of dict
        num, scores, loss, feature_norm, error_norm, active_features, linesearch_trials, linesearch_step, time; with
        holdout data avg_precision, avg_recall, avg_f1, item_accuracy, instance_accuracy (fractions, and _float).
    last_iteration : dict or None
    featgen_percent, featgen_num_features, featgen_seconds, training_seconds, storing_seconds
    """

    def __init__(self) -> None:
        self.state: str | None = None
        self.log: list[str] = []
        self.events: list[tuple[str, int, int]] = []
        self.iterations: list[dict[str, Any]] = []
        self.last_iteration: dict[str, Any] | None = None
        self.featgen_percent = -2
        self.featgen_num_features: int | None = None
        self.featgen_seconds: float | None = None
        self.training_seconds: float | None = None
        self.storing_seconds: float | None = None

    def feed(self, line: str) -> str | None:
        """Take a message; the event that it ends, if it ends one."""
        self.log.append(line)
        before = self.state
        event: str | None
        if before is None:
            self.state, event = "starting", "start"
            self._starting(line)
        else:
            event = getattr(self, f"_{before}")(line)
        if event is not None:
            first = self.events[-1][2] if self.events else 0
            # what ends these belongs to the next
            end = len(self.log) - (event in ("prepared", "optimization_end"))
            self.events.append((event, first, end))
        return event

    @property
    def last_log(self) -> str:
        """The messages of the last event."""
        _, first, end = self.events[-1]
        return "".join(self.log[first:end])

    def _starting(self, line: str) -> None:
        if line.startswith("Feature generation"):
            self.state = "features"

    def _features(self, line: str) -> str | None:
        if line and (line == "." or line.isdigit()):
            self.featgen_percent += 2
            return "featgen_progress"
        if found := _FEATURES.match(line):
            self.featgen_num_features = int(found[1])
        elif found := _SECONDS.match(line):
            self.featgen_seconds = float(found[1])
            self.state = "prepared"
            return "featgen_end"
        return None

    def _prepared(self, line: str) -> str | None:
        if _HEAD.match(line):
            self._iteration(line)
            return "prepared"
        if "terminated with error" in line:
            self.state = "between"
            return "prepare_error"
        return self._stored(line)

    def _iteration(self, line: str) -> str | None:
        if head := _HEAD.match(line):
            self.state = "iteration"
            self.last_iteration = {"num": int(head[1]), "scores": {}}
            self.iterations.append(self.last_iteration)
            return None
        if line == "\n":
            self.state = "between"
            return "iteration"
        assert self.last_iteration is not None
        for key, kind, expression in _FIELDS:
            if found := expression.match(line):
                self.last_iteration[key] = kind(found[1])
        if found := _MACRO.match(line):
            names = ("avg_precision", "avg_recall", "avg_f1")
            self.last_iteration.update(zip(names, map(float, found.groups()), strict=True))
        elif found := _ACCURACY.match(line):
            name = f"{found[1].lower()}_accuracy"
            share = Fraction(int(found[2]), max(1, int(found[3])))
            self.last_iteration.update({name: share, f"{name}_float": float(share)})
        elif found := _LABEL.match(line):
            counts = [int(found[i]) for i in (2, 3, 4)]
            shares = [None if "*" in found[i] else float(found[i]) for i in (5, 6, 7)]
            self.last_iteration["scores"][found[1]] = LabelScore(*counts, *shares)
        return None

    def _between(self, line: str) -> str | None:
        if _HEAD.match(line):
            return self._iteration(line)
        return self._stored(line)

    def _stored(self, line: str) -> str | None:
        if found := _TOTAL.match(line):
            self.training_seconds = float(found[1])
        elif line.startswith("Storing the model"):
            self.state = "storing"
            return "optimization_end"
        return None

    def _storing(self, line: str) -> str | None:
        if found := _SECONDS.match(line):
            self.storing_seconds = float(found[1])
        return "end" if line == "\n" else None
