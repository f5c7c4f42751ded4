"""What notebooks show: sequences in the form of the estimators' answers, lattices, trajectories."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from scansion import _checks as checks
from scansion.display.answers import as_columns, as_levels
from scansion.display.charts import histogram
from scansion.display.markup import element, join, number, table
from scansion.display.page import Page
from scansion.display.palette import Palette
from scansion.display.sequence import Sequence, chip, sequence_body
from scansion.segments import ByLevel

__all__ = ["compressed_html", "display", "estimator_html", "lattice_html"]

_LONGEST = 1000  # positions up to which a lattice shows more than its name
_MOST_LABELS = 100


def display(
    tokens: Iterable[Any],
    answer: Any = (),
    *,
    marginals: Any = None,
    labels: Iterable[Any] | None = None,
    alternatives: Iterable[tuple[Any, float]] = (),
    level_names: Iterable[str] | None = None,
    scheme: str | None = None,
    title: str | None = None,
) -> Page:
    """A sequence with its segments, for a notebook or a file: ``sc.display(...)``.

    Parameters
    ----------
    tokens : iterable
        T of them, shown by `str`.
    answer : list
        As the estimators predict it: T labels, segments ``(start, stop, label)``, or several levels of such segments,
        the top first, as a list of lists or a dict by name.
    marginals : (T, L), or list of T dicts label -> probability, optional
        Or a dict of such lists by level, of which the last is shown.
    labels : iterable, optional
        Names of the columns of `marginals`.
    alternatives : iterable of (answer, probability), optional
        Also with log probabilities, which are not above 0: as `predict_kbest` returns them.
    level_names : iterable of str, optional
        The names in a dict unless given.
    scheme : str, optional
        How T labels make segments, see `scansion.schemes.segments`; None: each token is one.
    title : str, optional

    Returns
    -------
    Page
        Shown by notebooks; ``.save(path)`` writes it, ``.html`` is the document.

    Examples
    --------
    >>> page = display(["the", "old", "man"], [(0, 3, "NP")], marginals=[{"NP": 0.9, "O": 0.1}] * 3)
    >>> page.title
    'Sequence'
    """
    words = [str(token) for token in tokens]
    table, names = as_columns(marginals, labels)
    if level_names is None and isinstance(answer, (Mapping, ByLevel)):
        level_names = [str(name) for name, _ in answer.items()]
    others: list[Any] = list(alternatives)
    for i, other in enumerate(others):
        if not isinstance(other, (tuple, list)) or len(other) != 2 or not checks.is_number(other[1]):
            raise ValueError(f"alternatives[{i}] must be (answer, probability), got {other!r}")
    entry = Sequence(
        words,
        as_levels("answer", answer, len(words), scheme),
        level_names=None if level_names is None else list(level_names),
        alternatives=[
            (as_levels(f"alternatives[{i}]", other, len(words), scheme), _probability(value))
            for i, (other, value) in enumerate(others)
        ],
        marginals=table,
        labels=names,
    )
    return Page(title or "Sequence", sequence_body([entry], title))


def _probability(value: float) -> float:
    """A probability, of itself or of its logarithm."""
    return math.exp(value) if value <= 0 else float(value)


def estimator_html(estimator: Any) -> str:
    """What an estimator is and what it has learnt, in a line; the report is folded."""
    labels = [str(label) for level in estimator.levels_ for label in level.labels]
    some = ", ".join(labels[:12]) + (f" and {len(labels) - 12} more" if len(labels) > 12 else "")
    facts = f"{len(labels)} labels ({some}), {estimator.size_:,} weights"
    if estimator.loss_ == estimator.loss_:
        facts += f", loss {number(estimator.loss_, 6)} after {estimator.n_iter_} iterations"
    report = estimator.report(top=5)
    folded = element("details", element("summary", "What it has learnt"), report.body)
    return Page(
        report.title, join([element("p", element("code", repr(estimator))), element("p", facts), folded])
    )._repr_html_()


# ---- lattices --------------------------------------------------------------------------------------------------------


def lattice_html(lattice: Any) -> str | None:
    """A lattice's best configuration, marginals and alternatives; None where a name must do."""
    size = len(lattice)
    if not 0 < size <= _LONGEST:
        return None
    try:
        best = lattice.kbest(4)
        probabilities = lattice.marginals().labels
        log_z, entropy = lattice.log_partition(), lattice.entropy()
    except ValueError:  # nothing is possible: its name is all that there is to show
        return None
    if isinstance(probabilities, list):
        probabilities = probabilities[-1]
    if probabilities.shape[1] > _MOST_LABELS:
        return None
    page = display(
        range(size),
        best[0][0],
        marginals=np.clip(probabilities, 0.0, 1.0),
        alternatives=[(config, math.exp(min(score - log_z, 0.0))) for config, score in best],
    )
    facts = (
        f"{lattice!r}: log Z {number(log_z, 6)}, entropy {number(entropy, 4)} nats, best score {number(best[0][1], 6)}"
    )
    return Page(repr(lattice), join([element("p", facts), page.body]))._repr_html_()


def compressed_html(compressed: Any) -> str | None:
    """Trajectories of a lattice: their lengths, and the most probable ones."""
    if not 0 < compressed.max_length <= _LONGEST or compressed.n_labels > _MOST_LABELS:
        return None
    lengths = compressed.lengths
    shown = np.flatnonzero(lengths > 1e-4)
    if not len(shown):
        return None
    low, high = int(shown[0]), int(shown[-1])
    palette = Palette(range(compressed.n_labels))
    rows = []
    for trajectory, p in compressed.best(5, budget=2000):
        chips = element("td", *(part for y in trajectory[:40] for part in (chip(palette, y), " ")))
        rows.append(element("tr", element("td", f"{p:.4f}", class_="number"), chips))
    chart = histogram(lengths[low : high + 1], "", "Probability of each length", first=low)
    figure = element("figure", chart, element("figcaption", "Probability of each length of the trajectory"))
    trajectories = element("div", table(("Probability", "Trajectory"), element("tbody", *rows)), class_="scroll")
    body = join([element("p", repr(compressed)), element("div", figure, trajectories, class_="two")])
    return Page("Trajectories", body)._repr_html_()
