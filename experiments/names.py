"""Rules on names: no label twice, on the names of people and companies that probablepeople is trained on.

Parsers of names and addresses built on CRFs give up on a string whose labels come out like ``GivenName Surname
GivenName``: a label that should be there once occurs twice (usaddress and probablepeople raise RepeatedLabelError).
Here a first-order CRF with features of the words is trained on four folds and tested on the fifth (strings that occur
several times are in one fold); strings that rightly have a label twice, two people mostly, are left out. Labels are
predicted freely and under ``at_most_once`` for every label; of the first fold also by a model that has learnt under
these rules. Times are processor times of `predict` on all strings of a fold, best of several, in turn, and of single
strings, one call each.
"""

from __future__ import annotations

import json
import time
from typing import Any

import numpy as np

import scansion as sc
from experiments.data import open_text
from experiments.report import Options, Report, Table, percent
from scansion import rules

TITLE = "Rules: names in which no label occurs twice"
FOLDS = 5


def read() -> list[dict[str, Any]]:
    """All labelled names."""
    with open_text("probablepeople/labelled.jsonl") as lines:
        return [json.loads(line) for line in lines]


def attributes(tokens: list[str]) -> list[dict[str, Any]]:
    """What is seen of each word, of its neighbours, and of its place."""

    def own(word: str) -> dict[str, Any]:
        plain = word.strip(".,()").lower()
        kind = "upper" if word.isupper() else "title" if word.istitle() else "lower" if word.islower() else "other"
        return {
            "word": plain,
            "end": plain[-3:],
            "begin": plain[:3],
            "case": kind,
            "stop": word[-1] if word[-1] in ".,)" else "",
            "short": len(plain) == 1,
            "digits": any(c.isdigit() for c in word),
        }

    seen = [own(word) for word in tokens]
    return [
        {
            "own": one,
            "before": {name: seen[t - 1][name] for name in ("word", "case", "stop", "short")} if t else "first",
            "after": {name: seen[t + 1][name] for name in ("word", "case", "stop", "short")}
            if t + 1 < len(seen)
            else "last",
        }
        for t, one in enumerate(seen)
    ]


def repeats(labels: list[Any]) -> bool:
    """Whether a label comes back after another one."""
    runs = [y for t, y in enumerate(labels) if t == 0 or labels[t - 1] != y]
    return len(set(runs)) < len(runs)


def _once(y: list[list[str]]) -> Any:
    """Each label at most once."""
    return rules.at_most_once(*sorted({label for labels in y for label in labels}))


def _took(model: sc.CRF, X: list[Any], rule: Any, repeat: int) -> tuple[float, float]:
    """Processor time of `predict` without and with rules, best of several, in turn."""
    best = [np.inf, np.inf]
    for _ in range(repeat):
        for k, given in enumerate(([], rule)):
            begun = time.process_time()
            model.predict(X, rules=given)
            best[k] = min(best[k], time.process_time() - begun)
    return best[0], best[1]


def _right(found: list[list[Any]], truth: list[list[Any]]) -> tuple[int, int, int, int, int]:
    """Words and strings that are right, strings with a label twice, words and strings."""
    words = sum(a == b for one, two in zip(found, truth, strict=True) for a, b in zip(one, two, strict=True))
    whole = sum(one == two for one, two in zip(found, truth, strict=True))
    return words, whole, sum(map(repeats, found)), sum(map(len, found)), len(found)


def _row(kind: str, counts: tuple[int, int, int, int, int]) -> list[Any]:
    words, whole, twice, n, m = counts
    return [kind, percent(words / n), percent(whole / m), twice]


def run(options: Options) -> Report:
    report = Report("names", TITLE)
    everything = [one for one in read() if one["split"] == "train"]
    data = [one for one in everything if not repeats(one["labels"])]
    limit = {"max_iterations": 10} if options.quick else {}
    kinds = ("free", "under rules")
    right: dict[str, list[tuple[int, int, int, int, int]]] = {kind: [] for kind in kinds}
    speeds, worst, changed = [], [], 0
    for fold in range(1 if options.quick else FOLDS):
        train = [one for one in data if one["fold"] != fold]
        test = [one for one in data if one["fold"] == fold]
        X, y = [attributes(one["tokens"]) for one in train], [one["labels"] for one in train]
        U, v = [attributes(one["tokens"]) for one in test], [one["labels"] for one in test]
        rule = _once(y)
        free = sc.CRF(c2=0.5, n_jobs=options.jobs, **limit).fit(X, y)
        answers = {kinds[0]: free.predict(U), kinds[1]: free.predict(U, rules=rule)}
        for kind, found in answers.items():
            right[kind].append(_right(found, v))
        if fold == 0:
            few = slice(100 if options.quick else None)
            begun = time.process_time()
            learnt = sc.CRF(c2=0.5, rules=_once(y[few]), train_with_rules=True, **limit).fit(X[few], y[few])
            took, counts = time.process_time() - begun, _right(learnt.predict(U), v)
            title = f"The first fold, {len(U)} strings; learning under rules takes {took:.0f} s of processor time:"
            rows = [_row(kind, right[kind][0]) for kind in kinds] + [_row("learnt under rules", counts)]
            first = Table(title, ["", "words", "strings", "strings with a label twice"], rows)
            report.results["learnt under rules"] = {"words": counts[0] / counts[3], "strings": counts[1] / counts[4]}
        changed += sum(a != b for a, b in zip(answers[kinds[0]], answers[kinds[1]], strict=True))
        free.n_jobs = 1
        repeat = 1 if options.quick else 15
        speeds.append(_took(free, U, rule, repeat))
        for x in U[: 50 if options.quick else 300]:
            without, under = _took(free, [x], rule, 3)
            worst.append(under / without)
        options.say(f"  fold {fold}: {len(rule.arguments)} labels, loss {free.loss_:.1f}")
    n, m = (sum(one[i] for one in right[kinds[0]]) for i in (3, 4))
    table = Table(
        f"{m} strings (without {len(everything) - len(data)}), {n} words, {FOLDS} folds, accuracy in percent:",
        ["", "words", "strings", "strings with a label twice"],
    )
    for kind in kinds:
        tokens, whole, twice, words, strings = (sum(one[i] for one in right[kind]) for i in range(5))
        table.rows.append(_row(kind, (tokens, whole, twice, words, strings)))
        report.results[kind] = {"words": tokens / words, "strings": whole / strings, "twice": twice}
    ratio = sum(b for _, b in speeds) / sum(a for a, _ in speeds)
    report.tables += [table, first]
    report.notes.append(
        f"Rules changed {changed} of {m} answers. All strings of a fold at once take {ratio:.2f} times the time "
        f"without rules ({m / sum(b for _, b in speeds):.0f} strings a second in place of "
        f"{m / sum(a for a, _ in speeds):.0f}); one string alone {np.mean(worst):.2f} times on average and "
        f"{max(worst):.1f} times at most."
    )
    report.results["time"] = {"ratio": ratio, "one, mean": float(np.mean(worst)), "one, most": float(max(worst))}
    return report
