"""Deterministic automata over the letters 0 .. A-1: what rules are compiled to.

Conventions: state 0 is the first; ``next`` (Q, A) has -1 where nothing that may follow is accepted. Automata are
minimal and their states numbered by breadth-first search, so equal languages have equal tables. Products are made of
the states that can be reached only, and never of more than a limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from scansion._checks import Bools

__all__ = ["Automaton", "TooManyStatesError", "determinized", "intersection", "minimal"]

Table = npt.NDArray[np.int32]

MOST_STATES = 20_000


class TooManyStatesError(ValueError):
    """An automaton would have more states than it may."""


@dataclass(frozen=True, eq=False)
class Automaton:
    """A deterministic automaton.

    Attributes
    ----------
    next : int32 (Q, A)
        The state after a letter; -1: nothing that may follow is accepted.
    accepting : uint8 (Q,)
        1 where a word may end.
    """

    next: Table
    accepting: npt.NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.accepting)

    def accepts(self, word: Iterable[int]) -> bool:
        """Whether a word is in the language."""
        q = 0
        for letter in word:
            q = int(self.next[q, letter])
            if q < 0:
                return False
        return bool(self.accepting[q])

    def complement(self) -> Automaton:
        """The words that this one does not accept."""
        table, accepting = self.complete()
        return minimal(table, ~accepting)

    def combined(self, other: Automaton, both: Callable[[Any, Any], Any]) -> Automaton:
        """The words of which `both` holds, told whether each of the two accepts them."""
        (a, a_ends), (b, b_ends) = self.complete(), other.complete()
        n = len(b_ends)
        _check_size(len(a_ends) * n)
        table = (a[:, None, :].astype(np.int64) * n + b[None, :, :]).reshape(-1, a.shape[1])
        return minimal(table, both(a_ends[:, None], b_ends[None, :]).ravel())

    def complete(self) -> tuple[npt.NDArray[Any], Bools]:
        """The table with a last state in place of -1, and the accepting states."""
        sink = len(self)
        table = np.vstack([np.where(self.next < 0, sink, self.next), np.full((1, self.next.shape[1]), sink)])
        return table, np.append(self.accepting.astype(np.bool_), False)

    def reading(self, letters: npt.NDArray[Any]) -> Automaton:
        """The automaton that takes each new letter i for ``letters[i]``."""
        return Automaton(np.ascontiguousarray(self.next[:, letters]), self.accepting)

    def by_letter(self) -> npt.NDArray[np.int64] | None:
        """(A,) the state after each letter, if the letter alone tells it (-1: it never occurs); else None."""
        top = self.next.max(axis=0, initial=-1)
        alike = (self.next == top) | (self.next < 0)
        return top.astype(np.int64) if alike.all() else None


def minimal(table: npt.NDArray[Any], accepting: Any) -> Automaton:
    """The minimal automaton of a complete one: table (Q, A), first state 0 (Moore's algorithm, O(Q^2 A) at most)."""
    table, accepting = np.asarray(table, np.int64), np.asarray(accepting, np.bool_)
    seen = np.zeros(len(table), np.bool_)
    frontier = np.zeros(1, np.int64)
    seen[0] = True
    while frontier.size:
        found = np.unique(table[frontier])
        frontier = found[~seen[found]]
        seen[frontier] = True
    kept = np.flatnonzero(seen)
    number = np.cumsum(seen) - 1
    table, accepting = number[table[kept]], accepting[kept]
    block = accepting.astype(np.int64)
    count = len(np.unique(block))
    while True:
        _, refined = np.unique(np.column_stack([block, block[table]]), axis=0, return_inverse=True)
        refined = refined.ravel()
        if refined.max() + 1 == count:
            break
        block, count = refined, int(refined.max()) + 1
    block = refined
    _, first = np.unique(block, return_index=True)
    table, accepting = block[table[first]], accepting[first]
    alive = accepting.copy()
    while True:
        more = alive | alive[table].any(axis=1)
        if (more == alive).all():
            break
        alive = more
    return _numbered(np.where(alive[table], table, -1), accepting, int(block[0]))


def _numbered(table: npt.NDArray[Any], accepting: Bools, first: int) -> Automaton:
    """States in the order of breadth-first search."""
    order, number = [first], {first: 0}
    for state in order:
        for target in table[state].tolist():
            if target >= 0 and target not in number:
                number[target] = len(order)
                order.append(target)
    renamed = np.full(len(table) + 1, -1, np.int32)
    renamed[order] = np.arange(len(order))
    return Automaton(
        np.ascontiguousarray(renamed[table[order]], np.int32), np.ascontiguousarray(accepting[order], np.uint8)
    )


def intersection(machines: Sequence[Automaton], most: int = MOST_STATES) -> Automaton:
    """The words that all of the automata accept; only states that can be reached are made."""
    if len(machines) == 1:
        return machines[0]
    letters = machines[0].next.shape[1]
    sizes = np.array([len(m) for m in machines], np.int64)
    if float(np.prod(sizes.astype(np.float64))) >= 2.0**62:
        # the numbers of pairs would not fit: take the automata together by halves
        half = len(machines) // 2
        return intersection([intersection(machines[:half], most), intersection(machines[half:], most)], most)
    weights = np.concatenate([np.cumprod(sizes[::-1])[::-1][1:], [1]])
    number: dict[int, int] = {0: 0}
    keys, rows = [0], []
    begin = 0
    while begin < len(keys):
        frontier = np.array(keys[begin:], np.int64)
        begin = len(keys)
        target = np.zeros((len(frontier), letters), np.int64)
        dead = np.zeros(target.shape, np.bool_)
        for machine, size, weight in zip(machines, sizes, weights, strict=True):
            step = machine.next[frontier // weight % size]
            dead |= step < 0
            target += step * weight
        target[dead] = -1
        for key in np.unique(target[~dead]).tolist():
            if key not in number:
                number[key] = len(keys)
                keys.append(key)
        _check_size(len(keys), most)
        rows.append(target)
    known = np.array(sorted(number), np.int64)
    names = np.array([number[key] for key in known.tolist()], np.int64)
    table = np.concatenate(rows)
    table = np.where(table < 0, len(keys), names[np.minimum(np.searchsorted(known, table), len(known) - 1)])
    reached = np.array(keys, np.int64)
    accepting = np.ones(len(keys), np.bool_)
    for machine, size, weight in zip(machines, sizes, weights, strict=True):
        accepting &= machine.accepting[reached // weight % size].astype(np.bool_)
    table = np.vstack([table, np.full((1, letters), len(keys))])
    return minimal(table, np.append(accepting, False))


def determinized(edges: Sequence[tuple[int, Any, int]], last: int, letters: int) -> Automaton:
    """From a nondeterministic automaton, first state 0: edges (from, letters, to); letters None: it reads nothing."""
    silent: dict[int, list[int]] = {}
    reading: dict[int, list[tuple[Any, int]]] = {}
    for source, read, target in edges:
        if read is None:
            silent.setdefault(source, []).append(target)
        else:
            reading.setdefault(source, []).append((read, target))

    def closed(states: Iterable[int]) -> frozenset[int]:
        found = list(states)
        seen = set(found)
        for state in found:
            for target in silent.get(state, ()):
                if target not in seen:
                    seen.add(target)
                    found.append(target)
        return frozenset(seen)

    subsets = [closed([0])]
    number = {subsets[0]: 0}
    table = []
    for subset in subsets:
        row = []
        targets: list[set[int]] = [set() for _ in range(letters)]
        for state in subset:
            for read, target in reading.get(state, ()):
                for letter in read:
                    targets[letter].add(target)
        for found in targets:
            after = closed(found)
            if after not in number:
                number[after] = len(subsets)
                subsets.append(after)
                _check_size(len(subsets))
            row.append(number[after])
        table.append(row)
    return minimal(np.array(table).reshape(len(table), letters), [last in subset for subset in subsets])


def _check_size(states: int, most: int = MOST_STATES) -> None:
    if states > most:
        raise TooManyStatesError(f"more than {most} states")
