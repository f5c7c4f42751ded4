"""Long arrays at a lower rate: sensor frames to time steps and back.

Neighbouring frames err together. A model of 1 s or 3 s steps sees as much, learns in a fraction of the time, and is
less sure of what it should not be sure of.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from scansion import _checks as checks

__all__ = ["spread", "subsample", "subsample_labels", "with_context"]

Floats = npt.NDArray[np.float64]


def subsample(x: Any, step: int) -> Floats:
    """Means over every `step` frames: (T, F) to (ceil(T / step), F); the last step may hold fewer.

    Examples
    --------
    >>> subsample([[0.0], [2.0], [5.0]], 2)
    array([[1.],
           [5.]])
    """
    array = checks.finite("x", x, ("T", "F"))
    starts = np.arange(0, len(array), checks.count("step", step, 1))
    if not len(starts):
        return array.copy()
    sizes = np.diff([*starts, len(array)])
    means: Floats = np.add.reduceat(array, starts, axis=0) / sizes[:, None]
    return means


def subsample_labels(labels: Iterable[Any], step: int) -> list[Any]:
    """The most frequent label of every `step` frames, the earlier of equals.

    Examples
    --------
    >>> subsample_labels("aabbb", 3)
    ['a', 'b']
    """
    given, size = list(labels), checks.count("step", step, 1)
    for t, label in enumerate(given):
        checks.label(f"labels[{t}]", label)
    return [Counter(given[t : t + size]).most_common(1)[0][0] for t in range(0, len(given), size)]


def spread(labels: Iterable[Any], step: int, length: int) -> list[Any]:
    """Labels of time steps as labels of `length` frames, the way back.

    Examples
    --------
    >>> spread("ab", 3, 5)
    ['a', 'a', 'a', 'b', 'b']
    """
    size = checks.count("step", step, 1)
    frames = [y for y in labels for _ in range(size)]
    length = checks.count("length", length, 0)
    if not 0 <= len(frames) - length < size:
        raise ValueError(f"{len(frames) // size} steps of {size} frames do not make {length} frames")
    return frames[:length]


def with_context(x: Any, width: int) -> Floats:
    """An array with an intercept, its columns, and their means over `width` rows on either side: (T, 1 + 2 F)."""
    array = checks.finite("x", x, ("T", "F"))
    size = checks.count("width", width, 0)
    size = min(size, len(array))
    window, at = 2 * size + 1, np.arange(len(array))
    # A window ends in the block of so many rows behind the one that it begins in: the end of one sum, the start of
    # another. Differences of running sums would keep the rounding of rows that are far away.
    padded = np.pad(array, ((size, size + window), (0, 0)))
    blocks = padded[: len(padded) // window * window].reshape(len(padded) // window, window, array.shape[1])
    ahead, behind = np.cumsum(blocks, axis=1), np.cumsum(blocks[:, ::-1], axis=1)[:, ::-1]
    block, row = np.divmod(at, window)
    last, end = np.divmod(at + window - 1, window)
    sums = ahead[last, end] + np.where((row == 0)[:, None], 0.0, behind[block, row])
    shares = np.minimum(at + size + 1, len(array)) - np.maximum(at - size, 0)
    means = sums / shares[:, None]
    joined: Floats = np.concatenate([np.ones((len(array), 1)), array, means], axis=1)
    return joined
