"""Targets: labels or segments as arrays of numbers, known in full, in part or not at all.

Conventions: B sequences, N tokens in all, L labels. -1 stands for unknown. Segments are half-open, and every segment
is at least one token long; ``ends[t] = 1`` says that a segment ends at token t. Labels are numbered in order of first
appearance: by sequence, then by position; the members of a set by their `str`, then their `repr`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from scansion import _checks as checks
from scansion.data.trajectory import Trajectory
from scansion.segments import Segment

__all__ = ["Targets", "encode_labels", "encode_segments"]

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]

_SHOWN = 20  # labels listed in an error


@dataclass(frozen=True, eq=False)
class Targets:
    """What is known of the labels of N tokens in B sequences.

    Attributes
    ----------
    labels : array of int32, shape (N,)
        The token's label; -1 where it is not known, or one of several.
    allowed : array of bool, shape (N, L), or None
        The labels that each token may have; None unless some token has a set of labels.
    ends : array of int8, shape (N,), or None
        1 a segment ends here, 0 none does, -1 unknown; None unless the targets are segments. The last token of a
        sequence always has 1.
    complete : array of bool, shape (B,)
        Every label of the sequence is known, and for segments every boundary.
    known : array of bool, shape (B,)
        Anything at all is known of the sequence.
    longest : int
        Length of the longest segment seen; 1 for labels, 0 if there is none.
    trajectories : (offsets int64 (B + 1,), labels int32), or None
        The labels that sequences go through where only that is known: those of sequence b are
        ``labels[offsets[b]:offsets[b + 1]]``, none if it is not given so. None unless some sequence is.
    merged : bool
        Segments were all given as labels, of which equal neighbours form one: no label can follow itself.
    """

    labels: npt.NDArray[np.int32]
    allowed: Bools | None
    ends: npt.NDArray[np.int8] | None
    complete: Bools
    known: Bools
    longest: int
    merged: bool = False
    trajectories: tuple[Ints, npt.NDArray[np.int32]] | None = None


def encode_labels(
    y: Iterable[Any], lengths: npt.ArrayLike, labels: Sequence[Any] | None = None, *, extend: bool = False
) -> tuple[Targets, list[Any]]:
    """Number the labels of sequences.

    Parameters
    ----------
    y : iterable of sequences
        A sequence has one entry per token: a label (any hashable value), None for unknown, or a set or frozenset of
        labels for one of these. None in place of a sequence: nothing is known of it.
        A `Trajectory`: the labels it goes through, and not where.
    lengths : array of int, shape (B,)
        Number of tokens of each sequence.
    labels : sequence, optional
        The labels, in order; another one in y is an error. Learnt from y unless given.
    extend : bool
        Number other labels of y after those given, instead.

    Returns
    -------
    targets : Targets
    labels : list
        The label of each number.
    """
    reader = _Reader(labels, extend)
    sizes = _lengths(lengths)
    numbers: list[int] = []
    passed: dict[int, list[int]] = {}
    for b, (sequence, size) in enumerate(_pairs(y, sizes)):
        if sequence is None:
            numbers.extend([-1] * size)
        elif isinstance(sequence, Trajectory):
            passed[b] = reader.trajectory(sequence, b, size, merge=True)
            numbers.extend([-1] * size)
        else:
            numbers.extend(reader.labels(_entries(sequence, b), b, size))
    targets, names = reader.targets(numbers, None, sizes, min(1, len(numbers)))
    return _with_trajectories(targets, passed), names


def encode_segments(
    y: Iterable[Any],
    lengths: npt.ArrayLike,
    labels: Sequence[Any] | None = None,
    *,
    extend: bool = False,
    max_length: int | None = None,
) -> tuple[Targets, list[Any]]:
    """Number the labels of segmented sequences.

    Parameters
    ----------
    y : iterable of sequences
        A sequence is a list of segments (start, stop, label), in any order, that do not overlap. Tokens in no segment
        are unknown, and so are the boundaries between them; the label may be None or a set, as in `encode_labels`. Or
        it is a list of labels, as in `encode_labels`, of which equal neighbours form one segment; boundaries beside a
        token whose label is not known are unknown. None in place of a sequence: nothing is known of it.
        A `Trajectory`: the labels it goes through, and not where.
    lengths : array of int, shape (B,)
        Number of tokens of each sequence.
    labels : sequence, optional
        The labels, in order; another one in y is an error. Learnt from y unless given.
    extend : bool
        Number other labels of y after those given, instead.
    max_length : int, optional
        A longer segment is an error.

    Returns
    -------
    targets : Targets
    labels : list
        The label of each number.
    """
    reader = _Reader(labels, extend)
    sizes = _lengths(lengths)
    limit = None if max_length is None else checks.count("max_length", max_length, 1)
    numbers: list[int] = []
    ends: list[int] = []
    passed: dict[int, list[int]] = {}
    longest, merged = 0, True
    for b, (sequence, size) in enumerate(_pairs(y, sizes)):
        if isinstance(sequence, Trajectory):
            passed[b] = reader.trajectory(sequence, b, size, merge=False)
            merged = merged and all(one != other for one, other in zip(passed[b], passed[b][1:], strict=False))
        entries = [] if sequence is None or b in passed else _entries(sequence, b)
        if _are_segments(entries):
            segments = _segments(entries, b, size)
            merged = merged and not entries
            spans = [(segment.start, segment.stop) for segment in segments]
            row, row_ends = reader.segments(segments, b, size)
        else:
            row = reader.labels(entries, b, size)
            spans, row_ends = _runs(row)
        for start, stop in spans:
            longest = max(longest, stop - start)
            if limit is not None and stop - start > limit:
                raise ValueError(
                    f"y[{b}] has a segment ({start}, {stop}) of {stop - start} tokens, longer than max_length = {limit}"
                )
        if size:
            row_ends[-1] = 1
        numbers.extend(row)
        ends.extend(row_ends)
    targets, names = reader.targets(numbers, ends, sizes, longest)
    return _with_trajectories(replace(targets, merged=merged), passed), names


# ---- reading y ------------------------------------------------------------------------------------


def _lengths(lengths: npt.ArrayLike) -> list[int]:
    """`lengths` as a list of numbers that are not negative."""
    array = np.asarray(lengths)
    result: list[int] = checks.integers("lengths", array, array.size, 0, 2**62).tolist()
    return result


def _pairs(y: Iterable[Any], sizes: list[int]) -> Iterable[tuple[Any, int]]:
    """Every sequence of y with the length that it must have."""
    if isinstance(y, (str, bytes, dict, set, frozenset)) or not hasattr(y, "__iter__"):
        raise TypeError(f"y must be a list of sequences, got an object of type {type(y).__name__}")
    count = 0
    for sequence in y:
        count += 1
        if count <= len(sizes):
            yield sequence, sizes[count - 1]
    if count != len(sizes):
        raise ValueError(f"y has {count} sequences, but X has {len(sizes)}")


def _entries(sequence: Any, b: int) -> list[Any]:
    """The entries of a sequence of y."""
    if isinstance(sequence, list):
        return sequence
    if isinstance(sequence, (str, bytes)):
        raise TypeError(f"y[{b}] must be a list of labels, got the string {sequence!r}")
    if isinstance(sequence, (dict, set, frozenset)) or not hasattr(sequence, "__iter__"):
        raise TypeError(f"y[{b}] must be a list of labels, got an object of type {type(sequence).__name__}")
    if isinstance(sequence, np.ndarray):
        return list(sequence.tolist())
    return list(sequence)


def _is_integer(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _is_segment(entry: Any) -> bool:
    """Whether an entry of y is a segment and not a label."""
    if isinstance(entry, Segment):
        return True
    return isinstance(entry, (tuple, list)) and len(entry) == 3 and _is_integer(entry[0]) and _is_integer(entry[1])


def _are_segments(entries: list[Any]) -> bool:
    """Whether entries of y are segments: nothing at all, or something that only a segment can be."""
    if not any(issubclass(kind, (tuple, list)) for kind in set(map(type, entries))):  # most often, and quick to see
        return not entries
    return any(map(_is_segment, entries))


def _segments(entries: list[Any], b: int, size: int) -> list[Segment]:
    """Segments in the order of their positions, checked."""
    result: list[Segment] = []
    for i, entry in enumerate(entries):
        if not _is_segment(entry) or not (_is_integer(entry[0]) and _is_integer(entry[1])):
            raise ValueError(f"y[{b}][{i}] = {entry!r} is not a segment (start, stop, label)")
        segment = Segment(int(entry[0]), int(entry[1]), entry[2])
        if segment.start >= segment.stop:
            raise ValueError(f"y[{b}][{i}] = {entry!r} is empty or reversed: stop must be greater than start")
        if segment.start < 0 or segment.stop > size:
            raise ValueError(f"y[{b}][{i}] = {entry!r} leaves sequence {b} of X, which has {size} tokens")
        result.append(segment)
    result.sort(key=lambda segment: segment.start)
    for one, other in zip(result, result[1:], strict=False):
        if one.stop > other.start:
            raise ValueError(f"y[{b}] has overlapping segments: {tuple(one)!r} and {tuple(other)!r}")
    return result


def _runs(numbers: list[int]) -> tuple[list[tuple[int, int]], list[int]]:
    """Runs of equal known labels as (start, stop), and what they tell of the boundaries."""
    ends = [-1 if one < 0 or other < 0 else int(one != other) for one, other in zip(numbers, numbers[1:], strict=False)]
    ends.append(1)
    runs = []
    start = 0
    for t, end in enumerate(ends):
        if end != 0:
            if numbers[t] >= 0:
                runs.append((start, t + 1))
            start = t + 1
    return runs, ends


class _LabelError(ValueError):
    """A label that is not among those given, or that cannot be one."""


class _Numbers(dict[Any, int]):
    """Number of every label, of None (-1) and of every frozenset of labels (-2, -3, ...).

    Labels not seen before are given the next number, unless the labels are fixed.
    """

    def __init__(self, given: Any, extend: bool) -> None:
        super().__init__()
        self.names: list[Any] = []
        self.sets: list[list[int]] = []  # of numbers; sets[k] is numbered -2 - k
        self.fixed = False
        if given is not None:
            if isinstance(given, (str, bytes)) or not hasattr(given, "__iter__"):
                raise TypeError(f"labels must be a list of labels, got {given!r}")
            for label in given.tolist() if isinstance(given, np.ndarray) else given:
                if label is None or isinstance(label, frozenset):
                    raise ValueError(f"labels must not hold {label!r}")
                if label in self:
                    raise ValueError(f"labels must be distinct, but {label!r} comes twice")
                self.__missing__(label)
            self.fixed = not extend
        self[None] = -1

    def __missing__(self, label: Any) -> int:
        if isinstance(label, frozenset):
            number = self._of_set(label)
        elif self.fixed:
            shown = ", ".join(repr(name) for name in self.names[:_SHOWN])
            more = ", ..." if len(self.names) > _SHOWN else ""
            raise _LabelError(f"is the label {label!r}, which is not one of the labels known: {shown}{more}")
        else:
            if isinstance(label, np.generic):
                label = label.item()
            if label != label:
                raise _LabelError(f"is the label {label!r}, which is not equal to itself: write None for unknown")
            number = len(self.names)
            self.names.append(label)
        self[label] = number
        return number

    def _of_set(self, labels: frozenset[Any]) -> int:
        if not labels:
            raise _LabelError("is an empty set: no label is possible")
        if None in labels:
            raise _LabelError("is a set that holds None: write None alone for unknown")
        members = sorted({self[label] for label in sorted(labels, key=lambda label: (str(label), repr(label)))})
        if members[0] < 0:
            raise _LabelError("is a set that holds a set: it must hold labels")
        if len(members) == 1:
            return members[0]
        self.sets.append(members)
        return -1 - len(self.sets)


class _Reader:
    """Turns labels into numbers, and the numbers into targets."""

    def __init__(self, labels: Sequence[Any] | None, extend: bool) -> None:
        self.numbers = _Numbers(labels, extend)

    def label(self, label: Any, where: str) -> int:
        """Number of one label; errors say where it stands."""
        try:
            return self.numbers[frozenset(label) if isinstance(label, set) else label]
        except _LabelError as error:
            raise ValueError(f"{where} {error}") from None
        except TypeError as error:
            raise TypeError(
                f"{where} is of type {type(label).__name__}, which cannot be a label: "
                "a label is a hashable value, and alternatives are written as a set"
            ) from error

    def labels(self, entries: list[Any], b: int, size: int) -> list[int]:
        """Numbers of the labels of sequence b, which has `size` tokens."""
        if len(entries) != size:
            raise ValueError(f"y[{b}] has {len(entries)} labels, but sequence {b} of X has {size} tokens")
        try:
            return list(map(self.numbers.__getitem__, entries))
        except (_LabelError, TypeError):  # a set, which has no hash; or an error, whose place is to be found
            return [self.label(entry, f"y[{b}][{t}]") for t, entry in enumerate(entries)]

    def trajectory(self, trajectory: Trajectory, b: int, size: int, merge: bool) -> list[int]:
        """Numbers of the labels that sequence b goes through; merge: equal neighbours are one place."""
        if len(trajectory) > size or (size and not len(trajectory)):
            raise ValueError(
                f"y[{b}] is a trajectory of {len(trajectory)} places, but sequence {b} of X has {size} tokens"
            )
        numbers = [self.label(label, f"y[{b}], place {i} of the trajectory,") for i, label in enumerate(trajectory)]
        for i in range(1, len(numbers)):
            if merge and numbers[i] == numbers[i - 1]:
                raise ValueError(
                    f"y[{b}], place {i} of the trajectory, is the label {trajectory.labels[i]!r} before it again: "
                    "equal neighbours are one place"
                )
        return numbers

    def segments(self, segments: list[Segment], b: int, size: int) -> tuple[list[int], list[int]]:
        """Numbers and boundaries of sequence b: -1 in the gaps, but for the last token before a segment."""
        row, ends = [-1] * size, [-1] * size
        for start, stop, label in segments:
            number = self.label(label, f"y[{b}], segment ({start}, {stop}),")
            row[start:stop] = [number] * (stop - start)
            ends[start:stop] = [0] * (stop - start)
            ends[stop - 1] = 1
            if start > 0:
                ends[start - 1] = 1
        return row, ends

    def targets(
        self, numbers: list[int], ends: list[int] | None, sizes: list[int], longest: int
    ) -> tuple[Targets, list[Any]]:
        """Targets of all tokens, and the labels."""
        codes = np.array(numbers, dtype=np.int32)
        names, sets = self.numbers.names, self.numbers.sets
        allowed = None
        informed = codes >= 0
        if codes.size and codes.min() < -1:
            rows = np.zeros((len(names) + 1 + len(sets), len(names)), dtype=np.bool_)  # by label, unknown, sets
            np.fill_diagonal(rows, True)
            rows[len(names)] = True
            for k, members in enumerate(sets):
                rows[len(names) + 1 + k, members] = True
            allowed = rows[np.where(codes >= 0, codes, len(names) - 1 - codes)]
            informed = ~allowed.all(axis=1) | informed
        unknown = codes < 0
        offsets = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))
        boundaries = None
        if ends is not None:
            boundaries = np.array(ends, dtype=np.int8)
            unknown = unknown | (boundaries < 0)
            told = boundaries >= 0
            told[offsets[1:][np.diff(offsets) > 0] - 1] = False  # the end of a sequence says nothing
            informed = informed | told
        targets = Targets(
            labels=np.maximum(codes, -1),
            allowed=allowed,
            ends=boundaries,
            complete=_count(unknown, offsets) == 0,
            known=_count(informed, offsets) > 0,
            longest=longest,
        )
        return targets, list(names)


def _with_trajectories(targets: Targets, passed: dict[int, list[int]]) -> Targets:
    """The targets with the trajectories of some sequences."""
    if not passed:
        return targets
    sizes = np.zeros(len(targets.known), np.int64)
    for b, numbers in passed.items():
        sizes[b] = len(numbers)
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    labels = np.array([y for b in sorted(passed) for y in passed[b]], np.int32)
    return replace(targets, known=targets.known | (sizes > 0), trajectories=(offsets, labels))


def _count(mask: Bools, offsets: Ints) -> Ints:
    """Number of true entries of each sequence, shape (B,)."""
    return np.diff(np.concatenate(([0], np.cumsum(mask, dtype=np.int64)))[offsets])
