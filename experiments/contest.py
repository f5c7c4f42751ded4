"""Models of several levels of labels side by side: one group of sequences left out at a time.

A sequence is what an experiment reads, with `columns` (one column of labels for each level, the upper first) and
`group` (who is left out together: a subject, a day). Features turn sequences into arrays (T, F) or dicts, one a time
step; what they need to know (bins, say) they take from the training sequences. In each fold everything that can be
chosen is chosen on the training groups alone, some of them left out in turn: first the features, by a CRF of each
level, then the penalty of each model.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

import scansion
from experiments.figures import dots
from experiments.levels import Column, ProductChain, nested_runs, spread
from experiments.report import Options, Table
from scansion.metrics import action_scores

__all__ = [
    "DECODINGS",
    "Contest",
    "Example",
    "Hierarchical",
    "cascade",
    "crf",
    "mean_and_deviation",
    "product",
    "semi_crf",
]

Array = npt.NDArray[np.float64]
Answer = list[Any]  # a column for each level, None for a level without an answer
DECODINGS = ("viterbi", "marginal")
EVERY = {"all_possible_states": True, "all_possible_transitions": True}
GAMMA = {**EVERY, "length_features": ("length", "log"), "repeats": False}
MEASURES = ("accuracy", "over labels", "edit", "F1@10", "F1@25", "F1@50")


class Example(Protocol):
    """A sequence with its labels."""

    @property
    def columns(self) -> tuple[list[Any], ...]: ...

    @property
    def group(self) -> Any: ...


Features = Callable[[Sequence[Any]], Callable[[Any], Any]]  # training sequences -> sequence -> array (T, F) or dicts


# ---- models: fit(X, y, groups), predict(X, decode) -> answers --------------------------------------------------------


class OneLevel:
    """A flat model of one level, which says nothing of the others."""

    def __init__(self, level: int, make: Callable[..., Any], **parameters: Any) -> None:
        self.level, self.make, self.parameters = level, make, parameters

    def fit(self, X: list[Any], y: Sequence[Sequence[Column]], groups: Sequence[Any]) -> None:
        self.depth = len(y[0])
        self.model = self.make(**self.parameters).fit(X, [list(columns[self.level]) for columns in y])

    def predict(self, X: list[Any], decode: str) -> list[Answer]:
        return [
            [column if d == self.level else None for d in range(self.depth)]
            for column in _columns(self.model.predict(X, decode=decode))
        ]


class Cascade(OneLevel):
    """A flat model of one level that sees the label probabilities of flat models of the other levels.

    Those of the training sequences are by models that were trained without their group.
    """

    def fit(self, X: list[Any], y: Sequence[Sequence[Column]], groups: Sequence[Any]) -> None:
        others = [d for d in range(len(y[0])) if d != self.level]
        self.stages = [OneLevel(d, self.make, **self.parameters) for d in others]
        seen = list(X)
        for stage in self.stages:
            stage.fit(X, y, groups)
            for left_out in dict.fromkeys(groups):
                inside = [i for i, group in enumerate(groups) if group != left_out]
                outside = [i for i, group in enumerate(groups) if group == left_out]
                part = OneLevel(stage.level, self.make, **self.parameters)
                part.fit([X[i] for i in inside], [y[i] for i in inside], [groups[i] for i in inside])
                told = part.model.predict_marginals([X[i] for i in outside])
                for i, steps in zip(outside, told, strict=True):
                    seen[i] = _joined(seen[i], steps, stage)
        super().fit(seen, y, groups)

    def predict(self, X: list[Any], decode: str) -> list[Answer]:
        seen = list(X)
        for stage in self.stages:
            told = stage.model.predict_marginals(X)
            seen = [_joined(x, steps, stage) for x, steps in zip(seen, told, strict=True)]
        return super().predict(seen, decode)


def _joined(x: Any, steps: list[dict[Any, float]], stage: OneLevel) -> Any:
    """A sequence with the label probabilities of a level beside what it holds; those of unknown labels are 0."""
    labels = stage.model.classes_
    if isinstance(x, np.ndarray):
        return np.hstack([x, [[step.get(label, 0.0) for label in labels] for step in steps]])
    names = {label: f"level {stage.level}: {label}" for label in labels}
    return [
        {**token, **{names[label]: p for label, p in step.items() if label in names}}
        for token, step in zip(x, steps, strict=True)
    ]


class Product(ProductChain):
    """A chain over combinations of labels; each position is decoded as a combination."""

    def fit(self, X: Any, y: Any, groups: Any = None) -> ProductChain:
        return super().fit(X, y)

    def predict(self, X: Any, decode: Any = "viterbi") -> list[Answer]:  # type: ignore[override]
        return super().predict(X, decode=decode)


class Hierarchical:
    """A hierarchical CRF; y are the runs of equal labels, cut where a level above changes."""

    def __init__(self, levels: Sequence[str], **parameters: Any) -> None:
        self.model = scansion.HierarchicalCRF(levels, **parameters)

    def fit(self, X: list[Any], y: Sequence[Sequence[Column]], groups: Any = None) -> None:
        self.model.fit(X, [nested_runs(columns) for columns in y])

    def predict(self, X: list[Any], decode: Any) -> list[Answer]:
        return [[spread(level) for level in answer] for answer in self.model.predict(X, decode=decode)]


def _columns(answers: Iterable[Any]) -> list[list[Any]]:
    return [spread(one) if one and isinstance(one[0], tuple) else list(one) for one in answers]


def crf(level: int, **fixed: Any) -> Callable[..., OneLevel]:
    """A CRF of one level."""
    return lambda **parameters: OneLevel(level, scansion.CRF, **{**EVERY, **fixed, **parameters})


def semi_crf(level: int, **fixed: Any) -> Callable[..., OneLevel]:
    """A semi-Markov CRF of one level, with gamma durations."""
    return lambda **parameters: OneLevel(level, scansion.SemiCRF, **{**GAMMA, **fixed, **parameters})


def cascade(level: int, segments: bool = False, **fixed: Any) -> Callable[..., Cascade]:
    """Two stages: first the other levels by flat models, then this one."""
    make, flags = (scansion.SemiCRF, GAMMA) if segments else (scansion.CRF, EVERY)
    return lambda **parameters: Cascade(level, make, **{**flags, **fixed, **parameters})


def product(**parameters: Any) -> Product:
    return Product(**{**EVERY, **parameters})


# ---- folds -----------------------------------------------------------------------------------------------------------


@dataclass
class Contest:
    """Sequences, and who competes on them.

    Parameters
    ----------
    levels : names of the levels, the upper first
    sequences : sequences with their labels and groups
    features : name -> features; with several, those are taken by which CRFs do best on training groups
    models : name -> makers, each called with a candidate's parameters and the settings of training
    candidates : name -> parameters to choose from, those of "" where a name is missing; or the name of a model listed
        before it, whose choices (of the same level) are taken
    inner : the training groups are put into so many parts, of which one is left out at a time for choices; None: each
    choices : so many of these parts are left out, the last ones; None: all
    restored : labels of an answer as they are compared, by sequence (time steps to frames)
    """

    levels: Sequence[str]
    sequences: Sequence[Any]
    features: Mapping[str, Features]
    models: Mapping[str, Sequence[Callable[..., Any]]]
    candidates: Mapping[str, Sequence[dict[str, Any]] | str]
    inner: int | None = None
    choices: int | None = None
    restored: Callable[[Any, Column], Column] = lambda example, column: column
    truth: Callable[[Any], Sequence[Column]] = lambda example: example.columns
    results: dict[str, Any] = field(default_factory=dict)
    fits: int = 0
    unfinished: int = 0

    def run(self, options: Options, folds: Sequence[Any] | None = None) -> None:
        """Leave each group out (or those of `folds`); figures go to `results`.

        results["figures"][decoding][model][level][measure] is a list over folds, results["chosen"][model] what was
        chosen in each.
        """
        groups = list(dict.fromkeys(example.group for example in self.sequences))
        settings: dict[str, Any] = {"n_jobs": options.jobs, "max_iterations": 5 if options.quick else None}
        self.results = {"folds": [], "features": [], "figures": {name: {} for name in DECODINGS}, "chosen": {}}
        for left_out in groups[:1] if options.quick else folds if folds is not None else groups:
            train = [example for example in self.sequences if example.group != left_out]
            test = [example for example in self.sequences if example.group == left_out]
            parts = self._parts(train)
            names = list(self.features)
            name = names[0] if options.quick or len(names) == 1 else self._best_features(parts, settings)
            self.results["folds"].append(str(left_out))
            self.results["features"].append(name)
            options.say(f"  without {left_out}: {name}")
            taken: dict[tuple[str, int], dict[str, Any]] = {}
            for model, makers in self.models.items():
                grid = self.candidates.get(model, self.candidates[""])
                for i, make in enumerate(makers):
                    begin = time.perf_counter()
                    if isinstance(grid, str):
                        best = taken[grid, i]
                    elif options.quick or len(grid) == 1:
                        best = grid[0]
                    else:
                        found = [self._accuracy(name, make, parts, {**one, **settings}) for one in grid]
                        best = grid[int(np.argmax(found))]
                    taken[model, i] = best
                    answers = self._answers(self.features[name], make, train, test, {**best, **settings})
                    self._note(model, best, test, answers)
                    told = "; ".join(f"{a:.1f}" for a in self._accuracies(test, answers["marginal"]))
                    options.say(f"    {model}, {best}: {told}, {time.perf_counter() - begin:.1f} s")

    def _numbers(self, train: Sequence[Any]) -> list[int]:
        """The part of each training sequence, of those that are left out in turn."""
        groups = list(dict.fromkeys(example.group for example in train))
        size = len(groups) if self.inner is None else min(self.inner, len(groups))
        return [groups.index(example.group) % size for example in train]

    def _parts(self, train: Sequence[Any]) -> list[tuple[list[Any], list[Any]]]:
        """Training sequences and those left out, for choices."""
        numbers = self._numbers(train)
        kept = sorted(set(numbers))[-(self.choices or len(numbers)) :]
        pairs = list(zip(train, numbers, strict=True))
        return [([e for e, n in pairs if n != i], [e for e, n in pairs if n == i]) for i in kept]

    def _best_features(self, parts: Any, settings: dict[str, Any]) -> str:
        """The features with the best accuracy, on average over levels, by CRFs with the middle one of candidates."""
        one = self.candidates[""][len(self.candidates[""]) // 2]
        assert isinstance(one, dict)
        makers = self.models["CRF"]
        found = {
            name: float(np.mean([self._accuracy(name, make, parts, {**one, **settings}) for make in makers]))
            for name in self.features
        }
        return max(found, key=lambda name: found[name])

    def _accuracy(self, name: str, make: Any, parts: Any, settings: dict[str, Any]) -> float:
        """Accuracy on the parts left out, on average over the levels that the model answers for."""
        found = []
        for inside, outside in parts:
            answers = self._answers(self.features[name], make, inside, outside, settings, ("marginal",))
            found.append(float(np.mean(self._accuracies(outside, answers["marginal"]))))
        return float(np.mean(found))

    def _answers(
        self,
        features: Features,
        make: Any,
        train: Sequence[Any],
        test: Sequence[Any],
        settings: dict[str, Any],
        decodings: Iterable[str] = DECODINGS,
    ) -> dict[str, list[Answer]]:
        """Answers for the test sequences by each way of decoding."""
        made, model = features(train), make(**settings)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", scansion.ConvergenceWarning)
            model.fit([made(e) for e in train], [e.columns for e in train], self._numbers(train))
        self.fits += 1
        self.unfinished += any(issubclass(one.category, scansion.ConvergenceWarning) for one in caught)
        X = [made(e) for e in test]
        return {decode: model.predict(X, decode) for decode in decodings}

    def _pairs(
        self, test: Sequence[Any], answers: Sequence[Answer]
    ) -> Iterable[tuple[int, list[Column], list[Column]]]:
        """Level, true columns and predicted ones, of the levels that have answers."""
        for d in range(len(self.levels)):
            if answers[0][d] is not None:
                guess = [self.restored(e, answer[d]) for e, answer in zip(test, answers, strict=True)]
                yield d, [self.truth(e)[d] for e in test], guess

    def _accuracies(self, test: Sequence[Any], answers: Sequence[Answer]) -> list[float]:
        return [
            100 * float(np.mean([a == b for u, v in zip(*columns, strict=True) for a, b in zip(u, v, strict=True)]))
            for _, *columns in self._pairs(test, answers)
        ]

    def _note(self, model: str, best: dict[str, Any], test: Sequence[Any], answers: dict[str, list[Answer]]) -> None:
        for decode, found in answers.items():
            for d, truth, guess in self._pairs(test, found):
                self.note(decode, model, self.levels[d], truth, guess)
        answered = ", ".join(level for level, one in zip(self.levels, found[0], strict=True) if one is not None)
        self.results["chosen"].setdefault(f"{model}: {answered}", []).append(best)

    def note(self, decode: str, model: str, level: str, truth: Any, guess: Any) -> None:
        """Add the measures of a fold."""
        scores = action_scores(truth, guess)
        values = (scores.accuracy, scores.mean_accuracy, scores.edit, *scores.f1.values())
        place = self.results["figures"][decode].setdefault(model, {}).setdefault(level, {})
        for measure, value in zip(MEASURES, values, strict=True):
            place.setdefault(measure, []).append(round(float(value), 2))

    # ---- tables ------------------------------------------------------------------------------------------------------

    def tables(self, what: str) -> list[Table]:
        """One for each level; `what` is a fold ("subjects")."""
        shown = ("accuracy", "F1@25", "edit")
        found = []
        for level in self.levels:
            table = Table(
                f"{level.capitalize()}, percent, mean (standard deviation) over {what}; by Viterbi, and by marginals:",
                ["", *(f"{measure}, {decode}" for measure in shown for decode in DECODINGS)],
            )
            for model, levels in self.results["figures"]["viterbi"].items():
                if level in levels:
                    places = [self.results["figures"][decode][model][level] for decode in DECODINGS]
                    cells = [mean_and_deviation(place[measure]) for measure in shown for place in places]
                    table.rows.append([model, *cells])
            found.append(table)
        return found

    def differences(self, model: str, what: str) -> Table:
        """By how much the accuracy of `model` is above that of the others, fold by fold, in their better decoding."""
        better = {
            name: {
                level: max((self.results["figures"][way][name][level]["accuracy"] for way in DECODINGS), key=np.mean)
                for level in levels
            }
            for name, levels in self.results["figures"]["marginal"].items()
        }
        table = Table(
            f"Accuracy of {model} less that of the others, each in its better way of decoding: mean (standard error) "
            f"over {what}, and in how many it is ahead:",
            ["", *self.levels],
        )
        for name, levels in better.items():
            if name == model:
                continue
            cells = []
            for level in self.levels:
                if level not in levels or level not in better[model]:
                    cells.append("")
                    continue
                gap = np.subtract(better[model][level], levels[level])
                error = gap.std(ddof=1) / np.sqrt(len(gap)) if len(gap) > 1 else 0.0
                cells.append(f"{gap.mean():+.1f} ({error:.1f}), {(gap > 0).sum()} of {len(gap)}")
            table.rows.append([name, *cells])
        return table

    def picture(self) -> Any:
        """The accuracy of all models by marginal decoding, fold by fold."""
        found = self.results["figures"]["marginal"]
        panels = {
            level: {model: levels[level]["accuracy"] for model, levels in found.items() if level in levels}
            for level in self.levels
        }
        return dots(panels, "accuracy, %")

    def converged(self) -> str:
        """A sentence on how training ended."""
        if not self.unfinished:
            return f"All {self.fits} trainings ran until the stopping rule of L-BFGS held."
        return f"Of {self.fits} trainings {self.unfinished} were stopped before the stopping rule of L-BFGS held."


def mean_and_deviation(values: Sequence[float]) -> str:
    return f"{np.mean(values):.1f} ({np.std(values):.1f})"
