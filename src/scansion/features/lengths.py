"""Features of the lengths of segments: indicators of ranges, the length, its logarithm."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from scansion._checks import Floats

__all__ = ["length_basis"]

_BINS = (1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 50, 100, 200, 500, 1000)


def length_basis(wanted: Any, max_length: int) -> tuple[Floats, list[str]]:
    """Length features (n, M) and their names; wanted: one or several of "bins", "length", "log"."""
    length = np.arange(1, max_length + 1, dtype=np.float64)
    rows: list[Floats] = []
    names: list[str] = []
    for kind in wanted if isinstance(wanted, Iterable) and not isinstance(wanted, str) else (wanted,):
        if kind == "length":
            rows.append(length)
            names.append("length")
        elif kind == "log":
            rows.append(np.log(length))
            names.append("log(length)")
        elif kind == "bins":
            for low, high in zip(_BINS, (*_BINS[1:], np.inf), strict=True):
                if low <= max_length:
                    rows.append(((length >= low) & (length < high)).astype(np.float64))
                    names.append(f"length >= {low}" + ("" if high == np.inf else f" and < {high}"))
        else:
            raise ValueError(f"length_features must be among 'bins', 'length', 'log', got {kind!r}")
    return (np.array(rows) if rows else np.zeros((0, max_length))), names
