"""Reports: one page that shows what a model learnt."""

from __future__ import annotations

from typing import Any

import numpy as np

from scansion.display.charts import curve, histogram
from scansion.display.contents import Counts, LevelReport, ReportData, Transitions, Tree, Weighted, gather
from scansion.display.graph import draw
from scansion.display.markup import Markup, details, element, join, number, signed, table, void
from scansion.display.page import Page
from scansion.display.palette import Palette
from scansion.display.sequence import chip
from scansion.models.weights import Feature

__all__ = ["report", "report_page"]

_MOST_COLUMNS = 60  # labels up to which all pairs are shown as a table
_MOST_NODES = 28
_WEIGHT = element("th", "Weight", scope="col", class_="weight")


def report_page(estimator: Any, top: int = 20) -> str:
    """A whole page that shows what a fitted estimator learnt; see `report`."""
    return report(estimator, top).html


def report(estimator: Any, top: int = 20) -> Page:
    """What a fitted estimator learnt, as a page: features, transitions, lengths, levels.

    Parameters
    ----------
    estimator : CRF, SemiCRF, HierarchicalCRF
    top : int
        Features of each label, for it and against it, and patterns, to show.
    """
    data = gather(estimator, top)
    return Page(data.title, report_body(data))


def report_body(data: ReportData) -> Markup:
    """The sections of a report."""
    palette = Palette(data.labels)
    sections: list[tuple[str, str, Markup]] = []
    if data.tree:
        sections.append(("hierarchy", "Hierarchy", _tree(data.tree, palette, class_="tree")))
    for i, level in enumerate(data.levels):
        mark, of = (f"-{i}", f": {level.name}") if level.name else ("", "")
        if any(any(both) for both in level.features.values()):
            sections.append((f"features{mark}", f"Strongest features{of}", _features(level, palette)))
        if level.transitions:
            sections.append((f"transitions{mark}", f"Transitions{of}", _transitions(level, palette)))
        if level.patterns or level.attribute_patterns or level.automaton:
            title = "Transitions with attributes" if level.name else "Label patterns"
            sections.append((f"patterns{mark}", f"{title}{of}", _patterns(level, palette)))
        if level.lengths:
            sections.append((f"lengths{mark}", f"Lengths of segments{of}", _lengths(level.lengths, palette)))
    losses = [entry.get("loss") for entry in data.log]
    if len(losses) > 1 and all(isinstance(v, (int, float)) and np.isfinite(v) for v in losses):
        sections.append(("training", "Training", _training(data.log)))
    links = [element("a", title, href=f"#{name}") for name, title, _ in sections]
    contents = element("nav", *links, class_="contents", aria_label="Sections")
    header = element("header", element("h1", data.title), _facts(data.facts), contents)
    shown = [
        element("section", element("h2", title, id=name), body, aria_labelledby=name) for name, title, body in sections
    ]
    return join([header, element("main", *shown)])


def _facts(facts: list[tuple[str, Any]]) -> Markup:
    rows = []
    for name, value in facts:
        text = number(value, 5) if isinstance(value, (int, float)) else value
        wide = isinstance(value, str) and len(value) > 16
        rows.append(element("div", element("dt", name), element("dd", text), class_="wide" if wide else None))
    return element("dl", *rows, class_="facts")


def _weight(value: float, scale: float) -> Markup:
    share = min(1.0, abs(value) / scale) if scale > 0 else 0.0
    track = element("span", element("i", style=f"width:{100 * share:.1f}%"), class_="track", aria_hidden="true")
    return element("td", track, signed(value, 3), class_="weight")


def _features(level: LevelReport, palette: Palette) -> Markup:
    scale = max((abs(rows[0][1]) for both in level.features.values() for rows in both if rows), default=1.0)
    cards = [_card(label, both, palette, scale) for label, both in level.features.items() if any(both)]
    field = void("input", type="search", placeholder="part of a feature's name", autocomplete="off")
    status = element("span", role="status", class_="quiet")
    find = element("div", element("label", "Find ", field), status, class_="find", hidden=True)
    return join([find, element("div", *cards, class_="cards")])


def _card(label: Any, both: tuple[list[Weighted], list[Weighted]], palette: Palette, scale: float) -> Markup:
    bodies = []
    for look, items in zip(("plus", "minus"), both, strict=True):
        rows = [
            element("tr", element("th", name, scope="row", class_="feature"), _weight(w, scale), data_feature=True)
            for name, w in items
        ]
        bodies.append(element("tbody", *rows, class_=look) if rows else None)
    return element("div", element("h3", chip(palette, label)), table(["Feature", _WEIGHT], *bodies), class_="card")


def _transitions(level: LevelReport, palette: Palette) -> Markup:
    alone = len(level.transitions) == 1
    shown = [_one_transitions(one, palette, alone) for one in level.transitions]
    caption = (
        "Arrows: the highest weights of one label after another, thicker the higher; of a label that has none above 0, "
        "its highest. Point at a label, or reach it by Tab and arrow keys, to see its own."
    )
    body = shown[0] if alone else element("div", *shown, class_="two")
    return join([element("p", caption, class_="quiet"), body])


def _one_transitions(one: Transitions, palette: Palette, alone: bool) -> Markup:
    parts: list[Markup | None] = []
    if one.parent is not None:
        parts.append(element("h3", "inside ", chip(palette, one.parent)))
    graph = one.graph.strongest(edges=_edges(len(one.names)), nodes=_MOST_NODES)
    if graph.edges:
        count, total = len(graph.edges), int(np.isfinite(one.weights).sum())
        drawn = f"{number(count)} of {number(total)} weights are drawn." if count < total else "All weights are drawn."
        picture = draw(graph, palette, "Graph of the strongest transitions")
        parts.append(element("figure", picture, element("figcaption", drawn)))
    parts.append(_matrix(one, palette, alone) if len(one.names) <= _MOST_COLUMNS else _pair_list(one, palette))
    return element("div", *parts)


def _edges(nodes: int) -> int:
    """How many edges are drawn: enough to see the structure, few enough to follow one."""
    return max(12, 5 * nodes // 2)


def _matrix(one: Transitions, palette: Palette, opened: bool) -> Markup:
    finite = one.weights[np.isfinite(one.weights)]
    scale = float(np.abs(finite).max(initial=0.0)) or 1.0
    used = np.isfinite(one.weights)
    rows, columns = np.flatnonzero(used.any(axis=1)), np.flatnonzero(used.any(axis=0))
    chips = [chip(palette, name, look=look) for name, look in zip(one.names, one.looks, strict=True)]

    def cell(w: float) -> Markup:
        if not np.isfinite(w):
            return element("td", "\u00b7", class_="none")
        return element("td", signed(w), class_="minus" if w < 0 else None, style=f"--w:{abs(w) / scale:.3f}")

    body = [element("tr", element("th", chips[i], scope="row"), *map(cell, one.weights[i, columns])) for i in rows]
    corner = element("td", "from \\ to", class_="none")
    above = [element("th", chips[j], scope="col") for j in columns]
    matrix = table([corner, *above], element("tbody", *body))
    scroll = element("div", matrix, class_="scroll matrix", tabindex=0, role="region", aria_label="Transition weights")
    return details("All weights", scroll, opened=opened)


def _pair_list(one: Transitions, palette: Palette) -> Markup:
    order = np.argsort(-one.weights, axis=None, kind="stable")
    order = order[np.isfinite(one.weights.ravel()[order])]
    chosen = order if len(order) <= 80 else np.concatenate([order[:40], order[-40:]])
    n = len(one.names)
    pairs = [((one.names[k // n], one.names[k % n]), float(one.weights.flat[k])) for k in chosen.tolist()]
    return _pattern_table([Feature(0, None, names, None, w) for names, w in pairs], palette)


def _pattern_table(rows: list[Feature], palette: Palette) -> Markup:
    scale = max((abs(row.weight) for row in rows), default=1.0)
    tied = any(row.attribute for row in rows)
    nested = any(row.parent is not None for row in rows)
    body = []
    for row in rows:
        arrow = element("span", "\u2192", class_="arrow")
        labels = join([x for label in row.labels for x in (arrow, chip(palette, label))][1:])
        body.append(
            element(
                "tr",
                element("th", row.attribute, scope="row", class_="feature") if tied else None,
                element("td", labels),
                element("td", "" if row.parent is None else chip(palette, row.parent)) if nested else None,
                _weight(row.weight, scale),
                class_="minus" if row.weight < 0 else None,
            )
        )
    names = [*(["Attribute"] if tied else []), "Labels", *(["inside"] if nested else []), _WEIGHT]
    return element("div", table(names, element("tbody", *body)), class_="scroll patterns")


def _patterns(level: LevelReport, palette: Palette) -> Markup:
    parts: list[Markup | None] = []
    if level.automaton is not None:
        graph = level.automaton.strongest(edges=_edges(_MOST_NODES), nodes=_MOST_NODES)
        if graph.edges:
            caption = (
                "The states of the model: the labels that it remembers. An arrow's weight is the sum of all label "
                "patterns that the step completes; the highest ones are drawn."
            )
            picture = draw(graph, palette, "Graph of the pattern states")
            parts.append(element("figure", picture, element("figcaption", caption)))
    tables = []
    if level.patterns:
        shown = _pattern_table(level.patterns, palette)
        tables.append(element("div", element("h3", "Three labels and more"), shown))
    if level.attribute_patterns:
        shown = _pattern_table(level.attribute_patterns, palette)
        tables.append(element("div", element("h3", "With attributes") if level.patterns else None, shown))
    parts.append(element("div", *tables, class_="two"))
    return join(parts)


def _lengths(lengths: dict[Any, Counts], palette: Palette) -> Markup:
    charts = []
    for label, counts in lengths.items():
        total, at = int(counts.sum()), np.arange(1, len(counts) + 1)
        share = counts / total
        longest, middle = int(at[counts > 0].max()), int(np.searchsorted(np.cumsum(share), 0.5 - 1e-12)) + 1
        text = f"{number(total)} segments, mean {float(share @ at):.1f}, median {middle}, longest {longest}"
        if total == 1:
            text = f"1 segment, of length {longest}"
        picture = histogram(share[:longest], palette.css(label), f"Lengths of {label}: {text}")
        charts.append(element("figure", element("h3", chip(palette, label)), picture, element("figcaption", text)))
    note = element("p", "Share of the training segments that have each length.", class_="quiet")
    return join([note, element("div", *charts, class_="charts")])


def _training(log: list[dict[str, Any]]) -> Markup:
    losses = [float(entry["loss"]) for entry in log]
    scores = [entry.get("dev_score") for entry in log]
    shown = scores if any(v is not None for v in scores) else None
    text = f"Loss over {len(losses)} iterations, from {number(losses[0], 5)} to {number(losses[-1], 5)}"
    note = text + ("; dashed: score on development data." if shown else ".")
    return element("figure", curve(losses, shown, text), element("figcaption", note))


def _tree(tree: Tree, palette: Palette, **attributes: Any) -> Markup:
    items = (element("li", chip(palette, label), _tree(inside, palette) if inside else None) for label, inside in tree)
    return element("ul", *items, **attributes)
