"""Noun phrases with parts of speech, CoNLL-2000: papers 000, section 9.2, and 003, section 5.2.

Two levels: noun phrase or not (NP, O) over parts of speech in five groups. Attributes of a word are words and pairs of
neighbouring words in a window of five, those seen more than three times in the sentences that are trained on, and the
shapes of the words in the window; models of noun phrases alone (CRF, SemiCRF) also get the groups of the window and
pairs of neighbouring groups. Durations are exponential: attributes add up over time steps.

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
from experiments.figures import curves
from experiments.levels import ProductChain, runs, summary
from experiments.report import Figure, Options, Report, Table
from scansion.metrics import segment_scores
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
DRAWS = {250: 3, 500: 3}  # sets of training sentences; one of the larger sizes
C2 = 1.0
ITERATIONS = 60
LEVELS = ("chunk", "pos")
HSCRF: dict[str, Any] = {
    "max_length": {"chunk": "free", "pos": 1},
    "attribute_parts": {
        "chunk": ("inside", "start"),
        "pos": ("inside", "initialisation", "transition", "ending"),  # the papers' cliques, each with the attributes
    },
}
SETTINGS = (
    f"All models: L-BFGS, c2 = {C2:g}, {ITERATIONS} iterations at most. Mean and range of {DRAWS[SIZES[0]]} drawings "
    "of training sentences up to 500, one drawing above. CRF and SemiCRF see the groups of the words in the window; "
    "the others predict them, or are told them at test time (+ POS)."
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

    def __init__(self, train: Sequence[Sentence], test: Sequence[Sentence], options: Options) -> None:
        self.train, self.test = train, test
        attributes = Attributes(train)
        self.inputs = {
            tagged: ([attributes(s, tagged) for s in train], [attributes(s, tagged) for s in test])
            for tagged in (False, True)
        }
        self.settings: dict[str, Any] = {
            "c2": C2,
            "max_iterations": 10 if options.quick else ITERATIONS,
            "n_jobs": options.jobs,
        }


def crf(task: Task) -> Answers:
    X, X_test = task.inputs[True]
    model = scansion.CRF(all_possible_transitions=True, **task.settings).fit(X, [s.chunks for s in task.train])
    return {"CRF": model.predict(X_test)}


def semi_crf(task: Task) -> Answers:
    X, X_test = task.inputs[True]
    model = scansion.SemiCRF(
        attribute_parts={"": ("inside", "start")}, all_possible_transitions=True, **task.settings
    ).fit(X, [s.phrases() for s in task.train])
    return {"SemiCRF": [iob2(answer) for answer in model.predict(X_test)]}


def product_chain(task: Task) -> Answers:
    X, X_test = task.inputs[False]
    model = ProductChain(**task.settings).fit(X, [(s.chunks, s.groups) for s in task.train])
    given = [([None] * len(s.words), s.groups) for s in task.test]
    return {
        "product chain": [columns[0] for columns in model.predict(X_test)],
        "product chain + POS": [columns[0] for columns in model.predict(X_test, given)],
    }


def hierarchical(task: Task) -> Answers:
    X, X_test = task.inputs[False]
    model = scansion.HierarchicalCRF(LEVELS, **HSCRF, **task.settings)
    model.fit(X, [{"chunk": s.phrases(), "pos": s.groups} for s in task.train])
    given = [{"pos": s.groups} for s in task.test]
    return {
        "HSCRF": [iob2(answer["chunk"]) for answer in model.predict(X_test)],
        "HSCRF + POS": [iob2(answer["chunk"]) for answer in model.predict(X_test, constraints=given)],
    }


MODELS: tuple[Callable[[Task], Answers], ...] = (crf, semi_crf, product_chain, hierarchical)
NAMES = ("HSCRF + POS", "CRF", "SemiCRF", "product chain + POS", "HSCRF", "product chain")


def run(options: Options) -> Report:
    train, test = read("train"), read("test")
    truth = [s.chunks for s in test]
    report = Report("noun_phrases", TITLE, notes=[SETTINGS, CLAIM])
    scores: dict[str, dict[int, list[float]]] = {name: {} for name in NAMES}
    times: dict[str, dict[int, float]] = {model.__name__: {} for model in MODELS}
    for size in SIZES[:2] if options.quick else SIZES:
        for draw in range(1 if options.quick else DRAWS.get(size, 1)):
            some = random.Random(draw).sample(train, size)
            task = Task(some, test, options)
            for model in MODELS:
                begin = time.perf_counter()
                answers = model(task)
                times[model.__name__][size] = round(time.perf_counter() - begin, 1)
                for name, columns in answers.items():
                    f1 = 100 * segment_scores(truth, columns, scheme="iob2").micro.f1
                    scores[name].setdefault(size, []).append(round(f1, 2))
                    options.say(f"  {size} sentences, {name}: {f1:.2f}, {times[model.__name__][size]} s")
    report.results = {"f1": scores, "seconds": times}
    sizes = list(scores["CRF"])
    table = Table("F1 of noun phrases on the test part, by number of training sentences:", ["", *map(str, sizes)])
    for name in NAMES:
        table.rows.append([name, *(summary(scores[name][size]) for size in sizes)])
    report.tables.append(table)
    report.figures.append(
        Figure(
            "f1",
            "F1 of noun phrases against the number of training sentences (paper 000, figure 23)",
            lambda: curves({"": scores}, "training sentences", "F1 of noun phrases, %", logarithmic=True),
        )
    )
    return report
