"""What is known of sequences: labels, sets of labels, boundaries, trajectories; in full, in part or not at all.

One form serves what y says in training, what `constraints` say in prediction and what lattices hold. Conventions: B
sequences, N tokens in all, K levels from the top down (one for chains and segments), L labels at a level; -1 stands for
unknown. Segments are half-open, and every segment is at least one token long; ``ends[t] = 1`` says that a segment ends
at token t. A segment that ends at one level ends at all levels below it.

A segment agrees with what is known if every label inside it is allowed, no known end lies strictly inside, and neither
the boundary before it nor the one after it is known to be none (docs/notation.md, section 3).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from scansion import _checks as checks
from scansion import _core
from scansion._checks import Bools, Ints
from scansion.data.dataset import gather

__all__ = ["Knowledge", "Known"]

Numbers = npt.NDArray[np.int32]
Ends = npt.NDArray[np.int8]


@dataclass(frozen=True, eq=False)
class Known:
    """What is known of N tokens at one level.

    Attributes
    ----------
    labels : int32 (N,), or None
        The token's label; -1 where it is not known, or one of several. None: `allowed` says it all.
    allowed : bool (N, L), or None
        The labels that each token may have; None where `labels` says it all.
    ends : int8 (N,), or None
        1 a segment ends here, 0 none does, -1 unknown; None: nothing is known, or every token is a segment.
    longest : int
        Length of the longest segment seen; 0: none.
    merged : bool
        Segments were all given as labels, of which equal neighbours form one: no label can follow itself.
    """

    labels: Numbers | None = None
    allowed: Bools | None = None
    ends: Ends | None = None
    longest: int = 0
    merged: bool = False

    @classmethod
    def parse(cls, labels: Any, boundaries: Any, rows: int, n_labels: int) -> Known:
        """From the arguments of ``constrain``."""
        allowed = None if labels is None else _allowed(labels, rows, n_labels)
        ends = None
        if boundaries is not None:
            ends = checks.integers("boundaries", boundaries, rows, -1, 1).astype(np.int8)
        return cls(allowed=allowed, ends=ends)

    @property
    def numbers(self) -> Numbers:
        """Labels (N,), of targets."""
        assert self.labels is not None
        return self.labels

    def mask(self, n_labels: int) -> Bools | None:
        """(N, L) labels that are allowed; None: all of them everywhere."""
        if self.allowed is not None:
            return self.allowed
        if self.labels is None or not (self.labels >= 0).any():
            return None
        labels = self.labels[:, None]
        allowed: Bools = (labels == np.arange(n_labels)) | (labels < 0)
        return allowed

    @property
    def contiguous_ends(self) -> Ends | None:
        """`ends` as the kernels take it."""
        return None if self.ends is None else np.ascontiguousarray(self.ends)

    def bytes(self, n_labels: int) -> npt.NDArray[np.uint8] | None:
        """`mask` as the kernels take it."""
        mask = self.mask(n_labels)
        return None if mask is None else np.ascontiguousarray(mask).view(np.uint8)

    def also(self, other: Known) -> tuple[Known, int | None]:
        """Both at once, and the first row whose boundary is told in two ways (None: there is none)."""
        allowed = _both(self.allowed, other.allowed, np.logical_and)
        ends = _both(self.ends, other.ends, np.maximum)
        clash = None
        if self.ends is not None and other.ends is not None:
            rows = np.flatnonzero((self.ends >= 0) & (other.ends >= 0) & (self.ends != other.ends))
            clash = int(rows[0]) if rows.size else None
        return Known(allowed=allowed, ends=ends), clash

    def rows(self, chosen: slice | Ints) -> Known:
        """The same for some rows only."""
        taken = {
            name: value[chosen] for name in ("labels", "allowed", "ends") if (value := getattr(self, name)) is not None
        }
        return replace(self, **taken)

    def runs(
        self, offsets: Ints, n_labels: int, max_length: int
    ) -> tuple[Numbers | None, npt.NDArray[np.uint8] | None]:
        """Longest segment that agrees by first row and label, (N, L); rows where a segment may end, (N,)."""
        allowed = self.bytes(n_labels)
        if allowed is None and self.ends is None:
            return None, None
        runs, may_end = _core.constraint_runs(offsets, allowed, self.contiguous_ends, n_labels, max_length)
        return runs, may_end

    def segments(self) -> tuple[Ints, Ints, Bools]:
        """Start and stop of all segments (or positions) that are told of, and whether label and extent are known."""
        labels, n = self.numbers, len(self.numbers)
        if self.ends is None:
            at = np.arange(n)
            return at, at + 1, labels >= 0
        begins = np.ones(n, np.bool_)
        begins[1:] = self.ends[:-1] != 0  # the last position of a sequence has 1
        start = np.flatnonzero(begins)
        stop = np.append(start[1:], n) if n else start
        return start, stop, (labels[start] >= 0) & (self.ends[stop - 1] == 1)

    def length_counts(self, n_labels: int, max_length: int) -> Ints:
        """(L, M) number of known segments of each label and length 1 .. M."""
        start, stop, known = self.segments()
        cell = self.numbers[start].astype(np.int64) * max_length + (stop - start - 1)
        keep = known & (stop - start <= max_length)
        return np.bincount(cell[keep], minlength=n_labels * max_length).reshape(n_labels, max_length).astype(np.int64)

    def matches(self, guess: Ints) -> tuple[int, int, int]:
        """How many segments are known, how many of the predicted ones (n, 3) compare with them, how many are in both.

        Predicted are start, stop and label by rows; those that touch what is unknown do not compare.
        """
        start, stop, known = self.segments()
        wanted = np.stack([start, stop, self.numbers[start]], axis=1)[known]
        unknown = np.concatenate([[0], np.cumsum(np.repeat(~known, stop - start))])
        guess = guess[unknown[guess[:, 0]] == unknown[guess[:, 1]]]
        right = len(set(map(tuple, wanted.tolist())) & set(map(tuple, guess.tolist())))
        return len(wanted), len(guess), right

    def accuracy(self, guess: Ints, n_labels: int) -> float:
        """Share of the tokens whose label (N,) is right, of those of which y tells something; nan: it tells nothing.

        Of a set, each label is right.
        """
        allowed = self.mask(n_labels)
        if allowed is None:
            return np.nan
        told = ~allowed.all(axis=1) | (self.numbers >= 0)
        right = allowed[np.arange(len(guess)), guess]
        return float(right[told].mean()) if told.any() else np.nan


@dataclass(frozen=True, eq=False)
class Knowledge:
    """What is known of N tokens in B sequences.

    Attributes
    ----------
    levels : tuple of K Known
        By level, from the top down; `ends` says what follows from all levels together.
    offsets : int64 (B + 1,)
        Where each sequence begins among the tokens.
    trajectories : (offsets int64 (B + 1,), labels int32), or None
        The labels that sequences go through where only that is known: those of sequence b are
        ``labels[offsets[b]:offsets[b + 1]]``, none if it is not given so. None unless some sequence is.
    """

    levels: tuple[Known, ...]
    offsets: Ints
    trajectories: tuple[Ints, Numbers] | None = None

    @classmethod
    def nothing(cls, offsets: Ints, levels: int = 1) -> Knowledge:
        """Nothing is known."""
        return cls((Known(),) * levels, offsets)

    @property
    def level(self) -> Known:
        """The only level of a chain or of segments."""
        (level,) = self.levels
        return level

    @cached_property
    def complete(self) -> Bools:
        """(B,) every label and every boundary of every level is known."""
        unknown = np.zeros(int(self.offsets[-1]), np.bool_)
        for level in self.levels:
            unknown |= level.numbers < 0
            if level.ends is not None:
                unknown |= level.ends < 0
        complete: Bools = _count(unknown, self.offsets) == 0
        return complete

    @cached_property
    def known(self) -> Bools:
        """(B,) anything at all is known of the sequence."""
        informed = np.zeros(int(self.offsets[-1]), np.bool_)
        for level in self.levels:
            informed |= level.numbers >= 0
            if level.allowed is not None:
                informed |= ~level.allowed.all(axis=1)
            if level.ends is not None:
                told = level.ends >= 0
                told[self.offsets[1:][np.diff(self.offsets) > 0] - 1] = False  # the end of a sequence says nothing
                informed |= told
        found: Bools = _count(informed, self.offsets) > 0
        return found if self.trajectories is None else found | (np.diff(self.trajectories[0]) > 0)

    def rows(self, chosen: slice, offsets: Ints) -> Knowledge:
        """The same for the rows of some sequences, cut at `offsets`; not of trajectories."""
        return Knowledge(tuple(level.rows(chosen) for level in self.levels), offsets)

    def take(self, sequences: Ints) -> Knowledge:
        """The same for some sequences, in the order given; not of trajectories."""
        offsets, rows = gather(self.offsets, sequences)
        return Knowledge(tuple(level.rows(rows) for level in self.levels), offsets)

    def under_root(self) -> Knowledge:
        """The same with a level above the others, of which nothing is known."""
        return replace(self, levels=(Known(), *self.levels))

    def event_levels(self) -> tuple[Ints, Ints]:
        """(N,), (N,) after each row: the least and the greatest level whose segment is the highest to end there.

        A segment of level d ends after a row if and only if the highest that does is at level d or above (smaller);
        K stands for "none does". So boundaries known at several levels are an interval.
        """
        n = int(self.offsets[-1])
        low, high = np.ones(n, np.int64), np.full(n, len(self.levels), np.int64)
        for d, level in enumerate(self.levels):
            if level.ends is not None:
                high[level.ends == 1] = np.minimum(high[level.ends == 1], d)
                low[level.ends == 0] = np.maximum(low[level.ends == 0], d + 1)
        return low, high


def _both(a: Any, b: Any, combine: Any) -> Any:
    if a is None or b is None:
        return b if a is None else a
    return combine(a, b)


def _allowed(labels: Any, rows: int, n_labels: int) -> Bools:
    array = checks.plain("labels", labels)
    if array.dtype == np.bool_:
        checks.check_shape("labels", array, (rows, n_labels))
        return array.copy()
    known = checks.integers("labels", labels, rows, -1, n_labels - 1)
    allowed: Bools = (known[:, None] == np.arange(n_labels)) | (known[:, None] < 0)
    return allowed


def _count(mask: Bools, offsets: Ints) -> Ints:
    """Number of true entries of each sequence, shape (B,)."""
    filled = offsets[:-1] < offsets[1:]
    counts = np.zeros(len(filled), np.int64)
    if filled.any():
        counts[filled] = np.add.reduceat(mask, offsets[:-1][filled], dtype=np.int64)
    return counts
