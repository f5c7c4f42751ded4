r"""Sums over ranges of states: what the pattern automaton costs where most arcs back off.

By a label y, a state goes the way of its longest suffix q for which ``q y`` is a state or a pattern; all states with
this q have one target and one set of matching patterns. In the order of the states' symbols read backwards, the states
that end in q are neighbours. Those that go the way of q are this range without the ranges of longer suffixes that know
y too: a few ranges, in all no more than two for each pair (q, y) and one for each label, where the automaton has S L
arcs. Sums and maxima over them need no subtraction.

Conventions as in :mod:`scansion.reference.segment`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from scansion.reference.enumeration import FloatArray
from scansion.reference.segment import Automaton


class Range(NamedTuple):
    """The states ``order[first:stop]``, which take label y to one target, with the same matching patterns."""

    label: int
    target: int
    first: int
    stop: int


def suffix_order(automaton: Automaton) -> list[int]:
    """The states in the order of their symbols read backwards."""
    return sorted(range(len(automaton.states)), key=lambda p: automaton.states[p][::-1])


def ranges(automaton: Automaton) -> list[Range]:
    """All arcs, in the longest ranges of neighbouring states that go one way."""
    order = suffix_order(automaton)
    n_states, n_labels = automaton.next.shape
    found = []
    for y in range(n_labels):
        ways = [
            (automaton.next[p, y], automaton.matches[p, y].tobytes(), automaton.closes[p, y].tobytes()) for p in order
        ]
        cuts = [0, *(i for i in range(1, n_states) if ways[i] != ways[i - 1]), n_states]
        found += [Range(y, int(ways[a][0]), a, b) for a, b in zip(cuts[:-1], cuts[1:], strict=True)]
    return found


def forward(automaton: Automaton, psi: FloatArray) -> FloatArray:
    """`scansion.reference.segment.forward` by ranges: the score of a range is that of any of its states."""
    n_times, max_length, n_states, _ = psi.shape
    order, arcs = suffix_order(automaton), ranges(automaton)
    alpha = np.full((n_times + 1, n_states), -np.inf)
    alpha[0, automaton.start] = 0.0
    for j in range(1, n_times + 1):
        for d in range(1, min(max_length, j) + 1):
            for label, target, first, stop in arcs:
                mass = np.logaddexp.reduce(alpha[j - d, order[first:stop]])
                alpha[j, target] = np.logaddexp(alpha[j, target], mass + psi[j - d, d - 1, order[first], label])
    return alpha
