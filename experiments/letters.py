"""Handwritten words: paper 001, section 3.1.2, figure 3.

Ten runs: train on one fold (about 600 words), test on the other nine. Order 0: the set pixels of a letter's image;
order k: indicators of the label patterns of length 2 .. k + 1 seen in training. sigma = 1. The figure's values are not
in the paper's text; its claim is that accuracy rises strongly with the order, while patterns and time per iteration
grow no more than linearly.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable
from typing import Any

from experiments.data import open_text
from experiments.figures import curves
from experiments.report import Figure, Options, Report, Table, percent

TITLE = "Handwritten words, orders 1 to 5 (paper 001, figure 3)"
ORDERS = (1, 2, 3, 4, 5)
SIGMA_1 = 0.5  # c2 of a Gaussian prior with sigma = 1

Words = dict[int, tuple[list[Any], list[Any]]]


def read(lines: Iterable[str]) -> Words:
    """Fold -> (X, y): set pixels by letter, and letters, by word."""
    words: Words = {}
    tokens: list[list[str]] = []
    letters: list[str] = []
    for line in lines:
        fields = line.split("\t")
        tokens.append([f"p{i}" for i, pixel in enumerate(fields[6:134]) if pixel == "1"])
        letters.append(fields[1])
        if fields[2] == "-1":  # no next letter
            X, y = words.setdefault(int(fields[5]), ([], []))
            X.append(tokens)
            y.append(letters)
            tokens, letters = [], []
    return words


def read_words() -> Words:
    with open_text("letters/letter.data") as lines:
        return read(lines)


def run(options: Options) -> Report:
    import scansion

    words = read_words()
    folds = sorted(words)[: 2 if options.quick else None]
    limit = 10 if options.quick else None
    rows: dict[int, list[dict[str, float]]] = {order: [] for order in ORDERS}
    for fold in folds:
        X, y = words[fold]
        others = [words[other] for other in sorted(words) if other != fold]
        X_test = [x for part in others for x in part[0]][: 500 if options.quick else None]
        y_test = [row for part in others for row in part[1]][: 500 if options.quick else None]
        for order in ORDERS:
            begin = time.perf_counter()
            crf = scansion.CRF(order, c2=SIGMA_1, max_iterations=limit, n_jobs=options.jobs).fit(X, y)
            seconds = time.perf_counter() - begin
            rows[order].append(
                {
                    "accuracy": crf.score(X_test, y_test),
                    "patterns": len(crf.patterns_) + len(crf.classes_),
                    "seconds": seconds,
                    "per_iteration": statistics.median(entry["seconds"] for entry in crf.training_log_),
                    "iterations": crf.n_iter_,
                }
            )
        options.say(f"  fold {fold}: " + ", ".join(percent(rows[order][-1]["accuracy"]) for order in ORDERS))
    report = Report("letters", TITLE)
    table = Table(f"Mean over {len(folds)} folds:", ["", *(f"order {order}" for order in ORDERS)])
    means = {
        order: {name: statistics.fmean(row[name] for row in found) for name in found[0]}
        for order, found in rows.items()
    }

    def add(name: str, cell: Callable[[int], Any]) -> None:
        table.rows.append([name, *(cell(order) for order in ORDERS)])

    add("accuracy per letter, %", lambda k: percent(means[k]["accuracy"]))
    add("standard deviation", lambda k: percent(statistics.pstdev(row["accuracy"] for row in rows[k])))
    add("label patterns", lambda k: f"{means[k]['patterns']:.0f}")
    add("seconds per iteration", lambda k: f"{means[k]['per_iteration']:.4f}")
    add("beside order 1", lambda k: f"{means[k]['per_iteration'] / means[1]['per_iteration']:.2f}")
    add("iterations", lambda k: f"{means[k]['iterations']:.0f}")
    add("seconds to train", lambda k: f"{means[k]['seconds']:.1f}")
    report.tables.append(table)
    report.results = {f"order {k}": {**means[k], "folds": [row["accuracy"] for row in rows[k]]} for k in ORDERS}
    report.notes.append(
        "The paper shows these as curves, without numbers in its text: accuracy rises with every order, patterns and "
        "seconds per iteration grow no more than linearly."
    )
    report.figures.append(
        Figure("orders", "Accuracy, patterns and time per iteration by maximum order", lambda: draw(report.results))
    )
    return report


def draw(results: dict[str, Any]) -> Any:
    """The three panels of figure 3, from the report's results; of accuracy, the band is the range of the folds."""
    by_order = {order: results[f"order {order}"] for order in ORDERS}
    panels = {
        "accuracy, %": {k: [100.0 * value for value in found["folds"]] for k, found in by_order.items()},
        "label patterns": {k: [found["patterns"]] for k, found in by_order.items()},
        "ms per iteration": {k: [1e3 * found["per_iteration"]] for k, found in by_order.items()},
    }
    return curves({title: {"CRF": points} for title, points in panels.items()}, "maximum order", "")
