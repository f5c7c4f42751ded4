"""Exact inference on given scores: arrays in, answers out.

`chain` one label per position; `segment` segments with labels; `patterns` the automaton under both; `nested` segments
inside segments, `nested_scores` their scores; `base` the questions every lattice
answers; `cores` the two engines of flat lattices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scansion.lattice.chain import ChainBatch, ChainLattice, ChainMarginals
from scansion.lattice.patterns import BOS, EOS, PatternAutomaton
from scansion.lattice.segment import SegmentBatch, SegmentLattice, SegmentMarginals, SegmentParts
from scansion.segments import Segment

if TYPE_CHECKING:  # loaded when first used
    from scansion.lattice.nested import NestedBatch, NestedLattice, NestedMarginals, NestedScores, Persistence

__all__ = [
    "BOS",
    "EOS",
    "ChainBatch",
    "ChainLattice",
    "ChainMarginals",
    "NestedBatch",
    "NestedLattice",
    "NestedMarginals",
    "NestedScores",
    "PatternAutomaton",
    "Persistence",
    "Segment",
    "SegmentBatch",
    "SegmentLattice",
    "SegmentMarginals",
    "SegmentParts",
]

_NESTED = ("NestedBatch", "NestedLattice", "NestedMarginals", "NestedScores", "Persistence")


def __getattr__(name: str) -> Any:
    if name not in _NESTED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from scansion.lattice import nested

    globals().update({known: getattr(nested, known) for known in _NESTED})
    return globals()[name]
