"""Plots by matplotlib, which the extra ``scansion[plot]`` brings: marginals, segments, lengths, training.

Each function draws on the Axes that it is given, or on those of a new figure, and returns them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np

from scansion import _checks as checks
from scansion import schemes
from scansion.display.answers import as_columns, as_levels, is_segment
from scansion.display.palette import HUES, LIGHT, OUTSIDE, Palette
from scansion.segments import ByLevel

__all__ = ["compare", "lengths", "marginals", "segments", "strengths", "training"]

_INK, _QUIET, _BLUE, _ORANGE = "#1b1f24", "#59626d", "#1f5fae", "#b3541e"
_NAMED_TOKENS = 60  # up to so many have their names below the axis


def _axes(ax: Any, width: float, height: float) -> Any:
    """The given Axes, or new ones of that size in inches."""
    if ax is not None:
        if not hasattr(ax, "add_patch"):
            raise TypeError(f"ax must be Axes of matplotlib, got {ax!r}")
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("scansion.plot needs matplotlib: pip install 'scansion[plot]'") from error
    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def marginals(
    marginals: Any,
    tokens: Iterable[Any] | None = None,
    labels: Iterable[Any] | None = None,
    *,
    answer: Any = None,
    colorbar: bool = True,
    ax: Any = None,
) -> Any:
    """Heat map of label probabilities: one row a label, one column a token.

    Parameters
    ----------
    marginals : (T, L), or list of T dicts label -> probability, or a lattice's marginals
    tokens : iterable, optional
        Names of the T columns.
    labels : iterable, optional
        Names of the L rows.
    answer : optional
        A configuration, in the forms of `scansion.display`, to be outlined.
    colorbar : bool
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    table, names = as_columns(getattr(marginals, "labels", marginals), labels)
    if table is None:
        raise ValueError("marginals must have the shape (T, L)")
    checks.flag("colorbar", colorbar)
    size, n = table.shape
    names = [str(y) for y in range(n)] if names is None else names
    words = None if tokens is None else [str(token) for token in tokens]
    if len(names) != n or (words is not None and len(words) != size):
        raise ValueError(f"marginals have the shape {table.shape}: give {size} tokens and {n} labels")
    outlined = [] if answer is None else as_levels("answer", answer, size)
    ax = _axes(ax, min(max(4.0, 0.26 * size + 1.8), 14.0), min(max(1.8, 0.26 * n + 1.2), 9.0))
    image = ax.imshow(table.T, aspect="auto", cmap="Blues", vmin=0.0, vmax=1.0, interpolation="nearest")
    ax.set_yticks(range(n), [_plain(name) for name in names])
    _token_axis(ax, words, size)
    if outlined:
        row = {name: y for y, name in enumerate(names)}
        for start, stop, label in outlined[-1]:
            if str(label) in row:
                _box(
                    ax, start - 0.5, row[str(label)] - 0.5, stop - start, 1.0, fill=False, edgecolor=_INK, linewidth=1.1
                )
    if colorbar:
        ax.figure.colorbar(image, ax=ax, label="probability", pad=0.015)
    return ax


def segments(
    answer: Any,
    tokens: Iterable[Any] | None = None,
    *,
    level_names: Sequence[str] | None = None,
    truth: Any = None,
    seconds: float | None = None,
    ax: Any = None,
) -> Any:
    """Timeline of segments, nested levels as stacked bars with the root on top.

    Parameters
    ----------
    answer : list or dict
        Segments ``(start, stop, label)``, a list of such lists, root first, one label a token; or a dict of segments,
        or of labels whose runs are segments, by level.
    tokens : iterable, optional
        Names of the positions.
    level_names : sequence of str, optional
        Those of a dict unless given.
    truth : list or dict, optional
        In the form of `answer`: its bars stand above those of each level.
    seconds : float, optional
        How long a position takes: the axis shows seconds.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    words = None if tokens is None else [str(token) for token in tokens]
    levels, names = _levels("answer", answer, words)
    level_names = names if level_names is None else level_names
    depth = len(levels)
    if level_names is not None and len(level_names) != depth:
        raise ValueError(f"level_names has {len(level_names)} names for {depth} levels")
    if truth is not None:
        true, _ = _levels("truth", truth, words)
        if len(true) != depth:
            raise ValueError(f"truth has {len(true)} levels, the answer has {depth}")
        levels = [level for pair in zip(true, levels, strict=True) for level in pair]
        of = [""] * depth if level_names is None else [f" {name}" for name in level_names]
        level_names = [f"{side}{name}" for name in of for side in ("truth", "predicted")]
    return _timeline(levels, level_names, words, seconds, ax)


def compare(answers: Mapping[str, Any], truth: Any = None, *, seconds: float | None = None, ax: Any = None) -> Any:
    """Timelines of several methods' answers for one sequence, one above the other, and of the truth on top.

    Parameters
    ----------
    answers : dict name -> answer
        Each of one level: segments ``(start, stop, label)``, or one label a token.
    truth : list, optional
        In the same form.
    seconds, ax : as for `segments`

    Returns
    -------
    matplotlib Axes
    """
    if not isinstance(answers, Mapping):
        raise TypeError(f"answers must be a dict name -> answer, got an object of type {type(answers).__name__}")
    given = ({} if truth is None else {"truth": truth}) | dict(answers)
    levels = []
    for name, answer in given.items():
        if isinstance(answer, (Mapping, ByLevel)):
            raise ValueError(f"answers[{name!r}] has levels: compare one of them at a time")
        levels.append(_runs(answer))
    return _timeline(levels, list(given), None, seconds, ax)


def _levels(name: str, answer: Any, words: list[str] | None) -> tuple[list[Any], list[str] | None]:
    """Segments by level, and the names of the levels where they have names."""
    if isinstance(answer, (Mapping, ByLevel)):
        return [_runs(level) for _, level in answer.items()], [str(level) for level, _ in answer.items()]
    given = answer.tolist() if isinstance(answer, np.ndarray) else list(answer)
    return as_levels(name, given, len(given) if words is None else len(words)), None


def _runs(level: Any) -> list[Any]:
    """Segments of one level: as given, or runs of equal labels."""
    items = level.tolist() if isinstance(level, np.ndarray) else list(level)
    return items if all(map(is_segment, items)) else list(schemes.segments(items, "plain"))


def _timeline(
    levels: list[Any], level_names: Sequence[str] | None, words: list[str] | None, seconds: float | None, ax: Any
) -> Any:
    if seconds is not None and not (checks.is_number(seconds) and seconds > 0):
        raise ValueError(f"seconds is {seconds!r}; a position takes more than 0")
    size = max((stop for level in levels for _, stop, _ in level), default=0) if words is None else len(words)
    depth = len(levels)
    width = min(max(5.0, 0.3 * size + 1.0), 14.0)
    mine = ax is None
    ax = _axes(ax, width, 0.5 * max(depth, 1) + 0.9)
    room = ax.get_position().width * ax.figure.get_figwidth() * 72 / max(size, 1)  # points for a position, about
    palette = Palette(label for level in levels for _, _, label in level)
    named: set[str] = set()
    for d, level in enumerate(levels):
        for start, stop, label in level:
            hue, tint, hatch = _colour(palette.add(label))
            patch = _box(ax, start, d + 0.08, stop - start, 0.84, facecolor=tint, edgecolor=hue, linewidth=1.2)
            patch.set_hatch(hatch)
            text = str(label)
            if 6.2 * len(text) + 4 <= room * (stop - start):
                named.add(text)
                behind = {"facecolor": tint, "edgecolor": "none", "pad": 1.2} if hatch else None
                middle = (start + stop) / 2
                ax.text(middle, d + 0.5, _plain(text), ha="center", va="center", fontsize=9, color=_INK, bbox=behind)
    ax.set_xlim(0, max(size, 1))
    ax.set_ylim(max(depth, 1), 0)
    names = [""] * depth if level_names is None else [_plain(name) for name in level_names]
    ax.set_yticks([d + 0.5 for d in range(depth)], names)
    ax.tick_params(axis="y", length=0)
    for side in ("top", "left", "right"):
        ax.spines[side].set_visible(False)
    if seconds is None:
        _token_axis(ax, words, size, 0.5)
    else:
        _time_axis(ax, size, seconds)
    unnamed = [label for label in dict.fromkeys(str(y) for level in levels for _, _, y in level) if label not in named]
    if unnamed:
        from matplotlib.patches import Patch

        looks = [_colour(palette.add(label)) for label in unnamed]
        handles = [
            Patch(facecolor=tint, edgecolor=hue, hatch=hatch, label=_plain(label))
            for label, (hue, tint, hatch) in zip(unnamed, looks, strict=True)
        ]
        columns = max(1, int(10 * ax.figure.get_figwidth() / (max(map(len, unnamed)) + 6)))
        if mine:  # room for it
            ax.figure.set_figheight(ax.figure.get_figheight() + 0.22 * math.ceil(len(unnamed) / columns))
        ax.legend(
            handles=handles,
            loc="lower left",
            bbox_to_anchor=(0.0, 1.0),
            ncols=columns,
            frameon=False,
            fontsize=9,
            columnspacing=1.2,
        )
    return ax


def lengths(lengths: Any, *, ax: Any = None) -> Any:
    """Distribution of the lengths of trajectories, with its mean.

    Parameters
    ----------
    lengths : Compressed, or (C + 1,)
        ``lattice.compressed()``, or its ``lengths``: index c holds P(length c).
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    p = checks.finite("lengths", getattr(lengths, "lengths", lengths), ("C + 1",))
    if not len(p) or (p < 0).any():
        raise ValueError(f"lengths must be probabilities of the lengths 0, 1, ..., got an array of shape {p.shape}")
    total = float(p.sum())
    if total <= 0:
        raise ValueError("lengths are all 0: no trajectory is that short")
    shown = np.flatnonzero(p > 1e-4 * p.max())
    low, high = int(shown[0]), int(shown[-1])
    mean = float(p @ np.arange(len(p))) / total
    ax = _axes(ax, 6.0, 3.2)
    ax.bar(np.arange(low, high + 1), p[low : high + 1], width=0.86 if high - low < 80 else 1.0, color=_BLUE)
    ax.axvline(mean, color=_ORANGE, linestyle="--", linewidth=1.4, label=f"mean {mean:.2f}")
    ax.set_xlabel("length of the trajectory")
    ax.set_ylabel("probability")
    _whole_numbers(ax)
    ax.legend(frameon=False)
    _open(ax)
    return ax


def training(log: Any, *, ax: Any = None) -> Any:
    """Training curve: the loss over iterations and, where there are any, scores on development data.

    Parameters
    ----------
    log : fitted estimator, or its ``training_log_``
    ax : matplotlib Axes, optional
        The scores have an axis of their own on the right.

    Returns
    -------
    matplotlib Axes
    """
    entries = list(getattr(log, "training_log_", log))
    if not entries or not _rows(entries, "iteration", "loss"):
        raise ValueError(
            "log holds no iterations: give an estimator that was fitted here (model files do not hold them)"
        )
    at = [entry["iteration"] for entry in entries]
    losses = [entry["loss"] for entry in entries]
    ax = _axes(ax, 6.0, 3.2)
    marker = "o" if len(at) == 1 else None
    ax.plot(at, losses, color=_BLUE, linewidth=1.8, marker=marker, label="loss")
    ax.set_xlabel("iteration")
    ax.set_ylabel("loss")
    _whole_numbers(ax)
    _open(ax)
    scored = [
        (i, entry["dev_score"]) for i, entry in zip(at, entries, strict=True) if entry.get("dev_score") is not None
    ]
    if scored:
        other = ax.twinx()
        other.plot(*zip(*scored, strict=True), color=_ORANGE, linewidth=1.6, linestyle="--", label="development score")
        other.set_ylabel("development score")
        for side in ("top", "left"):
            other.spines[side].set_visible(False)
        handles = [*ax.get_legend_handles_labels()[0], *other.get_legend_handles_labels()[0]]
        ax.legend(handles=handles, frameon=False, loc="center right")
    return ax


def strengths(results: Any, *, ax: Any = None) -> Any:
    """Loss of the sequences that were left out over the strength of the penalty, summed over the folds.

    Parameters
    ----------
    results : estimator fitted with ``c2="cv"`` or ``c1="cv"``, or its ``cv_results_``
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    table = list(getattr(results, "cv_results_", results))
    if not table or not any(_rows(table, name, "loss") for name in ("c1", "c2")):
        raise ValueError("results hold no strengths: give an estimator that was fitted with c2='cv'")
    name = next(key for key in table[0] if key in ("c1", "c2"))
    at, losses = [row[name] for row in table], [row["loss"] for row in table]
    ax = _axes(ax, 6.0, 3.2)
    ax.plot(at, losses, color=_BLUE, linewidth=1.8, marker="o")
    best = min(range(len(at)), key=losses.__getitem__)
    ax.plot(
        at[best], losses[best], color=_ORANGE, marker="o", markersize=9, linestyle="none", label=f"{name}={at[best]:g}"
    )
    ax.set_xscale("log")
    ax.set_xlabel(name)
    ax.set_ylabel("loss of what was left out")
    ax.legend(frameon=False)
    _open(ax)
    return ax


def _colour(number: int) -> tuple[str, str, str | None]:
    """Hue, tint and hatch of a label's number."""
    if number < 0:
        return (*OUTSIDE[0], None)
    return (*LIGHT[number % HUES], "///" if number // HUES % 2 else None)


def _box(ax: Any, x: float, y: float, width: float, height: float, **look: Any) -> Any:
    from matplotlib.patches import Rectangle

    return ax.add_patch(Rectangle((x, y), width, height, **look))


def _rows(entries: list[Any], *names: str) -> bool:
    """Whether all entries are dicts with numbers of these names."""
    return all(isinstance(row, Mapping) and all(isinstance(row.get(name), Real) for name in names) for row in entries)


def _plain(text: Any, most: int = 40) -> str:
    """A text that matplotlib does not read as mathematics, cut to so many letters."""
    name = str(text).encode("utf-8", "backslashreplace").decode()  # fonts know no lone surrogates
    return (name if len(name) <= most else name[: most - 1] + "\u2026").replace("$", r"\$")


def _whole_numbers(ax: Any) -> None:
    from matplotlib.ticker import MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator(integer=True))


def _open(ax: Any) -> None:
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def _token_axis(ax: Any, words: list[str] | None, size: int, shift: float = 0.0) -> None:
    """Names below the axis where there is room for them, numbers elsewhere."""
    if words is not None and size <= _NAMED_TOKENS:
        names = [_plain(word, 16) for word in words]
        ax.set_xticks([t + shift for t in range(size)], names, rotation=55, ha="right", rotation_mode="anchor")
        ax.tick_params(axis="x", length=0)
        return
    step = 10 ** max(0, math.floor(math.log10(max(size, 1) / 2)))
    step = step if size / step <= 12 else 5 * step if size / step > 24 else 2 * step
    ax.set_xticks([t + shift for t in range(0, size, step)], [str(t) for t in range(0, size, step)])
    ax.set_xlabel("position", color=_QUIET)


def _time_axis(ax: Any, size: int, seconds: float) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator(8, steps=[1, 2, 2.5, 5, 10]))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x * seconds:g}"))
    ax.set_xlabel("seconds", color=_QUIET)
