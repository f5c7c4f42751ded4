"""The forms in which estimators and lattices answer, made one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from scansion import _checks as checks
from scansion import schemes
from scansion._checks import Floats
from scansion.display.sequence import Span
from scansion.segments import ByLevel

__all__ = ["as_columns", "as_levels", "is_segment"]


def as_columns(marginals: Any, labels: Iterable[Any] | None) -> tuple[Floats | None, list[str] | None]:
    """Marginals in any form as an array (T, L), and the names of its columns as far as they are known."""
    names = None if labels is None else [str(label) for label in labels]
    if isinstance(marginals, Mapping):
        marginals = ByLevel(marginals.values())
    if isinstance(marginals, ByLevel):  # the lowest is shown
        marginals = marginals[-1] if marginals else None
    if marginals is None:
        return None, names
    rows = list(marginals)
    if rows and all(isinstance(row, Mapping) for row in rows):
        keys = list(dict.fromkeys(key for row in rows for key in row))
        table = [[row.get(key, 0.0) for key in keys] for row in rows]
        return checks.finite("marginals", table, ("T", "L")), names or [str(key) for key in keys]
    return checks.finite("marginals", marginals, ("T", "L")), names


def is_segment(item: Any) -> bool:
    """Whether this is a segment (start, stop, label)."""
    return (
        isinstance(item, (tuple, list))
        and len(item) == 3
        and all(isinstance(end, (int, np.integer)) and not isinstance(end, bool) for end in item[:2])
    )


def as_levels(name: str, answer: Any, size: int, scheme: str | None = None) -> list[list[Span]]:
    """Levels of segments from any form of answer."""
    if isinstance(answer, Mapping):
        answer = list(answer.values())
    items = answer.tolist() if isinstance(answer, np.ndarray) else list(answer)
    if not items:
        return []
    if all(is_segment(item) for item in items):
        return [items]
    if all(isinstance(item, (list, tuple)) and all(is_segment(one) for one in item) for item in items):
        return [list(level) for level in items]
    if len(items) != size:
        raise ValueError(
            f"{name} must be {size} labels, one for each token, segments (start, stop, label), or lists of such; "
            f"got {len(items)} items, the first {items[0]!r}"
        )
    if scheme is not None:
        return [[tuple(segment) for segment in schemes.segments(items, scheme)]]
    return [[(t, t + 1, str(label)) for t, label in enumerate(items)]]
