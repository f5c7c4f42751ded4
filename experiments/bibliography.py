"""Bibliography extraction on Cora references: paper 001, section 3.2.3, tables 8 and 9.

300 references for training, 200 for test, 13 labels; adjacent tokens with the same label are one segment.

Features (all counts: what fires at several positions of a segment counts that often; a word beyond either end
is the empty string). Order 0, summed over the positions i of a segment:

- the word at i, at i - 1 and at i + 1,
- the words at i - 1 .. i - 4 and at i + 1 .. i + 4, whose distance is forgotten, up to one place beyond the end,
- letter n-grams, n = 2 .. 6, of the word in angle brackets (see `letter_ngrams`),
- ``inner`` at every position but the segment's first, alone, with the word, and with the word before.

Order 1, at the start u > 0 of a segment: ``start`` alone, with the word, and with the word before. In a `CRF` every
segment has one token, so there is no ``inner``, and ``start`` alone is the label pair itself, which needs no attribute.
In a `SemiCRF` the authors have both, two weights for one event, and so have we.

Order k adds the indicators of the label patterns of length 2 .. k + 1 that occur in training, as every estimator
does by itself.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from experiments.data import read_columns
from experiments.report import Options, Report
from experiments.rows import Task, is_semi, study

TITLE = "Bibliography extraction, Cora references (paper 001, tables 8 and 9, figure 6)"
SIGMA_10 = 0.005  # c2 of a Gaussian prior with sigma = 10
PATTERN_ORDERS = {"start": 1}
PARTS = {"start": "start", "inner": "inner"}

PAPER = {
    "author": (94.21, 91.65, 93.67, 93.97, 94.74, 94.00),
    "booktitle": (73.05, 75.00, 72.39, 75.74, 78.11, 76.47),
    "date": (95.67, 96.68, 94.36, 95.19, 95.43, 95.70),
    "editor": (68.57, 72.73, 66.67, 57.14, 58.82, 54.55),
    "institution": (68.57, 64.71, 64.71, 70.27, 70.27, 64.86),
    "journal": (78.08, 78.32, 78.32, 77.55, 77.55, 75.68),
    "location": (70.33, 69.66, 68.13, 68.13, 67.39, 65.22),
    "note": (66.67, 57.14, 57.14, 57.14, 66.67, 66.67),
    "pages": (84.82, 87.83, 85.34, 85.96, 86.96, 87.18),
    "publisher": (84.62, 84.62, 83.54, 84.62, 86.08, 86.08),
    "tech": (77.78, 80.00, 80.00, 77.78, 77.78, 77.78),
    "title": (89.62, 85.42, 86.73, 90.18, 92.23, 90.95),
    "volume": (66.23, 75.68, 72.60, 71.90, 72.37, 75.00),
    "all": (85.34, 85.47, 84.77, 85.67, 86.67, 86.07),
}
PAPER_SIGMA_10 = 87.45  # SC3
PAPER_P = {
    ("C1", "C2"): "0.393<",
    ("C1", "C3"): "0.174>",
    ("C1", "SC1"): "0.198<",
    ("C1", "SC2"): "0.004<",
    ("C1", "SC3"): "0.095<",
    ("C2", "C3"): "0.073>",
    ("C2", "SC1"): "0.351<",
    ("C2", "SC2"): "0.019<",
    ("C2", "SC3"): "0.161<",
    ("C3", "SC1"): "0.095<",
    ("C3", "SC2"): "0.002<",
    ("C3", "SC3"): "0.030<",
    ("SC1", "SC2"): "0.003<",
    ("SC1", "SC3"): "0.200<",
    ("SC2", "SC3"): "0.025>",
}
OTHERS_SECONDS = {
    "authors' code (Java), one thread": {"C1": "8.6", "C2": "63-95", "C3": "200-350", "SC1": "760"},
    "CRFsuite fork with semi-Markov features (C)": {"C1": "0.7", "C2": "3.9", "SC1": "4.6"},
}


def letter_ngrams(word: str) -> list[str]:
    """Letter n-grams of ``<word>``, n = 2 .. 6, at index 0 and where index + n = len(<word>) - n + 1.

    The second was meant to be the last one, but stops n - 1 letters before it; the authors' results have it so.
    """
    framed = f"<{word}>"
    found = []
    for n in range(2, 7):
        stop = len(framed) - n + 1
        found += [framed[j : j + n] for j in range(stop) if j == 0 or j + n == stop]
    return found


def token_attributes(words: list[str], i: int, semi: bool) -> dict[str, float]:
    """Attributes of one token with their counts, for `SemiCRF` or for `CRF`."""

    def word(j: int) -> str:
        return words[j] if 0 <= j < len(words) else ""

    names = [f"w={word(i)}", f"w-1={word(i - 1)}", f"w+1={word(i + 1)}"]
    names += [f"before={word(j)}" for j in range(i - 1, max(i - 5, -2), -1)]
    names += [f"after={word(j)}" for j in range(i + 1, min(i + 5, len(words) + 1))]
    names += [f"letters={ngram}" for ngram in letter_ngrams(word(i))]
    if i > 0:
        names += [f"start:w={word(i)}", f"start:w-1={word(i - 1)}"]
        if semi:
            names += ["start", "inner", f"inner:w={word(i)}", f"inner:w-1={word(i - 1)}"]
    return {name: float(count) for name, count in Counter(names).items()}


def attributes(words: list[str], semi: bool) -> list[dict[str, float]]:
    return [token_attributes(words, i, semi) for i in range(len(words))]


def read(part: str, semi: bool) -> tuple[list[list[dict[str, float]]], list[list[str]]]:
    """Attributes and labels of ``train`` or ``test``."""
    references = read_columns(f"cora/ref.{part}")
    return [attributes(words, semi) for words, _ in references], [labels for _, labels in references]


def parameters(semi: bool) -> dict[str, Any]:
    """Parameters of the estimator that belong to the features."""
    return {"attribute_orders": PATTERN_ORDERS} | ({"attribute_parts": PARTS} if semi else {})


TASK = Task(
    "bibliography",
    TITLE,
    data=lambda: (read_columns("cora/ref.train"), read_columns("cora/ref.test")),
    features=lambda words, row: attributes(words, is_semi(row)),
    labels=list,
    scored=list,
    parameters=lambda row: parameters(is_semi(row)),
    published=PAPER,
    published_p=PAPER_P,
    more={"SC3, sigma = 10": ("SC3", SIGMA_10, PAPER_SIGMA_10)},
    others_seconds=OTHERS_SECONDS,
)


def run(options: Options) -> Report:
    return study(TASK, options)
