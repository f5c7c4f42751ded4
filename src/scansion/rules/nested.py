"""Nested lattices under rules: an automaton over the segments of one level is carried along in the states.

A rule of level d that holds inside each segment of level k < d (the whole sequence: k = 0, the root) makes a nested
lattice with more states. At level d they are pairs (u, q): state u, and q, that of the automaton after it. At the
levels between they are triples (s, i, o): the automaton is in i before the segment and in o after it. Scores are those
of u and s; what does not fit together is forbidden (-inf):

- the first child of a segment of level k begins in the first state, its last child leaves an accepting one;
- the first child of a triple begins in i and the last one leaves o;
- neighbours begin where the one before them ends.

The automaton is deterministic, so trees are in bijection with the trees of pairs and triples that are allowed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from scansion._checks import Bools, Floats, Ints
from scansion.data.knowledge import Knowledge, Known
from scansion.lattice.cores import Core, Packed
from scansion.lattice.nested_scores import LevelScores, NestedCore
from scansion.rules.automata import Automaton
from scansion.rules.compile import Part, Reading, RuleSet
from scansion.rules.expressions import Rule

__all__ = ["ExpandedCore", "Joined", "expanded", "joined", "nested_rules", "words"]

_PARTS = ("inside", "start", "stop", "length", "spans")


def nested_rules(
    rules: Sequence[Rule], labels: Sequence[Sequence[Any]], names: Sequence[str] | None, **options: Any
) -> RuleSet:
    """Rules compiled for nested lattices.

    labels: of each level, the root first; names: of the levels below the root, None: levels are numbers, the root 0.
    """
    parts = []
    for rule in rules:
        for part in rule.parts():
            places = {(atom.level, atom.within) for atom in part.atoms()}
            if len(places) > 1:
                raise ValueError(f"the rule {part} speaks of several levels: only a conjunction (&) may do so")
            ((level, within),) = places
            if level is None:
                raise ValueError(
                    f"the rule {part} must name the level that it speaks of, as in level={_example(names)}"
                )
            d = _level(part, level, names, len(labels))
            k = 0 if within is None else _level(part, within, names, len(labels))
            if k >= d:
                raise ValueError(f"the rule {part} holds within {within!r}, which is not a level above {level!r}")
            parts.append(Part(part, Reading(labels[d], False).automaton(part), d, k))
    return RuleSet(tuple(parts), **options)


def _example(names: Sequence[str] | None) -> str:
    return "1" if names is None else repr(names[-1])


def _level(rule: Rule, level: Any, names: Sequence[str] | None, depth: int) -> int:
    """A level's number, the root being 0."""
    if names is not None and level in names:
        return list(names).index(level) + 1
    first = 0 if names is None else 1
    if isinstance(level, int) and 0 <= level < depth - first:
        return level + first
    known = f"0..{depth - 1}" if names is None else ", ".join(map(repr, names))
    raise ValueError(f"the rule {rule} names the level {level!r}; the levels are {known}")


def words(packed: Packed, levels: int, level: int, within: int) -> tuple[Ints, Ints, Ints]:
    """Labels of the segments of a level, the offsets of the words they form, and the configuration of each word."""
    n = (len(packed.paths) - 1) // levels
    begin, end = packed.paths[:-1].reshape(n, levels), packed.paths[1:].reshape(n, levels)
    config = np.repeat(np.arange(n), levels)
    config = np.repeat(config, np.diff(packed.paths))  # of each step
    depth = np.repeat(np.tile(np.arange(levels), n), np.diff(packed.paths))
    own = depth == level
    labels = np.ascontiguousarray(packed.steps[own, 2])
    if within == 0:
        offsets = np.concatenate([[0], np.cumsum(end[:, level] - begin[:, level])])
        return labels, offsets.astype(np.int64), np.arange(n)
    longest = int(packed.steps[:, 1].max(initial=0)) + 1
    outer = depth == within
    starts = config[own] * longest + packed.steps[own, 0]
    firsts = config[outer] * longest + packed.steps[outer, 0]
    offsets = np.append(np.searchsorted(starts, firsts), len(starts)).astype(np.int64)
    return labels, offsets, config[outer]


def expanded(core: NestedCore, machines: Sequence[tuple[int, int, Automaton]]) -> ExpandedCore:
    """A nested core under automata (level, within, automaton over the states of the level)."""
    labels = [np.arange(size) for size in core.sizes]
    found = core
    for level, within, machine in machines:
        found, maps = _carried(found, level, within, machine.reading(labels[level]))
        labels = [one[more] for one, more in zip(labels, maps, strict=True)]
    return ExpandedCore(core.offsets, core.known, core, found, tuple(labels))


@dataclass(frozen=True)
class _States:
    """The states of one level: those of the core, and of the automaton before and after a segment (-1: not told)."""

    label: Ints
    before: Ints
    after: Ints


@dataclass(frozen=True)
class Joined:
    """States with those of an automaton, by level, and what fits together between each level and the one below it.

    Attributes
    ----------
    labels : list of D int (S'_d,)
        The state that each state stands for.
    fits, first, last : lists of D - 1 bool (S'_d, S'_{d+1})
        The state may lie in the other, be its first child, its last child.
    follows : list of D - 1 bool (S'_{d+1}, S'_{d+1})
        The second may follow the first.
    """

    labels: list[Ints]
    fits: list[Bools]
    first: list[Bools]
    last: list[Bools]
    follows: list[Bools]


def joined(sizes: Sequence[int], level: int, within: int, machine: Automaton) -> Joined:
    """The states of levels with those of an automaton over the segments of one of them."""
    n = len(machine)
    reach = np.zeros((n, n), np.bool_)  # by one letter or more
    for q in range(n):
        reach[q, machine.next[q][machine.next[q] >= 0]] = True
    for q in range(n):
        reach |= reach[:, q : q + 1] & reach[q]
    stays = reach | np.eye(n, dtype=np.bool_)
    states = []
    for d, size in enumerate(sizes):
        if d == level:
            after, label = map(np.ravel, np.meshgrid(np.arange(n), np.arange(size), indexing="ij"))
            used = (machine.next[:, label] == after).any(axis=0)
            used[0] |= not used.any()  # a level has a state, if only one that is forbidden
            states.append(_States(label[used], np.full(int(used.sum()), -1), after[used]))
        elif within < d < level:
            before, after = np.nonzero(reach if reach.any() else stays)
            pairs = len(before)
            states.append(_States(np.tile(np.arange(size), pairs), np.repeat(before, size), np.repeat(after, size)))
        else:
            states.append(_States(np.arange(size), np.full(size, -1), np.full(size, -1)))
    found = Joined([one.label for one in states], [], [], [], [])
    for d in range(len(sizes) - 1):
        outer, inner = states[d], states[d + 1]
        fits = np.ones((len(outer.label), len(inner.label)), np.bool_)
        first, last, follows = fits, fits, np.ones((len(inner.label),) * 2, np.bool_)
        if within <= d < level:
            if d == within:  # begins in the first state, ends in an accepting one
                i = np.zeros((len(outer.label), 1), np.int64)
                last = np.broadcast_to(machine.accepting[inner.after] > 0, fits.shape)
            else:
                i = outer.before[:, None]
                last = inner.after == outer.after[:, None]
                fits = fits & stays[inner.after, outer.after[:, None]]
            if d + 1 == level:
                first = machine.next[i, inner.label] == inner.after
                fits = fits & reach[i, inner.after]
                follows = machine.next[inner.after[:, None], inner.label] == inner.after
            else:
                first = np.broadcast_to(inner.before == i, fits.shape)
                fits = fits & stays[i, inner.before]
                follows = inner.after[:, None] == inner.before
        for masks, mask in ((found.fits, fits), (found.first, first), (found.last, last), (found.follows, follows)):
            masks.append(mask)
    return found


def _carried(core: NestedCore, level: int, within: int, machine: Automaton) -> tuple[NestedCore, list[Ints]]:
    """The core with the states of an automaton, and the state of the core that each of its states stands for."""
    found = joined(core.sizes, level, within, machine)
    labels = found.labels
    children, init, end, transit = [], [], [], []
    for d in range(core.n_levels - 1):
        grid: Any = np.ix_(labels[d], labels[d + 1])
        cube: Any = np.ix_(labels[d], labels[d + 1], labels[d + 1])
        children.append(core.children[d][grid] & found.fits[d])
        init.append(_masked(core.init[d][(..., *grid)], found.first[d]))
        end.append(_masked(core.end[d][(..., *grid)], found.last[d]))
        transit.append(_masked(core.transit[d][(..., *cube)], found.follows[d]))
    levels = tuple(_columns(one, label) for one, label in zip(core.levels, labels, strict=True))
    changed = replace(
        core,
        known=Knowledge(tuple(map(_allowed, core.known.levels, core.sizes, labels)), core.offsets),
        levels=levels,
        children=tuple(children),
        init=tuple(init),
        end=tuple(end),
        transit=tuple(transit),
    )
    return changed, labels


def _allowed(known: Known, size: int, label: Ints) -> Known:
    """What is known of the states of a level, in other states."""
    mask = known.mask(size)
    return known if mask is None else Known(allowed=np.ascontiguousarray(mask[:, label]), ends=known.ends)


def _masked(scores: Floats, allowed: Bools) -> Floats:
    return np.ascontiguousarray(np.where(allowed, scores, -np.inf))


def _columns(level: LevelScores, label: Ints) -> LevelScores:
    """The persistence of other states."""
    parts: dict[str, Any] = {
        name: None if getattr(level, name) is None else np.ascontiguousarray(getattr(level, name)[..., label])
        for name in _PARTS
    }
    return replace(level, size=len(label), **parts)


@dataclass(frozen=True)
class ExpandedCore(Core):
    """A nested core under rules; it answers in the states of `base` for `inner`, whose states `labels` maps to them."""

    base: NestedCore
    inner: NestedCore
    labels: tuple[Ints, ...]

    @property
    def n_levels(self) -> int:  # type: ignore[override]
        """Number of levels."""
        return self.base.n_levels

    @property
    def n_labels(self) -> int:
        """Number of states of the bottom level."""
        return self.base.n_labels

    @cached_property
    def native(self) -> Any:
        """The object that answers, in states of its own."""
        return self.inner.native

    def take(self, sequences: Ints) -> ExpandedCore:
        """The core of some sequences."""
        inner = self.inner.take(sequences)
        base = self.base.take(sequences)
        return ExpandedCore(base.offsets, base.known, base, inner, self.labels)

    def _named(self, packed: Packed) -> Packed:
        firsts = np.cumsum([0, *(len(one) for one in self.labels)])
        level = np.repeat(np.arange(len(packed.paths) - 1) % self.n_levels, np.diff(packed.paths))
        steps = packed.steps.copy()
        steps[:, 2] = np.concatenate(self.labels)[firsts[level] + steps[:, 2]]
        return packed._replace(steps=steps)

    def best(self, threads: int) -> Packed:
        """Best configurations; none for a sequence that is impossible."""
        return self._named(self.inner.best(threads))

    def kbest(self, k: int, threads: int) -> Packed:
        """The k best configurations of each sequence, best first."""
        return self._named(self.inner.kbest(k, threads))

    def sample(self, n: int, generator: np.random.Generator, threads: int) -> Packed:
        """Random configurations, n of each sequence."""
        return self._named(self.inner.sample(n, generator, threads))

    def log_partitions(self, threads: int) -> Floats:
        """(B,) log Z, -inf where nothing is possible."""
        return self.inner.log_partitions(threads)

    def entropies(self, threads: int) -> Floats:
        """(B,) entropies in nats."""
        return self.inner.entropies(threads)

    def furthest(self, b: int) -> int:
        """Positions of sequence b that some configuration can cover."""
        return self.inner.furthest(b)

    def posteriors(self, threads: int, **options: Any) -> dict[str, Any]:
        """As of nested cores: states that stand for one are added up."""
        found = self.inner.posteriors(threads, **options)
        sizes = self.base.sizes

        def folded(array: Floats | None, *levels: int) -> Floats | None:
            """The last axes are states of these levels."""
            if array is None:
                return None
            for axis, d in enumerate(reversed(levels), 1):
                member = np.zeros((len(self.labels[d]), sizes[d]))
                member[np.arange(len(self.labels[d])), self.labels[d]] = 1.0
                array = np.moveaxis(np.moveaxis(array, -axis, -1) @ member, -1, -axis)
            return np.ascontiguousarray(array)

        out = dict(found)
        for name in ("labels", "spans", "start", "stop", "length"):
            out[name] = [folded(array, d) for d, array in enumerate(found[name])]
        for name in ("init", "end"):
            out[name] = [folded(array, d, d + 1) for d, array in enumerate(found[name])]
        out["transit"] = [folded(array, d, d + 1, d + 1) for d, array in enumerate(found["transit"])]
        return out
