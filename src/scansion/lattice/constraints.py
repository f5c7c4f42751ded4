"""What is known of a sequence: labels, sets of allowed labels, boundaries (models.md, section 3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from scansion import _checks as checks
from scansion import _core
from scansion._checks import Bools, Ints

__all__ = ["Constraints"]


@dataclass(frozen=True)
class Constraints:
    """Partial knowledge of the rows of a batch.

    Attributes
    ----------
    allowed : bool (N, L) or None
        Labels that a row may have; None: all.
    ends : int8 (N,) or None
        1: a segment ends at this row, 0: none does, -1: unknown; None: all unknown.
    """

    allowed: Bools | None = None
    ends: npt.NDArray[np.int8] | None = None

    @classmethod
    def parse(cls, labels: Any, boundaries: Any, rows: int, n_labels: int) -> Constraints:
        """From the arguments of ``constrain``."""
        allowed = None if labels is None else _allowed(labels, rows, n_labels)
        ends = None
        if boundaries is not None:
            ends = checks.integers("boundaries", boundaries, rows, -1, 1).astype(np.int8)
        return cls(allowed, ends)

    def also(self, other: Constraints) -> tuple[Constraints, int | None]:
        """Both at once, and the first row whose boundary is told in two ways (None: there is none)."""
        allowed = _both(self.allowed, other.allowed, np.logical_and)
        ends = _both(self.ends, other.ends, np.maximum)
        clash = None
        if self.ends is not None and other.ends is not None:
            rows = np.flatnonzero((self.ends >= 0) & (other.ends >= 0) & (self.ends != other.ends))
            clash = int(rows[0]) if rows.size else None
        return Constraints(allowed, ends), clash

    def rows(self, start: int, stop: int) -> Constraints:
        """The same for some rows only."""
        return Constraints(
            None if self.allowed is None else self.allowed[start:stop],
            None if self.ends is None else self.ends[start:stop],
        )

    def runs(
        self, offsets: Ints, n_labels: int, max_length: int
    ) -> tuple[npt.NDArray[np.int32] | None, npt.NDArray[np.uint8] | None]:
        """Longest consistent segment by first row and label, (N, L); rows where a segment may end, (N,)."""
        if self.allowed is None and self.ends is None:
            return None, None
        n = int(offsets[-1])
        allowed = None if self.allowed is None else np.ascontiguousarray(self.allowed).view(np.uint8)
        ends = np.full(n, -1, np.int8) if self.ends is None else np.ascontiguousarray(self.ends)
        runs = np.empty((n, n_labels), np.int32)
        _core.constraint_runs(offsets, allowed, ends, max_length, runs)
        return runs, (ends != 0).astype(np.uint8)


def _both(a: Any, b: Any, combine: Any) -> Any:
    if a is None or b is None:
        return b if a is None else a
    return combine(a, b)


def _allowed(labels: Any, rows: int, n_labels: int) -> Bools:
    array = np.asarray(labels)
    if array.dtype == np.bool_:
        checks.check_shape("labels", array, (rows, n_labels))
        return array.copy()
    known = checks.integers("labels", labels, rows, -1, n_labels - 1)
    allowed: Bools = (known[:, None] == np.arange(n_labels)) | (known[:, None] < 0)
    return allowed
