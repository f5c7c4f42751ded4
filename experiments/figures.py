"""Pictures of results, by Matplotlib, which is loaded when a picture is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

__all__ = ["curves", "matrices"]

# Distinct in hue and lightness, also for most colour-blind readers; the models keep theirs from figure to figure.
COLOURS = ("#0b4f9c", "#d1620b", "#2b8a57", "#8a4fa8", "#777777", "#b8860b", "#c2304a")
MARKERS = "osD^vPX"


def _canvas(width: float, height: float, columns: int = 1) -> tuple[Any, Any]:
    """A figure without a window, and its axes in one row."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(1, columns, squeeze=False)[0]


def curves(
    panels: Mapping[str, Mapping[str, Mapping[float, Sequence[float]]]],
    x: str,
    y: str,
    *,
    logarithmic: bool = False,
) -> Any:
    """One panel per entry; each has curves name -> {x: values}, drawn as their mean with a band from least to most."""
    figure, axes = _canvas(1.5 + 4.6 * len(panels), 4.2, len(panels))
    names = list(dict.fromkeys(name for panel in panels.values() for name in panel))
    for ax, (title, panel) in zip(axes, panels.items(), strict=True):
        for name, points in panel.items():
            i = names.index(name)
            colour = COLOURS[i % len(COLOURS)]
            places = sorted(points)
            ax.plot(
                places,
                [float(np.mean(points[at])) for at in places],
                marker=MARKERS[i % len(MARKERS)],
                markersize=5,
                linewidth=1.6,
                color=colour,
                label=name,
            )
            if any(len(points[at]) > 1 for at in places):
                low, high = [min(points[at]) for at in places], [max(points[at]) for at in places]
                ax.fill_between(places, low, high, color=colour, alpha=0.12, linewidth=0)
        if logarithmic:
            ticks = sorted({at for points in panel.values() for at in points})
            ax.set_xscale("log")
            ax.set_xticks(ticks, [f"{at:,.0f}" for at in ticks])
            ax.minorticks_off()
        elif all(float(at).is_integer() for points in panel.values() for at in points):
            ax.locator_params(axis="x", integer=True)
        ax.set_title(title, fontsize=11)
        ax.set_xlabel(x)
        ax.grid(alpha=0.25)
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel(y)
    axes[-1].legend(frameon=False, fontsize=9)
    return figure


def matrices(
    panels: Mapping[str, Any],
    rows: Mapping[str, Sequence[str]],
    columns: Mapping[str, Sequence[str]],
    *,
    label: str,
) -> Any:
    """Matrices side by side, red below zero and blue above, NaN left white; one scale for all."""
    widths = [max(1.5, 0.34 * np.shape(m)[1]) for m in panels.values()]
    tallest = max(np.shape(m)[0] for m in panels.values())
    figure, axes = _canvas(sum(widths) + 1.6 * len(widths) + 1.0, 1.9 + 0.34 * tallest, len(panels))
    top = max(float(np.nanmax(np.abs(m))) for m in panels.values())
    image = None
    for ax, (title, matrix) in zip(axes, panels.items(), strict=True):
        image = ax.imshow(matrix, cmap="RdBu", vmin=-top, vmax=top, aspect="equal")
        ax.set_title(title, fontsize=10)
        ax.set_xticks(range(len(columns[title])), columns[title], rotation=90, fontsize=8)
        ax.set_yticks(range(len(rows[title])), rows[title], fontsize=8)
    figure.colorbar(image, ax=list(axes), shrink=0.7, label=label)
    return figure
