"""The six models that paper 001 compares: CRFs (C) and semi-Markov CRFs (SC) of orders 1 to 3."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.report import Options, Table
from scansion.metrics import randomization_test

__all__ = ["ROWS", "Fitted", "fit", "is_semi", "label_lists", "order_of", "significance", "size_table"]

ROWS = ("C1", "C2", "C3", "SC1", "SC2", "SC3")
Labels = list[list[Any]]


def is_semi(row: str) -> bool:
    return row.startswith("SC")


def order_of(row: str) -> int:
    return int(row.removeprefix("SC").removeprefix("C")[0])


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
    timing: bool = True,
    **parameters: Any,
) -> Fitted:
    """Train and answer for one row; SemiCRF for SC rows, CRF for the others. timing: also on one thread."""
    import scansion

    estimator: Callable[..., Any] = scansion.SemiCRF if is_semi(row) else scansion.CRF
    settings = {"order": order_of(row), **parameters}
    limit = 10 if options.quick else None
    begin = time.perf_counter()
    model = estimator(**settings, max_iterations=limit, n_jobs=options.jobs).fit(*train)
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
        short = estimator(**settings, max_iterations=4, n_jobs=1).fit(*train)
        fitted.seconds_per_evaluation = _per_evaluation(short.training_log_)
    options.say(f"  {row}: {fitted.weights:,} weights, {fitted.iterations} iterations, {elapsed:.1f} s")
    return fitted


def _per_evaluation(log: list[dict[str, Any]]) -> float:
    evaluations = log[-1].get("evaluations") or len(log)
    return sum(entry["seconds"] for entry in log) / max(1, evaluations)


def size_table(fitted: dict[str, Fitted], beside: dict[str, dict[str, str]]) -> Table:
    """Sizes and times of the rows; `beside` holds others' seconds per evaluation by name."""
    table = Table("Size and time:", ["", *fitted])

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
    answers: dict[str, Sequence[Any]],
    published: dict[tuple[str, str], str],
    trials: int = 9999,
    **reading: Any,
) -> tuple[Table, dict[str, dict[str, float]]]:
    """p' of every pair of rows by approximate randomization, the paper's in brackets.

    "<" says that the row's model scores below the column's. Sequences are swapped as a whole.
    """
    rows = list(answers)
    table = Table(
        f"Significance, p' of {trials} trials (the paper's in brackets; < the row is worse, > better):", ["", *rows[1:]]
    )
    numbers: dict[str, dict[str, float]] = {}
    for i, one in enumerate(rows[:-1]):
        cells: list[str | None] = [None] * i
        for other in rows[i + 1 :]:
            test = randomization_test(truth, answers[one], answers[other], n=trials, seed=0, **reading)
            sign = "=" if test.difference == 0 else "<" if test.difference < 0 else ">"
            paper = published.get((one, other))
            cells.append(f"{test.p_value:.4f}{sign}" + (f" ({paper})" if paper else ""))
            numbers[f"{one} {other}"] = {
                "p": round(test.p_value, 4),
                "difference": round(100 * test.difference, 2),
            }
        table.rows.append([one, *cells])
    return table, numbers
