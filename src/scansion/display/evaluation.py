"""How a model's answers agree with the truth, as a page: confusion, reliability of probabilities, errors first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from scansion.display.markup import Markup, element, join, number, table
from scansion.display.page import Page
from scansion.display.palette import Palette
from scansion.display.sequence import Sequence, chip, meter, sequence_body

__all__ = ["Agreement", "evaluation_page"]

_MOST_LABELS = 30
_BINS = 10


@dataclass
class Agreement:
    """What one level's answers have in common with the truth.

    Attributes
    ----------
    name : str
        Of the level; empty if there is but one.
    truth, guess : lists of lists of labels, one a token
    sure : list of arrays
        Probability of each label that was given, block by block.
    report : str
        Scores as text.
    """

    name: str = ""
    truth: list[list[Any]] = field(default_factory=list)
    guess: list[list[Any]] = field(default_factory=list)
    sure: list[npt.NDArray[np.float64]] = field(default_factory=list)
    report: str = ""

    def wrong(self, b: int) -> int:
        """Tokens of a sequence with another label."""
        return sum(y != z for y, z in zip(self.truth[b], self.guess[b], strict=True))


def evaluation_page(levels: list[Agreement], entries: Iterable[Sequence], title: str, left_out: int = 0) -> str:
    """The page; entries: sequences to show, in the order to show them, left_out: how many are not."""
    parts: list[Any] = [element("header", element("h1", title))]
    for level in levels:
        of = f": {level.name}" if level.name else ""
        parts.append(_section(f"Scores{of}", element("pre", level.report, class_="scroll")))
        parts.append(_section(f"Confusion{of}", _confusion(level)))
        if level.sure:
            parts.append(_section(f"Reliability of probabilities{of}", _reliability(level)))
    shown = list(entries)
    left = f"; {left_out} are left out" if left_out else ""
    told = f"Truth above prediction, the sequences with most errors first{left}."
    parts.append(_section("Sequences", element("p", told, class_="quiet"), sequence_body(shown, None)))
    return Page(title, join(parts)).html


def _section(title: str, *content: Any) -> Markup:
    return element("section", element("h2", title), *content)


def _confusion(level: Agreement) -> Markup:
    """Counts of true labels (rows) beside those given (columns): the most frequent ones, darker where errors are."""
    pairs: Counter[tuple[Any, Any]] = Counter()
    for truth, guess in zip(level.truth, level.guess, strict=True):
        pairs.update(zip(truth, guess, strict=True))
    often: Counter[Any] = Counter()
    for (y, z), n in pairs.items():
        often[y] += n
        often[z] += n
    every = sorted(often, key=lambda y: (-often[y], str(y)))
    labels = sorted(every[:_MOST_LABELS], key=str)
    palette = Palette(map(str, labels))
    rows = []
    for y in labels:
        total = sum(n for (true, _), n in pairs.items() if true == y) or 1
        cells = [element("th", chip(palette, y), scope="row")]
        for z in labels:
            n = pairs[y, z]
            look = (
                {"class_": "none"} if not n else {"class_": "" if y == z else "minus", "style": f"--w:{n / total:.3f}"}
            )
            cells.append(element("td", number(n) if n else "\u00b7", **look))
        rows.append(element("tr", *cells))
    head = element(
        "tr", element("th", "truth \\ given", class_="quiet"), *(element("th", chip(palette, z)) for z in labels)
    )
    matrix = element("table", element("thead", head), element("tbody", *rows))
    left = len(every) - len(labels)
    more = (
        element("p", f"The {len(labels)} most frequent labels; {left} are left out.", class_="quiet") if left else None
    )
    return element("div", element("div", matrix, class_="scroll"), more, class_="matrix")


def _reliability(level: Agreement) -> Markup:
    """Of the labels that were given with a probability of so much, how many are right: it should be as many."""
    sure = np.concatenate(level.sure)
    right = np.array(
        [y == z for one, other in zip(level.truth, level.guess, strict=True) for y, z in zip(one, other, strict=True)],
        dtype=float,
    )
    at = np.minimum((sure * _BINS).astype(int), _BINS - 1)
    rows, error = [], 0.0
    for k in range(_BINS):
        chosen = at == k
        if not chosen.any():
            continue
        said, true = float(sure[chosen].mean()), float(right[chosen].mean())
        error += chosen.mean() * abs(said - true)
        cells = [element("th", f"{k / _BINS:.1f}\u2013{(k + 1) / _BINS:.1f}", scope="row")]
        cells.append(element("td", number(int(chosen.sum())), class_="number"))
        cells += [element("td", meter(p), f"{p:.3f}", class_="number") for p in (said, true)]
        rows.append(element("tr", *cells))
    shown = table(("Probability", "Tokens", "Mean", "Right"), element("tbody", *rows))
    told = element(
        "p", f"Expected calibration error {error:.4f}: the mean distance of the last two columns.", class_="quiet"
    )
    return join([element("div", shown, class_="scroll"), told])
