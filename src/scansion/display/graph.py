"""A directed graph as SVG: nodes on an ellipse, those that belong together side by side; curves that bend inwards."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from scansion.display.markup import Markup, element, signed, void
from scansion.display.palette import Palette

__all__ = ["Edge", "Graph", "draw"]

Point = complex  # x + i y

_ROUNDS = 12  # of exchanging neighbours; a few suffice, and the order is only a matter of looks
_HEIGHT = 26.0


@dataclass(frozen=True)
class Edge:
    """From a node to a node, by number, with a weight."""

    tail: int
    head: int
    weight: float


@dataclass(frozen=True)
class Graph:
    """Nodes by name, each coloured as a label, and edges.

    Attributes
    ----------
    names : sequence of str
    looks : sequence of str
        The label whose colour each node has.
    edges : sequence of Edge
    """

    names: Sequence[str]
    looks: Sequence[str]
    edges: Sequence[Edge]

    def strongest(self, edges: int, nodes: int) -> Graph:
        """The graph of the heaviest edges above 0 and the nodes that they join: at most so many.

        A node that no such edge leaves keeps its heaviest one, even below 0.
        """
        ranked = sorted(self.edges, key=lambda e: -e.weight)
        members: dict[int, int] = {}
        chosen: list[Edge] = []

        def take(edge: Edge) -> None:
            new = {edge.tail, edge.head} - members.keys()
            if len(members) + len(new) <= nodes:
                chosen.append(edge)
                members.update((node, 0) for node in new)

        for edge in ranked:
            if edge.weight > 0 and len(chosen) < edges:
                take(edge)
        served = {edge.tail for edge in chosen}
        for edge in ranked:
            if edge.tail not in served:
                served.add(edge.tail)
                take(edge)
        order = sorted(members)
        place = {node: i for i, node in enumerate(order)}
        return Graph(
            [self.names[i] for i in order],
            [self.looks[i] for i in order],
            [Edge(place[e.tail], place[e.head], e.weight) for e in chosen],
        )


def circle_order(weights: npt.NDArray[np.float64]) -> list[int]:
    """An order of n nodes around a circle in which heavy pairs are near: exchanges of two while one helps.

    Parameters
    ----------
    weights : (n, n), symmetric, >= 0

    Notes
    -----
    Local search on ``sum_ij w_ij d(i, j)``, d the distance along the circle; O(rounds n^4) at worst for small n.
    """
    n = len(weights)
    steps = np.abs(np.arange(n)[:, None] - np.arange(n))
    distance = np.minimum(steps, n - steps).astype(np.float64)
    order = np.arange(n)
    cost = float((weights * distance).sum())
    for _ in range(_ROUNDS if n > 3 else 0):
        before = cost
        for i in range(n):
            for j in range(i + 1, n):
                order[i], order[j] = order[j], order[i]
                changed = float((weights[np.ix_(order, order)] * distance).sum())
                if changed < cost - 1e-9:
                    cost = changed
                else:
                    order[i], order[j] = order[j], order[i]
        if cost >= before:
            break
    return [int(i) for i in order]


def draw(graph: Graph, palette: Palette, name: str) -> Markup:
    """The picture; by mouse or keyboard, a node shows its edges alone."""
    n = len(graph.names)
    weights = np.zeros((n, n))
    for edge in graph.edges:
        if edge.tail != edge.head:
            weights[edge.tail, edge.head] += max(edge.weight, 0.1)
    order = circle_order(weights + weights.T)
    widths = [max(34.0, 8.2 * min(len(text), 22) + 20) for text in graph.names]
    radius_x = max(150.0, n * 30.0, sum(sorted(widths)[-max(n // 3, 1) :]) / 2.6)
    radius_y = max(95.0, n * 16.0)
    radius_x = min(radius_x, 520.0) if n <= 40 else radius_x
    pad_y = 58.0 if any(e.tail == e.head for e in graph.edges) else 24.0  # loops stand outside
    pad_x = max(widths, default=34.0) / 2 + 28
    centre = complex(radius_x + pad_x, radius_y + pad_y)
    at: dict[int, Point] = {}
    for place, node in enumerate(order):
        angle = 2 * math.pi * (place + (0.5 if n % 2 == 0 and n > 2 else 0.0)) / n - math.pi / 2
        if n == 2:
            angle = math.pi * (1 - place)
        at[node] = centre + complex(radius_x * math.cos(angle), radius_y * math.sin(angle))
    heaviest = max([1e-9, *(e.weight for e in graph.edges)])
    edges = [_edge(edge, at, widths, centre, heaviest) for edge in sorted(graph.edges, key=lambda e: e.weight)]
    nodes = [_node(graph, node, at[node], widths[node], palette, node == order[0]) for node in order]
    width, height = f"{2 * centre.real:.0f}", f"{2 * centre.imag:.0f}"
    shape = {"viewBox": f"0 0 {width} {height}", "width": width}
    return element(
        "svg", element("g", *edges), element("g", *nodes), class_="graph", **shape, role="group", aria_label=name
    )


def _node(graph: Graph, node: int, at: Point, width: float, palette: Palette, first: bool) -> Markup:
    name = graph.names[node]
    out = sorted((e for e in graph.edges if e.tail == node), key=lambda e: -e.weight)[:6]
    said = ", ".join(f"{graph.names[e.head]} {signed(e.weight)}" for e in out)
    return element(
        "g",
        void("rect", x=at.real - width / 2, y=at.imag - _HEIGHT / 2, width=width, height=_HEIGHT, rx=7),
        element("text", name if len(name) <= 22 else name[:21] + "\u2026", x=at.real, y=at.imag),
        class_=f"node {palette.css(graph.looks[node])}",
        data_n=node,
        tabindex=0 if first else -1,  # one stop for the whole graph, arrow keys inside
        role="img",
        aria_label=f"{name}, followed by {said or 'nothing that is drawn'}",
    )


def _edge(edge: Edge, at: dict[int, Point], widths: list[float], centre: Point, heaviest: float) -> Markup:
    stroke = 1.0 + 5.0 * max(edge.weight, 0.0) / heaviest
    tail, head = at[edge.tail], at[edge.head]
    points = _loop(tail, centre) if edge.tail == edge.head else _curve(tail, head, centre)
    inside_tail = _leaves(points, tail, widths[edge.tail])
    inside_head = _leaves(points[::-1], head, widths[edge.head])
    points = points[inside_tail : len(points) - inside_head]
    if len(points) < 4:
        return Markup("")
    size = 5.0 + 1.6 * stroke
    tip = points[-1]
    back = next((p for p in reversed(points) if abs(p - tip) >= size), points[0])
    side = (tip - back) / (abs(tip - back) or 1.0) * size * 0.5j
    arrow = " ".join(f"{p.real:.1f},{p.imag:.1f}" for p in (tip, back + side, back - side))
    stem = [p for p in points if abs(p - tip) > size * 0.8] or points[:2]
    path = "M" + "L".join(f"{p.real:.1f} {p.imag:.1f}" for p in stem)
    middle = points[len(points) // 2]
    return element(
        "g",
        void("path", d=path, stroke_width=f"{stroke:.1f}"),
        void("polygon", points=arrow),
        element("text", signed(edge.weight), x=middle.real, y=middle.imag),
        class_="edge" if edge.weight >= 0 else "edge minus",
        data_ends=f"{edge.tail} {edge.head}",
        aria_hidden="true",
    )


def _curve(tail: Point, head: Point, centre: Point) -> list[Point]:
    """A quadratic curve that bends to the centre, and to its right, so that there and back lie apart."""
    middle, way = (tail + head) / 2, head - tail
    bend = middle + 0.28 * (centre - middle) - 1j * way * (0.13 + 8 / (abs(way) or 1.0))
    steps = [i / 60 for i in range(61)]
    return [(1 - t) ** 2 * tail + 2 * t * (1 - t) * bend + t * t * head for t in steps]


def _loop(at: Point, centre: Point) -> list[Point]:
    """From a node outwards and back to it."""
    up = -1.0 if at.imag <= centre.imag else 1.0
    angles = [math.pi * 2 * i / 60 for i in range(61)]
    return [at + complex(15 * math.sin(a), up * (10.0 + 14.04 * (1 - math.cos(a)))) for a in angles]


def _leaves(points: list[Point], at: Point, width: float) -> int:
    """How many of the first points lie in a node's box or close to it."""
    away = (abs(p.real - at.real) > width / 2 + 2 or abs(p.imag - at.imag) > _HEIGHT / 2 + 2 for p in points)
    count = next((i for i, outside in enumerate(away) if outside), len(points))
    return min(count, len(points) // 2 - 2)
