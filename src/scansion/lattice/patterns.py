"""Label patterns and the automaton that follows them (paper 001, section 2.2).

A pattern is a tuple of labels; it matches where the last labels equal it. `BOS` may stand first and `EOS` last: the
pattern then matches only at the start or the end of the sequence. A pattern that ends in `EOS` reads its score on the
segment of its last real label.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from scansion import _checks as checks
from scansion import _core
from scansion.rules.automata import Automaton, TooManyStatesError

__all__ = ["BOS", "EOS", "Pattern", "PatternAutomaton"]

BOS = -1
"""Start of the sequence, as the first symbol of a pattern."""
EOS = -2
"""End of the sequence, as the last symbol of a pattern."""

Pattern = tuple[int, ...]

_MOST_STATES = 200_000  # of a product with rules
_MOST_TOPOLOGIES = 500


class PatternAutomaton:
    """States, arcs and pattern lists of a set of label patterns; built once, shared by lattices.

    The states are the empty pattern, all labels and all proper prefixes of patterns; ``next(p, y)`` is the longest
    suffix of ``p + (y,)`` among them. Building takes O(n log m + n_states n_labels) time, n symbols in all patterns and
    m in the longest.

    Parameters
    ----------
    patterns : sequence of tuples of int
        Labels ``0..n_labels-1``, `BOS` allowed first and `EOS` last; no pattern twice.
    n_labels : int
        Number of labels L.

    Attributes
    ----------
    patterns : tuple of tuples
    n_labels, n_states, initial : int
        `initial` is the state before the first label.
    """

    def __init__(self, patterns: Iterable[Sequence[int]], n_labels: int) -> None:
        self.n_labels = checks.count("n_labels", n_labels, 1)
        self.patterns = _checked(patterns, self.n_labels)
        lengths = np.fromiter((len(p) for p in self.patterns), np.int64, len(self.patterns))
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        symbols = np.fromiter((y for p in self.patterns for y in p), np.int32, int(offsets[-1]))
        self._symbols, self._offsets = symbols, offsets
        try:
            self._native = _core.PatternAutomaton(self.n_labels, symbols, offsets)
        except ValueError as error:
            raise ValueError(f"the automaton of {len(self.patterns)} patterns is too large: {error}") from None
        self._topologies: dict[tuple[bytes, Automaton | None], _core.Topology] = {}

    @property
    def n_states(self) -> int:
        """Number of states."""
        return self._native.n_states

    @property
    def initial(self) -> int:
        """The state before the first label."""
        return self._native.initial

    @property
    def states(self) -> list[Pattern]:
        """The states' symbols; sorted by their symbols read backwards."""
        return [tuple(self._native.symbols(p)) for p in range(self.n_states)]

    @property
    def next(self) -> npt.NDArray[np.int32]:
        """(n_states, n_labels): the state after a label."""
        return self._native.next()

    @cached_property
    def _match_tables(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        return self._native.match(), self._native.pattern_suffix()

    def matches(self, state: int, label: int) -> list[int]:
        """Patterns that match when `label` is taken in `state`, longest first (patterns with `EOS` excepted)."""
        match, suffix = self._match_tables
        found, z = [], int(match[state, label])
        while z >= 0:
            found.append(z)
            z = int(suffix[z])
        return found

    def topology(
        self, extent: npt.NDArray[np.bool_], rules: Automaton | None = None, most_states: int = _MOST_STATES
    ) -> _core.Topology:
        """Layout for the kernels; extent (n_patterns,): true where more than a start score exists.

        rules: of the product with an automaton over labels; TooManyStatesError if it has more than `most_states`.
        """
        key = (extent.tobytes(), rules)
        if key not in self._topologies:
            if len(self._topologies) >= _MOST_TOPOLOGIES:
                self._topologies.clear()
            parts = self._native, extent.astype(np.uint8)
            if rules is None:
                self._topologies[key] = _core.Topology(*parts)
            else:
                try:
                    self._topologies[key] = _core.Topology(*parts, rules.next, rules.accepting, most_states)
                except OverflowError:
                    raise TooManyStatesError(f"more than {most_states} states") from None
        return self._topologies[key]

    def __repr__(self) -> str:
        return f"PatternAutomaton({len(self.patterns)} patterns, {self.n_labels} labels, {self.n_states} states)"


def automaton(patterns: Any, n_labels: int) -> PatternAutomaton:
    """`patterns` as an automaton, which it may be already."""
    if isinstance(patterns, PatternAutomaton):
        if patterns.n_labels != n_labels:
            raise ValueError(f"n_labels is {n_labels}, but patterns was built for {patterns.n_labels} labels")
        return patterns
    return PatternAutomaton(patterns, n_labels)


def _checked(patterns: Any, n_labels: int) -> tuple[Pattern, ...]:
    if not isinstance(patterns, Iterable) or isinstance(patterns, (str, bytes)):
        raise ValueError(f"patterns must be a sequence of tuples of labels, got {patterns!r}")
    result: list[Pattern] = []
    for i, given in enumerate(patterns):
        if not isinstance(given, (Sequence, np.ndarray)) or isinstance(given, (str, bytes)) or len(given) == 0:
            raise ValueError(f"patterns[{i}] must be a non-empty tuple of labels, got {given!r}")
        try:
            pattern = tuple(operator.index(y) for y in given)
        except TypeError:
            raise ValueError(f"patterns[{i}] = {given!r} holds something that is not an integer label") from None
        body = pattern[pattern[0] == BOS : len(pattern) - (pattern[-1] == EOS)]
        if not body:
            raise ValueError(f"patterns[{i}] = {given!r} must hold at least one label beside BOS and EOS")
        for y in body:
            if not 0 <= y < n_labels:
                raise ValueError(
                    f"patterns[{i}] = {given!r}: label {y} is out of range 0..{n_labels - 1} "
                    "(BOS may only stand first, EOS only last)"
                )
        result.append(pattern)
    if len(set(result)) < len(result):
        seen: dict[Pattern, int] = {}
        for i, pattern in enumerate(result):
            if pattern in seen:
                raise ValueError(f"patterns[{i}] = {pattern!r} is a duplicate of patterns[{seen[pattern]}]")
            seen[pattern] = i
    return tuple(result)
