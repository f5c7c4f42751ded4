"""Scores of nested lattices, checked and laid out for the kernel: levels, and the four kinds of cliques.

Conventions: D levels, root first; S_d states and longest segment M_d at level d; rows of all sequences one after
another, N in all. `LevelScores` holds the persistence of one level, `NestedCore` everything with the native object.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from scansion import _checks as checks
from scansion import _core
from scansion._checks import Bools, Floats, Ints
from scansion.data.knowledge import Knowledge
from scansion.lattice.cores import BOUNDARY, Core, Packed, possible
from scansion.rules.automata import Automaton

__all__ = ["LevelScores", "NestedCore", "NestedScores", "Persistence"]

_ROUNDING = 4 * np.finfo(np.float64).eps
_NEAR = 1e-10  # scores that differ by less are the same to all answers
_MOST_LEVELS = 60  # what the kernel has room for


class Persistence(NamedTuple):
    """Additive persistence scores of one level: memory linear in T whatever the longest segment.

    An s-segment [u, v) of length n = v - u scores ``sum_{u <= t < v} inside[t, s] + start[u, s] + stop[v - 1, s]
    + length[n - 1, s] + spans[u, n - 1, s]``; what is not given is zero. As a gradient, each field has the expected
    number of times that the entry counts.

    Attributes
    ----------
    inside : (T, S), optional
    start, stop : (T, S) or (S,), optional
        At the first and at the last position of a segment. ("end" is the score of a parent with its last child.)
    length : (M, S), optional
    spans : (T, M, S), optional
        Start, length - 1, state: any function of the span.
    max_length : int, optional
        Longest segment M; None: that of `length` and `spans`, or no bound.
    """

    inside: Any = None
    start: Any = None
    stop: Any = None
    length: Any = None
    spans: Any = None
    max_length: int | None = None


class NestedScores(NamedTuple):
    """Scores of a nested lattice or batch, or the gradient of the sum of log Z with respect to them, in their shapes.

    Attributes
    ----------
    persist : list, level d: (N, M_d, S_d), or Persistence
    transit : list, level d at index d - 1: (S_{d-1}, S_d, S_d), or with rows (N or T-1) in front
    init, end : list, level d < D-1: (S_d, S_{d+1}), or with rows (N or T) in front
    """

    persist: list[Any]
    transit: list[Floats]
    init: list[Floats]
    end: list[Floats]


@dataclass(frozen=True)
class LevelScores:
    """Persistence of one level. `dense`: given as an array, here in `spans`; `free`: a plain sum over time steps."""

    size: int
    inside: Floats | None = None
    start: Floats | None = None
    stop: Floats | None = None
    length: Floats | None = None
    spans: Floats | None = None
    max_length: int | None = None
    dense: bool = False

    def rows(self, chosen: slice | Ints) -> LevelScores:
        """The same for some rows only."""

        def cut(part: Floats | None) -> Floats | None:
            return part if part is None or part.ndim == 1 else part[chosen]

        return replace(self, inside=cut(self.inside), start=cut(self.start), stop=cut(self.stop), spans=cut(self.spans))

    def longest(self, n_times: int) -> int:
        """Longest segment in sequences of up to n_times."""
        return n_times if self.max_length is None else min(self.max_length, n_times)

    def is_free(self, n_times: int) -> bool:
        """No bound that matters and nothing but sums over time steps (and starts and stops)."""
        unbounded = self.max_length is None or self.max_length >= n_times
        return unbounded and self.length is None and self.spans is None and n_times > 1

    def additive(self, offsets: Ints) -> LevelScores | None:
        """A dense level whose scores are the sums of its scores of length 1, to rounding, as parts; else None."""
        longest = int(np.diff(offsets).max(initial=0))
        if not self.dense or self.spans is None or self.spans.shape[1] < longest or longest < 2:
            return None
        inside = np.ascontiguousarray(self.spans[:, 0])
        last = np.repeat(offsets[1:], np.diff(offsets))  # where the sequence of each row stops
        total, size = inside.copy(), np.abs(np.where(np.isfinite(inside), inside, 0.0))
        for n in range(1, longest):
            at = np.flatnonzero(np.arange(len(inside)) + n < last)
            more = inside[at + n]
            total[at] += more
            size[at] += np.abs(np.where(np.isfinite(more), more, 0.0))
            with np.errstate(invalid="ignore"):
                off = np.abs(self.spans[at, n] - total[at])  # NaN where both are -inf
            near = np.minimum(_ROUNDING * (n + 1) * size[at], _NEAR)
            if not ((off <= near) | (self.spans[at, n] == total[at])).all():
                return None
        return LevelScores(self.size, inside=inside)


def parse_level(name: str, given: Any, size: int, rows: int, root: bool, longest: int) -> LevelScores:
    """One level's persistence, checked."""
    if not isinstance(given, Persistence):
        values = checks.scores(name, given, (rows, "M", size))
        if values.shape[1] == 0 or (root and values.shape[1] < longest):
            need = f"the whole sequence, {longest}" if root else "1"
            raise ValueError(f"{name} must allow segments of length {need} at least, got shape {values.shape}")
        return LevelScores(size, spans=values, max_length=values.shape[1], dense=True)
    bound = None if given.max_length is None else checks.count(f"{name}.max_length", given.max_length, 1)
    parts: dict[str, Any] = {}
    for part in ("inside", "start", "stop"):
        value = getattr(given, part)
        shape = (size,) if part != "inside" and np.ndim(value) == 1 else (rows, size)
        parts[part] = None if value is None else checks.scores(f"{name}.{part}", value, shape)
    for part, ahead in (("length", ()), ("spans", (rows,))):
        value = getattr(given, part)
        if value is None:
            continue
        parts[part] = checks.scores(f"{name}.{part}", value, (*ahead, "M" if bound is None else bound, size))
        bound = parts[part].shape[-2]
        if bound == 0:
            raise ValueError(f"{name}.{part} must allow segments of length 1 at least, got shape {np.shape(value)}")
    if root and bound is not None and bound < longest:
        raise ValueError(f"{name} must allow the whole sequence, length {longest}, but its longest segment is {bound}")
    return LevelScores(size, max_length=bound, dense=False, **parts)


@dataclass(frozen=True)
class NestedCore(Core):
    """Scores of a batch with what is known, and the native object that answers.

    transit[d - 1] (S_{d-1}, S_d, S_d) or (N, ...); init[d], end[d] (S_d, S_{d+1}) or (N, ...); children[d] bool
    (S_d, S_{d+1}); known by level. `general`: take no short cut for levels that are plain sums over time steps.
    """

    levels: tuple[LevelScores, ...]
    transit: tuple[Floats, ...]
    init: tuple[Floats, ...]
    end: tuple[Floats, ...]
    children: tuple[Bools, ...]
    general: bool = False

    @property
    def n_levels(self) -> int:  # type: ignore[override]
        """Number of levels D."""
        return len(self.levels)

    @property
    def n_labels(self) -> int:
        """Number of states of the bottom level."""
        return self.sizes[-1]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of states by level."""
        return tuple(level.size for level in self.levels)

    @property
    def longest(self) -> int:
        """Longest sequence."""
        return int(np.diff(self.offsets).max(initial=0))

    @cached_property
    def inference(self) -> tuple[LevelScores, ...]:
        """The levels as inference takes them: dense arrays that are plain sums as such."""
        if self.general:
            return self.levels
        return (self.levels[0], *(level.additive(self.offsets) or level for level in self.levels[1:]))

    @cached_property
    def free(self) -> tuple[bool, ...]:
        """Levels over which inference runs step by step."""
        return tuple(d > 0 and not self.general and v.is_free(self.longest) for d, v in enumerate(self.inference))

    @property
    def ends(self) -> tuple[Ints, Ints, Ints]:
        """The sequences that are not empty, their first and their last rows."""
        some = np.flatnonzero(np.diff(self.offsets) > 0)
        return some, self.offsets[some], self.offsets[some + 1] - 1

    @cached_property
    def native(self) -> _core.NestedBatch:
        """The object that answers."""
        return _core.NestedBatch(
            self.offsets,
            list(self.sizes),
            [np.ascontiguousarray(mask).view(np.uint8) for mask in self.children],
            list(self.transit),
            list(self.init),
            list(self.end),
            [(v.inside, v.start, v.stop, v.length, v.spans) for v in self.inference],
            [0 if v.max_length is None else v.max_length for v in self.inference],
            list(self.free),
            [one.bytes(size) for one, size in zip(self.known.levels, self.sizes, strict=True)],
            [one.contiguous_ends for one in self.known.levels],
        )

    def select(self, b: int) -> NestedCore:
        """The core of one sequence."""
        return self._cut(*self._rows(b))

    def take(self, sequences: Ints) -> NestedCore:
        """The core of some sequences."""
        return self._cut(*self._taken(sequences))

    def generalized(self, levels: tuple[LevelScores, ...] | None = None) -> NestedCore:
        """The same without short cuts; with other levels, if they are given."""
        return replace(self, levels=self.levels if levels is None else levels, general=True)

    def restricted(self, machines: Sequence[tuple[int, int, Automaton]]) -> Any:
        """The core of the configurations that automata accept: (level, within, automaton over its states)."""
        from scansion.rules.nested import expanded

        return expanded(self, machines)

    def _cut(self, rows: slice | Ints, shared: dict[str, Any]) -> NestedCore:
        def cut(arrays: tuple[Floats, ...], ndim: int) -> tuple[Floats, ...]:
            return tuple(a if a.ndim == ndim else a[rows] for a in arrays)

        return replace(
            self,
            levels=tuple(level.rows(rows) for level in self.levels),
            transit=cut(self.transit, 3),
            init=cut(self.init, 2),
            end=cut(self.end, 2),
            **shared,
        )

    def gains(self, labels: list[Floats], boundaries: list[Floats]) -> NestedCore:
        """See `Core.gains`: right positions of all levels count alike."""

        def level(old: LevelScores, here: Floats, ends: Floats) -> LevelScores:
            later = BOUNDARY * (1.0 - ends)[:, None]
            inside, stop = here + later, (BOUNDARY * ends[:, None] - later).repeat(old.size, 1)
            masks: dict[str, Any] = {
                name: possible(getattr(old, name)) for name in ("inside", "start", "stop", "length", "spans")
            }
            for name, values in (("inside", inside), ("stop", stop)):
                masks[name] = values if masks[name] is None else values + masks[name]
            return replace(old, dense=False, **masks)

        def moves(arrays: tuple[Floats, ...]) -> tuple[Floats, ...]:
            masks = [possible(array) for array in arrays]
            return tuple(np.zeros_like(a) if m is None else m for a, m in zip(arrays, masks, strict=True))

        return replace(
            self,
            levels=tuple(level(*one) for one in zip(self.levels, labels, boundaries, strict=True)),
            transit=moves(self.transit),
            init=moves(self.init),
            end=moves(self.end),
        )

    def log_partitions(self, threads: int) -> Floats:
        """(B,) log Z, -inf where nothing is possible."""
        out = np.empty(len(self.offsets) - 1)
        self.native.log_partitions(out, threads)
        return out

    def posteriors(self, threads: int, *, spans: Sequence[bool], cliques: str | None, parts: bool) -> dict[str, Any]:
        """Labels and boundaries; on demand segments of some levels, the cliques and the additive parts.

        spans: by level, whether (N, M_d, S_d) is wanted (not for free levels). cliques: None; "time": transit, init and
        end with N rows; "given": in the shape of the scores.
        """
        n, sizes = int(self.offsets[-1]), self.sizes
        pairs = list(zip(sizes[:-1], sizes[1:], strict=True))

        def like(array: Floats, shape: tuple[int, ...]) -> Floats | None:
            if cliques is None:
                return None
            return np.zeros((n, *shape) if cliques == "time" else array.shape)

        def part(array: Floats | None) -> Floats | None:
            return np.zeros(array.shape) if parts and array is not None else None

        bounds = [max(self.longest, 1) if v.max_length is None else v.max_length for v in self.levels]
        out: dict[str, Any] = {
            "log_partition": np.empty(len(self.offsets) - 1),
            "labels": [np.zeros((n, s)) for s in sizes],
            "boundaries": [np.zeros(n) for _ in sizes],
            "spans": [np.zeros((n, m, s)) if w else None for w, m, s in zip(spans, bounds, sizes, strict=True)],
            "start": [part(v.start) for v in self.levels],
            "stop": [part(v.stop) for v in self.levels],
            "length": [part(v.length) for v in self.levels],
            "transit": [like(a, (p, s, s)) for a, (p, s) in zip(self.transit, pairs, strict=True)],
            "init": [like(a, pair) for a, pair in zip(self.init, pairs, strict=True)],
            "end": [like(a, pair) for a, pair in zip(self.end, pairs, strict=True)],
        }
        out["escaped"] = self.native.posteriors(**out, threads=threads)
        return out

    def sample(self, n: int, generator: np.random.Generator, threads: int) -> Packed:
        """Random configurations, n of each sequence, each from a seed of its own."""
        seeds = generator.integers(0, 2**63, size=(self.randoms, n), dtype=np.int64)
        return Packed(*self.native.sample(n, seeds, threads))

    @property
    def randoms(self) -> int:
        """A seed for each sequence."""
        return len(self.offsets) - 1


def parse(persist: Any, transit: Any, init: Any, end: Any, children: Any, offsets: Any) -> NestedCore:
    """The arguments of `NestedLattice` (offsets None) or `NestedBatch`, checked."""
    given = _listed("persist", persist, None)
    depth = len(given)
    if depth > _MOST_LEVELS:
        raise ValueError(f"persist must have at most {_MOST_LEVELS} levels, got {depth}")
    if depth < 2:
        raise ValueError(f"persist must have at least 2 levels, root and bottom, got {depth}")
    cliques = {"transit": transit, "init": init, "end": end}
    lists = {name: _listed(name, value, depth - 1) for name, value in cliques.items()}
    single = offsets is None
    if single:
        rows = _n_rows(given, lists)
        cuts = np.array([0, rows])
    else:
        total = np.asarray(offsets)
        rows = int(total[-1]) if total.ndim == 1 and total.size and total.dtype.kind in "iu" else 0
        cuts = checks.offsets(offsets, rows, "the scores")
    longest = int(np.diff(cuts).max(initial=0))
    sizes = [_n_states(d, given[d], lists) for d in range(depth)]
    levels = tuple(parse_level(f"persist[{d}]", v, sizes[d], rows, d == 0, longest) for d, v in enumerate(given))
    pairs = list(zip(sizes[:-1], sizes[1:], strict=True))
    parsed: dict[str, list[Floats]] = {}
    for name, ndim in (("transit", 3), ("init", 2), ("end", 2)):
        parsed[name] = []
        for d, (value, pair) in enumerate(zip(lists[name], pairs, strict=True)):
            shape: tuple[int, ...] = (*pair, pair[1]) if name == "transit" else pair
            ahead = () if np.ndim(value) == ndim else (max(rows - 1, 0) if single and name == "transit" else rows,)
            array = checks.scores(f"{name}[{d}]", value, (*ahead, *shape))
            if ahead and len(array) < rows:
                array = np.concatenate([array, np.zeros((1, *shape))])
            parsed[name].append(array)
    masks = _masks(children, pairs)
    known = Knowledge.nothing(cuts, depth)
    scores = {name: tuple(arrays) for name, arrays in parsed.items()}
    return NestedCore(cuts, known, levels, scores["transit"], scores["init"], scores["end"], tuple(masks))


def _listed(name: str, value: Any, length: int | None) -> list[Any]:
    if isinstance(value, (str, dict, Persistence)) or not hasattr(value, "__len__"):
        raise ValueError(f"{name} must be a list with one entry per level, got {type(value).__name__}")
    if length is not None and len(value) != length:
        raise ValueError(f"{name} must have {length} entries, one less than the levels of persist, got {len(value)}")
    return list(value)


def _n_rows(persist: list[Any], lists: dict[str, list[Any]]) -> int:
    """T, from whatever has a row per position."""
    for level in persist:
        if not isinstance(level, Persistence):
            return int(np.shape(level)[0]) if np.ndim(level) else 0
        for part, ndim in ((level.inside, 2), (level.start, 2), (level.stop, 2), (level.spans, 3)):
            if part is not None and np.ndim(part) == ndim:
                return int(np.shape(part)[0])
    for name, ndim in (("init", 3), ("end", 3)):
        for value in lists[name]:
            if np.ndim(value) == ndim:
                return int(np.shape(value)[0])
    raise ValueError(
        "the length of the sequence is not told: give persist of some level an array with a row per position"
    )


def _n_states(d: int, level: Any, lists: dict[str, list[Any]]) -> int:
    if isinstance(level, Persistence):
        found = [np.shape(part)[-1] for part in level[:-1] if part is not None and np.ndim(part)]
        if not found and d > 0:
            found = [np.shape(lists["init"][d - 1])[-1:], np.shape(lists["transit"][d - 1])[-1:]]
            found = [shape[0] for shape in found if shape]
        if not found and d < len(lists["init"]):
            found = [shape[0] for shape in (np.shape(lists["init"][d])[-2:-1],) if shape]
    else:
        found = list(np.shape(level)[2:3])
        if np.ndim(level) != 3:
            raise ValueError(f"persist[{d}] must have shape (T, M, S) or be a Persistence, got {np.shape(level)}")
    if not found or found[0] < 1:
        raise ValueError(f"persist[{d}] must have at least one state, got {found[0] if found else 'no array'}")
    return int(found[0])


def _masks(children: Any, pairs: list[tuple[int, int]]) -> list[Bools]:
    if children is None:
        return [np.ones(pair, np.bool_) for pair in pairs]
    masks = []
    for d, (value, pair) in enumerate(zip(_listed("children", children, len(pairs)), pairs, strict=True)):
        mask = checks.plain(f"children[{d}]", value)
        if mask.dtype != np.bool_:
            raise ValueError(f"children[{d}] must be a boolean array, got dtype {mask.dtype}")
        checks.check_shape(f"children[{d}]", mask, pair)
        masks.append(mask.copy())
    return masks
