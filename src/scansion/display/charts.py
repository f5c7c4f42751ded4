"""Small charts as SVG: bars of a distribution, lines over iterations."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from scansion.display.markup import Markup, element, escape, number

__all__ = ["curve", "histogram", "in_bins"]

Values = npt.NDArray[np.float64]

_MOST_BARS = 48


def in_bins(values: Values, most: int = _MOST_BARS) -> tuple[Values, list[tuple[int, int]]]:
    """Sums of values[0], values[1], ... (for 1, 2, ...) over at most `most` ranges of equal size, and these ranges."""
    size = max(1, math.ceil(len(values) / most))
    ranges = [(a + 1, min(a + size, len(values))) for a in range(0, len(values), size)]
    return np.add.reduceat(values, np.arange(0, len(values), size)), ranges


def histogram(share: Values, look: str, name: str, first: int = 1) -> Markup:
    """Bars of shares at first, first + 1, ..."""
    bars, ranges = in_bins(share)
    width, height, left, bottom = 250.0, 118.0, 36.0, 18.0
    peak = float(bars.max(initial=0.0)) or 1.0
    step = min((width - left) / len(bars), 32.0)
    scale = (height - bottom - 10) / peak
    base = height - bottom
    gap = 0.14 * step if step > 3 else 0.0
    names = [f"{a - 1 + first}" + (f"\u2013{b - 1 + first}" if a < b else "") for a, b in ranges]
    rects = "".join(
        f'<rect x="{left + i * step + gap / 2:.2f}" y="{base - v * scale:.2f}" width="{step - gap:.2f}" '
        f'height="{v * scale:.2f}" rx="{min(1.5, step / 4):.1f}">'
        f"<title>{names[i]}: {v:.3f}</title></rect>"
        for i, v in enumerate(bars.tolist())
        if v > 0
    )
    ticks = _ticks(ranges, left, step, first)
    marks = "".join(
        f'<text x="{x:.1f}" y="{height - 4}" text-anchor="middle">{escape(text)}</text>' for x, text in ticks
    )
    most = f"{peak:.0%}" if peak >= 0.01 else f"{peak:.1e}"
    top = f'<text x="{left - 4}" y="14" text-anchor="end">{most}</text>'
    axis = f'<path class="axis" d="M{left} 8V{base}H{width}" fill="none"/>'
    return Markup(
        f'<svg class="chart {look}" viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{escape(name)}">'
        f'{axis}<g class="bars">{rects}</g>{marks}{top}</svg>'
    )


def _ticks(ranges: list[tuple[int, int]], left: float, step: float, first: int) -> list[tuple[float, str]]:
    """Where numbers stand below the axis: as many as there is room for."""
    every = max(1, math.ceil(34 / step)) if step < 22 else 1
    if ranges[0][0] != ranges[0][1]:
        every = max(every, math.ceil(46 / step))
    return [(left + (i + 0.5) * step, str(ranges[i][0] - 1 + first)) for i in range(0, len(ranges), every)]


def curve(values: Sequence[float], other: Sequence[float | None] | None, name: str) -> Markup:
    """A line over iterations 1, 2, ..., on its own scale, and a second one (such as scores on development data)."""
    width, height, left, right, top = 640.0, 190.0, 62.0, 54.0, 10.0
    base = height - 22.0

    def points(series: Sequence[float | None]) -> tuple[str, float, float]:
        known = [(i, float(v)) for i, v in enumerate(series) if v is not None and math.isfinite(v)]
        low, high = min(v for _, v in known), max(v for _, v in known)
        span = (high - low) or 1.0
        step = (width - left - right) / max(len(series) - 1, 1)
        places = ((left + step * i, base - (base - top) * (v - low) / span) for i, v in known)
        return " ".join(f"{x:.1f},{y:.1f}" for x, y in places), low, high

    path, low, high = points(values)
    parts = [
        f'<path class="axis" d="M{left} {top}V{base}H{width - right}" fill="none"/>',
        f'<polyline class="line" points="{path}"/>',
        f'<text x="{left - 6}" y="{top + 5}" text-anchor="end">{escape(number(high, 4))}</text>',
        f'<text x="{left - 6}" y="{base}" text-anchor="end">{escape(number(low, 4))}</text>',
        f'<text x="{left}" y="{height - 6}" text-anchor="middle">1</text>',
        f'<text x="{width - right}" y="{height - 6}" text-anchor="middle">{len(values)}</text>',
        f'<text x="{(left + width - right) / 2}" y="{height - 6}" text-anchor="middle">iterations</text>',
    ]
    if other is not None and any(v is not None and math.isfinite(v) for v in other):
        path, low, high = points(other)
        parts += [
            f'<polyline class="line second" points="{path}"/>',
            f'<text x="{width - right + 6}" y="{top + 5}">{high:.4f}</text>',
            f'<text x="{width - right + 6}" y="{base}">{low:.4f}</text>',
        ]
    view = f"0 0 {width:.0f} {height:.0f}"
    return element("svg", Markup("".join(parts)), class_="chart wide", viewBox=view, role="img", aria_label=name)
