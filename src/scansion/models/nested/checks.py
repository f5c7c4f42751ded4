"""Whether targets are possible under a model's topology; errors say which segment is not."""

from __future__ import annotations

import numpy as np

from scansion._checks import Ints
from scansion.data import LevelTargets
from scansion.models.nested.model import NestedModel
from scansion.models.nested.occurrences import Occurrences

__all__ = ["check_targets"]


def check_targets(model: NestedModel, targets: LevelTargets, offsets: Ints) -> None:
    """Raise if a known label lies in a parent that excludes it, or repeats where that is excluded."""
    seen = Occurrences(targets, offsets, [level.size for level in model.levels])

    def where(t: int) -> tuple[int, int]:
        b = int(np.searchsorted(offsets, t, side="right")) - 1
        return b, t - int(offsets[b])

    for k, level in enumerate(model.levels):
        parent, child = seen.levels[k], seen.levels[k + 1]
        known = np.flatnonzero((parent.label >= 0) & (child.label >= 0))
        bad = known[~model.children[k][parent.label[known], child.label[known]]]
        if len(bad):
            b, t = where(int(bad[0]))
            above = model.levels[k - 1]
            raise ValueError(
                f"y[{b}], level {level.name!r}: {level.labels[child.label[bad[0]]]!r} at position {t} lies in "
                f"{above.labels[parent.label[bad[0]]]!r} of level {above.name!r}, which topology excludes"
            )
        at, column = seen.of(k, "transition")
        wrong = ~model.possible[k]["transition"].ravel()[column]  # repeats, at most
        if wrong.any():
            i = int(at[np.argmax(wrong)])
            b, t = where(i)
            label = level.labels[int(child.label[i])]
            raise ValueError(
                f"y[{b}], level {level.name!r}: {label!r} at position {t} follows {label!r} under the same parent, but "
                "repeats is False"
            )
