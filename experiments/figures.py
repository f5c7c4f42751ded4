"""Pictures of results, by Matplotlib, which is loaded when a picture is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

__all__ = ["curves", "dots", "grid", "matrices", "pictures"]

# Distinct in hue and lightness, also for most colour-blind readers; the models keep theirs from figure to figure.
COLOURS = ("#0b4f9c", "#d1620b", "#2b8a57", "#8a4fa8", "#777777", "#b8860b", "#c2304a", "#2a9db5", "#333333")
MARKERS = "osD^vPX<>"


def _canvas(width: float, height: float, columns: int = 1, rows: int = 1) -> tuple[Any, Any]:
    """A figure without a window, and its axes, row by row."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, squeeze=False).ravel()


def curves(
    panels: Mapping[str, Mapping[str, Mapping[float, Sequence[float]]]],
    x: str,
    y: str,
    *,
    logarithmic: bool = False,
    rows: int = 1,
) -> Any:
    """One panel per entry; each has curves name -> {x: values}, drawn as their mean with a band from least to most.

    rows: of panels, whose number they divide.
    """
    columns = len(panels) // rows
    figure, axes = _canvas(1.5 + 4.6 * columns, 0.4 + 3.8 * rows, columns, rows)
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
    for ax in axes[::columns]:
        ax.set_ylabel(y)
    sizes = [len(panel) for panel in panels.values()]
    fullest = max(range(len(sizes)), key=lambda i: (sizes[i], i))  # the last of those that show most
    axes[fullest].legend(frameon=False, fontsize=9)
    return figure


def dots(panels: Mapping[str, Mapping[str, Sequence[float]]], x: str) -> Any:
    """One panel per entry: a row for each name with its values as dots and a bar at their mean."""
    names = list(dict.fromkeys(name for panel in panels.values() for name in panel))
    figure, axes = _canvas(2.2 + 3.4 * len(panels), 1.2 + 0.42 * len(names), len(panels))
    for ax, (title, panel) in zip(axes, panels.items(), strict=True):
        for i, name in enumerate(names):
            if name not in panel:
                continue
            colour, values = COLOURS[i % len(COLOURS)], list(panel[name])
            ax.plot(values, [i] * len(values), "o", markersize=4, alpha=0.45, color=colour)
            ax.plot([float(np.mean(values))] * 2, [i - 0.32, i + 0.32], linewidth=3, color=colour)
        ax.set_yticks(range(len(names)), names if ax is axes[0] else [""] * len(names))
        ax.set_ylim(len(names) - 0.5, -0.5)
        ax.set_title(title, fontsize=11)
        ax.set_xlabel(x)
        ax.grid(alpha=0.25)
        ax.spines[["top", "right"]].set_visible(False)
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


WORLD_COLOURS = {"b": "#3b6fb6", "g": "#4c9f5f", "y": "#e3c44a", "r": "#c8504b", "#": "#222222"}


def grid(world: Sequence[str], seen: Sequence[str], places: Sequence[str]) -> Any:
    """Squares with their colours, by rows; and a sequence in them: the colours seen, and the squares "x:y" below."""
    figure, axes = _canvas(11.0, 3.4, 2)
    axes[0].set_title("the world: squares x:y", fontsize=10)
    for y, row in enumerate(world):
        for x, colour in enumerate(row):
            axes[0].add_patch(_box(x, y, 1.0, 1.0, WORLD_COLOURS[colour]))
            if colour != "#":
                axes[0].text(x + 0.5, y + 0.5, f"{x}:{y}", ha="center", va="center", fontsize=9)
    axes[0].set_xlim(0, max(len(row) for row in world))
    axes[0].set_ylim(len(world), 0)
    axes[0].set_aspect("equal")
    axes[0].axis("off")
    axes[1].set_title("colours seen, and true squares, by time", fontsize=10)
    written = -float(len(seen))
    for t, (colour, place) in enumerate(zip(seen, places, strict=True)):
        x, y = (int(k) for k in place.split(":"))
        axes[1].add_patch(_box(t, 1.1, 1.0, 0.9, WORLD_COLOURS[colour]))
        axes[1].add_patch(_box(t, 0.0, 1.0, 0.9, WORLD_COLOURS[world[y][x]]))
        if t == 0 or places[t - 1] != place:
            written = max(t + 1.0, written + 0.02 * len(seen))  # beside each other where stays are short
            axes[1].text(written, 0.45, place, fontsize=7, rotation=90, va="center")
    axes[1].set_xlim(0, len(seen))
    axes[1].set_ylim(-0.1, 2.1)
    axes[1].set_yticks([0.45, 1.55], ["true", "seen"])
    axes[1].spines[["top", "right", "left"]].set_visible(False)
    return figure


def _box(x: float, y: float, width: float, height: float, colour: str) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((x, y), width, height, facecolor=colour, linewidth=0)


def pictures(panels: Mapping[str, Sequence[tuple[Any, Sequence[Any]]]], columns: int) -> Any:
    """Lines (n, 2) in pieces coloured by label, or images (rows, columns): one panel per entry.

    An entry lists (line, labels of its steps); of an image, the labels are empty.
    """
    rows = -(-len(panels) // columns)
    figure, axes = _canvas(1.9 * columns, 2.1 * rows, columns, rows)
    names: list[Any] = []
    for ax, (title, shown) in zip(axes, panels.items(), strict=False):
        for drawn, labels in shown:
            if not len(labels):
                ax.imshow(1.0 - np.asarray(drawn), cmap="gray", vmin=0, vmax=1, aspect="equal")
            for t, label in enumerate(labels):
                names.extend(() if label in names else (label,))
                colour = COLOURS[names.index(label) % len(COLOURS)]
                ax.plot(drawn[t : t + 2, 0], drawn[t : t + 2, 1], color=colour, linewidth=1.6)
                ax.set_aspect("equal", adjustable="datalim")
        ax.set_title(title, fontsize=9)
    for ax in axes:
        ax.axis("off")
    if names:
        from matplotlib.lines import Line2D

        handles = [Line2D([], [], color=COLOURS[i % len(COLOURS)], label=name) for i, name in enumerate(names)]
        figure.legend(handles=handles, loc="outside lower center", ncols=len(names), frameon=False, fontsize=9)
    return figure
