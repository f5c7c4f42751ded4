"""From rules to automata over the labels that a lattice takes one after another.

Conventions: L labels; a chain takes a label at each position, segment lattices (and each level of nested ones) one for
each segment. `Reading` says which of these are occurrences: every segment; in a chain the first position of a run of
one label, or where a tag scheme begins a segment. As reading is a function of the labels, conjunctions, alternatives
and complements of rules are those of the automata over labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from scansion import _core
from scansion._checks import Bools, Ints
from scansion.rules.automata import MOST_STATES, Automaton, TooManyStatesError, intersection, minimal
from scansion.rules.expressions import Rule, parse
from scansion.rules.learn import Proposal
from scansion.schemes import neighbours

__all__ = ["Part", "Reading", "RuleSet", "alike", "given_rules"]


def given_rules(*given: Any) -> list[Rule]:
    """Rules from what users give: rules, text, or iterables of such."""
    found: list[Rule] = []
    for one in given:
        if isinstance(one, Rule):
            found.append(one)
        elif isinstance(one, Proposal):
            found.append(one.rule)
        elif isinstance(one, str):
            found.append(parse(one))
        elif isinstance(one, Sequence):
            found += given_rules(*one)
        else:
            raise ValueError(f"rules must be rules or their text, got {one!r}")
    return found


@dataclass(frozen=True)
class Reading:
    """The labels of one level, and whether runs of one label are one occurrence (chains)."""

    labels: Sequence[Any]
    runs: bool

    def automaton(self, rule: Rule) -> Automaton:
        """The label sequences that keep a rule."""
        if rule.name == "not":
            return self.automaton(rule.arguments[0]).complement()
        if rule.name in ("and", "or"):
            both = np.logical_and if rule.name == "and" else np.logical_or
            found = self.automaton(rule.arguments[0])
            for other in rule.arguments[1:]:
                try:
                    found = found.combined(self.automaton(other), both)
                except TooManyStatesError as error:
                    raise TooManyStatesError(f"the rule {rule} needs {error}: make it simpler") from None
            return found
        used = rule.arguments[0] if rule.name == "scheme" else rule.of
        if used is not None and not self.runs:
            raise ValueError(f"the rule {rule} is about tags, which are the labels of chains; segments have none")
        if used is not None:
            try:
                tags = neighbours(self.labels, used)
            except ValueError as error:
                raise ValueError(f"the rule {rule} does not go with these labels: {error}") from None
            if rule.name == "scheme":
                return _valid_neighbours(tags.valid)
            language = rule.language({kind: i for i, kind in enumerate(tags.types)})
            return _lifted(language, tags.type_of, tags.begins)
        language = rule.language({label: i for i, label in enumerate(self.labels)})
        if not self.runs:
            return language
        size = len(self.labels)
        begins = np.ones((size + 1, size), np.bool_)
        np.fill_diagonal(begins, False)
        return _lifted(language, np.arange(size), begins)


def _lifted(language: Automaton, letters: Any, begins: Bools) -> Automaton:
    """An automaton over labels from one over occurrences: states are pairs (state, label before).

    letters (L,): the letter of each label, -1 for none; begins (L + 1, L): an occurrence begins with this label after
    that one, the last row being for the first label of a sequence.
    """
    table, accepting = language.complete()
    n, size = len(accepting), len(letters)
    if n * (size + 1) > 50 * MOST_STATES:
        raise TooManyStatesError(f"more than {50 * MOST_STATES} states")
    stepped = np.where(letters >= 0, table[:, np.maximum(letters, 0)] if table.shape[1] else 0, np.arange(n)[:, None])
    after = np.where(begins[None], stepped[:, None, :], np.arange(n)[:, None, None])  # (n, L + 1, L)
    number = after * (size + 1) + np.arange(size)
    first = size  # state 0, nothing before
    rows = number.reshape(-1, size)
    order = np.concatenate([[first], np.delete(np.arange(len(rows)), first)])
    renamed = np.empty(len(rows), np.int64)
    renamed[order] = np.arange(len(rows))
    return minimal(renamed[rows[order]], np.repeat(accepting, size + 1)[order])


def _valid_neighbours(valid: Bools) -> Automaton:
    """The label sequences whose neighbours are all valid (L + 1, L + 1); the last row and column: begin and end."""
    size = len(valid) - 1
    sink = size + 1
    table = np.where(valid[:, :-1], np.arange(1, size + 1), sink)  # state i + 1: label i was the last
    table = np.vstack([table[-1:], table[:-1], np.full((1, size), sink)])
    return minimal(table, np.concatenate([valid[-1:, -1], valid[:-1, -1], [False]]))


@dataclass(frozen=True)
class Part:
    """One of several rules that must all hold: the automaton over the labels of a level.

    Of nested lattices, `level` is the one that it speaks of, and it holds inside each segment of level `within`.
    """

    rule: Rule
    machine: Automaton
    level: int = 0
    within: int = 0


@dataclass(frozen=True, eq=False)
class RuleSet:
    """Rules compiled for a kind of lattice, with the products that were made of them.

    Attributes
    ----------
    parts : tuple of Part
    tolerance : float
        Most probability that sums may leave out.
    most_states : int
        Of products.
    lenient : bool
        Sums leave out more than the tolerance where an automaton would be too large, instead of an error.
    """

    parts: tuple[Part, ...]
    tolerance: float = 1e-10
    most_states: int = MOST_STATES
    lenient: bool = False
    _products: dict[tuple[int, ...], Automaton] = field(default_factory=dict)

    @classmethod
    def compiled(
        cls, rules: Sequence[Rule], reading: Reading, tolerance: float = 1e-10, most_states: int = MOST_STATES
    ) -> RuleSet:
        """Of chains and segments."""
        parts = []
        for rule in rules:
            for part in rule.parts():
                for atom in part.atoms():
                    if atom.level is not None or atom.within is not None:
                        raise ValueError(f"the rule {atom} names a level, but there is one only: leave it out")
                parts.append(Part(part, reading.automaton(part)))
        return cls(tuple(parts), tolerance, most_states)

    def __len__(self) -> int:
        return len(self.parts)

    @cached_property
    def decided_by_label(self) -> tuple[int, ...]:
        """The parts of which the last label alone tells what may follow: in a first-order chain they add no state."""
        return tuple(i for i, part in enumerate(self.parts) if part.machine.by_letter() is not None)

    def places(self) -> dict[tuple[int, int], list[int]]:
        """(level, within) -> the parts that speak of it."""
        found: dict[tuple[int, int], list[int]] = {}
        for i, part in enumerate(self.parts):
            found.setdefault((part.level, part.within), []).append(i)
        return found

    def by_level(self, taken: tuple[int, ...], most: int | None = None) -> list[tuple[int, int, Automaton]]:
        """Level, within and automaton of some of the parts, those of one place together."""
        chosen = {place: tuple(i for i in parts if i in taken) for place, parts in self.places().items()}
        return [(*place, self.product(parts, most)) for place, parts in chosen.items() if parts]

    def broken(self, labels: Ints, offsets: Ints, chosen: Sequence[int] | None = None) -> Bools:
        """(parts, words): which parts, or of some of them, words cut at `offsets` out of `labels` break."""
        machines = [part.machine for part in (self.parts if chosen is None else (self.parts[i] for i in chosen))]
        found = _core.rules_broken([m.next for m in machines], [m.accepting for m in machines], labels, offsets, 1)
        return found.view(np.bool_)

    def broken_by(self, labels: Ints, offsets: Ints) -> Ints:
        """The words that break a rule."""
        return np.flatnonzero(self.broken(labels, offsets).any(axis=0))

    def broken_by_levels(self, answer: Sequence[Any], numbers: Sequence[dict[Any, int]], root: bool) -> list[Rule]:
        """The rules that an answer breaks: the segments of each level, the top one first.

        numbers: of the labels of each level; root: parts count levels from a root above the top one.
        """
        found = []
        for part in self.parts:
            at = part.level - root
            number = numbers[at]
            level = answer[at]
            outer = answer[part.within - root] if part.within else [(0, len(level) and level[-1][1], None)]
            words = [[number[y] for start, _, y in level if begin <= start < end] for begin, end, _ in outer]
            if not all(part.machine.accepts(word) for word in words):
                found.append(part.rule)
        return found

    def product(self, taken: tuple[int, ...], most: int | None = None) -> Automaton:
        """The automaton of some of the parts, all of one level."""
        if taken not in self._products:
            limit = self.most_states if most is None else most
            try:
                self._products[taken] = intersection([self.parts[i].machine for i in taken], limit)
            except TooManyStatesError:
                raise self.too_many(taken, limit) from None
        return self._products[taken]

    def fit_in(self, taken: Bools, wanted: Bools) -> Bools:
        """(sequences,) whether the rules that are wanted may be taken too: the automaton is not too large."""
        out = np.ones(len(taken), np.bool_)
        for more, sequences in alike(taken | wanted, np.arange(len(taken))):
            try:
                self.by_level(more)
            except TooManyStatesError:
                out[sequences] = False
        return out

    def too_many(self, taken: tuple[int, ...], limit: int | None = None) -> TooManyStatesError:
        """The error that says which rules are too much together."""
        names = ", ".join(str(self.parts[i].rule) for i in taken)
        return TooManyStatesError(
            f"these rules together need more than {self.most_states if limit is None else limit} states: {names}. "
            "Leave some out, raise max_states, or, for sums, tolerance"
        )


def alike(taken: Bools, sequences: Ints) -> list[tuple[tuple[int, ...], Ints]]:
    """Sequences by the rules that are taken for them."""
    chosen = taken[sequences]
    packed = np.packbits(chosen, axis=1)
    keys = packed.view(f"S{packed.shape[1]}").ravel()  # sorted as bytes, which is quicker than row by row
    _, first, kind = np.unique(keys, return_index=True, return_inverse=True)
    kinds = chosen[first]
    return [(tuple(np.flatnonzero(rules).tolist()), sequences[kind == i]) for i, rules in enumerate(kinds)]
