"""Reading y: labels, segments or trajectories of sequences as numbers, known in full, in part or not at all.

Conventions as in `scansion.data.knowledge`. Labels are numbered in order of first appearance: by sequence, then by
position; the members of a set by their `str`, then their `repr`.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from scansion import _checks as checks
from scansion._checks import Ints
from scansion.data.knowledge import Ends, Knowledge, Known
from scansion.data.trajectory import Trajectory
from scansion.segments import Segment

__all__ = ["LevelReader", "encode_labels", "encode_segments", "longest_segment"]

_SHOWN = 20  # labels listed in an error
_KNOWLEDGE = ("labels", "boundaries")


def encode_labels(
    y: Iterable[Any], lengths: npt.ArrayLike, labels: Sequence[Any] | None = None, *, extend: bool = False
) -> tuple[Knowledge, list[Any]]:
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
    known : Knowledge
    labels : list
        The label of each number.
    """
    reader = LevelReader(labels, extend, segments=False)
    sizes = lengths_of(lengths)
    for b, (target, size) in enumerate(pairs(y, sizes)):
        reader.read(target, b, size)
    return reader.knowledge(sizes, min(1, sum(sizes))), reader.names


def encode_segments(
    y: Iterable[Any],
    lengths: npt.ArrayLike,
    labels: Sequence[Any] | None = None,
    *,
    extend: bool = False,
    max_length: int | None = None,
) -> tuple[Knowledge, list[Any]]:
    """Number the labels of segmented sequences.

    Parameters
    ----------
    y : iterable of sequences
        A sequence is a list of segments (start, stop, label), in any order, that do not overlap. Tokens in no segment
        are unknown, and so are the boundaries between them; the label may be None or a set, as in `encode_labels`. Or
        it is a list of labels, as in `encode_labels`, of which equal neighbours form one segment; boundaries beside a
        token whose label is not known are unknown. Or a dict of ``"labels"``, one per token, of which nothing follows
        for the boundaries, and ``"boundaries"``, one per token: 1 a segment ends here, 0 none does, None or -1 unknown;
        either may be left out. None in place of a sequence: nothing is known of it.
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
    known : Knowledge
    labels : list
        The label of each number.
    """
    limit = None if max_length is None else checks.count("max_length", max_length, 1)
    reader = LevelReader(labels, extend)
    sizes = lengths_of(lengths)
    for b, (target, size) in enumerate(pairs(y, sizes)):
        reader.read(target, b, size)
    longest = longest_segment(np.array(reader.ends, np.int8), offsets_of(sizes), limit)
    # a label alone between unknown ones is a segment, too; a token that nothing is said of is none
    alone = any(number >= 0 for number in reader.numbers)
    return reader.knowledge(sizes, max(longest, alone) if reader.told or alone else 0), reader.names


# ---- reading y ------------------------------------------------------------------------------------


def lengths_of(lengths: npt.ArrayLike) -> list[int]:
    """`lengths` as a list of numbers that are not negative."""
    given = checks.plain("lengths", lengths)
    result: list[int] = checks.integers("lengths", given, given.size, 0, 2**62).tolist()
    return result


def pairs(y: Iterable[Any], sizes: list[int]) -> Iterable[tuple[Any, int]]:
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


def entries_of(sequence: Any, b: int) -> list[Any]:
    """The entries of a sequence of y."""
    if isinstance(sequence, list):
        return sequence
    if isinstance(sequence, (str, bytes)):
        raise TypeError(f"y[{b}] must be a list of labels, got the string {sequence!r}")
    if isinstance(sequence, (dict, set, frozenset)) or not hasattr(sequence, "__iter__"):
        raise TypeError(f"y[{b}] must be a list of labels, got an object of type {type(sequence).__name__}")
    if isinstance(sequence, np.ndarray):
        return list(checks.plain(f"y[{b}]", sequence).tolist())
    return list(sequence)


def _is_integer(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def is_segment(entry: Any) -> bool:
    """Whether an entry of y is a segment and not a label."""
    if isinstance(entry, Segment):
        return True
    return isinstance(entry, (tuple, list)) and len(entry) == 3 and _is_integer(entry[0]) and _is_integer(entry[1])


def _are_segments(entries: list[Any]) -> bool:
    """Whether entries of y are segments: nothing at all, or something that only a segment can be."""
    if not any(issubclass(kind, (tuple, list)) for kind in set(map(type, entries))):  # most often, and quick to see
        return not entries
    return any(map(is_segment, entries))


def _segments(entries: list[Any], b: int, size: int) -> list[Segment]:
    """Segments in the order of their positions, checked."""
    result: list[Segment] = []
    for i, entry in enumerate(entries):
        if not is_segment(entry) or not (_is_integer(entry[0]) and _is_integer(entry[1])):
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


def _boundaries(numbers: list[int]) -> list[int]:
    """What a list of labels tells of the boundaries: equal neighbours are inside one segment."""
    return [
        -1 if one < 0 or other < 0 else int(one != other) for one, other in zip(numbers, numbers[1:], strict=False)
    ] + [1]


def offsets_of(sizes: list[int]) -> Ints:
    """(B + 1,) where each sequence begins."""
    return np.concatenate(([0], np.cumsum(sizes, dtype=np.int64))).astype(np.int64)


def longest_segment(ends: Ends, offsets: Ints, limit: int | None) -> int:
    """Length of the longest segment that is known to be one, or to be part of one; 0: there is none."""
    n = len(ends)
    if n == 0:
        return 0
    begins = np.ones(n, np.bool_)
    begins[1:] = ends[:-1] != 0  # a sequence's last token has 1
    start = np.flatnonzero(begins)
    length = np.diff(np.append(start, n))
    if limit is not None and length.max() > limit:
        at = int(start[np.argmax(length > limit)])
        stop = at + int(length[length > limit][0])
        b = int(np.searchsorted(offsets, at, side="right")) - 1
        first = int(offsets[b])
        raise ValueError(
            f"y[{b}] has a segment ({at - first}, {stop - first}) of {stop - at} tokens, longer than max_length = "
            f"{limit}"
        )
    sure = (ends[start + length - 1] == 1) & ((start == 0) | (ends[start - 1] == 1))
    return int(length[sure | (length > 1)].max(initial=0))


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


class LevelReader:
    """Reads what y says of one level, a sequence at a time: labels become numbers, segments boundaries.

    Parameters
    ----------
    labels : sequence, optional
        The labels, in order; others are errors unless `extend`.
    extend : bool
    segments : bool
        Whether labels belong to segments; else every token is one by itself, and a tuple is a label.
    steps : bool
        Whether every segment is one token.
    whole : bool
        Whether a sequence is one segment, which may be given as a label.

    Attributes
    ----------
    numbers, ends : arrays of N int
    columnar : list of B bool
        Whether a sequence is given as one label per token, of which runs are segments.
    told : bool
        Whether a segment or a boundary was given.
    """

    def __init__(
        self,
        labels: Sequence[Any] | None,
        extend: bool,
        *,
        segments: bool = True,
        steps: bool = False,
        whole: bool = False,
    ) -> None:
        self._numbers = _Numbers(labels, extend)
        self._segments, self._steps, self._whole = segments, steps, whole
        self.numbers, self.ends = array("i"), array("b")  # y may be as large as files are
        self.columnar: list[bool] = []
        self.told = False
        self._merged = True
        self._passed: dict[int, list[int]] = {}

    @property
    def names(self) -> list[Any]:
        """The label of each number."""
        return list(self._numbers.names)

    def read(self, target: Any, b: int, size: int) -> None:
        """Read what is known of sequence b, which has `size` tokens."""
        columnar = False
        row, ends = [-1] * size, [-1] * size
        if self._whole and not isinstance(target, (type(None), Mapping, Trajectory, list, tuple, np.ndarray)):
            target = [Segment(0, size, target)] if size else None
        if isinstance(target, Trajectory):
            self._passed[b] = passed = self._trajectory(target, b, size)
            self._merged &= all(one != other for one, other in zip(passed, passed[1:], strict=False))
        elif self._segments and isinstance(target, Mapping):
            row, ends = self._given(target, b, size)
            self.told, self._merged = True, False
        elif target is not None:
            entries = entries_of(target, b)
            columnar = not self._segments or not _are_segments(entries)
            if columnar:
                row = self._labels(entries, b, size)
                ends = _boundaries(row)[:size] if self._segments and not self._steps else [1] * size
            else:
                row, ends = self._spans(_segments(entries, b, size), b, size)
                self.told |= bool(entries)
                self._merged &= not entries
        if self._steps:
            if 0 in ends:
                t = ends.index(0)
                raise ValueError(f"y[{b}] has a segment over positions {t} and {t + 1}, longer than max_length = 1")
            ends = [1] * size
        if size:
            ends[-1] = 1
        self.numbers.extend(row)
        self.ends.extend(ends)
        self.columnar.append(columnar)

    def knowledge(self, sizes: list[int], longest: int) -> Knowledge:
        """All that was read, as the only level."""
        trajectories = None
        if self._passed:
            places = [len(self._passed.get(b, ())) for b in range(len(sizes))]
            labels = [y for b in sorted(self._passed) for y in self._passed[b]]
            trajectories = offsets_of(places), np.array(labels, np.int32)
        return Knowledge((self.known(longest),), offsets_of(sizes), trajectories)

    def known(self, longest: int) -> Known:
        """All that was read, without trajectories."""
        codes = np.array(self.numbers, dtype=np.int32)
        n, sets = len(self._numbers.names), self._numbers.sets
        allowed = None
        if codes.size and codes.min() < -1:
            rows = np.zeros((n + 1 + len(sets), n), dtype=np.bool_)  # by label, unknown, sets
            np.fill_diagonal(rows, True)
            rows[n] = True
            for k, members in enumerate(sets):
                rows[n + 1 + k, members] = True
            allowed = rows[np.where(codes >= 0, codes, n - 1 - codes)]
        ends = np.array(self.ends, dtype=np.int8) if self._segments else None
        np.maximum(codes, -1, out=codes)
        return Known(codes, allowed, ends, longest, self._merged and self._segments)

    def _label(self, label: Any, where: str) -> int:
        """Number of one label; errors say where it stands."""
        try:
            return self._numbers[frozenset(label) if isinstance(label, set) else label]
        except _LabelError as error:
            raise ValueError(f"{where} {error}") from None
        except TypeError as error:
            raise TypeError(
                f"{where} is of type {type(label).__name__}, which cannot be a label: "
                "a label is a hashable value, and alternatives are written as a set"
            ) from error

    def _labels(self, entries: list[Any], b: int, size: int) -> list[int]:
        if len(entries) != size:
            raise ValueError(f"y[{b}] has {len(entries)} labels, but sequence {b} of X has {size} tokens")
        try:
            return list(map(self._numbers.__getitem__, entries))
        except (_LabelError, TypeError):  # a set, which has no hash; or an error, whose place is to be found
            return [self._label(entry, f"y[{b}][{t}]") for t, entry in enumerate(entries)]

    def _trajectory(self, trajectory: Trajectory, b: int, size: int) -> list[int]:
        if len(trajectory) > size or (size and not len(trajectory)):
            raise ValueError(
                f"y[{b}] is a trajectory of {len(trajectory)} places, but sequence {b} of X has {size} tokens"
            )
        numbers = [self._label(label, f"y[{b}], place {i} of the trajectory,") for i, label in enumerate(trajectory)]
        for i in range(1, len(numbers)):
            if not self._segments and numbers[i] == numbers[i - 1]:
                raise ValueError(
                    f"y[{b}], place {i} of the trajectory, is the label {trajectory.labels[i]!r} before it again: "
                    "equal neighbours are one place"
                )
        return numbers

    def _spans(self, segments: list[Segment], b: int, size: int) -> tuple[list[int], list[int]]:
        """Numbers and boundaries: -1 in the gaps, but for the last token before a segment."""
        row, ends = [-1] * size, [-1] * size
        for start, stop, label in segments:
            number = self._label(label, f"y[{b}], segment ({start}, {stop}),")
            row[start:stop] = [number] * (stop - start)
            ends[start:stop] = [0] * (stop - start)
            ends[stop - 1] = 1
            if start > 0:
                ends[start - 1] = 1
        return row, ends

    def _given(self, target: Mapping[Any, Any], b: int, size: int) -> tuple[list[int], list[int]]:
        """Labels and boundaries that are given one by one."""
        unknown = [key for key in target if key not in _KNOWLEDGE]
        if unknown:
            raise ValueError(
                f"y[{b}] has the key {unknown[0]!r}: what is known of a level is {' and '.join(_KNOWLEDGE)}"
            )
        given = target.get("labels")
        row = [-1] * size if given is None else self._labels(entries_of(given, b), b, size)
        given = target.get("boundaries")
        if given is None:
            return row, [-1] * size
        entries = entries_of(given, b)
        if len(entries) != size:
            raise ValueError(f"y[{b}] has {len(entries)} boundaries, but sequence {b} of X has {size} tokens")
        ends = []
        for t, entry in enumerate(entries):
            value = -1 if entry is None else entry
            if isinstance(value, float) or value not in (-1, 0, 1):
                raise ValueError(f"y[{b}], boundary {t}, is {entry!r}: it must be 1, 0 or None")
            ends.append(int(value))
        if ends and ends[-1] == 0:
            raise ValueError(f"y[{b}], boundary {size - 1}, is 0, but every segment ends with its sequence")
        return row, ends
