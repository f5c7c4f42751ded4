"""Punctuation of movie transcripts: paper 001, section 3.2.2, tables 6 and 7.

The label of a word is the mark that follows it, ``,`` ``.`` ``?``, or O. To carry the mark at the end of a text
segment to its beginning, the first word of each text segment also has the segment's mark in its label (see
`mark_starts`), which makes ten labels. Scored is the left part of the label, per token.

Features (counts, as in `experiments.bibliography`). Order 0, summed over the positions i of a segment:

- the words at i - 4 .. i + 4 with their offsets, up to one place beyond either end,
- pairs of words at two of these offsets, up to one place beyond the right end, none beyond the left,
- ``inner`` at every position but the segment's first: alone, with the word, with the word before, with both.

Order 1, at the start u > 0 of a segment: ``start`` alone, with the word, with the word before, with both. Order k
adds for the orders m = 1 .. k of a `SemiCRF`, or m = 2 .. k of a `CRF`, the indicators of label patterns of length
m + 1, and these patterns with each word of the last segment.
"""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import Any

from experiments.data import read_columns
from experiments.report import Options, Report
from experiments.rows import Task, is_semi, order_of, study

TITLE = "Punctuation of movie transcripts (paper 001, tables 6 and 7, figure 5)"
MARKS = {",": "comma", ".": "period", "?": "question mark"}
PAPER = {
    ",": (59.29, 59.70, 59.90, 61.13, 60.89, 60.35),
    ".": (75.37, 75.37, 75.46, 75.03, 78.97, 78.82),
    "?": (58.18, 59.54, 60.57, 57.61, 74.05, 73.56),
    "all": (66.21, 66.53, 66.85, 66.73, 70.85, 70.47),
}
PAPER_P = {
    ("C1", "C2"): "0.155<",
    ("C1", "C3"): "0.048<",
    ("C1", "SC1"): "0.043<",
    ("C1", "SC2"): "0.001<",
    ("C1", "SC3"): "0.001<",
    ("C2", "C3"): "0.153<",
    ("C2", "SC1"): "0.289<",
    ("C2", "SC2"): "0.001<",
    ("C2", "SC3"): "0.001<",
    ("C3", "SC1"): "0.378>",
    ("C3", "SC2"): "0.001<",
    ("C3", "SC3"): "0.001<",
    ("SC1", "SC2"): "0.001<",
    ("SC1", "SC3"): "0.001<",
    ("SC2", "SC3"): "0.044>",
}
OTHERS_SECONDS = {"authors' code (Java), one thread": {"C1": "18.3"}}


def mark_starts(marks: list[str]) -> list[str]:
    """The ten labels: the first word of each text segment also says with which mark the segment ends.

    >>> mark_starts([",", "O", "O", ".", "O"])
    [',-,', 'O-.', 'O', '.', 'O']
    """
    labels, start = list(marks), 0
    for i, mark in enumerate(marks):
        if mark != "O":
            labels[start] = f"{marks[start]}-{mark}"
            start = i + 1
    return labels


def marked(labels: list[str]) -> list[tuple[int, int, str]]:
    """The marks that labels stand for, each as a segment of one token."""
    lefts = (label.partition("-")[0] for label in labels)
    return [(i, i + 1, left) for i, left in enumerate(lefts) if left != "O"]


def token_attributes(words: list[str], i: int, row: str) -> dict[str, float]:
    """Attributes of one token with their counts, for one of the six models."""
    T = len(words)

    def word(j: int) -> str:
        return words[j] if 0 <= j < T else ""

    names = [f"w[{j - i}]={word(j)}" for j in range(max(i - 4, -1), min(i + 4, T) + 1)]
    near = range(max(i - 4, 0), min(i + 4, T) + 1)
    names += [f"w[{j - i}]|w[{k - i}]={word(j)}|{word(k)}" for j, k in combinations(near, 2)]
    if word_orders(row):
        names.append(f"segment={word(i)}")
    if i > 0:
        edge = [f":w={word(i)}", f":w-1={word(i - 1)}", f":w-1|w={word(i - 1)}|{word(i)}"]
        names += [f"start{name}" for name in edge]
        if is_semi(row):
            names += ["start", "inner", *(f"inner{name}" for name in edge)]
    return {name: float(count) for name, count in Counter(names).items()}


def attributes(words: list[str], row: str) -> list[dict[str, float]]:
    return [token_attributes(words, i, row) for i in range(len(words))]


def word_orders(row: str) -> tuple[int, ...]:
    """Orders of the words of the last segment."""
    return tuple(range(1 if is_semi(row) else 2, order_of(row) + 1))


def parameters(row: str) -> dict[str, Any]:
    """Parameters of the estimator that belong to the features."""
    orders: dict[str, Any] = {"start": 1}
    if word_orders(row):
        orders["segment="] = word_orders(row)
    parts = {"start": "start", "inner": "inner", "segment=": "inside"}
    return {"attribute_orders": orders} | ({"attribute_parts": parts} if is_semi(row) else {})


TASK = Task(
    "punctuation",
    TITLE,
    data=lambda: (read_columns("movie-punctuation/punc.tr"), read_columns("movie-punctuation/punc.ts")),
    features=attributes,
    labels=mark_starts,
    scored=marked,
    parameters=parameters,
    published=PAPER,
    published_p=PAPER_P,
    shown=MARKS,
    others_seconds=OTHERS_SECONDS,
)


def run(options: Options) -> Report:
    return study(TASK, options)
