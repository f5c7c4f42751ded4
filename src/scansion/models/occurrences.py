"""Where cliques of known labels occur in training data: what features are seen.

An occurrence of a part at a level is a token (or a span) and a column of the part's block; see
`scansion.models.nested_model`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scansion._checks import Bools, Floats, Ints
from scansion.data import Dataset, Knowledge, Known
from scansion.data.dataset import gather
from scansion.models.inputs import Inputs
from scansion.models.weights import Level, find

__all__ = ["Occurrences", "pairs", "span_entries", "token_entries"]


@dataclass(frozen=True)
class _Tokens:
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


def _tokens(known: Known, offsets: Ints) -> _Tokens:
    """What is known of one level; the sequences' ends are."""
    assert known.ends is not None
    ends = known.ends
    before = np.ones(len(ends), np.int8)
    before[1:] = ends[:-1]
    before[offsets[:-1][np.diff(offsets) > 0]] = 1
    return _Tokens(known.numbers.astype(np.int64), before == 1, before == 0, ends == 1)


def _root(offsets: Ints) -> _Tokens:
    """The root: one state over each sequence."""
    n = int(offsets[-1])
    starts, ends = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    full = np.diff(offsets) > 0
    starts[offsets[:-1][full]] = True
    ends[offsets[1:][full] - 1] = True
    return _Tokens(np.zeros(n, np.int64), starts, ~starts, ends)


def pairs(parent: _Tokens, child: _Tokens, sizes: tuple[int, int]) -> Bools:
    """(S_{k-1}, S_k) which labels are seen in which."""
    seen = np.zeros(sizes, np.bool_)
    both = (parent.label >= 0) & (child.label >= 0)
    seen[parent.label[both], child.label[both]] = True
    return seen


class Occurrences:
    """The occurrences of known cliques by level and part.

    Parameters
    ----------
    known : Knowledge
    sizes : K numbers of states
    """

    def __init__(self, known: Knowledge, sizes: list[int]) -> None:
        self.levels = [_root(known.offsets), *(_tokens(one, known.offsets) for one in known.levels)]
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


def token_entries(data: Dataset, tokens: Ints, columns: Ints, width: int) -> tuple[Ints, Floats]:
    """The attributes of some tokens, each with a column: attribute * width + column, and their values."""
    counts = np.diff(data.token_offsets)[tokens]
    _, chosen = gather(data.token_offsets, tokens)
    value = np.ones(len(chosen)) if data.values is None else data.values[chosen]
    return data.ids[chosen] * np.int64(width) + np.repeat(columns, counts), value


def span_entries(level: Level, k: int, seen: Occurrences, inputs: Inputs) -> tuple[Ints, Floats]:
    """The attributes of the known segments of a level: attribute * S + label, and their values."""
    spans = inputs.spans[k]
    assert level.max_length is not None and spans is not None
    longest = level.max_length
    row = np.repeat(inputs.data.offsets[:-1], np.diff(spans.offsets)) + spans.start
    start, length, label = seen.segments(k)
    place, known = find(start * longest + length - 1, row * longest + spans.length - 1)
    return spans.ids[known] * np.int64(level.size) + label[place[known]], spans.values[known]
