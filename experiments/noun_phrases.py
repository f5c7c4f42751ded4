"""Noun phrases with parts of speech, CoNLL-2000: papers 000, section 9.2, and 003, section 5.2.

Two levels: noun phrase or not (NP, O) over parts of speech in five groups. Attributes of a word are words and pairs of
neighbouring words in a window of five, those seen more than three times in the sentences that are trained on, and the
shapes of the words in the window; models of noun phrases alone (CRF, SemiCRF) also get the groups of the window and
pairs of neighbouring groups. Durations are exponential: attributes add up over time steps. "The model feature is
factorised as f(x_c, z) = I(x_c) g_c(z)": all models have attributes with labels and with transitions. The DCRF is that
of `dcrf.py`, a grid with weights for each level and for pairs; the product chain has weights for each combination.

The papers' feature list is that of Sutton et al. (2007), "similar" and not spelt out; theirs has lists of names too.
Which tags are in which group is not told either: here a group is the tags of a prefix, see `GROUPS`.
"""

from __future__ import annotations

import random
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import scansion
from experiments.data import read_columns
from experiments.dcrf import Dcrf
from experiments.figures import curves
from experiments.levels import ProductChain, runs, summary
from experiments.report import Figure, Options, Report, Table
from scansion.metrics import randomization_test, segment_scores
from scansion.schemes import segments
from scansion.segments import Segment

TITLE = "Noun phrases with parts of speech, CoNLL-2000 (paper 000, section 9.2)"
GROUPS = (("noun", r"NN"), ("verb", r"VB|MD"), ("adjective", r"JJ"), ("adverb", r"RB"), ("other", r""))
SHAPES = (
    ("capital", r"[A-Z]"),
    ("capitalised", r"[A-Z][a-z]+$"),
    ("capitals", r"[A-Z][A-Z]+$"),
    ("one-capital", r"[A-Z]$"),
    ("mixed", r"[A-Z]+[a-z]+[A-Z]+[a-z]"),
    ("digit", r".*[0-9]"),
)
OFFSETS = range(-2, 3)
MORE_THAN = 3  # occurrences of a word or pair in the training sentences
SIZES = (250, 500, 1000, 2000, 4000, 8936)
DRAWS = {250: 5, 500: 5, 1000: 3, 2000: 3, 4000: 2}  # sets of training sentences; all of them are one
STRENGTHS = (0.3, 1.0, 3.0)
CHOICE = 1000  # sentences that c2 is chosen with, and as many others that it is chosen on
PASSES = 50  # of stochastic gradient, at most
ALGORITHMS = {"lbfgs": "L-BFGS", "l2sgd": "stochastic gradient, the paper's algorithm"}
LEVELS = ("chunk", "pos")
HSCRF: dict[str, Any] = {
    "max_length": {"chunk": "free", "pos": 1},
    "attribute_parts": {
        "chunk": ("inside", "start"),
        "pos": ("inside", "initialisation", "transition", "ending"),  # the papers' cliques, each with the attributes
    },
}
SETTINGS = (
    f"Mean and range of {DRAWS[SIZES[0]]} drawings of training sentences up to 500, {DRAWS[1000]} up to 2000, "
    f"{DRAWS[4000]} of 4000. CRF and SemiCRF see the groups of the words in the window; the others predict them, or "
    "are told them at test time (+ POS). CRF, labels: attributes with single labels alone. L-BFGS until its stopping "
    f"rule holds; c2 of each model is the best of {', '.join(f'{c2:g}' for c2 in STRENGTHS)} for {CHOICE} training "
    "sentences, by F1 on as many others of the training part."
)
CLAIM = (
    "Published, as curves without figures: HSCRF + POS is ahead of all at every size; HSCRF and DCRF without POS are "
    "behind CRF; DCRF + POS is behind CRF."
)


def group(tag: str) -> str:
    """One of five groups of parts of speech."""
    return next(name for name, pattern in GROUPS if re.match(pattern, tag))


def shapes(word: str) -> list[str]:
    return [name for name, pattern in SHAPES if re.match(pattern, word)]


class Sentence:
    """Words, groups of parts of speech, and the chunks as IOB2 labels of noun phrases alone."""

    def __init__(self, words: list[str], tags: list[str], chunks: list[str]) -> None:
        self.words = words
        self.groups = [group(tag) for tag in tags]
        self.chunks = [chunk if chunk.endswith("-NP") else "O" for chunk in chunks]

    def phrases(self) -> list[Segment]:
        """Noun phrases and the runs of words between them."""
        found = segments(self.chunks, "iob2")
        outside = [s for s in runs(["NP" if chunk != "O" else "O" for chunk in self.chunks]) if s.label == "O"]
        return sorted(found + outside)


class Attributes:
    """Attributes of sentences; which words and pairs are named is decided by the training sentences."""

    def __init__(self, training: Sequence[Sentence]) -> None:
        words = Counter(word for s in training for word in s.words)
        pairs = Counter(pair for s in training for pair in zip(s.words, s.words[1:], strict=False))
        self.words = {word for word, n in words.items() if n > MORE_THAN}
        self.pairs = {pair for pair, n in pairs.items() if n > MORE_THAN}

    def __call__(self, sentence: Sentence, tagged: bool) -> list[list[str]]:
        """tagged: with the groups of the window."""
        words, tags = sentence.words, sentence.groups
        tokens = []
        for t in range(len(words)):
            token = ["bias"]
            for offset in OFFSETS:
                i = t + offset
                if not 0 <= i < len(words):
                    token.append(f"w[{offset}]:{'end' if offset > 0 else 'begin'}")
                    continue
                if words[i] in self.words:
                    token.append(f"w[{offset}]={words[i]}")
                token.extend(f"shape[{offset}]={shape}" for shape in shapes(words[i]))
                if tagged:
                    token.append(f"pos[{offset}]={tags[i]}")
                if offset < OFFSETS[-1] and i + 1 < len(words):
                    if (words[i], words[i + 1]) in self.pairs:
                        token.append(f"w[{offset}]|w[{offset + 1}]={words[i]}|{words[i + 1]}")
                    if tagged:
                        token.append(f"pos[{offset}]|pos[{offset + 1}]={tags[i]}|{tags[i + 1]}")
            tokens.append(token)
        return tokens


def read(part: str) -> list[Sentence]:
    return [Sentence(*columns) for columns in read_columns(f"conll2000/{part}.txt")]


def iob2(phrases: Sequence[Segment]) -> list[str]:
    """Chunk labels of noun phrases, given segments that leave no gap."""
    labels = []
    for start, stop, label in phrases:
        labels += ["O"] * (stop - start) if label == "O" else ["B-NP"] + ["I-NP"] * (stop - start - 1)
    return labels


# ---- models: training sentences and test sentences to answers, one column of chunk labels per sentence -----------

Answers = dict[str, list[list[str]]]


class Task:
    """Training and test sentences with their attributes, made once for all models."""

    def __init__(self, train: Sequence[Sentence], test: Sequence[Sentence], **settings: Any) -> None:
        self.train, self.test, self.settings = train, test, settings
        attributes = Attributes(train)
        self.inputs = {
            tagged: ([attributes(s, tagged) for s in train], [attributes(s, tagged) for s in test])
            for tagged in (False, True)
        }
        self.iterations = 0

    def done(self, model: Any) -> Any:
        self.iterations = model.n_iter_
        return model


def crf(task: Task, labels_alone: bool = False, **parameters: Any) -> Answers:
    X, X_test = task.inputs[True]
    orders = None if labels_alone else {"": (0, 1)}
    model = scansion.CRF(
        all_possible_transitions=True, attribute_orders=orders, bias_order=1, **task.settings, **parameters
    )
    task.done(model.fit(X, [s.chunks for s in task.train]))
    return {"CRF, labels" if labels_alone else "CRF": model.predict(X_test)}


def crf_labels(task: Task, **parameters: Any) -> Answers:
    return crf(task, True, **parameters)


def semi_crf(task: Task, **parameters: Any) -> Answers:
    X, X_test = task.inputs[True]
    model = scansion.SemiCRF(
        attribute_parts={"": ("inside", "start")},
        attribute_orders={"": (0, 1)},
        length_features=(),
        **task.settings,
        **parameters,
    )
    task.done(model.fit(X, [s.phrases() for s in task.train]))
    return {"SemiCRF": [iob2(answer) for answer in model.predict(X_test)]}


def product_chain(task: Task, **parameters: Any) -> Answers:
    X, X_test = task.inputs[False]
    model = ProductChain(attribute_orders={"": (0, 1)}, bias_order=1, **task.settings, **parameters)
    model.fit(X, [(s.chunks, s.groups) for s in task.train])
    task.done(model.model)
    return _told_or_not(model, "product chain", X_test, task)


def dcrf(task: Task, **parameters: Any) -> Answers:
    X, X_test = task.inputs[False]
    settings = {**task.settings, **parameters}
    if settings.get("algorithm") == "l2sgd":
        settings["algorithm"] = "sgd"
    model = task.done(Dcrf(**settings).fit(X, [(s.chunks, s.groups) for s in task.train]))
    return _told_or_not(model, "DCRF", X_test, task)


def _told_or_not(model: Any, name: str, X_test: Any, task: Task) -> Answers:
    given = [([None] * len(s.words), s.groups) for s in task.test]
    return {
        name: [columns[0] for columns in model.predict(X_test)],
        f"{name} + POS": [columns[0] for columns in model.predict(X_test, given)],
    }


def hierarchical(task: Task, **parameters: Any) -> Answers:
    X, X_test = task.inputs[False]
    model = scansion.HierarchicalCRF(LEVELS, **HSCRF, **task.settings, **parameters)
    task.done(model.fit(X, [{"chunk": s.phrases(), "pos": s.groups} for s in task.train]))
    given = [{"pos": s.groups} for s in task.test]
    return {
        "HSCRF": [iob2(answer["chunk"]) for answer in model.predict(X_test)],
        "HSCRF + POS": [iob2(answer["chunk"]) for answer in model.predict(X_test, constraints=given)],
    }


MODELS: tuple[Callable[..., Answers], ...] = (crf, crf_labels, semi_crf, product_chain, dcrf, hierarchical)
NAMES = (
    "HSCRF + POS",
    "CRF",
    "CRF, labels",
    "SemiCRF",
    "product chain + POS",
    "DCRF + POS",
    "HSCRF",
    "product chain",
    "DCRF",
)


def f1(truth: Sequence[Sequence[str]], columns: Sequence[Sequence[str]]) -> float:
    return round(100 * segment_scores(truth, columns, scheme="iob2").micro.f1, 2)


def chosen(train: Sequence[Sentence], options: Options) -> dict[str, float]:
    """C2 of each model, by the F1 of its best answers on training sentences that are left out."""
    if options.quick:
        return {model.__name__: 1.0 for model in MODELS}
    some = random.Random(99).sample(list(train), 2 * CHOICE)
    task = Task(some[:CHOICE], some[CHOICE:], n_jobs=options.jobs)
    truth = [s.chunks for s in some[CHOICE:]]
    found = {}
    for model in MODELS:
        scores = [max(f1(truth, answer) for answer in model(task, c2=c2).values()) for c2 in STRENGTHS]
        found[model.__name__] = STRENGTHS[scores.index(max(scores))]
        options.say(f"  {model.__name__}: c2 = {found[model.__name__]:g} of {scores}")
    return found


def run(options: Options) -> Report:
    train, test = read("train"), read("test")
    truth = [s.chunks for s in test]
    strengths = chosen(train, options)
    report = Report("noun_phrases", TITLE, notes=[SETTINGS, CLAIM])
    answers: dict[str, list[list[str]]] = {}
    for algorithm in ("lbfgs", "l2sgd"):
        limit = 10 if options.quick else None if algorithm == "lbfgs" else PASSES
        settings = {"n_jobs": options.jobs, "algorithm": algorithm, "max_iterations": limit}
        scores: dict[str, dict[int, list[float]]] = {name: {} for name in NAMES}
        iterations: dict[str, list[int]] = {}
        for size in SIZES[:1] if options.quick else SIZES:
            draws = 1 if options.quick or algorithm == "l2sgd" else DRAWS.get(size, 1)
            for draw in range(draws):
                task = Task(random.Random(draw).sample(train, size), test, **settings)
                for model in MODELS:
                    begin = time.perf_counter()
                    found = model(task, c2=strengths[model.__name__])
                    iterations.setdefault(model.__name__, []).append(task.iterations)
                    for name, columns in found.items():
                        scores[name].setdefault(size, []).append(f1(truth, columns))
                        told = f"{scores[name][size][-1]:.2f}, {time.perf_counter() - begin:.1f} s"
                        options.say(f"  {algorithm}, {size} sentences, {name}: {told}")
                    if algorithm == "lbfgs" and size == SIZES[-1]:
                        answers.update(found)
        report.results[algorithm] = {"f1": scores, "iterations": iterations}
        report.tables.append(_table(algorithm, scores))
        shown = {name: scores[name] for name in NAMES if name != "CRF, labels"}
        report.figures.append(
            Figure(
                algorithm,
                f"F1 of noun phrases against the number of training sentences, by {ALGORITHMS[algorithm]} (paper 000, "
                "figure 23)",
                lambda shown=shown: curves(
                    {"": shown}, "training sentences", "F1 of noun phrases, %", logarithmic=True
                ),
            )
        )
        told = "; ".join(f"{name} {min(n)} to {max(n)}" for name, n in iterations.items())
        report.notes.append(f"Iterations of {ALGORITHMS[algorithm]}: {told}.")
    report.results["c2"] = strengths
    if answers:
        report.tables.append(_significance(truth, answers))
    return report


def _table(algorithm: str, scores: dict[str, dict[int, list[float]]]) -> Table:
    sizes = list(scores["CRF"])
    table = Table(
        f"F1 of noun phrases on the test part, by number of training sentences; {ALGORITHMS[algorithm]}:",
        ["", *map(str, sizes)],
    )
    for name in NAMES:
        table.rows.append([name, *(summary(scores[name][size]) for size in sizes)])
    return table


def _significance(truth: Sequence[Sequence[str]], answers: Answers) -> Table:
    table = Table(
        "All training sentences, L-BFGS: F1 of HSCRF + POS less that of the others, and p of the randomisation test:",
        ["", "difference", "p"],
    )
    for name in NAMES[1:]:
        found = randomization_test(truth, answers[NAMES[0]], answers[name])
        table.rows.append([name, f"{100 * found.difference:+.2f}", f"{found.p_value:.4f}"])
    return table
