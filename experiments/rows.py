"""The six models that paper 001 compares, CRFs (C) and semi-Markov CRFs (SC) of orders 1 to 3, and what its three tasks
share: tables of F1, the randomisation test, patterns and time by order.

They are trained in two ways. "optimum": until L-BFGS has converged, which is where the convex objective has its only
optimum. "authors": by the authors' optimiser and rule to stop (`experiments.authors`), which ends before.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from experiments.authors import minimise
from experiments.figures import curves
from experiments.report import Figure, Options, Report, Table, percent, spread
from scansion.metrics import SegmentScores, randomization_test, segment_scores

__all__ = [
    "LIMITS",
    "ROWS",
    "SIGMA_1",
    "Fitted",
    "Task",
    "fit",
    "is_semi",
    "label_lists",
    "order_of",
    "settings",
    "significance",
    "size_table",
    "study",
]

ROWS = ("C1", "C2", "C3", "SC1", "SC2", "SC3")
SIGMA_1 = 0.5  # c2 of a Gaussian prior with sigma = 1
FOLDS = 5
HIGHER = ("SC4", "SC5")  # for patterns and time by order
Labels = list[list[Any]]

# The authors' semi-Markov models: neighbouring segments differ in label, each label has its own longest segment; pairs
# that do not occur have no weight, and lengths neither.
LIMITS = {
    "max_length": "by label",
    "slack": 0.0,
    "repeats": False,
    "all_possible_transitions": False,
    "length_features": (),
}
OPTIMUM = (
    "At the optimum: L-BFGS until the gradient, or the fall of the loss, is below 1e-5 of the weights, or the loss. "
    "The authors' way: their optimiser and rule, which stop when the loss falls by less than 0.1 % per iteration on "
    "average over about ten (`experiments/authors.py`)."
)
P_VALUES = (
    "The randomisation test. The paper's way: each segment that only one of the two systems has is given to either of "
    "them at random, and only greater differences of the same sign count. Segments of one sequence are no independent "
    "evidence, so that its p' are too small. By sequences: the two answers to a sequence are swapped as a whole, and "
    "differences of either sign count, ties included, which is the test to believe."
)


def is_semi(row: str) -> bool:
    return row.startswith("SC")


def order_of(row: str) -> int:
    return int(row.removeprefix("SC").removeprefix("C")[0])


def settings(row: str, c2: float = SIGMA_1) -> dict[str, Any]:
    """Parameters of the estimator of a row that do not belong to its features."""
    return {"order": order_of(row), "c2": c2, **(LIMITS if is_semi(row) else {})}


@dataclass
class Fitted:
    """A trained model's answers and figures.

    `seconds_per_evaluation` is the time of one evaluation of objective and gradient on one thread.
    """

    predicted: Labels
    weights: int
    patterns: int
    loss: float
    iterations: int
    seconds: float
    seconds_per_evaluation: float

    def figures(self) -> dict[str, float]:
        return {
            "weights": self.weights,
            "patterns": self.patterns,
            "loss": round(self.loss, 4),
            "iterations": self.iterations,
            "seconds": round(self.seconds, 2),
            "seconds_per_evaluation": round(self.seconds_per_evaluation, 4),
        }


def label_lists(predicted: Sequence[Any]) -> Labels:
    """Answers of either estimator as one label per token."""
    return [
        [label for start, stop, label in answer for _ in range(start, stop)]
        if answer and isinstance(answer[0], tuple)
        else list(answer)
        for answer in predicted
    ]


def fit(
    row: str,
    options: Options,
    train: tuple[list[Any], list[Any]],
    test: list[Any],
    *,
    training: str = "optimum",
    timing: bool = True,
    **parameters: Any,
) -> Fitted:
    """Train and answer for one row; SemiCRF for SC rows, CRF for the others. timing: also on one thread."""
    import scansion

    make: Callable[..., Any] = scansion.SemiCRF if is_semi(row) else scansion.CRF
    chosen = {"order": order_of(row), **parameters}
    limit = 10 if options.quick else None
    begin = time.perf_counter()
    model = make(**chosen, max_iterations=limit, n_jobs=options.jobs)
    if training == "authors":
        _train_as_authors(model, *train, limit)
    else:
        model.fit(*train)
    elapsed = time.perf_counter() - begin
    log = model.training_log_
    fitted = Fitted(
        predicted=label_lists(model.predict(test)),
        weights=model.model_.n_weights,
        patterns=len(model.patterns_),
        loss=float(model.loss_),
        iterations=len(log),
        seconds=elapsed,
        seconds_per_evaluation=_per_evaluation(log),
    )
    if timing and options.jobs != 1:
        short = make(**chosen, max_iterations=4, n_jobs=1).fit(*train)
        fitted.seconds_per_evaluation = _per_evaluation(short.training_log_)
    options.say(f"  {row}, {training}: {fitted.weights:,} weights, {fitted.iterations} iterations, {elapsed:.1f} s")
    return fitted


def _train_as_authors(model: Any, X: list[Any], y: list[Any], limit: int | None) -> None:
    """Fit an estimator by the authors' optimiser, on the loss divided by the number of sequences."""
    from scansion.training.learn import log_objective

    learnt, objective = model.problem(X, y)
    function = log_objective(objective, model.c2, model.n_jobs)
    log: list[dict[str, Any]] = []
    begun = time.perf_counter()

    def mean(w: Any) -> tuple[float, Any]:
        loss, gradient = function(w)
        return loss / len(X), gradient / len(X)

    def seen(w: Any, loss: float) -> None:
        nonlocal begun
        now = time.perf_counter()
        log.append({"iteration": len(log) + 1, "loss": loss * len(X), "seconds": now - begun})
        begun = now

    found = minimise(mean, np.zeros(learnt.n_weights), seen, limit)
    log[-1]["evaluations"] = found.evaluations
    learnt.weights = found.w
    model._finish(learnt, log, found.loss * len(X), "the authors' rule")


def _per_evaluation(log: list[dict[str, Any]]) -> float:
    evaluations = log[-1].get("evaluations") or len(log)
    return sum(entry["seconds"] for entry in log) / max(1, evaluations)


# ---- a task of the paper -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Task:
    """One of the paper's tasks: data, features, what is scored, and what was published.

    Attributes
    ----------
    data : () -> (training, test)
        Sequences as (words, labels); labels as in the files.
    features : (words, row) -> attributes of each token
    labels : labels of the file -> those that are learnt
    scored : learnt or predicted labels -> what is compared, a list of labels or of segments
    parameters : row -> parameters of the estimator that belong to the features
    published : what F1 is of ("all": of all) -> F1 of the six rows
    more : further rows, name -> (row, c2, published F1 of all)
    """

    name: str
    title: str
    data: Callable[[], tuple[list[Any], list[Any]]]
    features: Callable[[list[str], str], list[dict[str, float]]]
    labels: Callable[[list[str]], list[str]]
    scored: Callable[[list[str]], list[Any]]
    parameters: Callable[[str], dict[str, Any]]
    published: Mapping[str, Sequence[float]]
    published_p: Mapping[tuple[str, str], str]
    shown: Mapping[str, str] = field(default_factory=dict)
    more: Mapping[str, tuple[str, float, float]] = field(default_factory=dict)
    others_seconds: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def fit(
        self, row: str, options: Options, train: list[Any], test: list[Any], c2: float = SIGMA_1, **how: Any
    ) -> tuple[Fitted, list[Any]]:
        """A model and its answers in the form that is scored."""
        X, y = [self.features(words, row) for words, _ in train], [self.labels(labels) for _, labels in train]
        unseen = [self.features(words, row) for words, _ in test]
        fitted = fit(row, options, (X, y), unseen, **how, **{**settings(row, c2), **self.parameters(row)})
        return fitted, [self.scored(labels) for labels in fitted.predicted]

    def truth(self, sequences: list[Any]) -> list[Any]:
        return [self.scored(self.labels(labels)) for _, labels in sequences]


def f1_of(scores: SegmentScores, what: str) -> float:
    if what == "all":
        return float(scores.micro.f1)
    return float(scores.labels[what].f1) if what in scores.labels else 0.0


def study(task: Task, options: Options) -> Report:
    """All that the paper reports of a task."""
    report = Report(task.name, task.title, notes=[OPTIMUM, P_VALUES])
    train, test = task.data()
    truth = task.truth(test)
    fitted: dict[str, dict[str, Fitted]] = {}
    answers: dict[str, dict[str, list[Any]]] = {}
    for training in options.training:
        fitted[training], answers[training] = {}, {}
        scores: dict[str, SegmentScores] = {}
        for name, (row, c2, _) in {**{row: (row, SIGMA_1, 0.0) for row in ROWS}, **task.more}.items():
            how = {"training": training, "timing": training == "optimum"}
            fitted[training][name], found = task.fit(row, options, train, test, c2, **how)
            scores[name] = segment_scores(truth, found, scheme="plain")
            answers[training][name] = found
            options.say(f"    F1 {percent(scores[name].micro.f1)}")
        report.tables.append(_f1_table(task, scores, training))
        report.results[training] = {
            name: {
                "f1": {task.shown.get(what, what): round(100 * f1_of(one, what), 2) for what in task.published},
                **fitted[training][name].figures(),
            }
            for name, one in scores.items()
        }
    trials = 999
    if "authors" in answers:
        table, numbers = significance(
            truth, _six(answers["authors"]), task.published_p, trials, unit="segment", one_sided=True, scheme="plain"
        )
        table.caption = f"Models trained the authors' way, test the paper's way: {table.caption}"
        report.tables.append(table)
        report.results["significance, the paper's way"] = numbers
    for training in options.training:
        table, numbers = significance(truth, _six(answers[training]), {}, 9 * trials + 8, scheme="plain")
        table.caption = f"{_TRAINED[training]}, swapped by sequences, two-sided: {table.caption}"
        report.tables.append(table)
        report.results[f"significance by sequences, {training}"] = numbers
    if "optimum" in options.training:
        report.tables.append(size_table(fitted["optimum"], task.others_seconds))
        report.tables.append(_folds(task, options, [*train, *test], report))
        orders = dict(fitted["optimum"])
        for row in HIGHER if not options.quick else ():
            orders[row], _ = task.fit(row, options, train, test)
        by_order = {order_of(row): one for row, one in orders.items() if row in (*ROWS[3:], *HIGHER)}
        report.results["orders"] = {
            order: {
                "patterns": one.patterns,
                "seconds_per_evaluation": one.seconds_per_evaluation,
                "seconds": one.seconds,
            }
            for order, one in by_order.items()
        }
        report.figures.append(
            Figure("orders", "Patterns and time of semi-Markov CRFs by maximum order", lambda: draw_orders(by_order))
        )
    return report


_TRAINED = {"optimum": "Models at the optimum", "authors": "Models trained the authors' way"}


def _six(answers: dict[str, list[Any]]) -> dict[str, list[Any]]:
    return {row: answers[row] for row in ROWS}


def _f1_table(task: Task, scores: dict[str, SegmentScores], training: str) -> Table:
    table = Table(f"{_TRAINED[training]}: F1 in percent (the paper's in brackets).", ["", *scores])
    equal = total = 0
    for what, published in task.published.items():
        cells = []
        for name, one in scores.items():
            ours, paper = percent(f1_of(one, what)), ""
            if name in ROWS:
                paper = f"{published[ROWS.index(name)]:.2f}"
            elif what == "all":
                paper = f"{task.more[name][2]:.2f}"
            if paper:
                equal, total = equal + (ours == paper), total + 1
            cells.append(f"{ours} ({paper})" if paper else ours)
        table.rows.append([task.shown.get(what, what), *cells])
    table.caption += f" {equal} of the {total} figures are equal to the last digit."
    return table


def _folds(task: Task, options: Options, sequences: list[Any], report: Report) -> Table:
    """The six rows on five folds of all data."""
    folds = np.array_split(np.random.default_rng(0).permutation(len(sequences)), FOLDS)[: 1 if options.quick else None]
    found: dict[str, list[float]] = {row: [] for row in ROWS}
    for fold in folds:
        left_out = set(fold.tolist())
        train = [one for i, one in enumerate(sequences) if i not in left_out]
        test = [sequences[i] for i in fold.tolist()]
        truth = task.truth(test)
        for row in ROWS:
            _, answers = task.fit(row, options, train, test, timing=False)
            found[row].append(100 * float(segment_scores(truth, answers, scheme="plain").micro.f1))
    ahead = {row: [a - b for a, b in zip(found[row], found["C1"], strict=True)] for row in ROWS}
    report.results["folds"] = found
    table = Table(
        f"At the optimum, F1 of all on {len(folds)} folds of all data, mean ± standard deviation:", ["", *ROWS]
    )
    table.rows.append(["F1", *(spread(found[row]) for row in ROWS)])
    table.rows.append(["ahead of C1, fold by fold", *(spread(ahead[row]) for row in ROWS)])
    return table


def draw_orders(fitted: Mapping[int, Fitted]) -> Any:
    """Figures 4, 5 and 6: label patterns, and time, by maximum order."""
    panels = {
        "label patterns": {order: [float(one.patterns)] for order, one in fitted.items()},
        "ms per evaluation, one thread": {order: [1e3 * one.seconds_per_evaluation] for order, one in fitted.items()},
        "seconds to train": {order: [one.seconds] for order, one in fitted.items()},
    }
    return curves({title: {"SC": points} for title, points in panels.items()}, "maximum order", "")


def size_table(fitted: dict[str, Fitted], beside: Mapping[str, Mapping[str, str]]) -> Table:
    """Sizes and times of the rows; `beside` holds others' seconds per evaluation by name."""
    table = Table("At the optimum, size and time:", ["", *fitted])

    def add(name: str, cell: Callable[[Fitted], Any]) -> None:
        table.rows.append([name, *(cell(one) for one in fitted.values())])

    add("weights", lambda one: f"{one.weights:,}")
    add("patterns", lambda one: one.patterns)
    add("loss", lambda one: f"{one.loss:.2f}")
    add("iterations", lambda one: one.iterations)
    add("seconds to train", lambda one: f"{one.seconds:.1f}")
    add("seconds per evaluation, one thread", lambda one: f"{one.seconds_per_evaluation:.3f}")
    for name, times in beside.items():
        table.rows.append([name, *(times.get(row) for row in fitted)])
    return table


def significance(
    truth: Sequence[Any],
    answers: Mapping[str, Sequence[Any]],
    published: Mapping[tuple[str, str], str],
    trials: int = 9999,
    **test: Any,
) -> tuple[Table, dict[str, dict[str, float]]]:
    """p' of every pair of rows by approximate randomization, the paper's in brackets; test: of `randomization_test`.

    "<" says that the row's model scores below the column's.
    """
    rows = list(answers)
    brackets = "the paper's in brackets; " if published else ""
    table = Table(f"p' of {trials} trials ({brackets}< the row is worse, > better):", ["", *rows[1:]])
    numbers: dict[str, dict[str, float]] = {}
    for i, one in enumerate(rows[:-1]):
        cells: list[str | None] = [None] * i
        for other in rows[i + 1 :]:
            found = randomization_test(truth, answers[one], answers[other], n=trials, seed=0, **test)
            sign = "=" if found.difference == 0 else "<" if found.difference < 0 else ">"
            paper = published.get((one, other))
            cells.append(f"{found.p_value:.4f}{sign}" + (f" ({paper})" if paper else ""))
            numbers[f"{one} {other}"] = {"p": round(found.p_value, 4), "difference": round(100 * found.difference, 2)}
        table.rows.append([one, *cells])
    return table, numbers
