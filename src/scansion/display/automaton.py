"""The automaton of a rule as a picture: states in a row, arcs to the right above it, to the left below."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from scansion.display.markup import Markup, element, void
from scansion.rules.automata import Automaton

__all__ = ["automaton_svg"]

_STEP, _RADIUS, _MIDDLE = 150.0, 17.0, 20.0
_STYLE = (
    "text{font:13px sans-serif;text-anchor:middle;fill:#24292f}.state{fill:#eef4fb;stroke:#3b6ea5;stroke-width:1.5}"
    ".ring{fill:none;stroke:#3b6ea5}.arc{fill:none;stroke:#57606a;stroke-width:1.2;marker-end:url(#tip)}"
    ".letters{font-size:12px}rect{fill:#fff}"
)


def automaton_svg(machine: Automaton, labels: Sequence[Any]) -> str:
    """An SVG document.

    Parameters
    ----------
    machine : Automaton
        Over ``labels``; state 0 is the first. Doubly ringed states accept; what has no arc is forbidden.
    labels : sequence
        Names of the letters. Where more of them than not go the same way, the others are named.
    """
    arcs = _arcs(machine, labels)
    above = 46.0 + 26.0 * max((q - p for p, q in arcs), default=0)
    below = 34.0 + 26.0 * max((p - q for p, q in arcs), default=0)
    y, width = above, _STEP * (len(machine) - 1) + 2 * _RADIUS + 90.0
    parts: list[Markup] = [
        element("style", Markup(_STYLE)),
        element(
            "defs",
            element(
                "marker",
                void("path", d="M0 0L8 3L0 6z", fill="#57606a"),
                id="tip",
                markerWidth=8,
                markerHeight=6,
                refX=8,
                refY=3,
                orient="auto",
            ),
        ),
        void("rect", width="100%", height="100%"),
        void("path", class_="arc", d=f"M8 {y:.0f}H{_x(0) - _RADIUS - 2:.0f}"),
    ]
    for (p, q), text in arcs.items():
        path, at = _curve(p, q, y)
        parts.append(void("path", class_="arc", d=path))
        parts.append(element("text", text, class_="letters", x=f"{at[0]:.0f}", y=f"{at[1]:.0f}"))
    for state in range(len(machine)):
        centre = {"cx": f"{_x(state):.0f}", "cy": f"{y:.0f}"}
        parts.append(void("circle", class_="state", r=_RADIUS, **centre))
        if machine.accepting[state]:
            parts.append(void("circle", class_="ring", r=_RADIUS - 4, **centre))
        parts.append(element("text", state, x=f"{_x(state):.0f}", y=f"{y + 5:.0f}"))
    size = {"width": f"{width:.0f}", "height": f"{above + below:.0f}"}
    box = f"0 0 {size['width']} {size['height']}"
    told = f"Automaton with {len(machine)} states"
    known = {"xmlns": "http://www.w3.org/2000/svg", "viewBox": box, "role": "img", "aria_label": told}
    return str(element("svg", *parts, **known, **size))


def _x(state: int) -> float:
    return 30.0 + _RADIUS + _STEP * state + _MIDDLE


def _arcs(machine: Automaton, labels: Sequence[Any]) -> dict[tuple[int, int], str]:
    """From state, to state: the letters that lead there."""
    found: dict[tuple[int, int], list[int]] = {}
    for p in range(len(machine)):
        for letter, q in enumerate(machine.next[p].tolist()):
            if q >= 0:
                found.setdefault((p, q), []).append(letter)
    texts = {}
    for arc, letters in found.items():
        others = [str(labels[i]) for i in range(len(labels)) if i not in letters]
        if not others:
            texts[arc] = "any"
        elif len(letters) > max(len(others), 2):
            texts[arc] = f"not {', '.join(others)}"
        else:
            texts[arc] = ", ".join(str(labels[i]) for i in letters)
    return texts


def _curve(p: int, q: int, y: float) -> tuple[str, tuple[float, float]]:
    """A path from state to state, and where its letters stand."""
    a, b = _x(p), _x(q)
    if p == q:
        top = y - _RADIUS
        bend = f"{a - 22:.0f} {top - 30:.0f} {a + 22:.0f} {top - 30:.0f}"
        return f"M{a - 8:.0f} {top + 2:.0f}C{bend} {a + 8:.0f} {top + 2:.0f}", (a, top - 25)
    if q == p + 1:
        return f"M{a + _RADIUS:.0f} {y:.0f}H{b - _RADIUS - 2:.0f}", ((a + b) / 2, y - 6)
    up = -1.0 if q > p else 1.0
    height = up * (26.0 * abs(q - p) + 14.0)
    start, stop = a - up * 10, b + up * 10
    edge = y + up * (_RADIUS - 3)
    return (
        f"M{start:.0f} {edge:.0f}C{start:.0f} {y + height:.0f} {stop:.0f} {y + height:.0f} {stop:.0f} {edge + up:.0f}",
        ((a + b) / 2, y + 0.78 * height + (-9 if up < 0 else 14)),
    )
