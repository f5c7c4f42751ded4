"""Where cliques of known labels occur in targets: which features are seen at all.

An occurrence of a part at a level is a row (a token, or a span) and a column of the part's block; see
`scansion.models.nested.model`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scansion._checks import Bools, Floats, Ints
from scansion.data import LevelTargets, Targets
from scansion.models.nested.inputs import NestedInputs
from scansion.models.nested.model import Level

__all__ = ["Occurrences", "Tokens", "find", "pairs", "span_entries", "tokens"]


@dataclass(frozen=True)
class Tokens:
    """What is known of one level, token by token.

    Attributes
    ----------
    label : int64 (N,), -1 for unknown
    starts, inner, ends : bool (N,)
        A segment is known to begin here, not to begin here, to end here.
    """

    label: Ints
    starts: Bools
    inner: Bools
    ends: Bools


def tokens(targets: Targets, offsets: Ints) -> Tokens:
    """What targets say of one level; the sequences' ends are known."""
    assert targets.ends is not None
    ends = targets.ends
    before = np.ones(len(ends), np.int8)
    before[1:] = ends[:-1]
    before[offsets[:-1][np.diff(offsets) > 0]] = 1
    return Tokens(targets.labels.astype(np.int64), before == 1, before == 0, ends == 1)


def root(offsets: Ints) -> Tokens:
    """The root: one state over each sequence."""
    n = int(offsets[-1])
    starts, ends = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    full = np.diff(offsets) > 0
    starts[offsets[:-1][full]] = True
    ends[offsets[1:][full] - 1] = True
    return Tokens(np.zeros(n, np.int64), starts, ~starts, ends)


def pairs(parent: Tokens, child: Tokens, sizes: tuple[int, int]) -> Bools:
    """(S_{k-1}, S_k) which labels are seen in which."""
    seen = np.zeros(sizes, np.bool_)
    both = (parent.label >= 0) & (child.label >= 0)
    seen[parent.label[both], child.label[both]] = True
    return seen


class Occurrences:
    """The occurrences of known cliques by level and part.

    Parameters
    ----------
    targets : LevelTargets
    offsets : (B + 1,)
    sizes : K numbers of states
    """

    def __init__(self, targets: LevelTargets, offsets: Ints, sizes: list[int]) -> None:
        self.levels = [root(offsets), *(tokens(t, offsets) for t in targets.levels)]
        self.sizes = sizes

    def of(self, k: int, part: str) -> tuple[Ints, Ints]:
        """Rows (token numbers) and columns of a part at level k, in the order of the rows.

        A transition's row is the first token of its right child. Lengths and spans are in `segments`.
        """
        parent, child, size = self.levels[k], self.levels[k + 1], self.sizes[k]
        known = child.label >= 0
        if part == "inside":
            at = np.flatnonzero(known)
        elif part == "start":
            at = np.flatnonzero(known & child.starts)
        elif part == "end":
            at = np.flatnonzero(known & child.ends)
        elif part == "inner":
            at = np.flatnonzero(known & child.inner)
        elif part == "transition":
            within = np.flatnonzero(child.starts & parent.inner & (parent.label >= 0) & known)
            at = within[child.label[within - 1] >= 0]  # inside a parent there is a token before it
            return at, (parent.label[at] * size + child.label[at - 1]) * size + child.label[at]
        else:
            edge = parent.starts if part == "initialisation" else parent.ends
            at = np.flatnonzero(edge & known & (parent.label >= 0))
            return at, parent.label[at] * size + child.label[at]
        return at, child.label[at]

    def segments(self, k: int) -> tuple[Ints, Ints, Ints]:
        """First token, length and label of the segments of level k of which all three are known."""
        child = self.levels[k + 1]
        n = len(child.label)
        # a segment goes on as long as the next token is known to be inside it
        open_after = np.append(child.inner[1:], False) if n else np.zeros(0, np.bool_)
        stops = np.flatnonzero(~open_after)
        start = np.flatnonzero((child.label >= 0) & child.starts)
        stop = stops[np.searchsorted(stops, start)] if len(start) else start
        whole = child.ends[stop]
        return start[whole], (stop - start + 1)[whole], child.label[start[whole]]


def span_entries(level: Level, k: int, seen: Occurrences, inputs: NestedInputs) -> tuple[Ints, Floats]:
    """Attributes of the known segments of a level, as `Entries.expanded` gives them."""
    assert level.max_length is not None
    places, entries = inputs.spans(k, level.max_length)
    start, length, label = seen.segments(k)
    place, there = find(places, start * level.max_length + length - 1)
    return entries.expanded(place[there], label[there], level.size)


def find(among: Ints, wanted: Ints) -> tuple[Ints, Bools]:
    """Place of each number in an ascending array, and whether it is there."""
    place = np.searchsorted(among, wanted)
    there = place < len(among)
    there[there] = among[place[there]] == wanted[there]
    return place, there
