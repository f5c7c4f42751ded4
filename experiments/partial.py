"""Partial labels on Cora: is it better to label some tokens of every reference, or every token of some references?

A fraction of the labels of the training part is known: of tokens drawn at random, the others being None (hidden), or
of references drawn at random, the others being left out. Both cost the same number of labels, up to the lengths of the
references drawn. Features are those of `experiments.bibliography`; which attribute goes with which label cannot be
seen where labels are hidden, so every attribute is combined with every label and every label pair is a feature, in all
models of the comparison alike. That was decided before any score was seen; a second table shows the other three
choices, so that nobody has to believe that it does not matter. The longest segment is that of the whole training part.
"""

from __future__ import annotations

import random
import statistics
from typing import Any

from experiments.bibliography import parameters, read
from experiments.report import Options, Report, Table, percent
from experiments.rows import SIGMA_1, fit, is_semi
from scansion.metrics import segment_scores
from scansion.schemes import segments

TITLE = "Partial labels, Cora references"
MODELS = ("C1", "SC1")
HIDDEN = (0.5, 0.9)
REPEATS = 3
CHOICES = {
    "all": {"all_possible_states": True, "all_possible_transitions": True},
    "all label pairs": {"all_possible_transitions": True},
    "all attributes with all labels": {"all_possible_states": True},
    "what is seen": {},
}
CHOSEN = "all"
CAUTION = (
    f"Each cell is {REPEATS} drawings, which lie far apart where most labels are hidden: differences that do not hold "
    "in every drawing say little. Training with hidden labels is not convex; every run starts at zero."
)


def hide(y: list[list[str]], fraction: float, seed: int) -> list[list[str | None]]:
    """Labels of tokens drawn at random, `fraction` of all tokens, replaced by None."""
    places = [(b, t) for b, labels in enumerate(y) for t in range(len(labels))]
    result: list[list[str | None]] = [list(labels) for labels in y]
    for b, t in random.Random(seed).sample(places, round(fraction * len(places))):
        result[b][t] = None
    return result


def keep(n: int, fraction: float, seed: int) -> list[int]:
    """Numbers of the sequences that stay when `fraction` of n are left out."""
    return sorted(random.Random(seed).sample(range(n), n - round(fraction * n)))


def run(options: Options) -> Report:
    report = Report("partial", TITLE, notes=[CAUTION])
    header = ["model", "hidden", "some labels of every reference", "every label of some references", "first ahead in"]
    table = Table(f"F1 of segments in percent, mean and range of {REPEATS} drawings:", header)
    for row in MODELS:
        _compare(row, CHOSEN, row, options, table, report.results)
    report.tables.append(table)
    other = Table("The same for C1 with other choices of features:", ["features", *header[1:]])
    for choice in CHOICES:
        if choice != CHOSEN:
            _compare("C1", choice, choice, options, other, report.results)
    report.tables.append(other)
    return report


def _compare(row: str, choice: str, name: str, options: Options, table: Table, results: dict[str, Any]) -> None:
    """Adds the rows of one model and one choice of features."""
    X, y = read("train", is_semi(row))
    test, truth = read("test", is_semi(row))
    settings: dict[str, Any] = {"c2": SIGMA_1, **parameters(is_semi(row)), **CHOICES[choice]}
    if is_semi(row):
        # The same model in both columns: what SemiCRF takes by itself depends on whether y is complete.
        longest = max(s.stop - s.start for labels in y for s in segments(labels, "plain"))
        settings |= {"max_length": longest, "repeats": False}

    def score(inputs: list[Any], targets: list[Any]) -> float:
        fitted = fit(row, options, (inputs, targets), test, timing=False, **settings)
        return segment_scores(truth, fitted.predicted, scheme="plain").micro.f1

    full = score(X, y)
    table.rows.append([name, "none", percent(full), percent(full), None])
    results[name] = {"0": round(100 * full, 2)}
    for fraction in HIDDEN:
        by_token, by_sequence = [], []
        for seed in range(1 if options.quick else REPEATS):
            by_token.append(score(X, hide(y, fraction, seed)))
            kept = keep(len(X), fraction, seed)
            by_sequence.append(score([X[b] for b in kept], [y[b] for b in kept]))
            options.say(f"  {name}, {fraction:.0%} hidden: {percent(by_token[-1])} {percent(by_sequence[-1])}")
        ahead = sum(one > other for one, other in zip(by_token, by_sequence, strict=True))
        cells = [_summary(by_token), _summary(by_sequence), f"{ahead} of {len(by_token)}"]
        table.rows.append([name, f"{fraction:.0%}", *cells])
        results[name][f"{fraction:g}"] = {
            "tokens": [round(100 * value, 2) for value in by_token],
            "sequences": [round(100 * value, 2) for value in by_sequence],
        }


def _summary(values: list[float]) -> str:
    return f"{percent(statistics.mean(values))} ({percent(min(values))} .. {percent(max(values))})"
