"""Sequences as pages: tokens with their segments, nested levels as stacked bars, marginals, alternatives."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from scansion.display.markup import Markup, details, element, escape, join, json_script, number, table, void
from scansion.display.page import Page
from scansion.display.palette import Palette, css

__all__ = ["Sequence", "sequence_body", "sequence_page"]

Span = tuple[int, int, str]

_OVERVIEW_FROM = 80  # tokens from which a strip shows the whole at once
_LEAST_SHOWN = 0.005  # probabilities below it are not drawn
_HEAT_ROWS = 40
_LEAST_ROW = 0.01  # labels that are less probable everywhere have no row
_OPENED = 3  # with more sequences on a page, their details start closed
_MOST_ROWS = 1000  # of the table
_PART = 400  # tokens that are laid out together
_HEAT_TOKENS = 2000  # of which marginals are drawn
_HEAT_CELL = 20
_HEAT_ROW = 20
_HEAT_LETTERS = 11  # of a token's name above its column
_MOST_CHIPS = 12
_SURE = 0.95  # tokens whose label is less probable are shaded
_OUTSIDE = "O"
_TAG = re.compile(r"^[BIOESLUM]-(?=.)")  # of the schemes that write segments as one label a token


@dataclass
class Sequence:
    """A sequence to be shown.

    Parameters
    ----------
    tokens : list of str
        T of them.
    levels : list of lists of (start, stop, label)
        Segments, root first; in each level from left to right, not overlapping; gaps are allowed.
    level_names : list of str, optional
    marginals : (T, L), optional
        Probability of each label at each token.
    labels : list of str, optional
        Names of the L columns of `marginals`.
    alternatives : list of (levels, probability), optional
        Other configurations in the form of `levels`, with their probabilities.
    name : str, optional
        Heading of the sequence.
    without_rules : (levels, list of str), optional
        What the answer would be without rules, and the rules that it would break.
    """

    tokens: list[str]
    levels: list[list[Span]]
    level_names: list[str] | None = None
    marginals: npt.NDArray[np.float64] | None = None
    labels: list[str] | None = None
    alternatives: list[tuple[list[list[Span]], float]] | None = None
    name: str | None = None
    without_rules: tuple[list[list[Span]], list[str]] | None = None

    def __post_init__(self) -> None:
        self.tokens = [str(token) for token in self.tokens]
        size = len(self.tokens)
        self.levels = _checked_levels("levels", self.levels, size)
        depth = len(self.levels)
        if self.level_names is not None:
            self.level_names = [str(name) for name in self.level_names]
            if len(self.level_names) != depth:
                raise ValueError(f"level_names has {len(self.level_names)} names for {depth} levels")
        if self.marginals is not None:
            self.marginals = np.asarray(self.marginals, np.float64)
            shape = self.marginals.shape
            if len(shape) != 2 or shape[0] != size:
                raise ValueError(f"marginals must have the shape ({size}, L), got {shape}")
            names = range(shape[1]) if self.labels is None else self.labels
            self.labels = [str(label) for label in names]
            if len(self.labels) != shape[1]:
                raise ValueError(f"labels has {len(self.labels)} names for {shape[1]} columns of marginals")
            bad = np.argwhere(~((self.marginals >= -1e-6) & (self.marginals <= 1 + 1e-6)))
            if len(bad):
                t, y = bad[0].tolist()
                raise ValueError(f"marginals[{t}, {y}] = {self.marginals[t, y]} is not a probability")
            self.marginals = np.clip(self.marginals, 0.0, 1.0)
        if self.alternatives is not None:
            self.alternatives = [
                (_checked_levels(f"alternatives[{i}]", levels, size), _probability(f"alternatives[{i}]", p))
                for i, (levels, p) in enumerate(self.alternatives)
            ]
        if self.without_rules is not None:
            levels, rules = self.without_rules
            self.without_rules = _checked_levels("without_rules", levels, size), list(map(str, rules))


def _probability(name: str, value: Any) -> float:
    p = float(value)
    if not 0.0 <= p <= 1.0 + 1e-9:
        raise ValueError(f"{name} has the probability {value!r}, which is not between 0 and 1")
    return min(p, 1.0)


def _checked_levels(name: str, levels: Any, size: int) -> list[list[Span]]:
    result: list[list[Span]] = []
    for d, level in enumerate(levels):
        spans: list[Span] = []
        last = 0
        for start, stop, label in level:
            if not last <= start < stop <= size:
                raise ValueError(
                    f"{name}[{d}] has the segment ({start}, {stop}, {label!r}), which overlaps the one before it, is "
                    f"empty, or leaves the {size} tokens"
                )
            last = int(stop)
            spans.append((int(start), last, str(label)))
        result.append(spans)
    return result


def sequence_page(entries: Iterable[Sequence], title: str | None = None) -> str:
    """A whole page with sequences, one below the other.

    Parameters
    ----------
    entries : iterable of Sequence
    title : str, optional
        Heading of the page.
    """
    shown = list(entries)
    heading = title or ("Sequences" if len(shown) != 1 else "Sequence")
    return Page(heading, sequence_body(shown, heading)).html


def sequence_body(entries: list[Sequence], title: str | None) -> Markup:
    """What the page shows: the legend, and each sequence."""
    palette = Palette()
    readings = [_read(entry) for entry in entries]
    for d in range(max((len(entry.levels) for entry in entries), default=0)):  # hues go to the top levels first
        for entry, reading in zip(entries, readings, strict=True):
            for label in reading.meaning if d == reading.level else ():
                palette.add(label)
            for _, _, label in entry.levels[d] if d < len(entry.levels) else ():
                palette.add(label)
    answers = (
        levels
        for entry in entries
        for levels in (entry.levels, *(other for other, _ in [*(entry.alternatives or ()), *_freely(entry)]))
    )
    outside = -1 in {palette.add(label) for levels in answers for level in levels for _, _, label in level}
    header = legend = None
    if title is not None:
        what = f"{number(len(entries))} sequences, " if len(entries) != 1 else ""
        tokens = sum(len(entry.tokens) for entry in entries)
        size = element("p", f"{what}{number(tokens)} token{'s' if tokens != 1 else ''}", class_="quiet")
        header = element("header", element("h1", title), size)
    names = [*palette.labels, *(["O"] if outside else [])]
    if len(names) > 1:
        items = (element("li", chip(palette, label)) for label in names)
        legend = element("ul", *items, class_="legend", aria_label="Labels")
    many = len(entries) > 1
    shown = [
        _entry(entry, reading, palette, i if many or entry.name else None, len(entries) <= _OPENED)
        for i, (entry, reading) in enumerate(zip(entries, readings, strict=True))
    ]
    doubt: list[Any] = []
    if any((reading.sure < _SURE).any() for reading in readings):
        sample = element("span", "shaded", class_="doubtful", style="--doubt:0.6")
        doubt = [" Tokens are ", sample, f" where their label has a probability below {_SURE}."]
    tab, *arrows = (element("kbd", key) for key in ("Tab", *"\u2190\u2191\u2193\u2192"))
    told = ["Point at a segment to see more, or reach it by ", tab, " and walk with ", *arrows, ".", *doubt]
    hint = element("p", *told, class_="hint quiet")
    return join([header, legend, hint if entries else None, element("main", *shown)])


def chip(palette: Palette, label: Any, suffix: Any = None, look: Any = None) -> Markup:
    """A label in its colour, or in that of another."""
    small = None if suffix is None else element("small", suffix)
    return element("span", label, small, class_=f"chip {palette.css(label if look is None else look)}")


# ---- one sequence ----------------------------------------------------------------------------------------------------


def _entry(entry: Sequence, reading: _Reading, palette: Palette, i: int | None, opened: bool) -> Markup:
    size = len(entry.tokens)
    heading = None if i is None else element("h2", entry.name or f"Sequence {i + 1}")
    if not size:
        return element("article", heading, element("p", "No tokens.", class_="quiet"), class_="entry")
    parts = [
        heading,
        _overview(entry, palette) if size > _OVERVIEW_FROM else None,
        _flow(entry, reading, palette),
        _ruled(entry, palette),
        _alternatives(entry, palette, opened),
        _heat_map(entry, reading, opened),
        _table(entry, reading, palette),
        json_script(_data(entry, reading, palette), class_="data"),
    ]
    return element("article", *parts, class_="entry")


def _level_name(entry: Sequence, d: int) -> str:
    if entry.level_names is not None:
        return entry.level_names[d]
    return f"level {d}" if len(entry.levels) > 1 else ""


@dataclass(frozen=True)
class _Reading:
    """What marginals say of the segments that are shown.

    Attributes
    ----------
    level : int, or None
        The level that they speak of: the lowest one whose labels are all among theirs.
    meaning : list of L
        The segment label of each column: that of B-NP is NP where segments are called NP.
    chosen : (T,)
        The column of the label that is shown for each token, of several the most probable one; -1: none.
    sure : (T,)
        The probability of the label that is shown.
    """

    level: int | None
    meaning: list[str]
    chosen: npt.NDArray[np.int64]
    sure: npt.NDArray[np.float64]

    def mean(self, d: int, start: int, stop: int) -> float | None:
        """Mean probability of the label of a segment at level d."""
        return float(self.sure[start:stop].mean()) if d == self.level else None


def _read(entry: Sequence) -> _Reading:
    size, names = len(entry.tokens), entry.labels or []
    level, meaning = _scored_level(entry, names)
    chosen, sure = np.full(size, -1), np.ones(size)
    if level is None or entry.marginals is None:
        return _Reading(None, names, chosen, sure)
    shown = [_OUTSIDE] * size
    for start, stop, label in entry.levels[level]:
        shown[start:stop] = [label] * (stop - start)
    columns: dict[str, list[int]] = {}
    for y, name in enumerate(meaning):
        columns.setdefault(name, []).append(y)
    for t, label in enumerate(shown):
        if label in columns:
            mine = columns[label]
            row = entry.marginals[t, mine]
            chosen[t], sure[t] = mine[int(row.argmax())], min(float(row.sum()), 1.0)
    return _Reading(level, meaning, chosen, sure)


def _scored_level(entry: Sequence, names: list[str]) -> tuple[int | None, list[str]]:
    """The level that columns of these names speak of, and their meanings there."""
    for meaning in (names, [_TAG.sub("", name) for name in names]):
        known = set(meaning)
        for d in reversed(range(len(entry.levels))):
            if entry.levels[d] and all(label in known for _, _, label in entry.levels[d]):
                return d, meaning
    return None, names


def _visible(token: str) -> Markup:
    """A token, or what stands for one that cannot be seen."""
    if token.strip():
        return element("bdi", token)
    return element("span", {"": "\u2205", "\n": "\u21b5", "\t": "\u21e5"}.get(token, "\u2423"), class_="blank")


def _width(text: str) -> float:
    """About how wide a text is, in em."""
    return sum(1.0 if unicodedata.east_asian_width(c) in "WF" else 0.54 for c in text)


def _excerpt(entry: Sequence, start: int, stop: int, most: int = 90) -> str:
    text = ""
    for token in entry.tokens[start:stop]:
        text += (" " if text else "") + token
        if len(text) > most:
            return text[: most - 1].rstrip() + "\u2026"
    return text


def _flow(entry: Sequence, reading: _Reading, palette: Palette) -> Markup:
    """Tokens as they are read, with the bars of their segments below: the lowest level first, the root last."""
    size, depth = len(entry.tokens), len(entry.levels)
    widths = [max(_width(token), 0.5) + 0.75 for token in entry.tokens]
    pieces = [['<span class="bar none"></span>'] * depth for _ in range(size)]
    least = [0.0] * size
    first = 0  # the only one that Tab reaches; arrow keys walk on
    for row, d in enumerate(reversed(range(depth))):
        for s, (start, stop, label) in enumerate(entry.levels[d]):
            wanted = _width(label) * 0.86 + 1.1  # bars have smaller type
            least[start] = max(least[start], wanted - sum(widths[start + 1 : stop][:40]))
            for t in range(start, stop):
                ends = (" first" if t == start else "") + (" last" if t == stop - 1 else "")
                look = f"bar {palette.css(label)}{ends}"
                pieces[t][row] = f'<span class="{look}" data-s="{d}.{s}"></span>'
                if t == start:
                    name = element("span", label, class_="name")
                    told = {"role": "img", "tabindex": first, "aria_label": _spoken(entry, reading, d, s)}
                    pieces[t][row] = element("span", name, class_=look, data_s=f"{d}.{s}", **told)
                    first = -1
    cells = []
    for t, token in enumerate(entry.tokens):
        style, doubt = "", ""
        if least[t] > widths[t]:
            style = f' style="min-width:{least[t]:.2f}em"'
        if reading.sure[t] < _SURE:
            doubt = f' style="--doubt:{min(1.0, 1.6 * (1.0 - reading.sure[t])):.2f}"'
        look = "token doubtful" if doubt else "token"
        word = f'<span class="{look}"{doubt}>{_visible(token)}</span>'
        cells.append(f'<span class="cell"{style}>{word}{"".join(pieces[t])}</span>')
    text = f"{number(size)} tokens with {number(sum(map(len, entry.levels)))} segments"
    # browsers lay out the parts that are in view
    parts = [
        element("div", Markup("".join(cells[t : t + _PART])), class_="part" if size <= _PART else "part long")
        for t in range(0, size, _PART)
    ]
    return element("div", *parts, class_="flow", role="group", aria_label=text)


def _spoken(entry: Sequence, reading: _Reading, d: int, s: int) -> str:
    """What a segment says to a screen reader."""
    start, stop, label = entry.levels[d][s]
    # as everywhere, positions count from 0 and the end is not part of it
    where = f"token {start}" if stop == start + 1 else f"tokens {start}:{stop}"
    name = _level_name(entry, d)
    text = f"{label}{', ' + name if name else ''}, {where}: {_excerpt(entry, start, stop, 60)}"
    sure = reading.mean(d, start, stop)
    if sure is not None:
        text += f"; probability {sure:.2f}"
    for levels, p in (entry.alternatives or ())[:3]:
        other = [span for span in (levels[d] if d < len(levels) else []) if span[0] < stop and span[1] > start]
        if other != [(start, stop, label)]:
            said = ", ".join(f"{name} {a}:{b}" for a, b, name in other[:6]) or "none"
            text += f"; alternative with probability {p:.2g}: {said}"
    return text


def _overview(entry: Sequence, palette: Palette) -> Markup:
    """The whole sequence in one strip, to see where segments are."""
    size, depth = len(entry.tokens), max(len(entry.levels), 1)
    rows = [
        void("rect", x=start, y=d + 0.08, width=stop - start, height=0.84, class_=palette.css(label))
        for d, level in enumerate(entry.levels)
        for start, stop, label in level
    ]
    shape = {"viewBox": f"0 0 {size} {depth}", "preserveAspectRatio": "none", "height": 12 * depth}
    return element("svg", *rows, class_="overview", **shape, aria_hidden="true")


def _alternatives(entry: Sequence, palette: Palette, opened: bool) -> Markup | None:
    """Other configurations: how probable, and what differs from the one that is shown."""
    if not entry.alternatives:
        return None
    rows = []
    for i, (levels, p) in enumerate(entry.alternatives):
        chips = _differences(entry, levels, palette)
        probable = element("td", meter(p), f"{p:.3f}" if p >= 0.0005 else f"{p:.2g}", class_="number")
        what = element("td", *(chips or [element("span", "as shown", class_="quiet")]))
        rows.append(element("tr", element("th", i + 1, scope="row"), probable, what))
    shown = table(("Rank", "Probability", "What differs"), element("tbody", *rows), class_="alternatives")
    return details(f"Alternatives ({len(rows)})", element("div", shown, class_="scroll"), opened=opened)


def _differences(entry: Sequence, levels: list[list[Span]], palette: Palette) -> list[Markup]:
    """What another configuration has that the one shown has not."""
    differing = [
        span
        for d, level in enumerate(levels)
        for span in level
        if d >= len(entry.levels) or span not in set(entry.levels[d])
    ]
    chips = []
    for start, stop, label in differing[:_MOST_CHIPS]:
        text = element("span", _excerpt(entry, start, stop, 28), class_="quote")
        chips.append(element("span", chip(palette, label, f"{start}:{stop}"), " ", text, class_="change"))
    if len(differing) > _MOST_CHIPS:
        chips.append(element("span", f"and {number(len(differing) - _MOST_CHIPS)} more", class_="quiet"))
    return chips


def _freely(entry: Sequence) -> list[tuple[list[list[Span]], list[str]]]:
    return [] if entry.without_rules is None else [entry.without_rules]


def _ruled(entry: Sequence, palette: Palette) -> Markup | None:
    """Where a rule changed the answer: which one, and what would stand there without it."""
    if entry.without_rules is None:
        return None
    levels, rules = entry.without_rules
    named = [part for i, rule in enumerate(rules) for part in ([", "] if i else []) + [element("code", rule)]]
    told = ["Rules changed this answer: without ", *named, " it would have "]
    return element("p", *told, *_differences(entry, levels, palette), class_="ruled")


def meter(p: float) -> Markup:
    """A small bar for a share between 0 and 1."""
    return element("span", element("i", style=f"width:{100 * p:.1f}%"), class_="meter", aria_hidden="true")


def _heat_map(entry: Sequence, reading: _Reading, opened: bool) -> Markup | None:
    """Label probabilities at each token: one row a label, as dark as it is probable."""
    if entry.marginals is None or entry.labels is None or not entry.labels:
        return None
    every, size = len(entry.tokens), min(len(entry.tokens), _HEAT_TOKENS)
    tokens, marginals = entry.tokens[:size], entry.marginals[:size]
    peaks = marginals.max(axis=0)
    rows = np.flatnonzero(peaks >= _LEAST_ROW)
    if len(rows) > _HEAT_ROWS:
        rows = np.sort(np.argsort(-peaks, kind="stable")[:_HEAT_ROWS])
    place = {int(y): r for r, y in enumerate(rows)}
    cells, width = [], _HEAT_CELL
    head = 15.0 + 5.2 * max(len(_short(token)) for token in tokens)
    for t, y in np.argwhere(marginals >= _LEAST_SHOWN).tolist():
        if y in place:
            p = marginals[t, y]
            mark = ' class="on"' if reading.chosen[t] == y else ""
            cells.append(
                f'<rect x="{t * width + 1}" y="{place[y] * _HEAT_ROW + 1}" width="{width - 2}" '
                f'height="{_HEAT_ROW - 2}" fill-opacity="{p:.2f}"{mark}/>'
            )
    names = "".join(
        f'<text transform="translate({t * width + 13} {head - 6:.0f}) rotate(-52)">{escape(_short(token))}</text>'
        for t, token in enumerate(tokens)
    )
    lines = "".join(f'<path d="M0 {r * _HEAT_ROW + 0.5}H{size * width}" class="rule"/>' for r in range(len(rows) + 1))
    height = head + len(rows) * _HEAT_ROW + 2
    column = void("rect", class_="column", x=-2 * width, width=width, height=len(rows) * _HEAT_ROW)
    parts = f'<g class="names">{names}</g><g transform="translate(0 {head:.0f})">{lines}{column}{"".join(cells)}</g>'
    told = {"role": "img", "aria_label": "Probability of each label at each token"}
    picture = element("svg", Markup(parts), width=size * width + 60, height=height, **told)
    shown = (element("span", entry.labels[y]) for y in rows.tolist())
    labels = element("div", *shown, class_="rows", aria_hidden="true")
    told = {"role": "group", "aria_label": "Marginals; arrow keys walk over the tokens"}
    scroll = element("div", picture, class_="scroll", tabindex=0, **told, data_cell=width)
    left = "" if len(rows) == len(peaks) else f", the {len(rows)} most probable of {len(peaks)} labels"
    left += "" if size == every else f", the first {number(size)} of {number(every)} tokens"
    scale = element("span", element("i"), class_="scale", aria_hidden="true")
    return details(
        "Marginals",
        element("div", labels, scroll, class_="heat"),
        element("p", "0 ", scale, f" 1{left}", class_="quiet"),
        element("p", "\u00a0", class_="readout", role="status"),
        opened=opened and every <= _PART,
    )


def _short(token: str) -> str:
    token = token if token.strip() else "\u2423"
    return token if len(token) <= _HEAT_LETTERS else token[: _HEAT_LETTERS - 1] + "\u2026"


def _table(entry: Sequence, reading: _Reading, palette: Palette) -> Markup:
    """The segments in rows, for reading aloud and for copying."""
    columns = ["Start", "Stop", "Label", "Tokens"]
    if len(entry.levels) > 1:
        columns.insert(0, "Level")
    if reading.level is not None:
        columns.insert(-1, "Probability")
    rows = []
    for d, level in enumerate(entry.levels):
        for start, stop, label in level:
            sure = reading.mean(d, start, stop)
            cells = {
                "Level": element("td", _level_name(entry, d)),
                "Start": element("td", start, class_="number"),
                "Stop": element("td", stop, class_="number"),
                "Label": element("th", chip(palette, label), scope="row"),
                "Probability": element("td", "" if sure is None else f"{sure:.3f}", class_="number"),
                "Tokens": element("td", _excerpt(entry, start, stop, 160)),
            }
            rows.append(element("tr", *(cells[name] for name in columns)))
    shown = element("div", table(columns, element("tbody", *rows[:_MOST_ROWS])), class_="scroll")
    left = f"The first {number(_MOST_ROWS)} of {number(len(rows))} segments." if len(rows) > _MOST_ROWS else None
    return details("As a table", shown, left and element("p", left, class_="quiet"))


def _data(entry: Sequence, reading: _Reading, palette: Palette) -> dict[str, Any]:
    """What the script needs to tell more: labels by number, segments, the likely labels of each token, alternatives."""
    numbers: dict[str, int] = {}

    def packed(levels: list[list[Span]]) -> list[list[list[int]]]:
        return [[[a, b, numbers.setdefault(y, len(numbers))] for a, b, y in level] for level in levels]

    levels = packed(entry.levels)
    alternatives = [[_rounded(p), packed(other)] for other, p in entry.alternatives or ()]
    likely: list[list[float]] = []
    meaning: dict[int, int] = {}  # only where it is another label
    if entry.marginals is not None and entry.labels is not None:
        columns = [numbers.setdefault(label, len(numbers)) for label in entry.labels]
        for column, label in zip(columns, reading.meaning, strict=True):
            if numbers.setdefault(label, len(numbers)) != column:
                meaning[column] = numbers[label]
        for row in entry.marginals:
            best = np.argsort(-row, kind="stable")[:4].tolist()
            likely.append([x for y in best if row[y] >= _LEAST_SHOWN for x in (columns[y], _rounded(row[y]))])
    return {
        "labels": list(numbers),
        "looks": [css(palette.add(label)) for label in numbers],
        "names": [_level_name(entry, d) for d in range(len(entry.levels))],
        "levels": levels,
        "scored": -1 if reading.level is None else reading.level,
        "meaning": meaning,
        "likely": likely,
        "alternatives": alternatives,
    }


def _rounded(p: float) -> float:
    return float(f"{p:.3g}") if math.isfinite(p) else 0.0
