"""Reading y by level: segments inside segments, known in full, in part or not at all.

Conventions as in `scansion.data.knowledge`: K named levels from the top down. A segment that ends at one level ends at
all levels below it, so that a boundary known at one level is one below, and a token inside a segment of one level is
inside one above.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from scansion import schemes
from scansion._checks import Bools, Ints
from scansion.data.knowledge import Ends, Knowledge
from scansion.data.targets import LevelReader, entries_of, is_segment, lengths_of, longest_segment, offsets_of, pairs
from scansion.segments import Segment

__all__ = ["encode_levels", "level_names", "levels_from_columns"]


def level_names(levels: Any) -> list[str]:
    """`levels` as a list of distinct names, at least one."""
    if isinstance(levels, (str, bytes)) or not isinstance(levels, Iterable):
        raise ValueError(f"levels must be a list of names, the top level first, got {levels!r}")
    names = list(levels)
    for name in names:
        if not isinstance(name, str) or not name:
            raise ValueError(f"levels must be names (strings), got {name!r}")
    if not names or len(set(names)) < len(names):
        raise ValueError(f"levels must be one or more distinct names, got {names!r}")
    return names


def encode_levels(
    y: Iterable[Any],
    lengths: npt.ArrayLike,
    levels: Sequence[str],
    labels: Sequence[Sequence[Any]] | None = None,
    *,
    extend: bool = False,
    max_lengths: Sequence[int | None] | None = None,
    whole: Sequence[bool] | None = None,
) -> tuple[Knowledge, list[list[Any]]]:
    """Number the labels of nested segments, and check that they nest.

    Parameters
    ----------
    y : iterable of sequences
        A sequence is a dict level -> target (a level left out is unknown), or a list of one target per level, the top
        level first; None: nothing is known of it. A level's target is one of

        - a list of segments (start, stop, label); tokens in none of them are unknown, and so are the boundaries between
          them; the label may be None or a set of labels;
        - a list of one label per token, None for unknown, a set for one of these; equal neighbours are one segment
          unless a level above has a boundary between them (at a level of single steps, each token is one), boundaries
          beside an unknown label are unknown;
        - a dict of ``"labels"``, one per token, of which nothing follows for the boundaries, and ``"boundaries"``, one
          per token: 1 a segment ends here, 0 none does, None or -1 unknown; either may be left out;
        - the label (or a set of labels) of the whole sequence, where `whole` says that it is one segment;
        - None: unknown.
    lengths : array of int, shape (B,)
        Number of tokens of each sequence.
    levels : list of K names
    labels : K lists, optional
        The labels of each level, in order; another one in y is an error. Learnt from y unless given.
    extend : bool
        Number other labels of y after those given, instead.
    max_lengths : K numbers, optional
        Longest segment of each level, None for no limit. 1 makes a level one of single steps.
    whole : K bool, optional
        Levels at which a sequence is one segment.

    Returns
    -------
    known : Knowledge
    labels : K lists
        The label of each number at each level.

    Raises
    ------
    TypeError, ValueError
        Naming the sequence, the level and the segment.
    """
    sizes = lengths_of(lengths)
    for name, given in (("labels", labels), ("max_lengths", max_lengths), ("whole", whole)):
        if given is not None and (not isinstance(given, (list, tuple)) or len(given) != len(levels)):
            raise ValueError(f"{name} must be a list with an entry for each of {len(levels)} levels, got {given!r}")
    limits = [None] * len(levels) if max_lengths is None else list(max_lengths)
    columns = _by_level(y, sizes, levels)
    offsets = offsets_of(sizes)
    single = [False] * len(levels) if whole is None else whole
    readers = [
        LevelReader(None if labels is None else labels[k], extend, steps=limits[k] == 1, whole=single[k])
        for k in range(len(levels))
    ]
    for reader, level, column in zip(readers, levels, columns, strict=True):
        try:
            for b, (target, size) in enumerate(zip(column, sizes, strict=True)):
                reader.read(target, b, size)
        except (TypeError, ValueError) as error:
            raise type(error)(f"level {level!r}: {error}") from None
    names = [reader.names for reader in readers]
    merged = [np.repeat(reader.columnar, sizes) for reader in readers]
    found = [reader.known(0) for reader in readers]
    ends = _nested([one.ends for one in found], [one.labels for one in found], merged, offsets, levels, names)
    known = []
    for k, level in enumerate(levels):
        try:
            longest = longest_segment(ends[k], offsets, limits[k])
        except ValueError as error:
            raise ValueError(f"level {level!r}: {error}") from None
        known.append(replace(found[k], ends=ends[k], longest=longest))
    return Knowledge(tuple(known), offsets), names


# ---- reading y -----------------------------------------------------------------------------------------------------


def _by_level(y: Iterable[Any], sizes: list[int], levels: Sequence[str]) -> list[list[Any]]:
    """One list of targets for each level."""
    columns: list[list[Any]] = [[] for _ in levels]
    for b, (sequence, _) in enumerate(pairs(y, sizes)):
        for column, target in zip(columns, _targets_of(sequence, b, levels), strict=True):
            column.append(target)
    return columns


def _targets_of(sequence: Any, b: int, levels: Sequence[str]) -> list[Any]:
    named = ", ".join(levels)
    if sequence is None:
        return [None] * len(levels)
    if isinstance(sequence, Mapping):
        unknown = [name for name in sequence if name not in levels]
        if unknown:
            raise ValueError(f"y[{b}] has the level {unknown[0]!r}, which is not one of the levels: {named}")
        return [sequence.get(name) for name in levels]
    if isinstance(sequence, (str, bytes)) or not hasattr(sequence, "__iter__"):
        raise TypeError(
            f"y[{b}] must be a dict level -> segments or a list of one entry per level ({named}), got {sequence!r}"
        )
    entries = list(sequence)
    if any(is_segment(entry) for entry in entries):
        raise ValueError(f"y[{b}] is a list of segments: give one such list per level ({named})")
    if len(entries) != len(levels):
        raise ValueError(f"y[{b}] has {len(entries)} entries, but there are {len(levels)} levels: {named}")
    return entries


# ---- nesting -------------------------------------------------------------------------------------------------------


def _nested(
    given: Sequence[Any],
    numbers: Sequence[Any],
    merged: Sequence[Bools],
    offsets: Ints,
    levels: Sequence[str],
    names: Sequence[list[Any]],
) -> list[Ends]:
    """What the levels' boundaries say of each other; ValueError where they contradict.

    merged (N,) by level: tokens whose segments are runs of equal labels, which boundaries above them cut.
    """
    ends: list[Ends] = [np.array(one, np.int8) for one in given]
    for k in range(1, len(ends)):
        above = ends[k - 1] == 1
        clash = above & (ends[k] == 0) & ~merged[k]
        if clash.any():
            t = int(np.argmax(clash))
            upper = next(i for i in range(k) if given[i][t] == 1)
            b = int(np.searchsorted(offsets, t, side="right")) - 1
            inner, outer = (_around(ends[i], t, offsets, b, numbers[i], names[i]) for i in (k, upper))
            raise ValueError(
                f"y[{b}] does not nest: at level {levels[k]!r} the segment {inner!r} goes on after position "
                f"{t - int(offsets[b])}, where at level {levels[upper]!r} the segment {outer!r} ends"
            )
        ends[k][above] = 1
    for k in range(len(ends) - 1, 0, -1):
        ends[k - 1][(ends[k] == 0) & (ends[k - 1] < 0)] = 0
    return ends


def _around(ends: Ends, t: int, offsets: Ints, b: int, numbers: Any, names: list[Any]) -> tuple[int, int, Any]:
    """The segment around a token, as far as it is known."""
    first, last = int(offsets[b]), int(offsets[b + 1])
    start, stop = t, t + 1
    while start > first and ends[start - 1] == 0:
        start -= 1
    while stop < last and ends[stop - 1] == 0:
        stop += 1
    return start - first, stop - first, names[numbers[t]] if numbers[t] >= 0 else None


# ---- columns -------------------------------------------------------------------------------------------------------


def levels_from_columns(
    columns: Mapping[str, Iterable[Iterable[Any]]],
    schemes: str | Mapping[str, str] = "plain",
    *,
    outside: Any = "O",
    outside_runs: bool = True,
) -> list[dict[str, list[Any]]]:
    """Targets of `HierarchicalCRF` from columns: one label per token and level.

    Parameters
    ----------
    columns : dict level -> B sequences of one label per token
        The top level first. An unknown label is None.
    schemes : str, or dict level -> str
        How a column is read: a tag scheme of `scansion.schemes` ("iob2", "bilou", ...), "plain" (equal neighbours are
        one segment, unless a level above has a boundary between them) or "tokens" (each token is a segment of its own).
        Levels that a dict leaves out are "plain".
    outside : label
        Label of the segments between those of a tag scheme: at every level, every token belongs to a segment.
    outside_runs : bool
        Neighbouring tokens outside are one segment; False: each is one.

    Returns
    -------
    list of B dicts level -> list of segments (or, where labels are unknown, what is known of labels and boundaries)

    Raises
    ------
    ValueError
        If labels are not of their scheme, or the columns have different lengths or do not nest.

    Examples
    --------
    >>> levels_from_columns({"np": [["B-NP", "I-NP", "O"]], "pos": [["D", "N", "V"]]}, {"np": "iob2", "pos": "tokens"})
    [{'np': [Segment(start=0, stop=2, label='NP'), Segment(start=2, stop=3, label='O')], \
'pos': [Segment(start=0, stop=1, label='D'), Segment(start=1, stop=2, label='N'), Segment(start=2, stop=3, label='V')]}]
    """
    if not isinstance(columns, Mapping):
        raise TypeError(f"columns must be a dict level -> sequences, got an object of type {type(columns).__name__}")
    if not isinstance(schemes, (str, Mapping)):
        raise TypeError(f"schemes must be a name, or a dict level -> name, got {schemes!r}")
    levels = level_names(columns)
    known = {level: list(columns[level]) for level in levels}
    read = {level: schemes if isinstance(schemes, str) else schemes.get(level, "plain") for level in levels}
    if not isinstance(schemes, str):
        for level in schemes:
            if level not in known:
                raise ValueError(
                    f"schemes has the level {level!r}, which is not one of the columns: {', '.join(levels)}"
                )
    top = levels[0]
    for level in levels:
        if len(known[level]) != len(known[top]):
            raise ValueError(f"column {level!r} has {len(known[level])} sequences, but {top!r} has {len(known[top])}")
    result = []
    for b in range(len(known[top])):
        rows = {level: entries_of(known[level][b], b) for level in levels}
        for level in levels:
            if len(rows[level]) != len(rows[top]):
                raise ValueError(
                    f"sequence {b}: column {level!r} has {len(rows[level])} labels, but {top!r} has {len(rows[top])}"
                )
        try:
            found: dict[str, Any] = {}
            cuts: set[int] = set()
            for level in levels:
                found[level] = _column(rows[level], read[level], outside, outside_runs, cuts)
                cuts |= _stops(found[level])
            result.append(found)
        except ValueError as error:
            raise ValueError(f"sequence {b}: {error}") from None
    encode_levels(result, [len(entries_of(row, 0)) for row in known[top]], levels)  # says where they do not nest
    return result


def _column(row: list[Any], scheme: str, outside: Any, runs: bool, cuts: set[int]) -> Any:
    """What one column says; cuts: where segments of the levels above stop."""
    if None not in row:
        return _whole_column(row, scheme, outside, runs, cuts)
    labels: list[Any] = [None] * len(row)
    boundaries: list[int | None] = [None] * len(row)
    start = 0
    for stop in [*(t for t, label in enumerate(row) if label is None), len(row)]:
        for u, v, label in _whole_column(row[start:stop], scheme, outside, runs, {cut - start for cut in cuts}):
            labels[start + u : start + v] = [label] * (v - u)
            boundaries[start + u : start + v] = [0] * (v - u)
            boundaries[start + v - 1] = 1
        if start < stop < len(row):
            boundaries[stop - 1] = None  # what follows is not known
        start = stop + 1
    return {"labels": labels, "boundaries": boundaries}


def _stops(found: Any) -> set[int]:
    """Where segments are known to stop."""
    if isinstance(found, dict):
        return {t + 1 for t, end in enumerate(found["boundaries"]) if end}
    return {segment.stop for segment in found}


def _whole_column(row: list[Any], scheme: str, outside: Any, runs: bool, cuts: set[int]) -> list[Segment]:
    if scheme == "tokens":
        return [Segment(t, t + 1, label) for t, label in enumerate(row)]
    if scheme == "plain":
        return [part for segment in schemes.segments(row, "plain") for part in _cut(segment, cuts)]
    found: list[Segment] = []
    at = 0
    for segment in [*schemes.segments(row, scheme), Segment(len(row), len(row), None)]:
        if at < segment.start:
            found.extend(_cut(Segment(at, segment.start, outside), cuts if runs else set(range(at, segment.start))))
        if segment.stop > segment.start:
            found.append(segment)
        at = segment.stop
    return found


def _cut(segment: Segment, cuts: set[int]) -> list[Segment]:
    """A run of equal labels, cut in pieces."""
    places = [segment.start, *(t for t in range(segment.start + 1, segment.stop) if t in cuts), segment.stop]
    return [Segment(u, v, segment.label) for u, v in zip(places, places[1:], strict=False)]
