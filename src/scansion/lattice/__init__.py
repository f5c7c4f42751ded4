"""Exact inference on given scores: arrays in, answers out.

`chain` one label per position; `segment` segments with labels; `patterns` the automaton under both; `nested` segments
inside segments, `nested_scores` their scores; `constraints` partial knowledge; `base` the questions every lattice
answers; `cores` the two engines of flat lattices; `checks` the border.
"""

from scansion.lattice.chain import ChainBatch, ChainLattice, ChainMarginals
from scansion.lattice.nested import NestedBatch, NestedLattice, NestedMarginals, NestedScores, Persistence
from scansion.lattice.patterns import BOS, EOS, PatternAutomaton
from scansion.lattice.segment import SegmentBatch, SegmentLattice, SegmentMarginals, SegmentParts
from scansion.segments import Segment

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
